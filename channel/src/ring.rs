//! The slots of the queue: a value each, and a stamp that says whose turn it is.
//!
//! | stamp of the slot of position `p` | meaning | who may touch the value |
//! |---|---|---|
//! | of the lap before, or 0 | empty, or claimed and being written | the one who claimed `p` |
//! | this lap's | a message | the receiver, when its head is `p` |
//! | this lap's + DEPOSITED | a message that its sender may still withdraw | the receiver, likewise |
//! | this lap's + DEPOSITED + WITHDRAWN | a message to be discarded | the receiver, likewise |
//!
//! A lap is one time round the ring; every slot is used once in each, so two values that take turns
//! tell a lap from the one before.
//!
//! The receiver never writes a stamp: that it is done with a slot is told by its head. So a slot is
//! written again by a claimant that has seen a head beyond it, and a receive is a load and a store.
//!
//! Stamps stand apart from the values and are a byte each, so that a queue of small messages touches
//! little more memory than the messages take.

use std::mem::MaybeUninit;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicU8, Ordering};

/// The values that the laps take turns with; never 0, which stands in a slot that was never used.
const EVEN_LAP: u8 = 1;
const ODD_LAP: u8 = 2;
const DEPOSITED: u8 = 4;
const WITHDRAWN: u8 = 8;

/// No position: its slot is never found published.
pub(crate) const NOWHERE: u64 = 1 << 62;

/// A message as the receiver finds it.
pub(crate) enum Message<T> {
    Value(T),
    /// Its sender was dropped before it knew that the message was accepted.
    Withdrawn(T),
}

/// A power of two of slots, at least the capacity.
pub(crate) struct Ring<T> {
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
    stamps: Box<[AtomicU8]>,
    mask: u64,
}

