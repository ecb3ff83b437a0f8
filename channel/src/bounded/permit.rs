//! Room for one message, in hand.

use std::fmt;

use crate::chan::Chan;
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::Claim;

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
        match chan.gate.claim_with_permit() {
            Claim::Claimed { position, wake } => {
                std::mem::forget(self);
                // SAFETY: claimed just now, in exchange for the permit.
                unsafe { chan.publish(position, wake, value) };
                Ok(())
            }
            Claim::Full | Claim::Closed => Err(SendError(value)),
        }
    }
}

impl<T, F: Flavor> Drop for Permit<'_, T, F> {
    fn drop(&mut self) {
        self.chan.return_permits(1);
    }
}

impl<T, F: Flavor> fmt::Debug for Permit<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
