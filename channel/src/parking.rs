//! How a sender gets into the line, changes its waker there, and leaves it.

use std::ptr::NonNull;
use std::task::Waker;

use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::Ordering;
use wakerun::wake::{self, Batch, Place};

use crate::chan::{Chan, Served};
use crate::gate::CLOSED;
use crate::line::{Status, Waiter, Wants};

/// What entering the line came to.
#[must_use]
pub(crate) enum Entered {
    /// In the line.
    Waiting,
    /// There was room after all: it is the caller's. For a message, a position to publish, with
    /// `wake` as in a claim; permits are counted. The waker is to be dropped after that, since its
    /// destructor may be foreign code.
    Claimed {
        position: u64,
        wake: bool,
        waker: Waker,
    },
    /// The channel is closed.
    Closed,
}

impl<T> Chan<T> {
    /// Puts a waiter at the end of the line, unless there is room and nobody ahead.
    ///
    /// # Safety
    /// `waiter` has never been in a line, stays where it is, and goes only after
    /// [`leave_line`](Self::leave_line) or a final status.
    pub(crate) unsafe fn enter_line(
        &self,
        waiter: NonNull<Waiter<T>>,
        wants: Wants,
        waker: Waker,
    ) -> Entered {
        let mut line = self.line.lock();
        if self.gate.load().has(CLOSED) {
            drop(line);
            wake::recycle(waker);
            return Entered::Closed;
        }
        if line.is_empty() {
            self.rx.waiting.store(true, Ordering::Relaxed);
            let word = self.gate.set_waiting();
            // Pairs with the receiver's fence between its head and its look at `waiting`: it sees
            // the line, or this sees the room.
            wakerun::sync::fence_after_locked();
            let head = self.rx.head.load(Ordering::Acquire);
            if word.used(head) + wants.count() <= self.gate.capacity() {
                let (position, wake) = match wants {
                    Wants::Send => self.gate.claim_in_line(),
                    Wants::Permits(count) => {
                        self.gate.grant_in_line(count);
                        (0, false)
                    }
                };
                self.end_line();
                drop(line);
                return Entered::Claimed {
                    position,
                    wake,
                    waker,
                };
            }
        }
        // SAFETY: handed on.
        unsafe { line.push(waiter, wants, waker) };
        Entered::Waiting
    }

    /// Lets a waiter wake the task that polled it last. `false`: it is not in the line any more.
    ///
    /// # Safety
    /// The waiter is the caller's own and has entered this channel's line.
    pub(crate) unsafe fn renew_waker(&self, waiter: NonNull<Waiter<T>>, waker: &Waker) -> bool {
        // SAFETY: the caller's own.
        let status = || unsafe { waiter.as_ref() }.status();
        {
            let line = self.line.lock();
            if status() != Status::Linked {
                return false;
            }
            // SAFETY: linked, and the lock is held.
            if unsafe { line.will_wake(waiter, waker) } {
                return true;
            }
        }
        // Cloned outside the lock, since that may be foreign code; then look again.
        let new = wake::clone_waker(waker);
        let mut line = self.line.lock();
        let linked = status() == Status::Linked;
        let unneeded = if linked {
            // SAFETY: linked, and the lock is held.
            unsafe { line.set_waker(waiter, new) }
        } else {
            Some(new)
        };
        drop(line);
        drop(unneeded);
        linked
    }

    /// Takes a waiter out of the line for good. Returns `Linked` if it stood there until now, or
    /// the final status that it has got before. Panics of foreign code are the caller's to resume,
    /// when it has dealt with the message.
    ///
    /// # Safety
    /// The waiter is the caller's own and has entered this channel's line.
    pub(crate) unsafe fn leave_line(
        &self,
        waiter: NonNull<Waiter<T>>,
        panics: &mut FirstPanic,
    ) -> Status {
        // SAFETY: the caller's own.
        let status = || unsafe { waiter.as_ref() }.status();
        if status() != Status::Linked {
            return status();
        }
        let mut line = self.line.lock();
        if status() != Status::Linked {
            return status();
        }
        let was_first = line.first().is_some_and(|(first, _)| first == waiter);
        // SAFETY: linked, and the lock is held.
        let waker = unsafe { line.remove(waiter) };
        let mut batch = Batch::new(Place::Tail);
        let mut served = Served::default();
        if line.is_empty() {
            self.end_line();
        } else if was_first {
            // The next one may want less than this one did.
            served = self.serve(&mut line, &mut batch);
        }
        drop(line);
        panics.catch(|| self.after_serving(served, &mut batch));
        if let Some(waker) = waker {
            panics.catch(|| wake::recycle(waker));
        }
        Status::Linked
    }
}
