//! The handles of a task: one waits for its output, any number can end it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::header::{Header, Task, free};
use super::state::{HandleDropped, Wake};
use super::{Id, JoinError};
use crate::scheduler::{Place, schedule};
use crate::wake;

/// Waits for a task: awaiting it gives `Result<T, JoinError>`.
///
/// Dropping the handle detaches the task, which goes on. The handle is a future that can be polled
/// again after a Pending from anywhere; dropping it or an unfinished `&mut handle` await loses
/// nothing.
///
/// # Panics
/// When it is polled again after it has given the output.
///
/// ```
/// wakerun::block_on(async {
///     let task = wakerun::spawn(async { "done" });
///     assert_eq!(task.await.unwrap(), "done");
/// });
/// ```
pub struct JoinHandle<T> {
    /// Its reference is given back by this handle's own destructor.
    task: ManuallyDrop<Task>,
    /// Moves a `T` out, on whichever thread polls it.
    _output: PhantomData<fn() -> T>,
}

// SAFETY: the handle is a counted reference (`Task` is `Send` and `Sync`) through which a `T` moves
// to the thread that polls it; spawning demands `T: Send`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: `&JoinHandle` reaches only the header.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}
impl<T> std::panic::UnwindSafe for JoinHandle<T> {}
impl<T> std::panic::RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Takes over the join handle's reference of a new task.
    ///
    /// # Safety
    /// The task's output type is `T`, and its handle has not been made yet.
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Self {
        Self {
            // SAFETY: a new task counts one reference for its handle.
            task: ManuallyDrop::new(unsafe { Task::from_raw(header) }),
            _output: PhantomData,
        }
    }

    /// Asks the task to end: its future is dropped by the runtime soon, and the handle gives a
    /// cancelled [`JoinError`]. A task that has ended already, or ends in the poll that is going on,
    /// keeps its output.
    ///
    /// The future is never dropped on the caller's stack.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let task = wakerun::spawn(std::future::pending::<()>());
    ///     task.abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort(&self) {
        abort(&self.task);
    }

    /// A handle that can do no more than abort the task, and does not keep its output.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let task = wakerun::spawn(std::future::pending::<()>());
    ///     let remote = task.abort_handle();
    ///     wakerun::spawn(async move { remote.abort() });
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle {
            task: Task::clone(&self.task),
        }
    }

    /// Whether the task has ended; `true` means that awaiting it returns at once.
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.task.header().id
    }

    /// Registers `cx`'s waker, unless the task is done already.
    fn register(&mut self, cx: &Context<'_>) -> Poll<()> {
        let header = self.task.header();
        if header.state.is_complete() {
            return Poll::Ready(());
        }
        if header.state.has_join_waker() {
            let same = header.join_waker.with(|waker| {
                // SAFETY: JOIN_WAKER is set, so the waker is there, and nobody writes the cell but this handle. If
                // the task has ended meanwhile and moved it out, its bytes still stand there, which is all that is
                // compared.
                let waker = unsafe { &*waker.cast::<Waker>() };
                waker.will_wake(cx.waker())
            });
            if same {
                return Poll::Pending;
            }
            if !header.state.unset_join_waker() {
                return Poll::Ready(());
            }
            // SAFETY: JOIN_WAKER was set until now, and the task is not complete.
            drop(unsafe { take_waker(&self.task) });
        }
        let new = MaybeUninit::new(wake::clone_waker(cx.waker()));
        // SAFETY: JOIN_WAKER is not set, so the handle alone may touch the cell, and the cell holds no waker.
        header.join_waker.with_mut(|waker| unsafe { *waker = new });
        if header.state.set_join_waker() {
            return Poll::Pending;
        }
        // SAFETY: written just now; the task is complete and has found JOIN_WAKER unset.
        wake::recycle(unsafe { take_waker(&self.task) });
        Poll::Ready(())
    }
}

impl<T> JoinHandle<T> {
    /// The poll without the budget, for [`JoinSet`](super::JoinSet), which charges its own caller.
    pub(super) fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        std::task::ready!(self.register(cx));
        Poll::Ready(self.take_output())
    }

    /// Takes the output of the task, which is complete.
    fn take_output(&mut self) -> Result<T, JoinError> {
        debug_assert!(self.is_finished());
        let mut output: Option<Result<T, JoinError>> = None;
        let header = self.task.as_ptr();
        let to = (&raw mut output).cast();
        // SAFETY: the callers have seen that the task is complete, so its output is the handle's, and `T` is its type.
        unsafe { (self.task.header().vtable.take_output)(header, to) };
        output.expect("a JoinHandle was polled after it had given its output")
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Charged when there is something to give, so that waiting for many costs nothing.
        std::task::ready!(self.register(cx));
        std::task::ready!(wake::poll_budget(cx));
        Poll::Ready(self.take_output())
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let dropped = self.task.header().state.drop_handle();
        // SAFETY: this is the destructor, and the field is not used any more.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        match dropped {
            HandleDropped::Gone => {
                // Its reference has gone with the transition.
                let _ = task.into_raw();
            }
            // SAFETY: the transition gave the last reference back.
            HandleDropped::Free => unsafe { free(task.into_raw()) },
            HandleDropped::Waker => {
                // SAFETY: JOIN_WAKER was set until now, and the task was not complete: the cell is the handle's.
                drop(unsafe { take_waker(&task) });
                drop(task);
            }
            HandleDropped::Output => {
                // SAFETY: complete, and the handle owned the output until now.
                unsafe { (task.header().vtable.drop_output)(task.as_ptr()) };
                task.release_perhaps_last();
            }
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "JoinHandle", &self.task)
    }
}

/// Ends a task from anywhere; see [`JoinHandle::abort_handle`].
#[derive(Clone)]
pub struct AbortHandle {
    task: Task,
}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    pub fn abort(&self) {
        abort(&self.task);
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.task.header().state.is_complete()
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.task.header().id
    }
}

impl std::panic::UnwindSafe for AbortHandle {}
impl std::panic::RefUnwindSafe for AbortHandle {}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "AbortHandle", &self.task)
    }
}

/// Moves the join waker out of its cell.
///
/// # Safety
/// The caller is the handle, which alone may touch the cell now (table in `state.rs`), and the cell holds a waker.
unsafe fn take_waker(task: &Task) -> Waker {
    // SAFETY: the caller's promise.
    let waker = |cell: *const MaybeUninit<Waker>| unsafe { cell.cast::<Waker>().read() };
    task.header().join_waker.with(waker)
}

fn debug(f: &mut fmt::Formatter<'_>, name: &str, task: &Task) -> fmt::Result {
    let header = task.header();
    let mut out = f.debug_struct(name);
    out.field("id", &header.id);
    if let Some(name) = &header.name {
        out.field("name", name);
    }
    out.field("finished", &header.state.is_complete()).finish()
}

fn abort(task: &Task) {
    if task.header().state.abort() == Wake::Submit {
        // SAFETY: the transition counted a reference for the queue entry.
        let entry = unsafe { Task::from_raw(task.as_ptr()) };
        schedule(entry, Place::Tail);
    }
}
