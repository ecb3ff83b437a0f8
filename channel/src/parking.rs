//! How a sender gets into the line, changes its waker there, and leaves it.

use std::ptr::NonNull;
use std::task::Waker;

use wakerun::lock::LockGuard;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::Ordering;
use wakerun::wake::{self, Batch, Place};

use crate::chan::Chan;
use crate::flavor::Flavor;
use crate::gate::{CLOSED, Word};
use crate::line::Line;
use crate::serving::Served;
use crate::waiter::{Status, Waiter, Wants};

/// What entering the line came to.
#[must_use]
pub(crate) enum Entered {
    /// In the line, or served there already: the status tells.
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

impl<T, F: Flavor> Chan<T, F> {
    /// Makes it known that somebody waits, and looks once more: the word, and the head as it is then.
    /// Under the line's lock, with nobody waiting.
    pub(crate) fn begin_line(&self) -> (Word, u64) {
        self.rx.waiting.store(true, Ordering::Relaxed);
        let word = self.gate.set_waiting();
        // Pairs with the receiver's fence between its head and its look at `waiting`: it sees the line,
        // or this sees the room.
        wakerun::sync::fence_after_locked();
        (word, self.rx.head.load(Ordering::Acquire))
    }

    /// Claims the room that has been seen, past WAITING. A position, with `wake` as in a claim.
    fn claim_for(&self, wants: Wants) -> (u64, bool) {
        if wants == Wants::Send {
            self.gate.claim_in_line()
        } else {
            self.gate.grant_in_line(wants.count());
            (0, false)
        }
    }

    /// Puts a waiter at the end of the line, unless there is room and nobody ahead. `own`: what is
    /// granted to it may lapse, and `waker` is the own one of the task being polled, which this channel
    /// watches.
    ///
    /// # Safety
    /// `waiter` has never been in a line, stays where it is, and goes only after
    /// [`leave_line`](Self::leave_line) or a final status.
    #[inline(always)]
    pub(crate) unsafe fn enter_line(
        &self,
        waiter: NonNull<Waiter>,
        wants: Wants,
        waker: Waker,
        own: bool,
    ) -> Entered {
        let mut line = self.line.lock();
        if self.gate.load().has(CLOSED) {
            drop(line);
            // SAFETY: the waiter has not been put in, and is the caller's own.
            unsafe { Self::refuse(waiter, waker) };
            return Entered::Closed;
        }
        let mut new_first = None;
        if line.is_empty() {
            let (word, head) = self.begin_line();
            if word.used(head) + wants.count() <= self.gate.capacity() {
                let (position, wake) = self.claim_for(wants);
                self.end_line();
                drop(line);
                return Entered::Claimed {
                    position,
                    wake,
                    waker,
                };
            }
            new_first = Some((word, head));
        }
        // SAFETY: handed on.
        unsafe { line.push(waiter, wants, waker, own) };
        // A reservation that is the first has no message to be taken from the line.
        let nudge = wants == Wants::Send
            && new_first.is_some_and(|(word, head)| self.nudge(&mut line, word, head));
        if own {
            self.copy_counts(&line);
        }
        if nudge || line.due() > 0 {
            self.after_entering(line, nudge);
        }
        Entered::Waiting
    }

    /// [`enter_line`](Self::enter_line) for a send, if nothing comes in between: without a call, so that it needs
    /// no frame. The waker comes back if it is to go the long way.
    ///
    /// # Safety
    /// As [`enter_line`](Self::enter_line).
    #[inline(always)]
    pub(crate) unsafe fn enter_line_simply(
        &self,
        waiter: NonNull<Waiter>,
        waker: Waker,
    ) -> Result<(), Waker> {
        let Some(mut line) = self.line.try_lock() else {
            return Err(waker);
        };
        let word = self.gate.load();
        // With permits out, the channel may be full without being so of messages.
        if word.has(CLOSED) || word.permits() > 0 || line.due() > 0 {
            return Err(waker);
        }
        if line.is_empty() {
            let (word, head) = self.begin_line();
            if word.has_room_below(self.gate.limit(head), 1) {
                self.end_line();
                return Err(waker);
            }
            // Full of messages, so receivers have been told of something, and need no nudge.
        }
        // SAFETY: handed on.
        unsafe { line.push(waiter, Wants::Send, waker, false) };
        Ok(())
    }

    /// The channel is closed to a waiter that was about to be put in.
    ///
    /// # Safety
    /// The waiter is the caller's own, and in no line.
    #[cold]
    #[inline(never)]
    unsafe fn refuse(waiter: NonNull<Waiter>, waker: Waker) {
        // Told also if the waker's destructor panics: a future that takes itself for one that waits
        // would take a node out that is in no line.
        // SAFETY: handed on.
        unsafe { Waiter::finish(waiter, Status::Closed) };
        wake::recycle(waker);
    }

    /// Puts a waiter into the line that has its permits already, so that they lapse as what is granted
    /// there, if its task does not come for them.
    ///
    /// # Safety
    /// As [`enter_line`](Self::enter_line) with `own`; the word counts the permits for the caller.
    #[cold]
    pub(crate) unsafe fn enter_granted(&self, waiter: NonNull<Waiter>, wants: Wants, waker: Waker) {
        let mut line = self.line.lock();
        // SAFETY: handed on.
        unsafe { line.push_granted(waiter, wants, waker) };
        self.copy_counts(&line);
    }

