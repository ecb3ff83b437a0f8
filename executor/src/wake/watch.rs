//! Looking at a task's polls from a primitive that it waits in.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use crate::context;
use crate::runtime::{Main, main_of};
use crate::task::header::Header;
use crate::task::waker;

/// Something that looks at the polls of tasks that wait in it: such as a lock or a semaphore that takes
/// back what it has granted to a task which does not come for it.
pub trait PollWatch {
    /// A poll of a task that is [watched](watch_polls) is over, and it is not known to have come to all who
    /// have asked ([`note_poll`]). Called on the thread of the poll, with
    /// no fence made. `false`: the task need not be watched any more.
    fn poll_over(&self, poller: &Poller<'_>) -> bool;
}

/// A task, or the future of a `block_on`, at the end of a poll.
pub struct Poller<'a> {
    who: Who,
    epoch: u64,
    over: bool,
    _alive: PhantomData<&'a ()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Task(NonNull<Header>),
    Main(NonNull<Main>),
}

impl Who {
    /// Whom a waker wakes, if it is one of ours.
    #[inline]
    fn behind(waker: &Waker) -> Option<Self> {
        match waker::task_of(waker) {
            Some(header) => Some(Self::Task(header)),
            None => main_of(waker).map(Self::Main),
        }
    }
}

impl<'a> Poller<'a> {
    pub(crate) fn new(header: &'a Header, over: bool) -> Self {
        Self {
            who: Who::Task(NonNull::from(header)),
            epoch: header.epoch(),
            over,
            _alive: PhantomData,
        }
    }

    pub(crate) fn of_main(main: &'a Main, over: bool) -> Self {
        Self {
            who: Who::Main(NonNull::from(main)),
            epoch: main.epoch(),
            over,
            _alive: PhantomData,
        }
    }

    /// The task's epoch, as in [`TaskRef::epoch`](super::TaskRef::epoch); even.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the task is over, too: it was polled for the last time.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether `waker` is the task's own.
    pub fn owns(&self, waker: &Waker) -> bool {
        Who::behind(waker) == Some(self.who)
    }
}

impl fmt::Debug for Poller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller")
            .field("epoch", &self.epoch)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// Whether `waker` is the own waker of the task, or of the future in `block_on`, that is being polled on
/// this thread: then whoever waits with it is polled when the task is. It is not inside combinators that
/// have wakers of their own, such as `FuturesUnordered`, nor off the runtime.
///
/// ```
/// use std::task::Waker;
///
/// assert!(!wakerun::wake::is_own_waker(Waker::noop()));
/// wakerun::block_on(async {
///     wakerun::spawn(std::future::poll_fn(|cx| {
///         assert!(wakerun::wake::is_own_waker(cx.waker()));
///         std::task::Poll::Ready(())
///     }))
///     .await
///     .unwrap();
/// });
/// ```
#[inline]
pub fn is_own_waker(waker: &Waker) -> bool {
    match waker::task_of(waker) {
        Some(header) => context::is_current_task(header),
        None => {
            main_of(waker).is_some_and(|main| std::ptr::eq(context::current_main(), main.as_ptr()))
        }
    }
}

/// The epoch of the task, or of the future in `block_on`, that a waker wakes, as in
/// [`TaskRef::epoch`](super::TaskRef::epoch); `None` for a waker of something else.
///
/// ```
/// assert_eq!(wakerun::wake::epoch_of(std::task::Waker::noop()), None);
/// ```
#[inline]
pub fn epoch_of(waker: &Waker) -> Option<u64> {
    Who::behind(waker).map(|who| match who {
        // SAFETY: the borrowed waker keeps the task.
        Who::Task(header) => unsafe { header.as_ref() }.epoch(),
        // SAFETY: the borrowed waker keeps it, too.
        Who::Main(main) => unsafe { main.as_ref() }.epoch(),
    })
}

/// Asks for [`PollWatch::poll_over`] to be called at the end of this poll and of each later one of the
/// current task or future in `block_on`, until it says `false` or that is over. `false`: there is none.
///
/// Asks are counted: [`unwatch_polls`] takes one back, and when none is left the primitive is not told any
/// more. One that cannot be taken back, as from another task, does no harm: it costs a call a poll.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use wakerun::wake::{Poller, PollWatch, watch_polls};
///
/// #[derive(Default)]
/// struct Polls(AtomicU64);
/// impl PollWatch for Polls {
///     fn poll_over(&self, _: &Poller<'_>) -> bool {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         true
///     }
/// }
///
/// let polls = Arc::new(Polls::default());
/// assert!(!watch_polls(&polls), "no task");
/// let watched = polls.clone();
/// wakerun::block_on(async {
///     wakerun::spawn(async move {
///         assert!(watch_polls(&watched));
///         wakerun::task::yield_now().await;
///     })
///     .await
///     .unwrap();
/// });
/// assert_eq!(polls.0.load(Ordering::Relaxed), 2);
/// ```
pub fn watch_polls<H: PollWatch + Send + Sync + 'static>(watch: &Arc<H>) -> bool {
    // SAFETY: nothing borrowed in `H`.
    unsafe { watch_polls_unchecked(watch) }
}

