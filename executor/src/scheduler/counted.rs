//! A worker's reference to its runtime, with spare counts for the tasks that it makes.
//!
//! A task counts a reference to its runtime, which a wake from outside may need when all else is gone. The counts of
//! tasks that are freed on a worker go to those that it makes next, so that the shared count stays as it is.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use super::Shared;

/// Spare counts that are kept, at most: tasks may be made by one worker and freed by another.
const MOST: usize = 4096;

pub(super) struct CountedShared {
    shared: Arc<Shared>,
    /// References that are counted and nobody has.
    spare: Cell<usize>,
}

impl CountedShared {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            spare: Cell::new(0),
        }
    }

    #[inline]
    pub(super) fn get(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// A reference: a spare one if there is one.
    #[inline]
    pub(super) fn count(&self) -> Arc<Shared> {
        let spare = self.spare.get();
        if spare == 0 {
            return Arc::clone(&self.shared);
        }
        self.spare.set(spare - 1);
        // SAFETY: `keep` forgot an `Arc` of the same runtime for each spare, so its count is there, and this takes
        // it over.
        unsafe { Arc::from_raw(Arc::as_ptr(&self.shared)) }
    }

    /// Takes a reference back.
    #[inline]
    pub(super) fn keep(&self, shared: Arc<Shared>) {
        debug_assert!(Arc::ptr_eq(&shared, &self.shared));
        let spare = self.spare.get();
        if spare < MOST {
            self.spare.set(spare + 1);
            std::mem::forget(shared);
        }
    }
}

impl Deref for CountedShared {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for CountedShared {
    fn drop(&mut self) {
        while self.spare.get() > 0 {
            drop(self.count());
        }
    }
}