    /// Somebody new waits, and there is a receiver to be woken for that, or a due grant to be had.
    #[cold]
    #[inline(never)]
    fn after_entering(&self, mut line: LockGuard<'_, Line>, nudge: bool) {
        let mut batch = Batch::new(Place::Tail);
        let mut served = if line.due() > 0 {
            self.lapse_due(&mut line, &mut batch)
        } else {
            Served::default()
        };
        served.messages += u32::from(nudge);
        drop(line);
        self.after_serving(served, &mut batch);
    }

    /// Lets a waiter wake the task that polled it last. `false`: it does not wait in the line (any more).
    ///
    /// # Safety
    /// The waiter is the caller's own and has entered this channel's line.
    pub(crate) unsafe fn renew_waker(
        &self,
        waiter: NonNull<Waiter>,
        waker: &Waker,
        own: bool,
    ) -> bool {
        // SAFETY: the caller's own.
        let status = || unsafe { waiter.as_ref() }.status();
        {
            let mut line = self.line.lock();
            if status() != Status::Linked {
                return false;
            }
            // SAFETY: linked, and the lock is held.
            if unsafe { line.will_wake(waiter, waker) } {
                // The same waker, but perhaps the task polls by itself only now, or no more.
                // SAFETY: as above.
                unsafe { line.set_own(waiter, own) };
                self.copy_counts(&line);
                return true;
            }
        }
        // Cloned outside the lock, since that may be foreign code; then look again.
        let new = wake::clone_waker(waker);
        let mut line = self.line.lock();
        let linked = status() == Status::Linked;
        let unneeded = if linked {
            // SAFETY: linked, and the lock is held.
            unsafe { line.set_waker(waiter, new, own) }
        } else {
            Some(new)
        };
        self.copy_counts(&line);
        drop(line);
        drop(unneeded);
        linked
    }

    /// Takes a waiter out of the line for good. Returns `Linked` if it waited there until now, `Granted`
    /// if what it wants is counted for it, or the final status that it has got before. Panics of
    /// foreign code are the caller's to resume, when it has dealt with the message or the permits.
    ///
    /// # Safety
    /// The waiter is the caller's own and has entered this channel's line.
    pub(crate) unsafe fn leave_line(
        &self,
        waiter: NonNull<Waiter>,
        panics: &mut FirstPanic,
    ) -> Status {
        // SAFETY: the caller's own.
        let status = || unsafe { waiter.as_ref() }.status();
        let is_final = |status| {
            !matches!(
                status,
                Status::Linked | Status::GrantedHere | Status::Lapsed
            )
        };
        if is_final(status()) {
            return status();
        }
        let mut line = self.line.lock();
        let found = status();
        if is_final(found) {
            return found;
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
        self.copy_counts(&line);
        drop(line);
        panics.catch(|| self.after_serving(served, &mut batch));
        if let Some(waker) = waker {
            panics.catch(|| wake::recycle(waker));
        }
        if found == Status::GrantedHere {
            Status::Granted
        } else {
            Status::Linked
        }
    }

    /// A reservation that stands in the line, granted or lapsed, is polled: `Granted` if what it wants
    /// is its own now, and it is out of the line; `Closed` likewise; `Linked` if it waits again at its old
    /// place.
    ///
    /// # Safety
    /// The waiter is the caller's own and has entered this channel's line for permits.
    #[cold]
    pub(crate) unsafe fn claim_grant(&self, waiter: NonNull<Waiter>) -> Status {
        // SAFETY: the caller's own.
        let status = || unsafe { waiter.as_ref() }.status();
        let mut waker = None;
        let mut batch = Batch::new(Place::Tail);
        let mut served = Served::default();
        let mut line = self.line.lock();
        let mut found = status();
        if found == Status::Lapsed && self.is_closed() {
            found = Status::Closed;
            // SAFETY: linked, and the lock is held.
            waker = unsafe { line.remove(waiter) };
        } else if found == Status::Lapsed {
            // SAFETY: linked; the lock is held.
            let (_, wants, _) = unsafe { line.look(waiter) };
            let nobody = line.is_empty();
            // SAFETY: as above.
            unsafe { line.wait_again(waiter) };
            found = Status::Linked;
            let first = line.first().is_some_and(|(first, _)| first == waiter);
            let (word, head) = if nobody {
                self.begin_line()
            } else {
                (self.gate.load(), self.rx.head.load(Ordering::Acquire))
            };
            if first && word.used(head) + wants.count() <= self.gate.capacity() {
                let _ = self.claim_for(wants);
                found = Status::GrantedHere;
            } else if line.due() > 0 {
                // Others do not come for theirs.
                served = self.lapse_due(&mut line, &mut batch);
                found = status();
            }
        }
        if found == Status::GrantedHere {
            found = Status::Granted;
            // SAFETY: linked, and the lock is held.
            waker = unsafe { line.remove(waiter) };
            if line.is_empty() {
                self.end_line();
            }
        }
        self.copy_counts(&line);
        drop(line);
        if let Some(waker) = waker {
            // One of our own: no foreign code.
            wake::recycle(waker);
        }
        self.after_serving(served, &mut batch);
        found
    }
}
