//! The slots of the queue: a value each, and a stamp that says whose turn it is.
//!
//! | stamp of the slot of position `p` | meaning | who may touch the value |
//! |---|---|---|
//! | of an older position, or 0 | empty, or claimed and being written | the one who claimed `p` |
//! | `p`, PUBLISHED | a message | the receiver, when its head is `p` |
//! | `p`, DEPOSITED | a message that its sender may still withdraw | the receiver, likewise |
//! | `p`, WITHDRAWN | a message to be discarded | the receiver, likewise |
//!
//! The receiver never writes a stamp: that it is done with a slot is told by its head. So a slot is
//! written again by a claimant that has seen a head beyond it, and a receive is a load and a store.

use std::mem::MaybeUninit;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicU64, Ordering};

use crate::gate::POSITION_MASK;

const PUBLISHED: u64 = 0;
const DEPOSITED: u64 = 1;
const WITHDRAWN: u64 = 2;
const KIND_BITS: u32 = 2;

/// The stamp of a position; never 0 for a slot's first position.
#[inline]
fn stamp(position: u64, kind: u64) -> u64 {
    ((position.wrapping_add(1) & POSITION_MASK) << KIND_BITS) | kind
}

struct Slot<T> {
    stamp: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self {
            stamp: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// A message as the receiver finds it.
pub(crate) enum Message<T> {
    Value(T),
    /// Its sender was dropped before it knew that the message was accepted.
    Withdrawn(T),
}

/// A power of two of slots, at least the capacity.
pub(crate) struct Ring<T> {
    slots: Box<[Slot<T>]>,
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
        // SAFETY: a slot of zeros is an empty one: stamp 0 and no value.
        let slots = unsafe { wakerun::sync::zeroed_slice(len, Slot::new) }?;
        Some(Self {
            mask: len as u64 - 1,
            slots,
        })
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot<T> {
        let index = (position & self.mask) as usize;
        debug_assert!(index < self.slots.len());
        // SAFETY: there are `mask + 1` slots.
        unsafe { self.slots.get_unchecked(index) }
    }

    /// Writes a message and publishes it.
    ///
    /// # Safety
    /// The caller has claimed `position`, and publishes it once.
    #[inline]
    pub(crate) unsafe fn publish(&self, position: u64, value: T) {
        // SAFETY: handed on.
        unsafe { self.put(position, value, PUBLISHED) }
    }

    /// Writes a message for its sender, who may still withdraw it.
    ///
    /// # Safety
    /// As [`publish`](Self::publish).
    #[inline]
    pub(crate) unsafe fn deposit(&self, position: u64, value: T) {
        // SAFETY: handed on.
        unsafe { self.put(position, value, DEPOSITED) }
    }

    /// # Safety
    /// As [`publish`](Self::publish).
    #[inline]
    unsafe fn put(&self, position: u64, value: T, kind: u64) {
        let slot = self.slot(position);
        // SAFETY: the claim makes this thread the only one to touch the value; the receiver is done
        // with what was there, since the claimant has seen its head.
        slot.value
            .with_mut(|place| unsafe { (*place).write(value) });
        // Release pairs with the Acquire in `take`.
        slot.stamp.store(stamp(position, kind), Ordering::Release);
    }

    /// Takes the message of `position` out, if it is there. Afterwards the receiver moves its head.
    ///
    /// # Safety
    /// The caller is the receiver, `position` is its head, and it takes each position once.
    #[inline]
    pub(crate) unsafe fn take(&self, position: u64) -> Option<Message<T>> {
        let slot = self.slot(position);
        let found = slot.stamp.load(Ordering::Acquire);
        if found & !((1 << KIND_BITS) - 1) != stamp(position, PUBLISHED) {
            return None;
        }
        // SAFETY: the stamp says that the value is there, and only the receiver takes it.
        let value = slot
            .value
            .with(|place| unsafe { (*place).assume_init_read() });
        if found & WITHDRAWN != 0 {
            Some(Message::Withdrawn(value))
        } else {
            Some(Message::Value(value))
        }
    }

    /// Whether the message of `position` is there. For the receiver.
    #[inline]
    pub(crate) fn is_published(&self, position: u64) -> bool {
        let found = self.slot(position).stamp.load(Ordering::Acquire);
        found & !((1 << KIND_BITS) - 1) == stamp(position, PUBLISHED)
    }

    /// Withdraws a deposited message: the receiver will discard it. Without effect if it has been
    /// received, since then the receiver has read the stamp, or the slot has a newer one.
    pub(crate) fn withdraw(&self, position: u64) {
        // Relaxed: nothing is handed over; the value stays the receiver's, who gets it from the
        // depositor: an exchange continues the release sequence of the store it replaces.
        let _ = self.slot(position).stamp.compare_exchange(
            stamp(position, DEPOSITED),
            stamp(position, WITHDRAWN),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
    fn only_a_deposit_of_this_position_can_be_withdrawn() {
        let ring = Ring::new(1).unwrap();
        // SAFETY: claimed by being the only thread, here and below.
        unsafe { ring.publish(0, 'a') };
        ring.withdraw(0);
        assert_eq!(take(&ring, 0), Some(('a', true)));
        // SAFETY: as above.
        unsafe { ring.deposit(1, 'b') };
        ring.withdraw(0);
        ring.withdraw(1);
        assert_eq!(take(&ring, 1), Some(('b', false)));
        // SAFETY: as above.
        unsafe { ring.deposit(2, 'c') };
        ring.withdraw(1);
        assert_eq!(take(&ring, 2), Some(('c', true)));
    }

    #[test]
    fn stamps_wrap_with_the_positions() {
        let ring = Ring::new(1).unwrap();
        // SAFETY: as above.
        unsafe { ring.publish(POSITION_MASK - 1, 0) };
        assert!(take(&ring, POSITION_MASK).is_none());
        assert_eq!(take(&ring, POSITION_MASK - 1), Some((0, true)));
        // SAFETY: as above.
        unsafe { ring.publish(POSITION_MASK, 1) };
        assert_eq!(take(&ring, POSITION_MASK), Some((1, true)));
    }
}
