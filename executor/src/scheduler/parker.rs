//! Puts one thread to sleep until it is told otherwise, with a token that is never lost.
//!
//! The token is ours and not `std`'s: code of a task may call `thread::park` itself and take a token
//! that was meant for the scheduler, and may leave one behind.
//!
//! | state | who may sleep, and where | a token |
//! |---|---|---|
//! | EMPTY | nobody | none |
//! | PARKED | the owner, in `thread::park` | none |
//! | IN_DRIVER | the owner, in the driver's wait | none |
//! | NOTIFIED | nobody for long | one |
//!
//! The owner goes from EMPTY to one of the two places by an exchange that fails if a token is there,
//! and comes back to EMPTY by one that tells whether a token has come. Who brings a token exchanges
//! the state for NOTIFIED and so learns where the owner sleeps, or is about to. It ends a sleep in
//! the driver with an interruption that the driver remembers, so that a wait which has not begun
//! yet ends at once; one that comes too late ends somebody's later wait, who finds no token and
//! waits again.

use std::time::{Duration, Instant};

use crate::lock::Lock;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::thread::{self, Thread};

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;
const IN_DRIVER: u32 = 3;

/// A sleeping place for one thread at a time.
#[derive(Debug)]
pub(crate) struct Parker {
    state: AtomicU32,
    /// Who sleeps here; set before `state` becomes PARKED for the first time.
    thread: Lock<Option<Thread>>,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            thread: Lock::new(None),
        }
    }

    /// Says that the calling thread is the one that will park here.
    pub(crate) fn attach(&self) {
        let old = self.thread.lock().replace(thread::current());
        drop(old);
    }

    /// Whether there is a token, by a look that hands nothing over.
    pub(crate) fn has_token(&self) -> bool {
        self.state.load(Ordering::Relaxed) == NOTIFIED
    }

    /// Sleeps until a token is there, and takes it.
    pub(crate) fn park(&self) {
        if self.prepare(PARKED) {
            return;
        }
        loop {
            thread::park();
            if self.take_token() {
                return;
            }
        }
    }

    /// Sleeps until a token is there, and takes it, or until the time is over. `true`: a token.
    #[cfg(not(wakerun_loom))]
    pub(crate) fn park_timeout(&self, timeout: Duration) -> bool {
        if self.prepare(PARKED) {
            return true;
        }
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                // One exchange decides whether a token came at the last moment.
                return self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED;
            }
            std::thread::park_timeout(left);
            if self.take_token() {
                return true;
            }
        }
    }

    /// Under loom there is no time: a timeout is a park that may end at once.
    #[cfg(wakerun_loom)]
    pub(crate) fn park_timeout(&self, _timeout: Duration) -> bool {
        let _ = Instant::now;
        if self.prepare(PARKED) {
            return true;
        }
        thread::yield_now();
        self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// Sleeps elsewhere: `wait` returns at the latest soon after the `interrupt` of
    /// [`unpark_or`](Self::unpark_or) has been called, even if that happens before it begins. `true`:
    /// a token, which is taken. Whoever sleeps in `wait` must be ready for interruptions without one.
    pub(crate) fn park_in(&self, wait: impl FnOnce()) -> bool {
        if self.prepare(IN_DRIVER) {
            return true;
        }
        wait();
        // Acquire pairs with the Release in `unpark_or`.
        self.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED
    }

    /// `true`: there was a token already.
    fn prepare(&self, place: u32) -> bool {
        match self
            .state
            .compare_exchange(EMPTY, place, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => false,
            Err(_) => {
                // Only NOTIFIED can stand here: one thread parks. Acquire pairs with `unpark`.
                let old = self.state.swap(EMPTY, Ordering::Acquire);
                debug_assert_eq!(old, NOTIFIED);
                true
            }
        }
    }

    fn take_token(&self) -> bool {
        // Acquire pairs with the Release in `unpark`: what the waker did before is visible.
        self.state
            .compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Leaves a token, and ends the sleep if there is one; for places whose owner never sleeps
    /// elsewhere.
    pub(crate) fn unpark(&self) {
        self.unpark_or(|| ());
    }

    /// Leaves a token, and ends the sleep if there is one: that in [`park_in`](Self::park_in) by
    /// `interrupt`.
    pub(crate) fn unpark_or(&self, interrupt: impl FnOnce()) {
        // Release pairs with the Acquire of whoever takes the token.
        match self.state.swap(NOTIFIED, Ordering::Release) {
            PARKED => {
                let thread = self.thread.lock().clone();
                if let Some(thread) = thread {
                    thread.unpark();
                }
            }
            IN_DRIVER => interrupt(),
            _ => {}
        }
    }
}
