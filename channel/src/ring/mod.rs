//! The slots of the queue: a value each, and a stamp that says whose turn it is.
//!
//! | stamp of the slot of position `p` | meaning | who may touch the value |
//! |---|---|---|
//! | NOTHING | empty, or claimed and being written | the one who claimed `p` |
//! | MESSAGE | a message | the receiver, when its head is `p` |
//! | DEPOSITED | a message that its sender may still withdraw | the receiver, likewise |
//! | WITHDRAWN | a message to be discarded | the receiver, likewise |
//! | VOID | no message: who would have built it there has panicked | nobody |
//!
//! The receiver sets the stamp back when it has read the value, and then moves its head, which tells that it is done
//! with the slot. A claimant has seen a head beyond the slot, and so its stamp is later than that; and the receiver,
//! when it is there again a lap later, finds its own NOTHING or what came after it.
//!
//! Stamps stand apart from the values and are a byte each, so that a queue of small messages touches
//! little more memory than the messages take.
//!
//! The slots of a small queue are in one piece, for capacity 1 and small messages in the channel itself
//! ([`InlineValue`]). A large one has them in blocks, which come and go (`blocks.rs`).

mod blocks;
mod slots;

use std::mem::MaybeUninit;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::AtomicU8;

use blocks::Blocks;
use slots::Value;

pub(crate) use slots::Slots;

/// No position: its slot is never found published.
pub(crate) const NOWHERE: u64 = 1 << 62;

/// What a slot has for the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Message,
    /// A message whose sender was dropped before it knew that it was accepted.
    Withdrawn,
    /// A position that no message came to.
    Void,
}

/// A message as the receiver finds it.
pub(crate) enum Message<T> {
    Value(T),
    /// Its sender was dropped before it knew that the message was accepted.
    Withdrawn(T),
    /// None came to this position.
    Void,
}

/// Memory in the channel for a small message, if it is for one at a time.
pub(crate) struct InlineValue(
    #[expect(
        dead_code,
        reason = "used through the pointer that the slots have to it"
    )]
    UnsafeCell<MaybeUninit<[u64; 2]>>,
);

impl InlineValue {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Whether `len` messages fit. (A model's cells are larger than what they hold.)
    const fn fits<T>(len: usize) -> bool {
        len == 1
            && size_of::<Value<T>>() <= size_of::<Self>()
            && align_of::<Value<T>>() <= align_of::<Self>()
            && !cfg!(wakerun_loom)
    }
}

/// A power of two of slots, at least the capacity: in one piece, or in blocks.
///
/// A copyable view, as the [`Slots`] in it; the channel has the memory, and copies do not outlive it.
pub(crate) struct Ring<T> {
    /// Without slots, the pointer to the stamps is that to the blocks.
    slots: Slots<T>,
}

impl<T> Clone for Ring<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ring<T> {}

// SAFETY: values move through the slots from thread to thread, one owner at a time (the table
// above), which is what `T: Send` is for.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; nothing gives out a `&T`.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Memory for `capacity` messages, or for none yet, if it is many.
    ///
    /// `None`: that much memory is not to be had.
    ///
    /// # Safety
    /// An [`InlineValue`] and a stamp of 0 are there, but for the initialization, until the last use of the ring, and
    /// nobody else uses them.
    pub(crate) unsafe fn new(
        capacity: usize,
        value: *mut InlineValue,
        stamp: *mut AtomicU8,
    ) -> Option<Self> {
        let len = capacity.checked_next_power_of_two()?;
        let slots = if len > blocks::block_len::<T>() {
            let blocks = Box::into_raw(Box::new(Blocks::<T>::new(capacity)?));
            // SAFETY: no slot, so that only the pointer to the blocks counts.
            unsafe { Slots::at(std::ptr::null_mut(), blocks.cast(), 1) }
        } else if InlineValue::fits::<T>(len) {
            // SAFETY: they are large enough, and stay, says the caller.
            unsafe { Slots::at(value.cast(), stamp, 1) }
        } else {
            Slots::allocate(len)?
        };
        Some(Self { slots })
    }

    /// Frees the memory; messages that are left in it are forgotten.
    ///
    /// # Safety
    /// Nobody uses the ring any more.
    pub(crate) unsafe fn free(&mut self) {
        if self.slots.is_vacant() {
            // SAFETY: made from a box by `new`, and freed once.
            drop(unsafe { Box::from_raw(self.slots.stamps().cast::<Blocks<T>>()) });
        } else if !InlineValue::fits::<T>(self.slots.len()) {
            // SAFETY: allocated by `new`; as above.
            unsafe { self.slots.free() };
        }
    }

