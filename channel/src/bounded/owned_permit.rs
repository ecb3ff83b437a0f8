//! Room for one message, in hand, with the sender that it came from.

use std::fmt;
use std::mem::MaybeUninit;

use super::Sender;
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};

/// As a [`Permit`](super::Permit), but owns its [`Sender`], which comes back when the permit is used or
/// [released](Self::release): for structs, and for tasks that outlive the place where they reserved.
///
/// Dropping it gives the room to the next in line, and drops the sender.
///
/// ```
/// use wakerun_channel::mpsc;
///
/// # wakerun::block_on(async {
/// let (tx, mut rx) = mpsc::channel(1);
/// let permit = tx.reserve_owned().await.unwrap();
/// let task = wakerun::spawn(async move { permit.send("from elsewhere").map(drop) });
/// assert_eq!(rx.recv().await, Some("from elsewhere"));
/// task.await.unwrap().unwrap();
/// # });
/// ```
#[must_use = "a permit that is dropped gives its room back"]
pub struct OwnedPermit<T, F: Flavor = Mpsc> {
    /// Until it is used.
    sender: Option<Sender<T, F>>,
}

impl<T, F: Flavor> OwnedPermit<T, F> {
    /// # Safety
    /// The word counts a permit that the caller gives to this one.
    pub(super) unsafe fn new(sender: Sender<T, F>) -> Self {
        Self {
            sender: Some(sender),
        }
    }

    fn sender(&self) -> &Sender<T, F> {
        match &self.sender {
            Some(sender) => sender,
            None => unreachable!("the sender leaves with the permit's end"),
        }
    }

    /// The permit is used: nothing is left for its drop.
    fn take_sender(&mut self) -> Sender<T, F> {
        match self.sender.take() {
            Some(sender) => sender,
            None => unreachable!("the sender leaves with the permit's end"),
        }
    }

    /// Sends a message: no lock, no wait; the sender comes back. See [`Permit::send`](super::Permit::send).
    ///
    /// # Errors
    /// If the receivers are gone; the message comes back.
    pub fn send(mut self, value: T) -> Result<Sender<T, F>, SendError<T>> {
        let Some((position, wake)) = self.sender().chan().claim_with_permit() else {
            return Err(SendError(value));
        };
        let sender = self.take_sender();
        // SAFETY: claimed just now, in exchange for the permit.
        unsafe { sender.chan().publish(position, wake, value) };
        Ok(sender)
    }

    /// Sends a message that is built in its slot; the sender comes back. See
    /// [`Permit::send_with`](super::Permit::send_with).
    ///
    /// # Errors
    /// If the receivers are gone; `make` is not called then.
    pub fn send_with(self, make: impl FnOnce() -> T) -> Result<Sender<T, F>, SendError<()>> {
        self.write(|slot| slot.write(make()))
    }

    /// As [`send_with`](Self::send_with), with the slot in hand; the sender comes back. See
    /// [`Permit::write`](super::Permit::write).
    ///
    /// # Errors
    /// If the receivers are gone; `write` is not called then.
    ///
    /// # Panics
    /// If what `write` returns is not in the slot.
    pub fn write(
        mut self,
        write: impl for<'s> FnOnce(&'s mut MaybeUninit<T>) -> &'s mut T,
    ) -> Result<Sender<T, F>, SendError<()>> {
        let Some((position, wake)) = self.sender().chan().claim_with_permit() else {
            return Err(SendError(()));
        };
        let sender = self.take_sender();
        // SAFETY: claimed just now, in exchange for the permit.
        unsafe { sender.chan().publish_in_place(position, wake, write) };
        Ok(sender)
    }

    /// Gives the room to the next in line; the sender comes back.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let permit = tx.try_reserve_owned().unwrap();
    /// let tx = permit.release();
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn release(mut self) -> Sender<T, F> {
        let sender = self.take_sender();
        sender.chan().return_permits(1);
        sender
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender().is_closed()
    }

    /// Whether both are of the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.sender().same_channel(other.sender())
    }

    /// Whether the permit is of the channel that `sender` sends into.
    pub fn same_channel_as_sender(&self, sender: &Sender<T, F>) -> bool {
        self.sender().same_channel(sender)
    }
}

impl<T, F: Flavor> Drop for OwnedPermit<T, F> {
    fn drop(&mut self) {
        // First the room, then the sender, which may be the last one.
        if let Some(sender) = &self.sender {
            sender.chan().return_permits(1);
        }
    }
}

impl<T, F: Flavor> fmt::Debug for OwnedPermit<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
