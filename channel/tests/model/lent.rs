//! A handle that is lent to futures and permits which borrow it, and kept beside them.

use std::ptr::NonNull;

/// Owns a handle behind a pointer, so that it can be kept in one place with what borrows it.
pub(crate) struct Lent<X>(NonNull<X>);

// SAFETY: it is a `Box` but for what the borrows may do, which are sent along.
unsafe impl<X: Send + Sync> Send for Lent<X> {}
// SAFETY: as above.
unsafe impl<X: Send + Sync> Sync for Lent<X> {}

impl<X> Lent<X> {
    pub(crate) fn new(handle: X) -> Self {
        Self(NonNull::from(Box::leak(Box::new(handle))))
    }

    /// # Safety
    /// What borrows is dropped, or forgotten, before this goes; nobody has it borrowed mutably.
    pub(crate) unsafe fn borrow(&self) -> &'static X {
        // SAFETY: made from a box; alive by what the caller promises.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// As [`borrow`](Self::borrow), and nothing else is borrowed meanwhile.
    pub(crate) unsafe fn borrow_mut(&self) -> &'static mut X {
        // SAFETY: as above.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// The handle, which nothing borrows any more.
    pub(crate) fn into_inner(self) -> X {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: made from a box, and taken once.
        *unsafe { Box::from_raw(this.0.as_ptr()) }
    }
}

impl<X> Drop for Lent<X> {
    fn drop(&mut self) {
        // SAFETY: made from a box; `into_inner` has not been called.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
