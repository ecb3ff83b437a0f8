//! One direction of a source: whether it is ready, and who waits for it.
//!
//! The system tells a change to ready once. So the fact is kept here, until somebody finds by an
//! operation that would block that it is not true any more. An event that arrives between that
//! operation and the note of its failure must not be lost: the word counts events, and a failure
//! clears only what it has seen.
//!
//! | who | does |
//! |---|---|
//! | one who operates | 1 reads the word · 2 operates · 3 would block: exchanges the word read for one without READY |
//! | an event | 1 under the lock: count + 1, READY; takes all waiters · 2 wakes them |
//! | one who waits | 1 under the lock: reads the word; not READY: leaves its waker |
//!
//! If the event comes before the operation, the operation sees the data. If it comes after, the count
//! has moved, step 3 fails, and the operation is tried once more. One who waits after the event sees
//! READY; before it, its waker is taken. The model in `loom_tests.rs` checks this.
//!
//! Waiters are of two kinds. A future has an entry of its own, which it takes back when it is
//! dropped; any number of them may wait. A `poll_` method has no such moment: its waker stays until
//! the next event. As many as [`POLLERS`] of those are kept; one more wakes the oldest, which asks
//! again.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::wakes::Wakes;
use crate::lock::Lock;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::wake;

/// An event has said so, and nobody has found otherwise.
const READY: u64 = 1;
/// Nothing is known yet: an operation may be tried, but who asks for readiness waits for an event.
const FRESH: u64 = 2;
/// The runtime is gone; no event will come.
const CLOSED: u64 = 4;
/// One event.
const EVENT: u64 = 8;

/// Wakers left by `poll_` methods at a time: more than there are tasks that share a descriptor in this
/// way, and few enough for those who come with a new waker each time.
const POLLERS: usize = 64;

/// A direction of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// The word as it was before an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen(u64);

pub(crate) struct Direction {
    word: AtomicU64,
    waiters: Lock<Waiters>,
}

#[derive(Default)]
struct Waiters {
    pollers: Vec<Waker>,
    futures: Slab<Waker>,
}

/// The error of every operation that would have to wait when no event can come any more.
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other("the runtime that this I/O source belongs to has been shut down")
}