    /// The blocks, where there are no slots in one piece.
    #[inline(always)]
    fn blocks(&self) -> Option<&Blocks<T>> {
        if self.slots.is_vacant() {
            // SAFETY: made from a box by `new`, and the channel is there.
            Some(unsafe { &*self.slots.stamps().cast::<Blocks<T>>() })
        } else {
            None
        }
    }

    /// Moves a message in out of `from`, in one copy, and publishes it.
    ///
    /// # Safety
    /// The caller has claimed `position`, and publishes it once. There is a message to be read, which the caller
    /// forgets.
    #[inline(always)]
    pub(crate) unsafe fn publish_from(&self, position: u64, from: *const T) {
        // SAFETY: handed on.
        unsafe { self.put_from(position, false, from) };
    }

    /// Moves a message in for its sender, who may still withdraw it.
    ///
    /// # Safety
    /// As [`publish_from`](Self::publish_from); and the line's lock is held.
    #[inline]
    pub(crate) unsafe fn deposit_from(&self, position: u64, from: *const T) {
        // SAFETY: handed on.
        unsafe { self.put_from(position, true, from) };
    }

    /// [`deposit_from`](Self::deposit_from), if there is a slot. `false`: there is none yet, and nothing was done.
    ///
    /// # Safety
    /// As there; the position is claimed if this succeeds, before the lock is given back, by the receiver, whose head
    /// is not beyond it.
    #[inline(always)]
    pub(crate) unsafe fn deposit_at_hand(&self, position: u64, from: *const T) -> bool {
        let Some(blocks) = self.blocks() else {
            // SAFETY: handed on.
            unsafe { self.slots.put_from(position, true, from) };
            return true;
        };
        // SAFETY: the lock is held, and the head is not beyond the position.
        let Some(slots) = (unsafe { blocks.find(position) }) else {
            return false;
        };
        // SAFETY: handed on.
        unsafe { slots.put_from(position, true, from) };
        true
    }

    /// The slots for a message that is written in its place.
    ///
    /// # Safety
    /// The caller has claimed `position`; they are good until it publishes it.
    #[inline]
    pub(crate) unsafe fn slots_of_claim(&self, position: u64) -> Slots<T> {
        match self.blocks() {
            None => self.slots,
            // SAFETY: handed on.
            Some(blocks) => unsafe { blocks.obtain(position) },
        }
    }

    // Three ways to write, each to its end: slots that are chosen first and written to after that cost more.

    /// # Safety
    /// As [`publish_from`](Self::publish_from).
    #[inline(always)]
    unsafe fn put_from(&self, position: u64, deposited: bool, from: *const T) {
        let Some(blocks) = self.blocks() else {
            // SAFETY: handed on.
            return unsafe { self.slots.put_from(position, deposited, from) };
        };
        // SAFETY: claimed, and published below.
        match unsafe { blocks.find(position) } {
            // SAFETY: handed on.
            Some(slots) => unsafe { slots.put_from(position, deposited, from) },
            // SAFETY: handed on.
            None => unsafe { Self::put_in_new_block(blocks, position, deposited, from) },
        }
    }

    /// # Safety
    /// As [`publish_from`](Self::publish_from).
    #[cold]
    #[inline(never)]
    unsafe fn put_in_new_block(blocks: &Blocks<T>, position: u64, deposited: bool, from: *const T) {
        // SAFETY: claimed, and published below.
        let slots = unsafe { blocks.obtain(position) };
        // SAFETY: handed on.
        unsafe { slots.put_from(position, deposited, from) };
    }

    /// The slots for the receiver to look at with its head at `head`: in them, or where nothing is found as long as
    /// nobody has needed any there.
    ///
    /// # Safety
    /// The caller is the receiver. They are good until it moves its head into other ones, as
    /// [`ends_slots`](Self::ends_slots) tells.
    #[inline]
    pub(crate) unsafe fn slots_at(&self, head: u64) -> Slots<T> {
        let Some(blocks) = self.blocks() else {
            return self.slots;
        };
        // SAFETY: handed on.
        unsafe { blocks.find(head) }.unwrap_or_else(|| blocks.vacant())
    }

    /// Of positions, these bits are 0 where other slots begin.
    pub(crate) fn edge_mask(&self) -> u64 {
        match self.blocks() {
            None => u64::MAX,
            Some(_) => blocks::block_len::<T>() as u64 - 1,
        }
    }

