//! The side of a worker that other threads see.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::parker::Parker;
use super::phase::Phase;
use super::ring::Stealer;
use super::worth::{UNKNOWN_MEAN_NS, worth_a_worker};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::task::header::{Header, Task};

pub(crate) struct Remote {
    /// The other end of the worker's ring.
    pub(crate) stealer: Stealer,
    pub(crate) next: NextSlot,
    pub(crate) parker: Parker,
    /// Whether the worker is inside a poll; stands still during a long one, and while the worker sleeps.
    pub(crate) phase: Phase,
    /// The mean time of the last polls, in nanoseconds. A hint, which models leave out: to them, time is chance.
    mean_ns: AtomicU32,
}

impl Remote {
    pub(crate) fn new(stealer: Stealer) -> Self {
        Self {
            stealer,
            next: NextSlot::new(),
            parker: Parker::new(),
            phase: Phase::new(),
            mean_ns: AtomicU32::new(UNKNOWN_MEAN_NS),
        }
    }

    pub(crate) fn mean_ns(&self) -> u32 {
        self.mean_ns.load(Ordering::Relaxed)
    }

    /// Relaxed: a stale mean costs a wake too many or a millisecond.
    pub(crate) fn set_mean_ns(&self, mean: u32) {
        self.mean_ns.store(mean, Ordering::Relaxed);
    }

    /// How many of `queued` tasks a thief may take: half, or none if they are not worth it.
    pub(crate) fn share(&self, queued: usize) -> usize {
        if worth_a_worker(queued, self.mean_ns()) {
            queued - queued / 2
        } else {
            0
        }
    }
}

/// The task that its worker runs next, before its ring: the receiver of a message just sent.
///
/// Only the owner fills it. A thief that has leave to come may empty it, when the owner is stuck in a poll.
pub(crate) struct NextSlot(AtomicPtr<Header>);

impl NextSlot {
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Puts a task in; the owner only. Returns the one that stood there.
    #[inline]
    pub(crate) fn put(&self, task: Task) -> Option<Task> {
        let task = task.into_raw().as_ptr();
        // Nobody else fills the slot, so an empty one needs no exchange. Release pairs with the
        // Acquire of whoever takes the task.
        if self.0.load(Ordering::Relaxed).is_null() {
            self.0.store(task, Ordering::Release);
            return None;
        }
        Self::own(self.0.swap(task, Ordering::AcqRel))
    }

    /// Takes the task out. `alone`: the owner does, and no thief can come, as
    /// [`Turns::alone`](super::phase::Turns::alone) says.
    #[inline]
    pub(crate) fn take(&self, alone: bool) -> Option<Task> {
        let task = self.0.load(Ordering::Relaxed);
        if task.is_null() {
            return None;
        }
        if alone {
            self.0.store(std::ptr::null_mut(), Ordering::Relaxed);
            return Self::own(task);
        }
        Self::own(self.0.swap(std::ptr::null_mut(), Ordering::Acquire))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    #[inline]
    fn own(task: *mut Header) -> Option<Task> {
        // SAFETY: the slot's reference was counted when the task was put in, and this thread alone has removed
        // the pointer: by an exchange, or as the owner without thieves.
        NonNull::new(task).map(|task| unsafe { Task::from_raw(task) })
    }
}
