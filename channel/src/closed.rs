//! Who waits for the channel to close.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, Waker};

use wakerun::lock::Lock;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicPtr, Ordering, fence};
use wakerun::wake;

/// Wakers of `closed()` futures, by a key that each future keeps. Few channels have any, so they take a pointer
/// until somebody waits.
pub(crate) struct ClosedWaiters {
    waiters: AtomicPtr<Lock<Waiters>>,
}

struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl ClosedWaiters {
    pub(crate) fn new() -> Self {
        Self {
            waiters: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The waiters, if there has ever been one.
    fn get(&self) -> Option<&Lock<Waiters>> {
        // Acquire pairs with the Release in `get_or_make`.
        let waiters = self.waiters.load(Ordering::Acquire);
        // SAFETY: null, or from a box that goes with this.
        unsafe { waiters.as_ref() }
    }

    fn get_or_make(&self) -> &Lock<Waiters> {
        if let Some(waiters) = self.get() {
            return waiters;
        }
        let new = Box::into_raw(Box::new(Lock::new(Waiters {
            wakers: BTreeMap::new(),
            next_key: 0,
        })));
        let made = self.waiters.compare_exchange(
            ptr::null_mut(),
            new,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let waiters = match made {
            Ok(_) => new,
            Err(found) => {
                // SAFETY: made here, and known to nobody else.
                drop(unsafe { Box::from_raw(new) });
                found
            }
        };
        // SAFETY: from a box that goes with this.
        unsafe { &*waiters }
    }

    /// Registers a waker, in place of the one under `key` if there is one, unless `closed` says
    /// under the lock that there is nothing to wait for. Returns the key.
    pub(crate) fn register(
        &self,
        key: Option<u64>,
        waker: Waker,
        closed: impl FnOnce() -> bool,
    ) -> Option<u64> {
        let waiters = self.get_or_make();
        // Pairs with the fence in `wake_all`: it sees that there are waiters, and then comes to the lock before or
        // after this, or this sees that the channel is closed.
        fence(Ordering::SeqCst);
        let unneeded;
        let key = {
            let mut waiters = waiters.lock();
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
        let waker = self.get().map(|waiters| waiters.lock().wakers.remove(&key));
        drop(waker);
    }

    /// Wakes all; called after CLOSED has been set.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        let Some(waiters) = self.get() else {
            return;
        };
        let wakers = std::mem::take(&mut waiters.lock().wakers);
        let mut panics = FirstPanic::new();
        for waker in wakers.into_values() {
            panics.catch(|| waker.wake());
        }
        panics.resume("a waker");
    }
}

impl Drop for ClosedWaiters {
    fn drop(&mut self) {
        let waiters = self.waiters.load(Ordering::Relaxed);
        if !waiters.is_null() {
            // SAFETY: made from a box, and nobody is left to use it.
            drop(unsafe { Box::from_raw(waiters) });
        }
    }
}

/// A sender whose channel can be closed.
pub(crate) trait Closing {
    fn closed_waiters(&self) -> &ClosedWaiters;

    fn has_closed(&self) -> bool;
}

/// The future of a sender's `closed`: waits until the channel is closed.
///
/// # Cancel safety
/// Dropping it has no effect.
#[expect(private_bounds, reason = "sealed: the senders of this crate")]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Closed<'a, S: Closing> {
    sender: &'a S,
    key: Option<u64>,
}

#[expect(private_bounds, reason = "as above")]
impl<'a, S: Closing> Closed<'a, S> {
    pub(crate) fn new(sender: &'a S) -> Self {
        Self { sender, key: None }
    }
}

impl<S: Closing> Future for Closed<'_, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let sender = self.sender;
        if sender.has_closed() {
            return wake::poll_budget(cx);
        }
        let waker = cx.waker().clone();
        let key = sender
            .closed_waiters()
            .register(self.key, waker, || sender.has_closed());
        match key {
            None => Poll::Ready(()),
            Some(key) => {
                self.key = Some(key);
                Poll::Pending
            }
        }
    }
}

impl<S: Closing> Drop for Closed<'_, S> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.sender.closed_waiters().remove(key);
        }
    }
}

impl<S: Closing> fmt::Debug for Closed<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
