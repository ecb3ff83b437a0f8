//! What a primitive left to be done when the poll is over: once a poll, not once an operation.

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use crate::wake::PollEnd;

/// One deferred action per worker, with a counted reference to whoever asked for it.
///
/// The reference is kept from poll to poll, so that a primitive that is used in poll after poll
/// touches its count once. A primitive that differs from the kept one is refused the first time in
/// a poll (it does its work at once) and taken the second time: then it is worth the two counts.
pub(crate) struct HookSlot {
    kept: UnsafeCell<Option<Arc<dyn PollEnd>>>,
    /// The address of what is kept: for comparing without a borrow.
    address: Cell<*const ()>,
    /// Whether it is to be called at the end of this poll.
    due: Cell<bool>,
    /// Who was refused last in this poll.
    refused: Cell<*const ()>,
}

impl HookSlot {
    pub(crate) fn new() -> Self {
        Self {
            kept: UnsafeCell::new(None),
            address: Cell::new(std::ptr::null()),
            due: Cell::new(false),
            refused: Cell::new(std::ptr::null()),
        }
    }

    /// Asks for `poll_end` to be called after this poll. `false`: refused, do it now. `keep` makes
    /// the counted reference, if it is needed.
    #[inline]
    pub(crate) fn defer(&self, address: *const (), keep: impl FnOnce() -> Arc<dyn PollEnd>) -> bool {
        if self.address.get() == address {
            self.due.set(true);
            return true;
        }
        self.defer_other(address, keep)
    }

    #[cold]
    fn defer_other(&self, address: *const (), keep: impl FnOnce() -> Arc<dyn PollEnd>) -> bool {
        if self.due.get() || self.refused.replace(address) != address {
            return false;
        }
        self.address.set(address);
        self.due.set(true);
        // SAFETY: this thread alone has the slot, and no reference into it is alive: `run` holds
        // none across foreign code.
        let old = unsafe { std::mem::replace(&mut *self.kept.get(), Some(keep())) };
        drop(old);
        true
    }

    /// Takes a request of this poll back: its work has been done otherwise.
    #[inline]
    pub(crate) fn cancel(&self, address: *const ()) {
        if self.address.get() == address {
            self.due.set(false);
        }
    }

    /// The poll is over: does what was deferred.
    #[inline]
    pub(crate) fn run(&self) {
        if self.due.get() {
            self.run_due();
        }
        self.refused.set(std::ptr::null());
    }

    #[cold]
    fn run_due(&self) {
        self.due.set(false);
        // Taken out for the call: what it wakes may defer again.
        // SAFETY: this thread alone has the slot, and the borrow ends with the statement.
        let Some(hook) = (unsafe { (*self.kept.get()).take() }) else {
            return;
        };
        self.address.set(std::ptr::null());
        crate::panics::report("the end-of-poll hook of a primitive", || hook.poll_end());
        self.address.set(Arc::as_ptr(&hook).cast());
        // SAFETY: as above.
        let newer = unsafe { std::mem::replace(&mut *self.kept.get(), Some(hook)) };
        drop(newer);
    }

    /// Lets go of what is kept: the worker goes to sleep or ends.
    pub(crate) fn clear(&self) {
        self.due.set(false);
        self.address.set(std::ptr::null());
        // SAFETY: as above.
        let kept = unsafe { (*self.kept.get()).take() };
        drop(kept);
    }
}
