//! The future that a thread runs in `block_on`: its waker, and what primitives may know of its polls.
//!
//! It is no task, but waits in primitives as tasks do; so it has an epoch and watches, too.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
// No step of a model: nothing is handed over by it.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::context;
use crate::scheduler::Shared;
use crate::scheduler::parker::Parker;
use crate::sync::UnsafeCell;
use crate::task::watches::Watches;
use crate::wake::{PollWatch, Poller};

/// One table for all, so that its address tells these wakers from others.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// What wakes one caller of `block_on`.
pub(crate) struct Main {
    /// How often a poll began or ended: odd while it is polled. Written by the thread that polls.
    epoch: AtomicU64,
    /// Touched by the thread that polls.
    watches: UnsafeCell<Watches>,
    /// It has been woken since its last poll.
    woken: AtomicBool,
    /// Where its thread sleeps when it has no worker.
    pub(super) parker: Parker,
    /// Where it sleeps when it runs the worker of a current-thread runtime.
    shared: Option<Arc<Shared>>,
}

// SAFETY: the watches are touched by the one thread that polls; it empties them before it leaves.
unsafe impl Send for Main {}
// SAFETY: as above; all else is atomics and the parker.
unsafe impl Sync for Main {}

impl Main {
    /// Woken, so that it is polled a first time. For the calling thread.
    pub(super) fn new(shared: Option<Arc<Shared>>) -> Arc<Self> {
        let main = Arc::new(Self {
            epoch: AtomicU64::new(0),
            watches: UnsafeCell::new(Watches::default()),
            woken: AtomicBool::new(true),
            parker: Parker::new(),
            shared,
        });
        main.parker.attach();
        main
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        let data = Arc::into_raw(self.clone()).cast();
        // SAFETY: the table's functions expect what `into_raw` gave, with a reference for each waker.
        unsafe { Waker::new(data, &VTABLE) }
    }

    fn wake(&self) {
        let Some(shared) = &self.shared else {
            self.parker.unpark();
            return;
        };
        // AcqRel: pairs with the swap in `take_woken`, and orders the tokens after the flag.
        if !self.woken.swap(true, Ordering::AcqRel) {
            // The thread sleeps in one of the two places; a token at the other ends a later sleep
            // there early, which is harmless.
            self.parker.unpark();
            shared.unpark(0);
        }
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    pub(super) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Runs a poll of the future.
    pub(super) fn poll<R>(&self, poll: impl FnOnce() -> R) -> R {
        let _poll = PollInProgress::new(self);
        poll()
    }

    /// Tells those who watch that a poll is over. By the thread that polls.
    pub(super) fn poll_over(&self) {
        // SAFETY: this thread polls, and alone has the watches.
        let empty = self
            .watches
            .with(|watches| unsafe { (*watches).is_empty() });
        if empty {
            return;
        }
        let mut watches = self.take_watches();
        watches.poll_over(&Poller::of_main(self, false));
        // SAFETY: as above; nobody adds one between two polls.
        self.watches.with_mut(|mine| unsafe { *mine = watches });
    }

    /// The `block_on` is over: the watches, which belong to this thread, go.
    pub(super) fn end(&self) {
        let mut watches = self.take_watches();
        watches.poll_over(&Poller::of_main(self, true));
        watches.clear();
    }

    /// Takes the watches out for calls, which may wake.
    fn take_watches(&self) -> Watches {
        // SAFETY: this thread polls, and alone has the watches.
        self.watches
            .with_mut(|watches| std::mem::take(unsafe { &mut *watches }))
    }

    /// Adds a watcher.
    ///
    /// # Safety
    /// The calling thread polls this future.
    pub(crate) unsafe fn watch(
        &self,
        address: *const (),
        watch: impl FnOnce() -> Arc<dyn PollWatch>,
    ) {
        self.watches.with_mut(|watches| {
            // SAFETY: this thread alone has the watches; `add` runs no code that could come here again.
            let watches = unsafe { &mut *watches };
            watches.add(address, watch);
        });
    }

    /// Takes an ask back.
    ///
    /// # Safety
    /// The calling thread polls this future.
    pub(crate) unsafe fn unwatch(&self, address: *const ()) {
        // SAFETY: this thread alone has the watches.
        self.watches
            .with_mut(|watches| unsafe { &mut *watches }.take_back(address));
    }

    /// One that has asked is being polled.
    ///
    /// # Safety
    /// The calling thread polls this future.
    pub(crate) unsafe fn note_poll(&self, address: *const ()) {
        // SAFETY: this thread alone has the watches.
        self.watches
            .with_mut(|watches| unsafe { &mut *watches }.note_poll(address));
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn advance_epoch(&self) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Release pairs with the Acquire in `epoch`.
        self.epoch.store(epoch.wrapping_add(1), Ordering::Release);
    }
}

/// The main future behind a waker of this kind.
pub(crate) fn main_of(waker: &Waker) -> Option<NonNull<Main>> {
    if std::ptr::eq(waker.vtable(), &raw const VTABLE) {
        NonNull::new(waker.data().cast_mut().cast())
    } else {
        None
    }
}

/// Makes the future the polled one of this thread; restores what was before, also when it panics.
struct PollInProgress<'a> {
    main: &'a Main,
    previous: *const Main,
}

impl<'a> PollInProgress<'a> {
    fn new(main: &'a Main) -> Self {
        main.advance_epoch();
        Self {
            main,
            previous: context::replace_main(main),
        }
    }
}

impl Drop for PollInProgress<'_> {
    fn drop(&mut self) {
        let _ = context::replace_main(self.previous);
        self.main.advance_epoch();
    }
}

/// Lets a `block_on` end in order on every way out.
pub(super) struct Ends<'a>(pub(super) &'a Main);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A reference for the time of a call, which stays counted for whoever has it.
///
/// # Safety
/// `data` is what `Arc::into_raw` gave, and its reference is alive.
unsafe fn borrow(data: *const ()) -> ManuallyDrop<Arc<Main>> {
    // SAFETY: handed on; it is not dropped here.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast()) })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the cloned waker's reference is alive.
    let main = unsafe { borrow(data) };
    std::mem::forget(Arc::clone(&main));
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the consumed waker's reference is ours.
    let main: Arc<Main> = unsafe { Arc::from_raw(data.cast()) };
    main.wake();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the borrowed waker's reference is alive.
    let main = unsafe { borrow(data) };
    main.wake();
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the consumed waker's reference is ours.
    drop(unsafe { Arc::<Main>::from_raw(data.cast()) });
}
