//! The channel that all handles share: a queue of the [`concurrent_queue`] crate, and receivers that wait.
//!
//! | handshake | one side | other side |
//! |---|---|---|
//! | a message for a receiver that begins to wait | push; fence; look at `waiting` | set `waiting`; fence; look at the queue again |
//! | the end, likewise | close the queue; fence; look at `waiting` | as above |

use std::collections::VecDeque;
use std::sync::Arc;

use concurrent_queue::{ConcurrentQueue, PopError, PushError};
use wakerun::lock::{Lock, LockGuard};
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use wakerun::wake::{self, PollWatch, Poller};

use crate::closed::ClosedWaiters;
use crate::error::SendError;
use crate::line::Line;
use crate::receivers::{Counts, News, Room, Source, Taken};

pub(crate) struct Chan<T> {
    queue: ConcurrentQueue<T>,
    /// Whether a receiver waits; changed under the receivers' lock.
    waiting: AtomicBool,
    state: Lock<State<T>>,
    counts: Counts,
    pub(super) closed_waiters: ClosedWaiters,
    pub(super) senders: AtomicU32,
    pub(super) weak_senders: AtomicU32,
    pub(super) receivers: AtomicU32,
    pub(super) weak_receivers: AtomicU32,
}

/// What the receivers' lock guards. The queue needs none: it is looked at under the lock by those that
/// begin to wait.
pub(crate) struct State<T> {
    line: Line,
    /// Messages that were taken when foreign code panicked: they are received next.
    stash: VecDeque<T>,
}

impl<T> Chan<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: ConcurrentQueue::unbounded(),
            waiting: AtomicBool::new(false),
            state: Lock::new(State {
                line: Line::new(),
                stash: VecDeque::new(),
            }),
            counts: Counts::new(),
            closed_waiters: ClosedWaiters::new(),
            senders: AtomicU32::new(1),
            weak_senders: AtomicU32::new(0),
            receivers: AtomicU32::new(1),
            weak_receivers: AtomicU32::new(0),
        })
    }

    pub(super) fn send(&self, value: T) -> Result<(), SendError<T>> {
        match self.queue.push(value) {
            Ok(()) => {
                // Pairs with the fence in `announce`.
                fence(Ordering::SeqCst);
                if self.waiting.load(Ordering::Relaxed) {
                    self.wake_receivers(News::Messages(1));
                }
                Ok(())
            }
            Err(PushError::Full(value) | PushError::Closed(value)) => Err(SendError(value)),
        }
    }

    /// No message is taken on any more. What is queued stays.
    pub(super) fn close(&self) {
        if !self.queue.close() {
            return;
        }
        let mut panics = FirstPanic::new();
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) {
            panics.catch(|| self.wake_receivers(News::End));
        }
        panics.catch(|| self.closed_waiters.wake_all());
        panics.resume("a waker");
    }

    /// The last receiver is gone and the channel closed: drops what is queued.
    pub(super) fn drain(&self, panics: &mut FirstPanic) {
        let stash = std::mem::take(&mut self.state.lock().stash);
        for value in stash {
            panics.catch(|| drop(value));
        }
        loop {
            match self.queue.pop() {
                Ok(value) => panics.catch(|| drop(value)),
                Err(PopError::Closed) => break,
                // A sender is in the middle of its push.
                Err(PopError::Empty) => wakerun::sync::thread::yield_now(),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

impl<T> Source for Chan<T> {
    type Item = T;
    type State = State<T>;
    type After = ();

    fn lock(&self) -> LockGuard<'_, State<T>> {
        self.state.lock()
    }

    fn line(state: &mut State<T>) -> &mut Line {
        &mut state.line
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn announce(self: &Arc<Self>) {
        self.waiting.store(true, Ordering::Relaxed);
        // Pairs with the fences in `send` and `close`: they see `waiting`, or the look that follows sees
        // what they did.
        fence(Ordering::SeqCst);
    }

    fn retract(&self) {
        self.waiting.store(false, Ordering::Relaxed);
    }

    #[inline(always)]
    fn take_simply(self: &Arc<Self>) -> Option<T> {
        let taken = self.take_plainly(&mut self.state.lock());
        taken.map(|(value, _)| value)
    }

    #[inline(always)]
    fn take_plainly(&self, state: &mut State<T>) -> Option<(T, Room)> {
        if state.stash.is_empty() {
            self.queue.pop().ok().map(|value| (value, Room::Free))
        } else {
            None
        }
    }

    fn take(&self, state: &mut State<T>, (): &mut ()) -> Taken<T> {
        if let Some(value) = state.stash.pop_front() {
            return Taken::Value(value);
        }
        match self.queue.pop() {
            Ok(value) => Taken::Value(value),
            Err(PopError::Empty) => Taken::Empty,
            Err(PopError::Closed) => Taken::End,
        }
    }

    #[inline]
    fn settle(self: &Arc<Self>, (): &mut (), value: T) -> T {
        value
    }

    fn settle_without_value(&self, (): &mut ()) {}

    fn has_message(&self, state: &State<T>) -> bool {
        !self.queue.is_empty() || !state.stash.is_empty()
    }

    fn is_quiet(&self, state: &State<T>) -> bool {
        self.looks_quiet() && state.stash.is_empty()
    }

    fn looks_quiet(&self) -> bool {
        self.queue.is_empty() && !self.queue.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    fn wait_published(&self) {
        // The queue itself waits for a message that is being written.
    }

    fn put_back(&self, value: T) {
        self.state.lock().stash.push_back(value);
    }

    fn watch_polls(self: &Arc<Self>) -> bool {
        // SAFETY: `poll_over` touches no message. The last reference drops what is queued, which is
        // nothing when the receivers are gone; while one is leaked, its reference is, too.
        unsafe { wake::watch_polls_unchecked(self) }
    }
}

impl<T> PollWatch for Chan<T> {
    fn poll_over(&self, poller: &Poller<'_>) -> bool {
        self.receivers_poll_over(poller)
    }
}
