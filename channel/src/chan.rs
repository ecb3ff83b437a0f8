//! The channel that all handles share, and the protocols between its parts.
//!
//! | handshake | one side | other side |
//! |---|---|---|
//! | a message for a sleeping receiver | claim: one exchange moves the tail and clears PARKED; publish; wake | set PARKED (locked), then look at the tail again |
//! | room for a parking sender | set `waiting` and WAITING (locked), then look at the head again | move the head, fence (or a locked instruction), then look at `waiting` |
//! | room from a permit | the exchange that gives it back finds WAITING | the exchange that sets WAITING finds the permit back |
//! | end of the channel for a sleeping receiver | set CLOSED and clear PARKED in one exchange; wake | set PARKED, then look at CLOSED again |
//!
//! The receiver's fence is owed once: a receiver that goes to sleep has it in the instruction that
//! sets PARKED, and for one that does something else after a receive the worker makes it when the
//! poll is over.

use std::collections::VecDeque;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

use wakerun::lock::Lock;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use wakerun::wake::{Batch, Place};

use crate::closed::ClosedWaiters;
use crate::error::SendError;
use crate::flavor::Flavor;
use crate::gate::{CLOSED, Claim, Gate, PARKED, POSITION_MASK, Simply, WAITING};
use crate::line::Line;
use crate::receivers::News;
use crate::ring::{InlineValue, Left, Ring};
use crate::waiter::{Mark, Status, Wants};

/// The receivers' cache line: in this order, so that the lock and the position of many receivers are in it, too.
#[repr(C, align(64))]
pub(crate) struct RxSide<S> {
    /// The next position to be received; stored by the one receiver, or under the receivers' lock.
    pub(crate) head: AtomicU64,
    /// Whether there is a line; a copy of WAITING, so that the receiver need not touch the senders'
    /// cache line. Changed under the line's lock.
    pub(crate) waiting: AtomicBool,
    /// Of the slot of a channel that has one, which is here since both sides come to this line for each of its
    /// messages in any case.
    inline_stamp: AtomicU8,
    /// A stamp that nobody sets: what the receiver looks at while it is to find nothing in the ring.
    pub(crate) nothing: AtomicU8,
    /// Copies of the line's counts of unclaimed grants, of due ones, and of nodes of tasks of ours,
    /// for looking at without the lock.
    pub(crate) grants: AtomicU32,
    pub(crate) due: AtomicU32,
    pub(crate) own: AtomicU32,
    /// Where receivers wait.
    pub(crate) side: S,
    inline_value: InlineValue,
}

/// What the handles share: one allocation, and one more for the slots where they are not in it.
///
/// A channel of capacity 1 takes 256 bytes, with what the counted reference takes for its two counts and the
/// alignment. Cache lines: what senders write, and read beside it; what the one receiver writes; the line.
#[repr(C)]
pub(crate) struct Chan<T, F: Flavor> {
    pub(crate) gate: Gate<F>,
    /// For senders. The receiver has a copy, so that it does not read what is next to the gate.
    pub(crate) ring: Ring<T>,
    /// Strong senders.
    pub(crate) senders: AtomicU32,
    pub(crate) weak_senders: AtomicU32,
    pub(crate) closed_waiters: ClosedWaiters,
    pub(crate) rx: RxSide<F::Side<T>>,
    pub(crate) line: Lock<Line>,
}

impl<T, F: Flavor> Chan<T, F> {
    /// `None`: the memory is not to be had.
    pub(crate) fn new(capacity: usize) -> Option<Arc<Self>> {
        let new = Arc::<Self>::new_uninit();
        let place = Arc::as_ptr(&new).cast_mut().cast::<Self>();
        // SAFETY: inside the allocation.
        let value = unsafe { &raw mut (*place).rx.inline_value };
        // SAFETY: as above.
        let stamp = unsafe { &raw mut (*place).rx.inline_stamp };
        // SAFETY: they are made below, and stay in the allocation as long as the channel.
        let ring = unsafe { Ring::new(capacity, value, stamp) }?;
        let chan = Self {
            gate: Gate::new(capacity as u64),
            ring,
            senders: AtomicU32::new(1),
            weak_senders: AtomicU32::new(0),
            closed_waiters: ClosedWaiters::new(),
            rx: RxSide {
                head: AtomicU64::new(0),
                waiting: AtomicBool::new(false),
                inline_stamp: AtomicU8::new(0),
                nothing: AtomicU8::new(0),
                grants: AtomicU32::new(0),
                due: AtomicU32::new(0),
                own: AtomicU32::new(0),
                side: F::side(ring),
                inline_value: InlineValue::new(),
            },
            line: Lock::new(Line::new()),
        };
        // SAFETY: the only reference, and nothing is there yet.
        unsafe { place.write(chan) };
        // SAFETY: written just now.
        Some(unsafe { new.assume_init() })
    }

