//! The timers of a runtime: one wheel behind a short lock.
//!
//! **A new timer against the driver's sleep.** Whoever waits in the driver has told, under the lock,
//! until when it means to sleep; whoever brings a timer compares with that under the same lock.
//!
//! | the one who goes to sleep | the one who brings a timer |
//! |---|---|
//! | 1 lock: reads the next tick, writes it to `planned`; unlock | 1 lock: links the entry, reads `planned`; if it is due before: writes its own tick there; unlock |
//! | 2 waits until then | 2 if it was: interrupts the wait |
//! | 3 lock: `planned` = AWAKE; unlock | |
//!
//! If the timer's section comes first, the sleeper's reads it. If the sleeper's comes first, the
//! bringer sees `planned`, and interrupts a wait that would end too late; an interruption before the
//! wait has begun ends it at once. A timer that is due later interrupts nobody, nor does a second one
//! after the first that has. When nobody sleeps in the driver, nothing needs to be interrupted:
//! whoever comes to sleep reads the wheel. The models in `loom_tests.rs` check it.
//!
//! One lock for all workers: its sections are some tens of nanoseconds, those of firing are cut at
//! [`STEPS`] entries.

mod entry;
#[cfg(all(test, not(wakerun_loom)))]
mod tests;
mod wheel;

use std::task::Waker;

pub(crate) use entry::{Entry, State};
use wheel::{Step, Wheel};

use crate::lock::Lock;
use crate::panics;
use crate::wake::{self, Batch, Place};

/// Steps of the wheel in one hold of the lock.
const STEPS: usize = 64;
/// Nobody sleeps in the driver.
const AWAKE: u64 = 0;
/// Somebody sleeps there without a limit.
const FOR_EVER: u64 = u64::MAX;

pub(crate) struct Timers(Lock<Inner>);

struct Inner {
    wheel: Wheel,
    /// The tick until which the driver sleeps.
    planned: u64,
    closed: bool,
}