// SAFETY: values move through the slots from thread to thread, one owner at a time (the table
// above), which is what `T: Send` is for.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; nothing gives out a `&T`.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Memory for `capacity` messages. Large rings come zeroed from the system, page by page as they
    /// are touched.
    ///
    /// `None`: that much memory is not to be had.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let len = capacity.checked_next_power_of_two()?;
        // SAFETY: anything is a valid `MaybeUninit`.
        let values =
            unsafe { wakerun::sync::zeroed_slice(len, || UnsafeCell::new(MaybeUninit::uninit())) }?;
        // SAFETY: a zero byte is the stamp 0.
        let stamps = unsafe { wakerun::sync::zeroed_slice(len, || AtomicU8::new(0)) }?;
        Some(Self {
            values,
            stamps,
            mask: len as u64 - 1,
        })
    }

    #[inline(always)]
    fn index(&self, position: u64) -> usize {
        (position & self.mask) as usize
    }

    /// The stamp of a message at this position.
    #[inline(always)]
    fn stamp(&self, position: u64) -> u8 {
        if position & (self.mask + 1) == 0 {
            EVEN_LAP
        } else {
            ODD_LAP
        }
    }

    /// Whether a slot's stamp says that the message of this position is there.
    #[inline(always)]
    fn is_of(&self, found: u8, position: u64) -> bool {
        found & !(DEPOSITED | WITHDRAWN) == self.stamp(position) && position != NOWHERE
    }

    #[inline(always)]
    fn stamp_cell(&self, position: u64) -> &AtomicU8 {
        let index = self.index(position);
        debug_assert!(index < self.stamps.len());
        // SAFETY: there are `mask + 1` stamps.
        unsafe { self.stamps.get_unchecked(index) }
    }

    #[inline(always)]
    fn value_cell(&self, position: u64) -> &UnsafeCell<MaybeUninit<T>> {
        let index = self.index(position);
        debug_assert!(index < self.values.len());
        // SAFETY: there are `mask + 1` values.
        unsafe { self.values.get_unchecked(index) }
    }

    /// Writes a message and publishes it.
    ///
    /// # Safety
    /// The caller has claimed `position`, and publishes it once.
    #[inline]
    pub(crate) unsafe fn publish(&self, position: u64, value: T) {
        // SAFETY: handed on.
        unsafe { self.put(position, value, 0) }
    }

    /// Writes a message for its sender, who may still withdraw it.
    ///
    /// # Safety
    /// As [`publish`](Self::publish); and the line's lock is held.
    #[inline]
    pub(crate) unsafe fn deposit(&self, position: u64, value: T) {
        // SAFETY: handed on.
        unsafe { self.put(position, value, DEPOSITED) }
    }

    /// # Safety
    /// As [`publish`](Self::publish).
    #[inline]
    unsafe fn put(&self, position: u64, value: T, flag: u8) {
        // SAFETY: the claim makes this thread the only one to touch the value; the receiver is done
        // with what was there, since the claimant has seen its head.
        self.value_cell(position)
            .with_mut(|place| unsafe { (*place).write(value) });
        // Release pairs with the Acquire in `take`.
        self.stamp_cell(position)
            .store(self.stamp(position) | flag, Ordering::Release);
    }

    /// Takes the message of `position` out, if it is there. Afterwards the receiver moves its head.
    ///
    /// # Safety
    /// The caller is the receiver, `position` is its head (or [`NOWHERE`]), and it takes each
    /// position once.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, position: u64) -> Option<Message<T>> {
        let found = self.stamp_cell(position).load(Ordering::Acquire);
        if !self.is_of(found, position) {
            return None;
        }
        let value = self.value_cell(position).with(|place| {
            // SAFETY: a published value is written no more until the head has passed it.
            let place = unsafe { &*place };
            // SAFETY: the stamp says that it is there, and only the receiver takes it, once.
            unsafe { place.assume_init_read() }
        });
        if found & WITHDRAWN == 0 {
            Some(Message::Value(value))
        } else {
            Some(Message::Withdrawn(value))
        }
    }

    /// Whether the message of `position` is there. For the receiver.
    #[inline]
    pub(crate) fn is_published(&self, position: u64) -> bool {
        self.is_of(self.stamp_cell(position).load(Ordering::Acquire), position)
    }

    /// Withdraws a deposited message: the receiver will discard it, unless it is just receiving it.
    ///
    /// # Safety
    /// The line's lock is held since the receiver's head was seen at or before `position`: so the
    /// slot has not been deposited into again, as deposits are made under the lock.
    pub(crate) unsafe fn withdraw(&self, position: u64) {
        let deposited = self.stamp(position) | DEPOSITED;
        // Relaxed: nothing is handed over; the value stays the receiver's, who gets it from the
        // depositor: an exchange continues the release sequence of the store it replaces.
        let _ = self.stamp_cell(position).compare_exchange(
            deposited,
            deposited | WITHDRAWN,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;
    use crate::gate::POSITION_MASK;

    fn take<T>(ring: &Ring<T>, position: u64) -> Option<(T, bool)> {
        // SAFETY: the tests are the one receiver and take each position once.
        unsafe { ring.take(position) }.map(|message| match message {
            Message::Value(value) => (value, true),
            Message::Withdrawn(value) => (value, false),
        })
    }

    #[test]
    fn a_slot_serves_lap_after_lap() {
        let ring = Ring::new(3).unwrap();
        for lap in 0..10_u64 {
            for at in lap * 4..lap * 4 + 4 {
                assert!(take(&ring, at).is_none());
                // SAFETY: claimed by being the only thread.
                unsafe { ring.publish(at, at.to_string()) };
            }
            for at in lap * 4..lap * 4 + 4 {
                assert_eq!(take(&ring, at), Some((at.to_string(), true)));
            }
        }
    }

    #[test]
    fn only_a_deposit_can_be_withdrawn() {
        let ring = Ring::new(1).unwrap();
        // SAFETY: claimed by being the only thread, and nobody deposits meanwhile; here and below.
        unsafe { ring.publish(0, 'a') };
        // SAFETY: as above.
        unsafe { ring.withdraw(0) };
        assert_eq!(take(&ring, 0), Some(('a', true)));
        // SAFETY: as above.
        unsafe { ring.deposit(1, 'b') };
        // SAFETY: as above.
        unsafe { ring.withdraw(1) };
        assert_eq!(take(&ring, 1), Some(('b', false)));
        // SAFETY: as above.
        unsafe { ring.deposit(2, 'c') };
        assert_eq!(take(&ring, 2), Some(('c', true)));
    }

    #[test]
    fn laps_go_on_where_positions_wrap() {
        let ring = Ring::new(2).unwrap();
        for position in [POSITION_MASK - 1, POSITION_MASK, 0, 1] {
            assert!(take(&ring, position).is_none());
            // SAFETY: as above.
            unsafe { ring.publish(position, position) };
            assert_eq!(take(&ring, position), Some((position, true)));
        }
    }

    #[test]
    fn nothing_is_nowhere() {
        let ring = Ring::new(1).unwrap();
        // SAFETY: as above.
        unsafe { ring.publish(0, ()) };
        assert!(take(&ring, NOWHERE).is_none());
        assert!(!ring.is_published(NOWHERE));
    }
}