    // ---- sending

    /// The short way to a position for a message; see [`Gate::claim_simply`].
    #[inline(always)]
    pub(crate) fn claim_simply(&self) -> Simply {
        self.gate.claim_simply(&self.rx.head)
    }

    /// Claims a position for a message, if there is room and no line; see [`Gate::claim`].
    pub(crate) fn claim(&self) -> Claim {
        self.gate.claim(&self.rx.head)
    }

    /// Turns a permit into a position, with whether to wake a receiver. `None`: the receivers are gone.
    #[inline(always)]
    pub(crate) fn claim_with_permit(&self) -> Option<(u64, bool)> {
        let simply = self.gate.claim_with_permit_simply();
        simply.or_else(|| match self.gate.claim_with_permit() {
            Claim::Claimed { position, wake } => Some((position, wake)),
            Claim::Full | Claim::Closed => None,
        })
    }

    /// Writes a claimed message, and wakes a receiver if the claim said so.
    ///
    /// # Safety
    /// `position` was claimed by the caller and `wake` came with it; this is called once for it.
    #[inline(always)]
    pub(crate) unsafe fn publish(&self, position: u64, wake: bool, value: T) {
        let value = ManuallyDrop::new(value);
        // SAFETY: handed on; the message is forgotten here.
        unsafe { self.publish_from(position, wake, &raw const *value) };
    }

    /// [`publish`](Self::publish) of a message that is moved out of `from`, in one copy.
    ///
    /// # Safety
    /// As there; and there is one to be read, which the caller forgets.
    #[inline(always)]
    pub(crate) unsafe fn publish_from(&self, position: u64, wake: bool, from: *const T) {
        // SAFETY: handed on.
        unsafe { self.ring.publish_from(position, from) };
        if wake {
            // SAFETY: the claim saw PARKED.
            unsafe { self.wake_for_one() };
        }
    }

