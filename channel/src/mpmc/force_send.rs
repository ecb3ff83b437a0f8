//! Sending where there is no room: the oldest message makes way.

use std::sync::Arc;

use super::Sender;
use super::receive::State;
use crate::chan::Chan;
use crate::error::TrySendError;
use crate::flavor::Mpmc;
use crate::gate::CLOSED;
use crate::receivers::Source;
use crate::ring::Message;

/// What an attempt to evict came to.
enum Evicted<T> {
    /// This position is the caller's, and what was in the oldest slot.
    Claimed {
        position: u64,
        wake: bool,
        oldest: Option<Message<T>>,
    },
    /// The oldest is just being written.
    Unpublished,
    /// Permits hold all capacity: there is no message that could make way.
    NothingQueued,
    Closed,
}

impl<T> Sender<T> {
    /// Sends a message without waiting: if the channel is full, the oldest queued message makes way, and
    /// comes back. The message overtakes senders that wait in line, which keep their places.
    ///
    /// For what matters only while it is new, such as positions or prices.
    ///
    /// # Errors
    /// Closed; or full, if permits and grants hold the whole capacity. The message comes back.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel(2);
    /// assert_eq!(tx.force_send(1), Ok(None));
    /// assert_eq!(tx.force_send(2), Ok(None));
    /// assert_eq!(tx.force_send(3), Ok(Some(1)));
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// assert_eq!(rx.try_recv(), Ok(3));
    /// ```
    pub fn force_send(&self, value: T) -> Result<Option<T>, TrySendError<T>> {
        let chan = self.chan();
        let mut value = value;
        loop {
            value = match self.try_send(value) {
                Ok(()) => return Ok(None),
                Err(TrySendError::Full(value)) => value,
                closed => return closed.map(|()| None),
            };
            let evicted = chan.evict(&mut chan.lock());
            match evicted {
                Evicted::Claimed {
                    position,
                    wake,
                    oldest,
                } => {
                    // SAFETY: claimed just now.
                    unsafe { chan.publish(position, wake, value) };
                    return Ok(match oldest {
                        Some(Message::Value(value)) => Some(value),
                        Some(Message::Withdrawn(_) | Message::Void) | None => None,
                    });
                }
                Evicted::Unpublished => chan.wait_published(),
                Evicted::NothingQueued => return Err(TrySendError::Full(value)),
                Evicted::Closed => return Err(TrySendError::Closed(value)),
            }
        }
    }
}

impl<T> Chan<T, Mpmc> {
    /// Takes the oldest message out and claims the room for a new one, in one step for all who look:
    /// WAITING keeps claims away, and what senders wait for has not become more or less.
    ///
    /// Under the receivers' lock.
    fn evict(self: &Arc<Self>, state: &mut State<T>) -> Evicted<T> {
        let mut line = self.line.lock();
        let mut left = None;
        let nobody = line.is_empty();
        let word = if nobody {
            self.begin_line().0
        } else {
            self.gate.load()
        };
        let evicted = if word.has(CLOSED) {
            Evicted::Closed
        } else if word.used(state.head) < self.gate.capacity() {
            let (position, wake) = self.gate.claim_in_line();
            Evicted::Claimed {
                position,
                wake,
                oldest: None,
            }
        } else if word.tail() == state.head {
            Evicted::NothingQueued
        } else {
            // SAFETY: whoever has the lock is the receiver, and the head moves on.
            match unsafe { self.ring.take(state.head) } {
                None => Evicted::Unpublished,
                oldest => {
                    left = self.advance_in_line(state, &mut line);
                    let (position, wake) = self.gate.claim_in_line();
                    Evicted::Claimed {
                        position,
                        wake,
                        oldest,
                    }
                }
            }
        };
        if nobody {
            self.end_line();
        }
        drop(line);
        self.recycle(left);
        evicted
    }
}
