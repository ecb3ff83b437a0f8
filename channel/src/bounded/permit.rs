//! Room for one message, in hand.

use std::fmt;
use std::mem::MaybeUninit;

use crate::chan::Chan;
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};

/// Room for one message: a count, not a place in the order. Messages are ordered by
/// [`send`](Permit::send), so a permit that is held for long holds nobody back but by its count.
///
/// Dropping it gives the room to the next in line. As long as it is kept, it holds the room: a permit
/// does not lapse as an unclaimed [grant](super::Reserve) does.
///
/// ```
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(2);
/// let permit = tx.try_reserve().unwrap();
/// tx.try_send("first").unwrap();
/// permit.send("second").unwrap();
/// assert_eq!(rx.try_recv(), Ok("first"));
/// assert_eq!(rx.try_recv(), Ok("second"));
/// ```
#[must_use = "a permit that is dropped gives its room back"]
pub struct Permit<'a, T, F: Flavor = Mpsc> {
    chan: &'a Chan<T, F>,
}

// SAFETY: a permit is a sender for one message.
unsafe impl<T: Send, F: Flavor> Send for Permit<'_, T, F> {}
// SAFETY: `&Permit` gives access to nothing.
unsafe impl<T: Send, F: Flavor> Sync for Permit<'_, T, F> {}

impl<T, F: Flavor> std::panic::UnwindSafe for Permit<'_, T, F> {}
impl<T, F: Flavor> std::panic::RefUnwindSafe for Permit<'_, T, F> {}

impl<'a, T, F: Flavor> Permit<'a, T, F> {
    /// # Safety
    /// The word counts a permit that the caller gives to this one.
    #[inline]
    pub(super) unsafe fn new(chan: &'a Chan<T, F>) -> Self {
        Self { chan }
    }

    /// Gives the room to the next in line, as dropping the permit does.
    pub fn release(self) {
        drop(self);
    }

    /// Whether both are of the same channel.
    pub fn same_channel(&self, other: &Permit<'_, T, F>) -> bool {
        std::ptr::eq(self.chan, other.chan)
    }

    /// Sends a message: no lock, no wait.
    ///
    /// After a receiver's [`close`](crate::mpsc::Receiver::close) it still arrives. (tokio's `send` of a
    /// permit returns nothing, and drops the message when the receiver is gone.)
    ///
    /// # Errors
    /// If the receivers are gone; the message comes back.
    #[inline]
    pub fn send(self, value: T) -> Result<(), SendError<T>> {
        let chan = self.chan;
        let Some((position, wake)) = chan.claim_with_permit() else {
            return Err(SendError(value));
        };
        std::mem::forget(self);
        // SAFETY: claimed just now, in exchange for the permit.
        unsafe { chan.publish(position, wake, value) };
        Ok(())
    }

    /// Sends a message that `make` builds in its slot: a large one need not be copied.
    ///
    /// Receivers come to a stop at the slot until `make` is done: it should be short, and must not receive from this
    /// channel. If it panics, the room is given back, and nothing is sent.
    ///
    /// # Errors
    /// If the receivers are gone; `make` is not called then.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<[u64; 512]>(1);
    /// tx.try_reserve().unwrap().send_with(|| [7; 512]).unwrap();
    /// assert_eq!(rx.try_recv().unwrap()[511], 7);
    /// ```
    #[inline]
    pub fn send_with(self, make: impl FnOnce() -> T) -> Result<(), SendError<()>> {
        self.write(|slot| slot.write(make()))
    }

    /// As [`send_with`](Self::send_with), but `write` gets the slot, where it builds the message piece by piece, and
    /// returns it.
    ///
    /// # Errors
    /// If the receivers are gone; `write` is not called then.
    ///
    /// # Panics
    /// If what `write` returns is not in the slot. Then the room is given back, and nothing is sent.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<[u8; 4096]>(1);
    /// let permit = tx.try_reserve().unwrap();
    /// permit
    ///     .write(|slot| {
    ///         let message = slot.write([0; 4096]);
    ///         message[0] = 1;
    ///         message
    ///     })
    ///     .unwrap();
    /// assert_eq!(rx.try_recv_ref().unwrap()[0], 1);
    /// ```
    #[inline]
    pub fn write(
        self,
        write: impl for<'s> FnOnce(&'s mut MaybeUninit<T>) -> &'s mut T,
    ) -> Result<(), SendError<()>> {
        let chan = self.chan;
        let Some((position, wake)) = chan.claim_with_permit() else {
            return Err(SendError(()));
        };
        std::mem::forget(self);
        // SAFETY: claimed just now, in exchange for the permit.
        unsafe { chan.publish_in_place(position, wake, write) };
        Ok(())
    }
}

impl<T, F: Flavor> Drop for Permit<'_, T, F> {
    #[inline]
    fn drop(&mut self) {
        self.chan.return_permits(1);
    }
}

impl<T, F: Flavor> fmt::Debug for Permit<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