impl Direction {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(FRESH),
            waiters: Lock::new(Waiters::default()),
        }
    }

    /// Whether an operation is worth trying. `Err`: it must wait, but nobody would wake it.
    #[inline]
    pub(crate) fn try_now(&self) -> io::Result<Option<Seen>> {
        self.look(READY | FRESH)
    }

    /// Acquire pairs with the Release in `set_ready`: what happened before the event is visible.
    #[inline]
    fn look(&self, wanted: u64) -> io::Result<Option<Seen>> {
        let word = self.word.load(Ordering::Acquire);
        if word & wanted != 0 {
            Ok(Some(Seen(word)))
        } else if word & CLOSED != 0 {
            Err(shut_down_error())
        } else {
            Ok(None)
        }
    }

    /// An operation that began after `seen` was read would block: it is not ready, unless there has
    /// been an event meanwhile.
    pub(crate) fn clear(&self, seen: Seen) {
        // Relaxed: it publishes nothing, and the waiters' lock orders it before the look of whoever
        // waits next.
        let _ = self.word.compare_exchange(
            seen.0,
            seen.0 & !(READY | FRESH),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// An event: takes the waiters out.
    pub(crate) fn set_ready(&self, wakes: &mut Wakes) {
        let mut waiters = self.waiters.lock();
        let word = self.word.load(Ordering::Relaxed);
        // Whatever `clear` has made of it meanwhile: the event is the newer fact. The count and CLOSED
        // are changed under the lock only. (A store would do, but the model checker cannot place a
        // store among exchanges.)
        self.word
            .swap((word + EVENT) & !FRESH | READY, Ordering::Release);
        waiters.take(wakes);
    }

    /// No event will come any more.
    pub(crate) fn close(&self, wakes: &mut Wakes) {
        let mut waiters = self.waiters.lock();
        // An exchange, for a `clear` at the same time must not undo it.
        self.word.fetch_or(CLOSED, Ordering::Release);
        self.word.fetch_add(EVENT, Ordering::Relaxed);
        waiters.take(wakes);
    }

    /// Waits for an event, with a waker that stays until one comes.
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<io::Result<Seen>> {
        self.poll(cx, READY)
    }

    /// As [`poll_ready`](Self::poll_ready), but Ready also if nothing is known yet.
    pub(crate) fn poll_try(&self, cx: &Context<'_>) -> Poll<io::Result<Seen>> {
        self.poll(cx, READY | FRESH)
    }

    fn poll(&self, cx: &Context<'_>, wanted: u64) -> Poll<io::Result<Seen>> {
        if let Some(now) = self.look(wanted).transpose() {
            return Poll::Ready(now);
        }
        // Foreign code: before the lock, and after it.
        let waker = wake::clone_waker(cx.waker());
        let mut unused = None;
        let mut oldest = None;
        let found = {
            let mut waiters = self.waiters.lock();
            let found = self.look(wanted).transpose();
            let pollers = &mut waiters.pollers;
            if found.is_some() || pollers.iter().any(|other| other.will_wake(&waker)) {
                unused = Some(waker);
            } else {
                if pollers.len() == POLLERS {
                    oldest = Some(pollers.remove(0));
                }
                pollers.push(waker);
            }
            found
        };
        if let Some(waker) = unused {
            wake::recycle(waker);
        }
        if let Some(waker) = oldest {
            waker.wake();
        }
        match found {
            Some(now) => Poll::Ready(now),
            None => Poll::Pending,
        }
    }

    /// Waits for an event as a future, which leaves nothing behind.
    pub(crate) fn ready(&self) -> Ready<'_> {
        self.waiter(READY)
    }

    /// As [`ready`](Self::ready), but done also if nothing is known yet.
    pub(crate) fn ready_to_try(&self) -> Ready<'_> {
        self.waiter(READY | FRESH)
    }

    fn waiter(&self, wanted: u64) -> Ready<'_> {
        Ready {
            direction: self,
            entry: None,
            wanted,
        }
    }
}

impl Waiters {
    fn take(&mut self, wakes: &mut Wakes) {
        wakes.extend(self.pollers.drain(..));
        wakes.extend(self.futures.drain());
    }
}

/// Resolves when there has been an event that nobody has found stale.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct Ready<'a> {
    direction: &'a Direction,
    entry: Option<Entry>,
    wanted: u64,
}

struct Entry {
    key: usize,
    /// The count of events when the waker was left: the next event takes all, and the key with them.
    events: u64,
}

impl Ready<'_> {
    /// The entry's waker, unless an event has taken it; the caller has the lock.
    fn take_entry(&mut self, waiters: &mut Waiters) -> Option<Waker> {
        let entry = self.entry.take()?;
        let word = self.direction.word.load(Ordering::Relaxed);
        (word / EVENT == entry.events).then(|| waiters.futures.remove(entry.key))
    }
}

impl Future for Ready<'_> {
    type Output = io::Result<Seen>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(now) = this.direction.look(this.wanted).transpose() {
            return Poll::Ready(now);
        }
        let waker = wake::clone_waker(cx.waker());
        let mut unused = Some(waker);
        let (found, old) = {
            let mut waiters = this.direction.waiters.lock();
            let found = this.direction.look(this.wanted).transpose();
            let old = this.take_entry(&mut waiters);
            if found.is_none()
                && let Some(waker) = unused.take()
            {
                this.entry = Some(Entry {
                    key: waiters.futures.insert(waker),
                    events: this.direction.word.load(Ordering::Relaxed) / EVENT,
                });
            }
            (found, old)
        };
        for waker in [unused, old].into_iter().flatten() {
            wake::recycle(waker);
        }
        match found {
            Some(now) => Poll::Ready(now),
            None => Poll::Pending,
        }
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        if self.entry.is_some() {
            let direction = self.direction;
            let old = {
                let mut waiters = direction.waiters.lock();
                self.take_entry(&mut waiters)
            };
            if let Some(waker) = old {
                wake::recycle(waker);
            }
        }
    }
}
