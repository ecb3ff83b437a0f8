//! Where a received message goes: moved once, out of its slot to where the caller wants it.
//!
//! A value that is returned through several functions is copied by each of them that does something between
//! reading it and returning it, which the compiler cannot leave out. So what receives is handed the final place.

use std::mem;
use std::ptr;
use std::task::Poll;

use crate::error::TryRecvError;

/// A place for a message, empty at first.
pub(crate) trait Out<T> {
    /// Whether messages are left where they are, at the front of the queue.
    const STAYS: bool = false;

    /// Moves a message in.
    ///
    /// # Safety
    /// There is one to be read, and the caller forgets it there. The place is empty.
    unsafe fn fill(&mut self, from: *const T);

    /// Moves it out again, if there is one.
    fn take_back(&mut self) -> Option<T>;
}

/// What a receive that is ready returns.
pub(crate) trait Returned<T>: Out<T> + Sized {
    /// That without one.
    const NOTHING: Self;

    /// That with a message.
    ///
    /// # Safety
    /// There is one to be read, and the caller forgets it there.
    unsafe fn of(from: *const T) -> Self;
}

impl<T> Returned<T> for Poll<Option<T>> {
    const NOTHING: Self = Poll::Pending;

    #[inline(always)]
    unsafe fn of(from: *const T) -> Self {
        // SAFETY: handed on.
        Poll::Ready(Some(unsafe { ptr::read(from) }))
    }
}

impl<T> Out<T> for Poll<Option<T>> {
    #[inline(always)]
    unsafe fn fill(&mut self, from: *const T) {
        // SAFETY: handed on.
        let filled = unsafe { Self::of(from) };
        // Not an assignment: what is overwritten is no message.
        // SAFETY: a reference can be written to.
        unsafe { ptr::write(self, filled) };
    }

    fn take_back(&mut self) -> Option<T> {
        match mem::replace(self, Self::NOTHING) {
            Poll::Ready(value) => value,
            Poll::Pending => None,
        }
    }
}

impl<T> Returned<T> for Result<T, TryRecvError> {
    const NOTHING: Self = Err(TryRecvError::Empty);

    #[inline(always)]
    unsafe fn of(from: *const T) -> Self {
        // SAFETY: handed on.
        Ok(unsafe { ptr::read(from) })
    }
}

impl<T> Out<T> for Result<T, TryRecvError> {
    #[inline(always)]
    unsafe fn fill(&mut self, from: *const T) {
        // SAFETY: handed on.
        let filled = unsafe { Self::of(from) };
        // Not an assignment: what is overwritten is no message.
        // SAFETY: a reference can be written to.
        unsafe { ptr::write(self, filled) };
    }

    fn take_back(&mut self) -> Option<T> {
        mem::replace(self, Self::NOTHING).ok()
    }
}

impl<T> Out<T> for Option<T> {
    #[inline(always)]
    unsafe fn fill(&mut self, from: *const T) {
        // SAFETY: handed on.
        let filled = Some(unsafe { ptr::read(from) });
        // SAFETY: a reference can be written to; what is overwritten is no message.
        unsafe { ptr::write(self, filled) };
    }

    fn take_back(&mut self) -> Option<T> {
        self.take()
    }
}

/// At the end of a buffer.
impl<T> Out<T> for Vec<T> {
    #[inline]
    unsafe fn fill(&mut self, from: *const T) {
        // Before the message is read: this may panic.
        self.reserve(1);
        // SAFETY: handed on.
        self.push(unsafe { ptr::read(from) });
    }

    fn take_back(&mut self) -> Option<T> {
        self.pop()
    }
}

/// The message is looked at where it is.
pub(crate) struct InPlace;

impl<T> Out<T> for InPlace {
    const STAYS: bool = true;

    unsafe fn fill(&mut self, _from: *const T) {
        unreachable!("messages stay where they are")
    }

    fn take_back(&mut self) -> Option<T> {
        None
    }
}
