//! A run of slots, each a value and a stamp, and its memory.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicU8, Ordering};

use super::Found;

/// What a stamp says: in this order, so that one comparison tells a message to be received.
const NOTHING: u8 = 0;
const VOID: u8 = 1;
const WITHDRAWN: u8 = 2;
const MESSAGE: u8 = 3;
const DEPOSITED: u8 = 4;

/// A place for a message.
pub(super) type Value<T> = UnsafeCell<MaybeUninit<T>>;

/// So many slots: a power of two. A copyable view; who made them frees them.
///
/// Values and stamps are one allocation, the values first.
pub(crate) struct Slots<T> {
    /// Null where there is no slot, but a stamp that is never set.
    values: *mut Value<T>,
    stamps: *mut AtomicU8,
    mask: u32,
}

impl<T> Clone for Slots<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<T> {}

impl<T> Slots<T> {
    /// A view of `len` slots at these places.
    ///
    /// # Safety
    /// They are there, until the last use of the view; `len` is a power of two.
    #[inline(always)]
    pub(super) unsafe fn at(values: *mut Value<T>, stamps: *mut AtomicU8, len: u32) -> Self {
        let mask = len - 1;
        Self {
            values,
            stamps,
            mask,
        }
    }

    /// The memory that `len` slots take, and where in it the stamps begin.
    pub(super) fn layout(len: usize) -> Option<(Layout, usize)> {
        let values = Layout::array::<Value<T>>(len).ok()?;
        let stamps = Layout::array::<AtomicU8>(len).ok()?;
        values.extend(stamps).ok()
    }

