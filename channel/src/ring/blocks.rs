//! The slots of a large queue: blocks that are there while they are used.
//!
//! | the directory's entry of a block | who changes it |
//! |---|---|
//! | null | a claimant of a position in it, to a block that is empty |
//! | a block | the receiver, when it has received all its messages, to null |
//!
//! **Nobody uses a block that is taken away.** A claimant uses it between its claim and the store of its stamp, and
//! the receiver passes no position before that. Who withdraws a message holds the line's lock and has seen a head
//! that is not beyond it; so the receiver takes a block away, and moves its head out of it, under that lock. All
//! else that looks at a block is done by the receiver (of many: by whoever has their lock).
//!
//! **Nobody finds the block of an earlier lap.** The directory has a block more than the capacity takes: `entries *
//! len >= capacity + len`. A position of the next lap is claimed by somebody who has seen a head less than the
//! capacity behind it, which is beyond all of the block that was at this entry. The receiver takes it away *before*
//! it stores that head (Release), and the claimant has read the head (Acquire), or got its permit or its limit from
//! somebody who has. So it finds null, or what another claimant of this lap has put there.
//!
//! **A block is empty when it comes.** Nothing is in it: it is new, or the receiver has cleared slot after slot before
//! it is handed on (Release by the exchange that puts it there, Acquire by whoever loads the entry).
//!
//! One free block is kept; the others are given back. A queue that never holds more than a block uses two in turn
//! and allocates nothing, and one that has been full is small again when it is drained.

use std::alloc::handle_alloc_error;
use std::ptr;

use wakerun::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use super::slots::{Slots, Value};

/// A block in the directory: its values.
type Entry<T> = AtomicPtr<Value<T>>;

/// How many bytes a block aims at, and how many slots it has at least and at most: few enough to be soon used up
/// and in the cache again, and enough that the work of a block is nothing to that of its messages.
const BYTES: usize = 32 * 1024;
const LEAST: usize = if SMALL { 2 } else { 64 };
const MOST: usize = if SMALL { 2 } else { 1024 };
/// Models, and tests of this with small queues.
const SMALL: bool = cfg!(any(wakerun_loom, wakerun_small_blocks));

/// How many slots a block has: the largest queue that needs no blocks.
pub(super) const fn block_len<T>() -> usize {
    let fit = BYTES / (size_of::<T>() + 1);
    if fit <= LEAST {
        LEAST
    } else if fit >= MOST {
        MOST
    } else {
        1 << fit.ilog2()
    }
}

pub(super) struct Blocks<T> {
    directory: Box<[Entry<T>]>,
    /// A block that is not used, and as new.
    spare: Entry<T>,
    /// What the receiver looks at where there is no block.
    nothing: AtomicU8,
}

impl<T> Blocks<T> {
    const LEN: usize = block_len::<T>();
    /// From a block's values to its stamps, as in [`Slots::layout`], which says whether there can be such a block.
    const STAMPS: usize = {
        let values = size_of::<Value<T>>().wrapping_mul(Self::LEN);
        values.next_multiple_of(align_of::<AtomicU8>())
    };

    /// `None`: the memory for the directory is not to be had, or a block could never be.
    pub(super) fn new(capacity: usize) -> Option<Self> {
        let (_, stamps) = Slots::<T>::layout(Self::LEN)?;
        debug_assert_eq!(stamps, Self::STAMPS);
        let entries = capacity
            .checked_add(Self::LEN)?
            .div_ceil(Self::LEN)
            .checked_next_power_of_two()?;
        // SAFETY: zeros are a null pointer.
        let directory =
            unsafe { wakerun::sync::zeroed_slice(entries, || AtomicPtr::new(ptr::null_mut())) }?;
        Some(Self {
            directory,
            spare: AtomicPtr::new(ptr::null_mut()),
            nothing: AtomicU8::new(0),
        })
    }

    #[inline(always)]
    fn entry(&self, position: u64) -> &Entry<T> {
        let index = (position as usize / Self::LEN) & (self.directory.len() - 1);
        // SAFETY: they are a power of two, so that what is left of the index is less.
        unsafe { self.directory.get_unchecked(index) }
    }

    /// The slots of a block.
    ///
    /// # Safety
    /// It is one of this channel's, which nobody takes away before the last use of the view.
    #[inline(always)]
    unsafe fn slots(&self, block: *mut Value<T>) -> Slots<T> {
        // SAFETY: a block is so long, says its layout.
        let stamps = unsafe { block.cast::<u8>().add(Self::STAMPS) };
        // SAFETY: handed on.
        unsafe { Slots::at(block, stamps.cast(), Self::LEN as u32) }
    }