    /// Has `write` build a claimed message in its place, publishes it, and wakes a receiver if the claim said so.
    ///
    /// If `write` panics, or what it returns is something else than what it was given, the receiver will pass the
    /// position by, which gives its capacity back.
    ///
    /// # Safety
    /// As [`publish`](Self::publish).
    pub(crate) unsafe fn publish_in_place(
        &self,
        position: u64,
        wake: bool,
        write: impl for<'s> FnOnce(&'s mut MaybeUninit<T>) -> &'s mut T,
    ) {
        // SAFETY: claimed, and published below.
        let slots = unsafe { self.ring.slots_of_claim(position) };
        let place = slots.place(position);
        let mut panics = FirstPanic::new();
        let mut written = false;
        panics.catch(|| {
            // SAFETY: the claim makes this thread the only one to touch the place, until the stamp is set.
            let message = write(unsafe { &mut *place });
            // Whoever has a reference to a message there has written one there.
            let here = std::ptr::from_mut(message).cast() == place;
            assert!(here, "what `write` returns is not the message in the slot");
            written = true;
        });
        // SAFETY: claimed; a message is there if it says so.
        unsafe { slots.publish_written(position, written) };
        if wake {
            // SAFETY: the claim saw PARKED.
            panics.catch(|| unsafe { self.wake_for_one() });
        }
        panics.resume("building a message");
    }

    /// Wakes a receiver for one message.
    ///
    /// # Safety
    /// As [`wake`](Self::wake).
    #[inline(never)]
    unsafe fn wake_for_one(&self) {
        // SAFETY: handed on.
        unsafe { self.wake(News::Messages(1)) };
    }

    /// Sends as many messages from the front as there is room for, unless a line waits. Returns how many.
    pub(crate) fn publish_some(&self, messages: &mut VecDeque<T>) -> usize {
        let (first, count, wake) = self.gate.claim_some(messages.len() as u64, &self.rx.head);
        // SAFETY: claimed just now.
        unsafe { self.publish_side_by_side(first, count, messages) };
        if wake && count > 0 {
            // SAFETY: the exchange saw PARKED.
            unsafe { self.wake(News::Messages(count as usize)) };
        }
        count as usize
    }

    /// Writes the first `count` of `messages` to positions that follow each other.
    ///
    /// # Safety
    /// The caller has claimed `count` positions from `first` on, and publishes them once.
    unsafe fn publish_side_by_side(&self, first: u64, count: u64, messages: &mut VecDeque<T>) {
        for (step, value) in (0..count).zip(messages.drain(..count as usize)) {
            let position = first.wrapping_add(step) & POSITION_MASK;
            let value = ManuallyDrop::new(value);
            // SAFETY: handed on; the message is forgotten here.
            unsafe { self.ring.publish_from(position, &raw const *value) };
        }
    }

    /// Sends the first `count` of `messages` with as many of the caller's `permits`, gives the others
    /// back, and wakes as many receivers.
    ///
    /// # Errors
    /// If the receivers are gone; then the permits are still the caller's.
    ///
    /// # Safety
    /// The word counts the permits for the caller, who has no use for them any more if this succeeds.
    pub(crate) unsafe fn publish_many(
        &self,
        messages: &mut VecDeque<T>,
        count: u64,
        permits: u64,
    ) -> Result<(), SendError<()>> {
        let Some((first, before, after)) = self.gate.claim_with_permits(count, permits) else {
            return Err(SendError(()));
        };
        // SAFETY: claimed just now.
        unsafe { self.publish_side_by_side(first, count, messages) };
        let mut panics = FirstPanic::new();
        if before.has(PARKED) && count > 0 {
            // SAFETY: the exchange saw PARKED.
            panics.catch(|| unsafe { self.wake(News::Messages(count as usize)) });
        } else if before.has(PARKED) && after.has(CLOSED) && after.permits() == 0 {
            // SAFETY: as above.
            panics.catch(|| unsafe { self.wake(News::End) });
        }
        if after.has(WAITING) && permits > count {
            panics.catch(|| self.release());
        }
        panics.resume("a waker");
        Ok(())
    }

    /// Wakes receivers.
    ///
    /// # Safety
    /// The caller saw PARKED when it brought the news, and calls this once for it.
    #[inline]
    pub(crate) unsafe fn wake(&self, news: News) {
        // SAFETY: handed on: the transition that saw PARKED cleared it, if there is one receiver.
        unsafe { F::wake(self, news) };
    }

    /// The receiver has received all before `head`, where other slots begin: moves the head there.
    ///
    /// # Safety
    /// The caller is the receiver (of many: has their lock), and does not have the line's lock.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn leave_slots(&self, head: u64) {
        // SAFETY: handed on.
        let left = unsafe { self.leave_slots_in_line(head, &mut self.line.lock()) };
        self.recycle(left);
    }

    /// [`leave_slots`](Self::leave_slots) for one who has the line's lock, and hands on what comes back when it has
    /// given the lock back.
    ///
    /// # Safety
    /// As there, but for the lock.
    pub(crate) unsafe fn leave_slots_in_line(
        &self,
        head: u64,
        _line: &mut Line,
    ) -> Option<Left<T>> {
        // SAFETY: handed on; the lock is held.
        let left = unsafe { self.ring.leave(head) };
        // Release: as for other heads; and the directory is seen without the block by who sees this.
        self.rx.head.store(head, Ordering::Release);
        left
    }

    /// Does with a block that was left what is to be done without a lock.
    pub(crate) fn recycle(&self, left: Option<Left<T>>) {
        if let Some(left) = left {
            self.ring.recycle(left);
        }
    }

    /// Withdraws the message that was deposited at `position` and whose sender has not been told,
    /// unless it has been received.
    #[cold]
    pub(crate) fn withdraw(&self, position: u64) {
        let _line = self.line.lock();
        let head = self.rx.head.load(Ordering::Acquire);
        let ahead = position.wrapping_sub(head) & POSITION_MASK;
        if ahead < self.gate.capacity() {
            // SAFETY: the lock is held, and the head was not beyond the position since it is.
            unsafe { self.ring.withdraw(position) };
        }
    }

    // ---- the end

    /// Closes: no new claims. `flags` may say that the receiver is gone, too. Waiters whose kind
    /// `ends` says yes to are told; each keeps its message.
    pub(crate) fn close(&self, flags: u64, ends: impl Fn(Wants) -> bool) {
        let mut batch = Batch::new(Place::Tail);
        let mut wake_receivers = false;
        let mut panics = FirstPanic::new();
        loop {
            let mut line = self.line.lock();
            // Under the lock, so that a parking sender sees it or is seen.
            wake_receivers |= self.gate.close(flags);
            // What nobody comes for would keep receivers from the end (but not when all senders are gone).
            if ends(Wants::Send) {
                wake_receivers |= self.lapse_all_due(&mut line);
            }
            let mut next = line.front();
            while let Some(node) = next
                && !batch.is_full()
            {
                // SAFETY: linked: found from the first on, and not taken out yet.
                let (behind, wants, mark) = unsafe { line.look(node) };
                next = behind;
                // A grant stays good, like a permit, while its task may come for it.
                if matches!(mark, Mark::Waiting | Mark::Lapsed) && ends(wants) {
                    // SAFETY: linked; the message stays in it.
                    unsafe { Self::take_out(&mut line, node, Status::Closed, &mut batch) };
                }
            }
            if line.is_empty() {
                self.end_line();
            }
            self.copy_counts(&line);
            drop(line);
            if std::mem::take(&mut wake_receivers) {
                // SAFETY: closing saw PARKED.
                panics.catch(|| unsafe { self.wake(News::End) });
            }
            panics.catch(|| batch.wake_all());
            if next.is_none() {
                break;
            }
        }
        panics.catch(|| self.closed_waiters.wake_all());
        panics.resume("a waker");
    }

    /// The last strong sender is gone.
    ///
    /// Messages of senders that still stand in the line (their futures were leaked, or they could
    /// not outlive their sender) are delivered; a leaked reservation would never send, and ends.
    #[cold]
    pub(crate) fn senders_gone(&self) {
        self.close(CLOSED, |wants| wants != Wants::Send);
    }

    // ---- looking

    /// Messages and permits that take capacity, of one moment.
    pub(crate) fn used(&self) -> (u64, u64) {
        let mut head = self.rx.head.load(Ordering::Acquire);
        loop {
            let word = self.gate.load();
            let again = self.rx.head.load(Ordering::Acquire);
            if head == again {
                let used = word.used(head);
                return (used - word.permits(), word.permits());
            }
            head = again;
        }
    }

    /// Whether there seems to be something for receivers, or nothing ever.
    pub(crate) fn has_news(&self) -> bool {
        let word = self.gate.load();
        word.has(CLOSED)
            || word.tail() != self.rx.head.load(Ordering::Relaxed)
            || self.rx.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate.load().has(CLOSED)
    }

    /// Free capacity: none while a line waits, unless its first wants more permits than that.
    pub(crate) fn free(&self) -> usize {
        let (messages, permits) = self.used();
        let capacity = self.gate.capacity();
        capacity.saturating_sub(messages + permits) as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.used().0.min(self.gate.capacity()) as usize
    }
}

impl<T, F: Flavor> Drop for Chan<T, F> {
    /// The receiver's drop has drained the queue; what is left in it otherwise is forgotten.
    fn drop(&mut self) {
        // SAFETY: nobody has the channel any more.
        unsafe { self.ring.free() };
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;
    use crate::flavor::Mpsc;

    #[test]
    fn a_channel_is_three_cache_lines() {
        assert_eq!(size_of::<Chan<usize, Mpsc>>(), 192);
        assert_eq!(std::mem::offset_of!(Chan<usize, Mpsc>, rx), 64);
        assert_eq!(std::mem::offset_of!(Chan<usize, Mpsc>, line), 128);
    }
}