    /// What is at `position`. For the receiver, of its head (or [`NOWHERE`]).
    #[inline]
    pub(crate) fn look(&self, position: u64) -> Found {
        if position == NOWHERE {
            return Found::Nothing;
        }
        // SAFETY: the receiver's.
        unsafe { self.slots_at(position) }.look(position)
    }

    /// Whether the message of `position` is there. For the receiver.
    #[inline]
    pub(crate) fn is_published(&self, position: u64) -> bool {
        self.look(position) != Found::Nothing
    }

    /// Takes the message of `position` out, if it is there, and clears the slot. Afterwards the receiver moves its
    /// head.
    ///
    /// # Safety
    /// The caller is the receiver, `position` is its head, and it takes each position once.
    #[inline]
    pub(crate) unsafe fn take(&self, position: u64) -> Option<Message<T>> {
        // SAFETY: the receiver's.
        let slots = unsafe { self.slots_at(position) };
        let found = slots.look(position);
        match found {
            Found::Nothing => return None,
            Found::Void => {
                slots.clear(position);
                return Some(Message::Void);
            }
            Found::Message | Found::Withdrawn => {}
        }
        // SAFETY: found just now, by the receiver, who moves its head.
        let value = slots.with(position, |from| unsafe { std::ptr::read(from) });
        slots.clear(position);
        Some(match found {
            Found::Withdrawn => Message::Withdrawn(value),
            _ => Message::Value(value),
        })
    }

    /// Takes away the block that ends before `head`, to be handed to [`recycle`](Self::recycle).
    ///
    /// # Safety
    /// The caller is the receiver, which has received all messages before `head`, where other slots begin. It holds
    /// the line's lock, and stores the head before it gives the lock back.
    pub(crate) unsafe fn leave(&self, head: u64) -> Option<Left<T>> {
        // SAFETY: handed on.
        let block = unsafe { self.blocks()?.remove(head.wrapping_sub(1)) };
        Some(Left(block))
    }

    /// Keeps what was left for later, or frees it. Without the lock.
    pub(crate) fn recycle(&self, left: Left<T>) {
        if let Some(blocks) = self.blocks() {
            // SAFETY: it was removed, and a `Left` is used once.
            unsafe { blocks.recycle(left.0) };
        }
    }

    /// Withdraws a deposited message: the receiver will discard it, unless it is just receiving it.
    ///
    /// # Safety
    /// The line's lock is held since the receiver's head was seen at or before `position`: so the
    /// slot has not been deposited into again, as deposits are made under the lock, and the receiver has not left
    /// the block.
    pub(crate) unsafe fn withdraw(&self, position: u64) {
        match self.blocks() {
            None => self.slots.withdraw(position),
            Some(blocks) => {
                // SAFETY: handed on.
                if let Some(slots) = unsafe { blocks.find(position) } {
                    slots.withdraw(position);
                }
            }
        }
    }
}