    /// The slots that a position is in; `None` if nobody has put a block there yet.
    ///
    /// # Safety
    /// The caller is the receiver and the position its head, or has the line's lock and has seen a head that is not
    /// beyond it, or has claimed the position and not published it yet. The view is good while that is so.
    #[inline(always)]
    pub(super) unsafe fn find(&self, position: u64) -> Option<Slots<T>> {
        let block = self.entry(position).load(Ordering::Acquire);
        // SAFETY: handed on.
        (!block.is_null()).then(|| unsafe { self.slots(block) })
    }

    /// The slots that a position is in.
    ///
    /// # Safety
    /// The caller has claimed the position; the view is good until it publishes it.
    #[inline]
    pub(super) unsafe fn obtain(&self, position: u64) -> Slots<T> {
        // SAFETY: claimed.
        if let Some(slots) = unsafe { self.find(position) } {
            return slots;
        }
        let block = self.install(self.entry(position));
        // SAFETY: the claim keeps the block there.
        unsafe { self.slots(block) }
    }

    /// Puts a block where there is none, unless another claimant is faster.
    #[cold]
    #[inline(never)]
    fn install(&self, entry: &Entry<T>) -> *mut Value<T> {
        // Acquire pairs with the Release in `keep`: the block is as new.
        let mut block = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        if block.is_null() {
            block = Self::allocate();
        }
        // Release: with its stamps. Acquire: another one's.
        match entry.compare_exchange(ptr::null_mut(), block, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => block,
            Err(found) => {
                self.keep(block);
                found
            }
        }
    }

    fn allocate() -> *mut Value<T> {
        match Slots::<T>::allocate(Self::LEN) {
            Some(slots) => slots.values(),
            None => match Slots::<T>::layout(Self::LEN) {
                // As for a `Box`.
                Some((layout, _)) => handle_alloc_error(layout),
                None => unreachable!("the layout was looked at for the directory"),
            },
        }
    }

    /// Takes the block of a position away.
    ///
    /// # Safety
    /// The caller is the receiver, which has received all messages of the block, and moves its head out of it
    /// after this and before it gives back the line's lock, which it holds. It hands the block to
    /// [`recycle`](Self::recycle).
    pub(super) unsafe fn remove(&self, position: u64) -> *mut Value<T> {
        let entry = self.entry(position);
        // Relaxed: the receiver has found it there before, and hands on the null with its head.
        let block = entry.load(Ordering::Relaxed);
        entry.store(ptr::null_mut(), Ordering::Relaxed);
        block
    }

    /// Keeps a block that was taken away, or gives it back.
    ///
    /// # Safety
    /// It comes from [`remove`](Self::remove).
    pub(super) unsafe fn recycle(&self, block: *mut Value<T>) {
        // (In models a withdrawal may come behind the clearing that it came before: they do not know that nothing comes
        // between an exchange and the store that it has read.)
        // SAFETY: taken away, and the caller's.
        debug_assert!(cfg!(wakerun_loom) || unsafe { self.slots(block) }.are_empty());
        self.keep(block);
    }

    /// Keeps a block that is as new, if none is kept yet.
    fn keep(&self, block: *mut Value<T>) {
        let kept = self.spare.compare_exchange(
            ptr::null_mut(),
            block,
            // Release pairs with the Acquire in `install`.
            Ordering::Release,
            Ordering::Relaxed,
        );
        if kept.is_err() {
            // SAFETY: the caller's.
            let slots = unsafe { self.slots(block) };
            // SAFETY: nobody else knows it.
            unsafe { slots.free() };
        }
    }

    /// How many blocks there are.
    #[cfg(all(test, not(wakerun_loom)))]
    pub(super) fn count(&self) -> usize {
        let entries = self.directory.iter().chain([&self.spare]);
        entries
            .filter(|entry| !entry.load(Ordering::Relaxed).is_null())
            .count()
    }

    /// What the receiver looks at while there is no block at its head.
    pub(super) fn vacant(&self) -> Slots<T> {
        Slots::vacant(&self.nothing)
    }
}

impl<T> Drop for Blocks<T> {
    /// Frees all; messages that are left are forgotten.
    fn drop(&mut self) {
        for entry in self.directory.iter().chain([&self.spare]) {
            let block = entry.load(Ordering::Relaxed);
            if !block.is_null() {
                // SAFETY: there it is.
                let slots = unsafe { self.slots(block) };
                // SAFETY: the channel is gone, and nobody uses its blocks.
                unsafe { slots.free() };
            }
        }
    }
}
