//! The one place that knows whether this build is a real one or a loom model.
//!
//! Both crates of the workspace take their atomics, cells and thread calls from here, so that the
//! code under `--cfg wakerun_loom` is the code that ships. Not part of the public API.

/// Atomic types and fences.
pub mod atomic {
    #[cfg(wakerun_loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    #[cfg(not(wakerun_loom))]
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Thread calls that take part in a handshake.
pub mod thread {
    #[cfg(wakerun_loom)]
    pub use loom::thread::{Thread, current, park, yield_now};
    #[cfg(not(wakerun_loom))]
    pub use std::thread::{Thread, current, park, yield_now};
}

/// For what belongs to a thread of a model: to `std`, all threads of a model are one.
#[cfg(wakerun_loom)]
pub use loom::thread_local;
#[cfg(not(wakerun_loom))]
pub use std::thread_local;

/// Spin-loop hint; a yield to the model's scheduler under loom, which has no other notion of time.
#[inline]
pub fn spin_loop() {
    #[cfg(wakerun_loom)]
    loom::thread::yield_now();
    #[cfg(not(wakerun_loom))]
    std::hint::spin_loop();
}

#[cfg(wakerun_loom)]
pub use loom::{cell::UnsafeCell, sync::Arc};
#[cfg(not(wakerun_loom))]
pub use std::sync::Arc;

/// `std`'s `UnsafeCell` behind the closure interface that loom checks accesses through.
#[cfg(not(wakerun_loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(wakerun_loom))]
impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Gives a pointer for reading; the caller answers for the absence of a concurrent writer.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives a pointer for writing; the caller answers for being alone.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A slice of `len` elements, zeroed by the allocator where it is a real one: untouched pages of a
/// large slice cost no memory. `None`: that much memory is not to be had.
///
/// # Safety
/// Zeroed memory is a valid `T`, equal in effect to `init()`.
pub unsafe fn zeroed_slice<T>(len: usize, init: impl Fn() -> T) -> Option<Box<[T]>> {
    #[cfg(wakerun_loom)]
    {
        Some((0..len).map(|_| init()).collect())
    }
    #[cfg(not(wakerun_loom))]
    {
        let _ = init;
        let layout = std::alloc::Layout::array::<T>(len).ok()?;
        if layout.size() == 0 {
            return Some((0..len).map(|_| init()).collect());
        }
        // SAFETY: the layout has a size.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
        if memory.is_null() {
            return None;
        }
        let slice = std::ptr::slice_from_raw_parts_mut(memory, len);
        // SAFETY: allocated just now by the global allocator with the layout of `[T]`, and valid
        // as zeros, says the caller.
        Some(unsafe { Box::from_raw(slice) })
    }
}

/// The fence between a locked instruction and a load, where the instruction is not a full fence
/// already. Pairs like any `fence(SeqCst)`.
#[inline]
pub fn fence_after_locked() {
    #[cfg(any(wakerun_loom, not(target_arch = "x86_64")))]
    atomic::fence(atomic::Ordering::SeqCst);
    // On x86-64 a locked instruction drains the store buffer before any later load; it remains to
    // keep the compiler from moving that load up.
    #[cfg(all(not(wakerun_loom), target_arch = "x86_64"))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