    /// `len` slots that were never used. `None`: the memory is not to be had.
    pub(super) fn allocate(len: usize) -> Option<Self> {
        let (layout, offset) = Self::layout(len)?;
        // SAFETY: there is a stamp at least, so the layout has a size.
        let memory = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        // SAFETY: that is inside, or at its end where the values have no size.
        let stamps = unsafe { memory.as_ptr().add(offset) };
        // SAFETY: allocated for so many.
        let slots = unsafe { Self::at(memory.as_ptr().cast(), stamps.cast(), len as u32) };
        // A model's cells are no plain memory. Of real ones, anything is a valid `MaybeUninit`.
        #[cfg(wakerun_loom)]
        for index in 0..len {
            // SAFETY: inside.
            let value = unsafe { slots.values.add(index) };
            // SAFETY: not shared yet.
            unsafe { value.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        for index in 0..len {
            // SAFETY: inside.
            let stamp = unsafe { slots.stamps.add(index) };
            // SAFETY: not shared yet.
            unsafe { stamp.write(AtomicU8::new(NOTHING)) };
        }
        Some(slots)
    }

    /// Frees the memory; messages that are left in it are forgotten.
    ///
    /// # Safety
    /// The slots come from [`allocate`](Self::allocate), and nobody uses them any more.
    pub(super) unsafe fn free(self) {
        #[cfg(wakerun_loom)]
        for index in 0..self.len() {
            // SAFETY: inside; here and below.
            let value = unsafe { self.values.add(index) };
            // SAFETY: as above.
            let stamp = unsafe { self.stamps.add(index) };
            // SAFETY: dropped once; here and below.
            unsafe { ptr::drop_in_place(value) };
            // SAFETY: as above.
            unsafe { ptr::drop_in_place(stamp) };
        }
        if let Some((layout, _)) = Self::layout(self.len()) {
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(self.values.cast(), layout) };
        }
    }

    /// Whether nothing is in any of them, as in new ones. For one who has them to itself.
    pub(super) fn are_empty(self) -> bool {
        let stamps = (0..self.len()).map(|index| self.stamp_cell(index as u64));
        let mut found = stamps.map(|stamp| stamp.load(Ordering::Relaxed));
        found.all(|found| found == NOTHING)
    }

    /// Where there is no slot, but a stamp that nobody sets: nothing is ever found here.
    ///
    /// The stamp stays until the last use of the view.
    pub(crate) fn vacant(stamp: &AtomicU8) -> Self {
        Self {
            values: ptr::null_mut(),
            stamps: ptr::from_ref(stamp).cast_mut(),
            mask: 0,
        }
    }

    /// Whether there is no slot here.
    #[inline(always)]
    pub(crate) fn is_vacant(&self) -> bool {
        self.values.is_null()
    }

    pub(super) fn len(&self) -> usize {
        self.mask as usize + 1
    }

    #[inline(always)]
    pub(super) fn values(&self) -> *mut Value<T> {
        self.values
    }

    #[inline(always)]
    pub(super) fn stamps(&self) -> *mut AtomicU8 {
        self.stamps
    }

    #[inline(always)]
    fn index(&self, position: u64) -> usize {
        (position & u64::from(self.mask)) as usize
    }

    #[inline(always)]
    fn stamp_cell(&self, position: u64) -> &AtomicU8 {
        // SAFETY: there are `mask + 1` stamps.
        let stamp = unsafe { self.stamps.add(self.index(position)) };
        // SAFETY: there, and shared.
        unsafe { &*stamp }
    }

    #[inline(always)]
    fn value_cell(&self, position: u64) -> &Value<T> {
        debug_assert!(!self.is_vacant());
        // SAFETY: there are `mask + 1` values.
        let value = unsafe { self.values.add(self.index(position)) };
        // SAFETY: there, and shared as a cell.
        unsafe { &*value }
    }

    /// Moves a message in out of `from`, in one copy, and publishes it; `deposited`: its sender may still withdraw it.
    ///
    /// # Safety
    /// The caller has claimed `position`, which is in these slots, and publishes it once. There is a message to be read,
    /// which the caller forgets.
    #[inline(always)]
    pub(crate) unsafe fn put_from(&self, position: u64, deposited: bool, from: *const T) {
        // SAFETY: the claim makes this thread the only one to touch the value; the receiver is done with what
        // was there, since the claimant has seen its head. And a slot is no part of what a caller has.
        self.value_cell(position)
            .with_mut(|place| unsafe { place.cast::<T>().copy_from_nonoverlapping(from, 1) });
        self.set_stamp(position, if deposited { DEPOSITED } else { MESSAGE });
    }

    /// Where the message of `position` is to be written, before [`publish_written`](Self::publish_written). For
    /// the one who has claimed it.
    pub(crate) fn place(&self, position: u64) -> *mut MaybeUninit<T> {
        self.value_cell(position).with_mut(|place| place)
    }

    /// Publishes a message that has been written, or, without one, that none will come.
    ///
    /// # Safety
    /// The caller has claimed `position`, which is in these slots, and publishes it once; if `written`, a message is
    /// there.
    pub(crate) unsafe fn publish_written(&self, position: u64, written: bool) {
        self.set_stamp(position, if written { MESSAGE } else { VOID });
    }

    /// Tells that the message of `position` is there, or will not come.
    #[inline(always)]
    fn set_stamp(&self, position: u64, stamp: u8) {
        // Release pairs with the Acquire in `look`.
        self.stamp_cell(position).store(stamp, Ordering::Release);
    }

    /// What is at `position`. For the receiver, of its head.
    #[inline(always)]
    pub(crate) fn look(&self, position: u64) -> Found {
        match self.stamp_cell(position).load(Ordering::Acquire) {
            MESSAGE.. => Found::Message,
            NOTHING => Found::Nothing,
            WITHDRAWN => Found::Withdrawn,
            _ => Found::Void,
        }
    }

    /// Done with what was at `position`. For the receiver, before its head tells so.
    #[inline(always)]
    pub(crate) fn clear(&self, position: u64) {
        // Relaxed: whoever sets it again has seen the head, which is stored after it with Release.
        self.stamp_cell(position).store(NOTHING, Ordering::Relaxed);
    }

    /// Shows `f` where the message of `position` is, to be looked at or moved out.
    ///
    /// The one who may do that is the receiver, after [`look`](Self::look) has found it at its head and before it
    /// moves its head; it moves its head after moving the message out.
    #[inline(always)]
    pub(crate) fn with<R>(&self, position: u64, f: impl FnOnce(*const T) -> R) -> R {
        // A published value is written no more until the head has passed it.
        self.value_cell(position).with(|place| f(place.cast()))
    }

    /// Marks a message withdrawn that is still there as it was deposited.
    pub(super) fn withdraw(&self, position: u64) {
        // Relaxed: nothing is handed over; the value stays the receiver's, who gets it from the
        // depositor: an exchange continues the release sequence of the store it replaces.
        let _ = self.stamp_cell(position).compare_exchange(
            DEPOSITED,
            WITHDRAWN,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}