/// Takes one ask of [`watch_polls`] back, in a poll of the same task.
///
/// ```
/// # struct Nothing;
/// # impl wakerun::wake::PollWatch for Nothing {
/// #     fn poll_over(&self, _: &wakerun::wake::Poller<'_>) -> bool { false }
/// # }
/// wakerun::wake::unwatch_polls(&Nothing);
/// ```
pub fn unwatch_polls<H: PollWatch>(watch: &H) {
    let address = std::ptr::from_ref(watch).cast();
    context::with_current_task(|header| match header {
        Some(header) => header.watches.with_mut(|watches| {
            // SAFETY: this thread polls the task, so it alone has the watches.
            unsafe { &mut *watches }.take_back(address);
        }),
        None => {
            // SAFETY: the poll in progress keeps it.
            if let Some(main) = unsafe { context::current_main().as_ref() } {
                // SAFETY: this thread polls it.
                unsafe { main.unwatch(address) };
            }
        }
    });
}

/// Says that a future of the primitive for which polls are [watched](watch_polls) is being polled. When this was
/// said of all asks in a poll, the primitive is not told of its end: the poll has passed nobody by. (It is
/// told of the last one in any case.)
///
/// `last` is what this returned in an earlier poll of that future, or 0. To say it twice in a poll does no
/// harm then.
///
/// ```
/// # struct Nothing;
/// # impl wakerun::wake::PollWatch for Nothing {
/// #     fn poll_over(&self, _: &wakerun::wake::Poller<'_>) -> bool { false }
/// # }
/// assert_eq!(wakerun::wake::note_poll(&Nothing, 0), 0, "no task");
/// ```
pub fn note_poll<H: PollWatch>(watch: &H, last: u64) -> u64 {
    let address = std::ptr::from_ref(watch).cast();
    context::with_current_task(|header| match header {
        Some(header) => {
            let epoch = header.epoch();
            if epoch != last {
                // SAFETY: this thread polls the task, so it alone has the watches.
                header
                    .watches
                    .with_mut(|watches| unsafe { &mut *watches }.note_poll(address));
            }
            epoch
        }
        None => {
            // SAFETY: the poll in progress keeps it.
            let Some(main) = (unsafe { context::current_main().as_ref() }) else {
                return 0;
            };
            let epoch = main.epoch();
            if epoch != last {
                // SAFETY: this thread polls it.
                unsafe { main.note_poll(address) };
            }
            epoch
        }
    })
}

/// Which task, or future in `block_on`, is being polled on this thread: a number that no other one has at
/// the same time, and 0 for none.
///
/// ```
/// assert_eq!(wakerun::wake::current_poller(), 0);
/// wakerun::block_on(async { assert_ne!(wakerun::wake::current_poller(), 0) });
/// ```
pub fn current_poller() -> usize {
    context::with_current_task(|header| match header {
        Some(header) => std::ptr::from_ref(header).addr(),
        None => context::current_main().addr(),
    })
}

/// [`watch_polls`] for types that borrow.
///
/// # Safety
/// The runtime may call `poll_over` and drop the last reference after what `H` borrows is gone, so
/// neither may touch borrowed data. In a task, `H` may be sent to the threads of the runtime.
///
/// ```
/// # use std::sync::Arc;
/// # struct Nothing;
/// # impl wakerun::wake::PollWatch for Nothing {
/// #     fn poll_over(&self, _: &wakerun::wake::Poller<'_>) -> bool { false }
/// # }
/// // SAFETY: `Nothing` borrows nothing.
/// assert!(!unsafe { wakerun::wake::watch_polls_unchecked(&Arc::new(Nothing)) });
/// ```
pub unsafe fn watch_polls_unchecked<H: PollWatch>(watch: &Arc<H>) -> bool {
    let address = Arc::as_ptr(watch).cast();
    let counted = || {
        let watch: Arc<dyn PollWatch + '_> = watch.clone();
        // SAFETY: only the lifetime changes; the caller vouches for what happens after it.
        unsafe { std::mem::transmute::<Arc<dyn PollWatch + '_>, Arc<dyn PollWatch>>(watch) }
    };
    context::with_current_task(|header| {
        let Some(header) = header else {
            // SAFETY: the poll in progress keeps it.
            let main = unsafe { context::current_main().as_ref() };
            if let Some(main) = main {
                // SAFETY: this thread polls it.
                unsafe { main.watch(address, counted) };
            }
            return main.is_some();
        };
        header.watches.with_mut(|watches| {
            // SAFETY: this thread polls the task, so it alone has the watches; `add` runs no code
            // that could come here again.
            let watches = unsafe { &mut *watches };
            watches.add(address, counted);
        });
        true
    })
}
