//! The lock of the short critical sections: one locked instruction to take, a plain store to give.
//!
//! A futex or parking-lot mutex pays a second locked instruction on unlock, to learn whether
//! somebody sleeps. This lock keeps no record of sleepers: a contender spins for about a
//! microsecond, then yields its core, then naps for a bounded time. That trade is right only because
//! of the rule that everything in this workspace keeps: *no foreign code runs under a lock*, so a
//! section is some tens of nanoseconds long and its holder can be late only by being preempted.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{UnsafeCell, spin_loop};

/// Spins before the first yield: about a microsecond, several times the longest section.
const SPINS: u32 = 64;
/// Yields before the first nap: a preempted holder on a loaded machine gets its core back by these.
#[cfg(not(wakerun_loom))]
const YIELDS: u32 = 32;
/// The longest nap. It bounds how late a contender can be, since nobody wakes it.
#[cfg(not(wakerun_loom))]
const LONGEST_NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// A mutual-exclusion lock without poisoning; see the module's page for when it is the right one.
///
/// What it guards begins right behind the flag, mostly in the same cache line.
#[repr(C)]
pub struct Lock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value moves between threads only inside the lock, hence `T: Send`.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: a shared `Lock` gives access to one thread at a time, so `T: Sync` is not needed.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// An unlocked lock around `value`.
    #[cfg(not(wakerun_loom))]
    pub const fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// An unlocked lock around `value`.
    #[cfg(wakerun_loom)]
    pub fn new(value: T) -> Self {
        Self {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock and takes it.
    #[inline]
    pub fn lock(&self) -> LockGuard<'_, T> {
        if !self.try_acquire() {
            self.lock_contended();
        }
        LockGuard { lock: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        // Not `then_some`: a guard that is made and dropped on failure would unlock the holder's lock.
        self.try_acquire().then(|| LockGuard { lock: self })
    }

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire pairs with the Release store of the previous holder's unlock.
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) {
        for _ in 0..SPINS {
            // Look before the exchange, so that waiting does not take the line from the holder.
            if !self.locked.load(Ordering::Relaxed) && self.try_acquire() {
                return;
            }
            spin_loop();
        }
        #[cfg(wakerun_loom)]
        while !self.try_acquire() {
            spin_loop();
        }
        #[cfg(not(wakerun_loom))]
        self.lock_preempted();
    }

    /// The holder has probably lost its core: give ours away, then sleep.
    #[cfg(not(wakerun_loom))]
    fn lock_preempted(&self) {
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if self.try_acquire() {
                return;
            }
        }
        let mut nap = std::time::Duration::from_micros(50);
        while !self.try_acquire() {
            std::thread::sleep(nap);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }
}

impl<T> fmt::Debug for Lock<T> {
    /// Never waits and never looks inside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// Access to the locked value; dropping it unlocks.
#[must_use = "the lock is given back at once if the guard is not kept"]
pub struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only between acquire and unlock, so nobody else has access.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` keeps this thread from a second reference.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Release pairs with the Acquire of the next holder. Nobody sleeps for this store.
        self.lock.locked.store(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    #[test]
    fn many_threads_count_exactly() {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let count = Lock::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        *count.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*count.lock(), 8 * ROUNDS);
    }

    #[test]
    fn try_lock_tells_a_held_lock() {
        let lock = Lock::new(());
        let held = lock.lock();
        assert!(lock.try_lock().is_none());
        assert!(
            lock.try_lock().is_none(),
            "the failed try has not unlocked it"
        );
        drop(held);
        assert!(lock.try_lock().is_some());
    }
}
