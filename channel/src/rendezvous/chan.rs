//! The channel that all handles share: two lines under one lock. Nothing is published without it, so no
//! handshake needs more than the lock.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use wakerun::lock::{Lock, LockGuard};
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::AtomicU32;
use wakerun::wake::{self, Batch, Place, PollWatch, Poller};

use crate::closed::ClosedWaiters;
use crate::line::Line;
use crate::receivers::{Counts, InHand, News, Source, Taken};
use crate::waiter::{SendWaiter, Status, Waiter, Wants};

pub(crate) struct Chan<T> {
    state: Lock<State<T>>,
    counts: Counts,
    pub(super) closed_waiters: ClosedWaiters,
    pub(super) senders: AtomicU32,
    pub(super) receivers: AtomicU32,
}

/// What the lock guards.
pub(crate) struct State<T> {
    senders: Line,
    receivers: Line,
    closed: bool,
    /// Messages that were taken when foreign code panicked: they are received next.
    stash: VecDeque<T>,
}

impl<T> Chan<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Lock::new(State {
                senders: Line::new(),
                receivers: Line::new(),
                closed: false,
                stash: VecDeque::new(),
            }),
            counts: Counts::new(),
            closed_waiters: ClosedWaiters::new(),
            senders: AtomicU32::new(1),
            receivers: AtomicU32::new(1),
        })
    }

    /// Puts a sender into the line and wakes a receiver for it. Gives the waker back if the channel is
    /// closed.
    ///
    /// # Safety
    /// `node` has a message and has never been in a line, stays where it is, and goes only after
    /// [`leave_senders`](Self::leave_senders) or a final status.
    pub(super) unsafe fn enter_senders(
        &self,
        node: NonNull<Waiter>,
        waker: Waker,
    ) -> Result<(), Waker> {
        let somebody_waits = {
            let mut state = self.state.lock();
            if state.closed {
                return Err(waker);
            }
            // SAFETY: handed on.
            unsafe { state.senders.push(node, Wants::Send, waker, false) };
            !state.receivers.is_empty()
        };
        if somebody_waits {
            self.wake_receivers(News::Messages(1));
        }
        Ok(())
    }

    /// Lets a sender wake the task that polled it last, if it still waits.
    ///
    /// # Safety
    /// The node is the caller's own and has entered this channel's line.
    pub(super) unsafe fn renew_waker(&self, node: NonNull<Waiter>, waker: &Waker) {
        // Cloned outside the lock, since that may be foreign code.
        let new = wake::clone_waker(waker);
        let unneeded = {
            let mut state = self.state.lock();
            // SAFETY: the caller's own.
            if unsafe { node.as_ref() }.status() == Status::Linked {
                // SAFETY: linked, and the lock is held.
                unsafe { state.senders.set_waker(node, new, false) }
            } else {
                Some(new)
            }
        };
        drop(unneeded);
    }

    /// Takes a sender out of the line for good, if it still waits there: returns its waker then, to be
    /// dropped by the caller, who has the message again.
    ///
    /// # Safety
    /// The node is the caller's own and has entered this channel's line.
    pub(super) unsafe fn leave_senders(&self, node: NonNull<Waiter>) -> Option<Option<Waker>> {
        let mut state = self.state.lock();
        // SAFETY: the caller's own.
        if unsafe { node.as_ref() }.status() != Status::Linked {
            return None;
        }
        // SAFETY: linked, and the lock is held.
        Some(unsafe { state.senders.remove(node) })
    }

    /// No send is taken on any more. Those that wait get their messages back, unless `deliver` says that
    /// their futures were leaked: then they are delivered.
    pub(super) fn close(&self, deliver: bool) {
        let mut panics = FirstPanic::new();
        let mut batch = Batch::new(Place::Tail);
        loop {
            let more = {
                let mut state = self.state.lock();
                state.closed = true;
                while !deliver
                    && !batch.is_full()
                    && let Some((node, _)) = state.senders.first()
                {
                    // SAFETY: linked.
                    let waker = unsafe { state.senders.remove(node) };
                    // SAFETY: out of the line; the last touch. The message stays in the node.
                    unsafe { Waiter::finish(node, Status::Closed) };
                    waker.into_iter().for_each(|waker| batch.push(waker));
                }
                !deliver && !state.senders.is_empty()
            };
            panics.catch(|| batch.wake_all());
            if !more {
                break;
            }
        }
        panics.catch(|| self.wake_receivers(News::End));
        panics.catch(|| self.closed_waiters.wake_all());
        panics.resume("a waker");
    }

    /// The last receiver is gone and the channel closed: drops what a panic has left behind.
    pub(super) fn drain(&self, panics: &mut FirstPanic) {
        let stash = std::mem::take(&mut self.state.lock().stash);
        for value in stash {
            panics.catch(|| drop(value));
        }
    }
}

impl<T> Source for Chan<T> {
    type Item = T;
    type State = State<T>;
    /// The sender whose message was taken.
    type After = Option<Waker>;

    fn lock(&self) -> LockGuard<'_, State<T>> {
        self.state.lock()
    }

    fn line(state: &mut State<T>) -> &mut Line {
        &mut state.receivers
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn announce(self: &Arc<Self>) {
        // Senders look at the line itself, under the lock.
    }

    fn retract(&self) {}

    fn take(&self, state: &mut State<T>, after: &mut Option<Waker>) -> Taken<T> {
        if let Some(value) = state.stash.pop_front() {
            return Taken::Value(value);
        }
        let Some((node, _)) = state.senders.first() else {
            return if state.closed {
                Taken::End
            } else {
                Taken::Empty
            };
        };
        // SAFETY: linked, hence alive until `finish`; that of a send, in the line of this channel.
        let place = unsafe { SendWaiter::<T>::value_of(node) };
        // SAFETY: a linked send's message is in its node, and leaves it here.
        let value = unsafe { std::ptr::read(place) };
        // SAFETY: linked.
        *after = unsafe { state.senders.remove(node) };
        // SAFETY: out of the line; the last touch.
        unsafe { Waiter::finish(node, Status::Taken) };
        Taken::Value(value)
    }

    fn settle(self: &Arc<Self>, after: &mut Option<Waker>, value: T) -> T {
        let Some(waker) = after.take() else {
            return value;
        };
        let in_hand = InHand::new(&**self, value);
        wake::wake_owned(waker, Place::Tail);
        in_hand.into_value()
    }

    fn settle_without_value(&self, after: &mut Option<Waker>) {
        debug_assert!(after.is_none(), "a sender is woken for a message taken");
    }

    fn has_message(&self, state: &State<T>) -> bool {
        !state.senders.is_empty() || !state.stash.is_empty()
    }

    fn is_quiet(&self, state: &State<T>) -> bool {
        !self.has_message(state) && !state.closed
    }

    fn looks_quiet(&self) -> bool {
        // What there is to be seen is behind the lock.
        true
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    fn wait_published(&self) {}

    fn put_back(&self, value: T) {
        self.state.lock().stash.push_back(value);
    }

    fn watch_polls(self: &Arc<Self>) -> bool {
        // SAFETY: `poll_over` touches no message; the channel holds none when its receivers are gone.
        unsafe { wake::watch_polls_unchecked(self) }
    }
}

impl<T> PollWatch for Chan<T> {
    fn poll_over(&self, poller: &Poller<'_>) -> bool {
        self.receivers_poll_over(poller)
    }
}
