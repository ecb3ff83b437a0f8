//! Room for several messages, in hand.

use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;

use super::Permit;
use crate::chan::Chan;
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};

/// Room for several messages: an iterator of [`Permit`]s.
///
/// Dropping it gives back the room that has not been taken out of it.
///
/// ```
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(4);
/// let mut permits = tx.try_reserve_many(3).unwrap();
/// permits.next().unwrap().send("one").unwrap();
/// permits.next().unwrap().send("two").unwrap();
/// assert_eq!(permits.len(), 1);
/// drop(permits);
/// assert_eq!(tx.capacity(), 2);
/// assert_eq!(rx.try_recv(), Ok("one"));
/// ```
#[must_use = "permits that are dropped give their room back"]
pub struct PermitIterator<'a, T, F: Flavor = Mpsc> {
    chan: &'a Chan<T, F>,
    left: u64,
}

// SAFETY: permits are senders for a message each.
unsafe impl<T: Send, F: Flavor> Send for PermitIterator<'_, T, F> {}
// SAFETY: `&PermitIterator` gives access to a count.
unsafe impl<T: Send, F: Flavor> Sync for PermitIterator<'_, T, F> {}

impl<T, F: Flavor> std::panic::UnwindSafe for PermitIterator<'_, T, F> {}
impl<T, F: Flavor> std::panic::RefUnwindSafe for PermitIterator<'_, T, F> {}

impl<'a, T, F: Flavor> PermitIterator<'a, T, F> {
    /// # Safety
    /// The word counts so many permits that the caller gives to this iterator.
    pub(super) unsafe fn new(chan: &'a Chan<T, F>, left: u64) -> Self {
        Self { chan, left }
    }

    /// Sends as many messages from the front of `messages` as there are permits, side by side and with
    /// one step for all, and gives back the room that is left. Returns how many were sent.
    ///
    /// # Errors
    /// If the receivers are gone; the messages stay where they are.
    ///
    /// ```
    /// use std::collections::VecDeque;
    ///
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(8);
    /// let mut messages = VecDeque::from([1, 2, 3]);
    /// let sent = tx.try_reserve_many(2).unwrap().send_many(&mut messages);
    /// assert_eq!(sent, Ok(2));
    /// assert_eq!(messages, [3]);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// ```
    pub fn send_many(self, messages: &mut VecDeque<T>) -> Result<usize, SendError<()>> {
        let count = self.left.min(messages.len() as u64);
        let permits = self.left;
        let chan = self.chan;
        // On success the permits are used; else they are given back by the destructor.
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the permits are this iterator's, and it does not come to its destructor.
        match unsafe { chan.publish_many(messages, count, permits) } {
            Ok(()) => Ok(count as usize),
            Err(error) => {
                drop(std::mem::ManuallyDrop::into_inner(this));
                Err(error)
            }
        }
    }
}

impl<'a, T, F: Flavor> Iterator for PermitIterator<'a, T, F> {
    type Item = Permit<'a, T, F>;

    fn next(&mut self) -> Option<Permit<'a, T, F>> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: the permit just left this iterator.
        Some(unsafe { Permit::new(self.chan) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<T, F: Flavor> ExactSizeIterator for PermitIterator<'_, T, F> {}
impl<T, F: Flavor> FusedIterator for PermitIterator<'_, T, F> {}

impl<T, F: Flavor> Drop for PermitIterator<'_, T, F> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.chan.return_permits(self.left);
        }
    }
}

impl<T, F: Flavor> fmt::Debug for PermitIterator<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