/// A block that the receiver has left.
#[must_use]
pub(crate) struct Left<T>(*mut Value<T>);

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;
    use crate::gate::POSITION_MASK;

    /// A ring with all that it needs.
    struct Own<T> {
        ring: Ring<T>,
        _inline: Box<(InlineValue, AtomicU8)>,
    }

    impl<T> Own<T> {
        fn new(capacity: usize) -> Self {
            let inline = Box::new((InlineValue::new(), AtomicU8::new(0)));
            let value = (&raw const inline.0).cast_mut();
            let stamp = (&raw const inline.1).cast_mut();
            // SAFETY: they stay in the box.
            let ring = unsafe { Ring::new(capacity, value, stamp) }.unwrap();
            Self {
                ring,
                _inline: inline,
            }
        }
    }

    impl<T> std::ops::Deref for Own<T> {
        type Target = Ring<T>;

        fn deref(&self) -> &Ring<T> {
            &self.ring
        }
    }

    impl<T> Drop for Own<T> {
        fn drop(&mut self) {
            // SAFETY: the owner.
            unsafe { self.ring.free() };
        }
    }

    /// # Safety
    /// As [`Ring::publish_from`].
    unsafe fn publish<T>(ring: &Ring<T>, position: u64, value: T) {
        let value = std::mem::ManuallyDrop::new(value);
        // SAFETY: handed on; the message is forgotten here.
        unsafe { ring.publish_from(position, &raw const *value) };
    }

    fn take<T>(ring: &Ring<T>, position: u64) -> Option<(T, bool)> {
        // SAFETY: the tests are the one receiver and take each position once.
        let message = unsafe { ring.take(position) }?;
        let head = position.wrapping_add(1) & POSITION_MASK;
        if head & ring.edge_mask() == 0 {
            // SAFETY: as above, and there is no line.
            let left = unsafe { ring.leave(head) };
            left.into_iter().for_each(|left| ring.recycle(left));
        }
        Some(match message {
            Message::Value(value) => (value, true),
            Message::Withdrawn(value) => (value, false),
            Message::Void => return None,
        })
    }

    #[test]
    fn a_slot_serves_lap_after_lap() {
        let ring = Own::new(3);
        for lap in 0..10_u64 {
            for at in lap * 4..lap * 4 + 4 {
                assert!(take(&ring, at).is_none());
                // SAFETY: claimed by being the only thread.
                unsafe { publish(&ring, at, at.to_string()) };
            }
            for at in lap * 4..lap * 4 + 4 {
                assert_eq!(take(&ring, at), Some((at.to_string(), true)));
            }
        }
    }

    #[test]
    fn a_large_queue_has_its_blocks_while_it_needs_them() {
        type Message = [u64; 128];
        const LEN: u64 = blocks::block_len::<Message>() as u64;
        let ring = Own::<Message>::new(10_000);
        let count = || ring.blocks().unwrap().count();
        assert_eq!(count(), 0);
        // Nearly empty: two blocks in turn.
        for at in 0..5 * LEN {
            // SAFETY: claimed by being the only thread; here and below.
            unsafe { publish(&ring, at, [at; 128]) };
            assert_eq!(take(&ring, at).unwrap().0[127], at);
            assert!(count() <= 2);
        }
        // Full, for some laps.
        let mut tail = 5 * LEN;
        for at in 5 * LEN..40_000 {
            while tail < at + 10_000 {
                // SAFETY: as above.
                unsafe { publish(&ring, tail, [tail; 128]) };
                tail += 1;
            }
            assert_eq!(take(&ring, at).unwrap().0[0], at);
        }
        assert!(count() as u64 >= 10_000 / LEN);
        for at in 40_000..tail {
            assert_eq!(take(&ring, at).unwrap().0[0], at);
        }
        assert!(count() <= 2, "what is not needed is given back");
    }

    #[test]
    fn only_a_deposit_can_be_withdrawn() {
        let ring = Own::new(1);
        // SAFETY: claimed by being the only thread, and nobody deposits meanwhile; here and below.
        unsafe { publish(&ring, 0, 'a') };
        // SAFETY: as above.
        unsafe { ring.withdraw(0) };
        assert_eq!(take(&ring, 0), Some(('a', true)));
        // SAFETY: as above.
        unsafe { ring.deposit_from(1, &'b') };
        // SAFETY: as above.
        unsafe { ring.withdraw(1) };
        assert_eq!(take(&ring, 1), Some(('b', false)));
        // SAFETY: as above.
        unsafe { ring.deposit_from(2, &'c') };
        assert_eq!(take(&ring, 2), Some(('c', true)));
    }

    #[test]
    fn a_deposit_at_hand_needs_a_slot_that_is_there() {
        let ring = Own::new(1);
        // SAFETY: as above.
        assert!(unsafe { ring.deposit_at_hand(0, &'a') });
        // SAFETY: as above.
        unsafe { ring.withdraw(0) };
        assert_eq!(take(&ring, 0), Some(('a', false)));
        let large = Own::new(1 << 20);
        // SAFETY: as above.
        assert!(!unsafe { large.deposit_at_hand(0, &'b') });
        // SAFETY: as above.
        unsafe { publish(&large, 0, 'b') };
        // SAFETY: as above.
        assert!(unsafe { large.deposit_at_hand(1, &'c') });
        assert_eq!(take(&large, 0), Some(('b', true)));
        assert_eq!(take(&large, 1), Some(('c', true)));
    }

    #[test]
    fn laps_go_on_where_positions_wrap() {
        let ring = Own::new(2);
        for position in [POSITION_MASK - 1, POSITION_MASK, 0, 1] {
            assert!(take(&ring, position).is_none());
            // SAFETY: as above.
            unsafe { publish(&ring, position, position) };
            assert_eq!(take(&ring, position), Some((position, true)));
        }
    }

    #[test]
    fn nothing_is_nowhere() {
        let ring = Own::new(1);
        // SAFETY: as above.
        unsafe { publish(&ring, 0, ()) };
        assert_eq!(ring.look(NOWHERE), Found::Nothing);
        assert!(!ring.is_published(NOWHERE));
    }
}