/// What has become of a timer that was brought.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a driver that sleeps too long must be interrupted"]
pub(crate) enum Brought {
    /// It waits.
    Waits,
    /// It waits, and the driver's wait must be interrupted.
    Interrupt,
    /// It is due already.
    Due,
    /// The runtime is gone.
    Closed,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Inner {
            wheel: Wheel::new(),
            planned: AWAKE,
            closed: false,
        }))
    }

    /// Makes an IDLE entry wait until `when`.
    ///
    /// # Safety
    /// The entry is the caller's and IDLE, and stays in place until it is not WAITING any more.
    pub(crate) unsafe fn insert(&self, entry: &Entry, when: u64, waker: Waker) -> Brought {
        let unused;
        let brought = {
            let mut inner = self.0.lock();
            // SAFETY: handed on.
            let brought = unsafe { inner.bring(entry, when) };
            unused = if matches!(brought, Brought::Waits | Brought::Interrupt) {
                // SAFETY: it is WAITING now, and we have the lock.
                unsafe { entry.with_node(|node| node.waker.replace(waker)) }
            } else {
                Some(waker)
            };
            brought
        };
        if let Some(waker) = unused {
            wake::recycle(waker);
        }
        brought
    }

    /// Gives a WAITING entry another waker. `false`: it does not wait any more.
    ///
    /// # Safety
    /// The entry has been inserted here.
    pub(crate) unsafe fn replace_waker(&self, entry: &Entry, waker: Waker) -> bool {
        let (waits, unused) = {
            let _inner = self.0.lock();
            if entry.state() == State::Waiting {
                // SAFETY: WAITING and we have the lock.
                (true, unsafe {
                    entry.with_node(|node| node.waker.replace(waker))
                })
            } else {
                (false, Some(waker))
            }
        };
        if let Some(waker) = unused {
            wake::recycle(waker);
        }
        waits
    }

    /// Moves an entry that is WAITING to another time and keeps its waker. `None`: it does not wait
    /// any more. [`Brought::Due`] leaves it IDLE, with the waker for the caller to wake.
    ///
    /// # Safety
    /// As [`insert`](Self::insert), and the entry has been inserted here.
    pub(crate) unsafe fn move_to(
        &self,
        entry: &Entry,
        when: u64,
    ) -> Option<(Brought, Option<Waker>)> {
        let mut inner = self.0.lock();
        if entry.state() != State::Waiting {
            return None;
        }
        // SAFETY: WAITING here.
        let waker = unsafe { inner.wheel.remove(entry) };
        // SAFETY: handed on.
        let brought = unsafe { inner.bring(entry, when) };
        if entry.state() == State::Waiting {
            // SAFETY: WAITING and we have the lock.
            unsafe { entry.with_node(|node| node.waker = waker) };
            return Some((brought, None));
        }
        Some((brought, waker))
    }

    /// Takes an entry back; IDLE if it waited.
    ///
    /// # Safety
    /// The entry has been inserted here.
    pub(crate) unsafe fn remove(&self, entry: &Entry) {
        let waker = {
            let mut inner = self.0.lock();
            if entry.state() == State::Waiting {
                // SAFETY: WAITING here.
                unsafe { inner.wheel.remove(entry) }
            } else {
                None
            }
        };
        if let Some(waker) = waker {
            wake::recycle(waker);
        }
    }

    /// The tick of the next step, if there is any timer.
    pub(crate) fn next(&self) -> Option<u64> {
        self.0.lock().wheel.next()
    }

    /// Whether something is due.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.next().is_some_and(|next| next <= now)
    }

    /// The sleeper's first step. `limit` is the tick at which its sleep ends in any case. Returns the
    /// tick to sleep until.
    pub(crate) fn plan(&self, limit: Option<u64>) -> Option<u64> {
        let mut inner = self.0.lock();
        let next = inner.wheel.next().unwrap_or(FOR_EVER);
        let until = next.min(limit.unwrap_or(FOR_EVER));
        inner.planned = until;
        (until != FOR_EVER).then_some(until)
    }

    /// The sleeper's third step.
    pub(crate) fn awake(&self) {
        self.0.lock().planned = AWAKE;
    }

    /// Fires all that is due. Nothing is held while wakers run.
    pub(crate) fn fire(&self, now: u64) {
        loop {
            let mut batch = Batch::new(Place::Tail);
            let done = self.collect(now, &mut batch);
            panics::report("a waker", || batch.wake_all());
            if done {
                return;
            }
        }
    }

    /// Does some steps under the lock. `true`: nothing more is due.
    fn collect(&self, now: u64, batch: &mut Batch) -> bool {
        let mut inner = self.0.lock();
        for _ in 0..STEPS {
            match inner.wheel.step(now) {
                Step::Fired(waker) => waker.into_iter().for_each(|waker| batch.push(waker)),
                Step::Moved => {}
                Step::Done => return true,
            }
            if batch.is_full() {
                break;
            }
        }
        false
    }

    /// Ends all timers and takes no more.
    pub(crate) fn close(&self) {
        loop {
            let mut batch = Batch::new(Place::Tail);
            let done = {
                let mut inner = self.0.lock();
                inner.closed = true;
                loop {
                    if batch.is_full() {
                        break false;
                    }
                    match inner.wheel.close_one() {
                        Some(waker) => waker.into_iter().for_each(|waker| batch.push(waker)),
                        None => break true,
                    }
                }
            };
            panics::report("a waker", || batch.wake_all());
            if done {
                return;
            }
        }
    }
}

impl Inner {
    /// # Safety
    /// As [`Wheel::insert`].
    unsafe fn bring(&mut self, entry: &Entry, when: u64) -> Brought {
        if self.closed {
            return Brought::Closed;
        }
        // SAFETY: handed on.
        if !unsafe { self.wheel.insert(entry, when) } {
            return Brought::Due;
        }
        if when < self.planned {
            self.planned = when;
            return Brought::Interrupt;
        }
        Brought::Waits
    }
}
