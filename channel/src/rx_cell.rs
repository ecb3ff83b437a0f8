//! The receiver's waker, lent to one sender at a time.
//!
//! Who may touch the cell:
//!
//! | PARKED in the word | `acknowledged` = `park` | owner |
//! |:-:|:-:|---|
//! | 0 | yes | the receiver: it has not slept since, or has taken PARKED back |
//! | 1 | no | nobody yet: whoever clears PARKED |
//! | 0 | no | the one who cleared PARKED, until it acknowledges |
//!
//! The receiver sleeps again only after the last owner has acknowledged, so there is one owner at a
//! time, and an acknowledgement is a plain store.

use std::task::Waker;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicU32, Ordering};
use wakerun::wake::{Place, Wakeup};

pub(crate) struct RxCell {
    waker: UnsafeCell<Option<Waker>>,
    /// How often the receiver has prepared to sleep; the receiver's own, read by owners.
    ///
    /// It may wrap: only the last park and the one before it are ever told apart.
    park: AtomicU32,
    /// The park that the last owner has finished with.
    acknowledged: AtomicU32,
}

// SAFETY: the waker is reached by one owner at a time, by the table above.
unsafe impl Sync for RxCell {}

impl RxCell {
    pub(crate) fn new() -> Self {
        Self {
            waker: UnsafeCell::new(None),
            park: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
        }
    }

    /// Whether the cell is the receiver's.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        // Acquire pairs with `acknowledge`: the owner's reads are over.
        self.acknowledged.load(Ordering::Acquire) == self.park.load(Ordering::Relaxed)
    }

    /// Whether the cell holds a waker for `waker`'s task.
    ///
    /// # Safety
    /// The caller is the receiver and the cell is free.
    #[inline]
    pub(crate) unsafe fn holds(&self, waker: &Waker) -> bool {
        self.waker.with(|mine| {
            // SAFETY: the receiver owns the free cell.
            let mine = unsafe { &*mine };
            mine.as_ref().is_some_and(|mine| mine.will_wake(waker))
        })
    }

    /// Makes the cell hold a waker for `waker`'s task; returns what is to be dropped.
    ///
    /// # Safety
    /// The caller is the receiver and the cell is free.
    #[inline]
    pub(crate) unsafe fn set(&self, waker: &Waker) -> Option<Waker> {
        // SAFETY: handed on.
        if unsafe { self.holds(waker) } {
            return None;
        }
        let new = wakerun::wake::clone_waker(waker);
        // SAFETY: as above; no reference into the cell is alive.
        self.waker.with_mut(|mine| unsafe { (*mine).replace(new) })
    }

    /// Counts a park: from here on the cell is not the receiver's, until it takes PARKED back or
    /// sees the acknowledgement. Called before PARKED is set.
    #[inline]
    pub(crate) fn begin_park(&self) {
        let park = self.park.load(Ordering::Relaxed);
        // Published by the exchange that sets PARKED.
        self.park.store(park.wrapping_add(1), Ordering::Relaxed);
    }

    /// The owner is finished with the cell.
    #[inline]
    pub(crate) fn acknowledge(&self) {
        // Ordered after `begin_park` by PARKED: set after it, cleared before this.
        let park = self.park.load(Ordering::Relaxed);
        // Release pairs with `is_free`.
        self.acknowledged.store(park, Ordering::Release);
    }

    /// Wakes the receiver: the duty of whoever cleared PARKED.
    ///
    /// The waker is not called while the cell is lent: a foreign one may run the receiver on this
    /// very stack, which would wait for the acknowledgement.
    ///
    /// # Safety
    /// The caller has cleared PARKED, and calls this once.
    #[inline]
    pub(crate) unsafe fn wake(&self) {
        let lent = Lent(self);
        let wakeup = self.waker.with(|waker| {
            // SAFETY: clearing PARKED made the caller the owner. (A foreign waker's `clone` runs here,
            // while the cell is lent; one that drops the receiver of this channel waits for itself.)
            let waker = unsafe { &*waker };
            waker.as_ref().map(Wakeup::of)
        });
        drop(lent);
        if let Some(wakeup) = wakeup {
            wakeup.fire(Place::Next);
        }
    }

    /// Takes the waker out.
    ///
    /// # Safety
    /// The caller owns the cell.
    pub(crate) unsafe fn take(&self) -> Option<Waker> {
        // SAFETY: handed on.
        self.waker.with_mut(|waker| unsafe { (*waker).take() })
    }
}

/// Acknowledges also when a foreign waker panics while it is cloned.
struct Lent<'a>(&'a RxCell);

impl Drop for Lent<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.acknowledge();
    }
}
