//! Sending many messages in one go.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use wakerun::wake;

use super::Sender;
use super::reservation::{Reservation, Stage};
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};

/// The future of [`Sender::send_many`].
///
/// # Cancel safety
/// Dropped at any time, it leaves those messages in the buffer, and only those, that have not been sent.
/// It waits in line as a [`Reserve`](super::Reserve): one that is kept but not polled any more lets lapse
/// what it is granted.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SendMany<'a, T, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    messages: &'a mut VecDeque<T>,
    reservation: Reservation,
}

// SAFETY: messages on their way, which `T: Send` allows to be anywhere; the waiter is reached by other
// threads under the line's lock only.
unsafe impl<T: Send, F: Flavor> Send for SendMany<'_, T, F> {}
// SAFETY: `&SendMany` gives no more than `Debug`, which reads the stage; all that write it hold the future
// pinned and exclusively.
unsafe impl<T: Send, F: Flavor> Sync for SendMany<'_, T, F> {}

impl<'a, T, F: Flavor> SendMany<'a, T, F> {
    pub(super) fn new(sender: &'a Sender<T, F>, messages: &'a mut VecDeque<T>) -> Self {
        Self {
            sender,
            messages,
            reservation: Reservation::new(1),
        }
    }
}

impl<T, F: Flavor> Future for SendMany<'_, T, F> {
    type Output = Result<(), SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the reservation is pinned with this future and not moved; the rest is pinned by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        let chan = this.sender.chan();
        loop {
            if this.reservation.stage() != Stage::Waiting {
                // As many as there is room for, with one claim and one wake.
                while !this.messages.is_empty() && chan.publish_some(this.messages) > 0 {
                    if !this.messages.is_empty() && !wake::spend_budget() {
                        wake::force_yield(cx);
                        return Poll::Pending;
                    }
                }
                if this.messages.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.reservation.renew();
            }
            // No room: in line for the next one.
            // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
            let reserved =
                std::task::ready!(unsafe { this.reservation.poll(chan, cx, "send_many") });
            if reserved.is_err() {
                return Poll::Ready(Err(SendError(())));
            }
            // SAFETY: the word counts a permit for this future.
            let permit = unsafe { super::Permit::new(chan) };
            if let Some(message) = this.messages.pop_front()
                && let Err(SendError(message)) = permit.send(message)
            {
                this.messages.push_front(message);
                return Poll::Ready(Err(SendError(())));
            }
        }
    }
}

impl<T, F: Flavor> Drop for SendMany<'_, T, F> {
    fn drop(&mut self) {
        self.reservation.cancel(self.sender.chan());
    }
}

impl<T, F: Flavor> fmt::Debug for SendMany<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendMany")
            .field("left", &self.messages.len())
            .finish_non_exhaustive()
    }
}
