//! A message that is received where it is.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::Receiver;

/// A received message that is still in its slot: for large ones, which need not be moved.
///
/// Dropping it drops the message, and then gives its room to the next in line. Until then the message counts as
/// queued. One that is leaked (`std::mem::forget`) has not been received: the message stays the first of the queue,
/// as it is then, and the next receive finds it.
///
/// ```
/// # wakerun::block_on(async {
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
/// tx.send([1_u8; 4096]).await.unwrap();
/// let mut message = rx.recv_ref().await.unwrap();
/// message[0] = 2;
/// assert_eq!(message[..2], [2, 1]);
/// assert!(tx.try_send([3; 4096]).is_err());
/// drop(message);
/// tx.try_send([3; 4096]).unwrap();
/// # });
/// ```
#[must_use = "the message is dropped with it"]
pub struct RecvRef<'a, T> {
    /// The next message is at the front of its cursor.
    receiver: &'a mut Receiver<T>,
    /// Gives out references to the message.
    _message: PhantomData<&'a mut T>,
}

impl<'a, T> RecvRef<'a, T> {
    /// # Safety
    /// The receiver has just found a message, and left it in its place.
    pub(super) unsafe fn new(receiver: &'a mut Receiver<T>) -> Self {
        Self {
            receiver,
            _message: PhantomData,
        }
    }

    /// Moves the message out.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.try_send("moved").unwrap();
    /// let message = rx.try_recv_ref().unwrap();
    /// assert_eq!(message.len(), 5);
    /// assert_eq!(message.into_inner(), "moved");
    /// ```
    pub fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        let receiver = &mut *this.receiver;
        // SAFETY: there since this was made.
        unsafe { receiver.cursor.take_front(&receiver.chan) }
    }
}

impl<T> Deref for RecvRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there since this was made, and nobody else's.
        unsafe { &*self.receiver.cursor.front() }
    }
}

impl<T> DerefMut for RecvRef<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.receiver.cursor.front_mut() }
    }
}

impl<T> Drop for RecvRef<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let receiver = &mut *self.receiver;
        // SAFETY: there since this was made.
        unsafe { receiver.cursor.drop_front(&receiver.chan) };
    }
}

impl<T: fmt::Debug> fmt::Debug for RecvRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvRef").field(&**self).finish()
    }
}
