//! Who waits for the channel to close.

use std::collections::BTreeMap;
use std::task::Waker;

use wakerun::lock::Lock;
use wakerun::panics::FirstPanic;

/// Wakers of `closed()` futures, by a key that each future keeps.
pub(crate) struct ClosedWaiters {
    waiters: Lock<Waiters>,
}

struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl ClosedWaiters {
    pub(crate) fn new() -> Self {
        Self {
            waiters: Lock::new(Waiters {
                wakers: BTreeMap::new(),
                next_key: 0,
            }),
        }
    }

    /// Registers a waker, in place of the one under `key` if there is one, unless `closed` says
    /// under the lock that there is nothing to wait for. Returns the key.
    pub(crate) fn register(
        &self,
        key: Option<u64>,
        waker: Waker,
        closed: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let unneeded;
        let key = {
            let mut waiters = self.waiters.lock();
            if closed() {
                unneeded = Some(waker);
                None
            } else {
                let key = key.unwrap_or_else(|| {
                    waiters.next_key += 1;
                    waiters.next_key
                });
                unneeded = waiters.wakers.insert(key, waker);
                Some(key)
            }
        };
        // A waker's destructor is foreign code: after the lock.
        drop(unneeded);
        key
    }

    /// Forgets a waker.
    pub(crate) fn remove(&self, key: u64) {
        let waker = self.waiters.lock().wakers.remove(&key);
        drop(waker);
    }

    /// Wakes all; called after CLOSED has been set.
    pub(crate) fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.waiters.lock().wakers);
        let mut panics = FirstPanic::new();
        for waker in wakers.into_values() {
            panics.catch(|| waker.wake());
        }
        panics.resume("a waker");
    }
}
