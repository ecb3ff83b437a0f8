//! Sending with an outcome that is known for sure.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use wakerun::wake;

use super::Sender;
use super::reservation::{Reservation, Stage};
use crate::error::SendTimeoutError;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::Claim;

/// The future of [`Sender::send_or`].
///
/// # Cancel safety
/// Nothing is handed over before it is Ready with `Ok`: dropped before, it drops its message, and nobody
/// has received it. It waits in line as a [`Reserve`](super::Reserve): one that is kept but not polled any
/// more lets lapse what it is granted.
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SendOr<'a, T, C, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    reservation: Reservation,
    /// Until it is over.
    value: Option<T>,
    cancel: C,
}

// SAFETY: a message on its way, which `T: Send` allows to be anywhere; the waiter is reached by other
// threads under the line's lock only.
unsafe impl<T: Send, C: Send, F: Flavor> Send for SendOr<'_, T, C, F> {}
// SAFETY: `&SendOr` gives no more than `Debug`, which reads the stage; all that write it hold the future
// pinned and exclusively.
unsafe impl<T: Send, C: Sync, F: Flavor> Sync for SendOr<'_, T, C, F> {}

impl<'a, T, C, F: Flavor> SendOr<'a, T, C, F> {
    pub(super) fn new(sender: &'a Sender<T, F>, cancel: C, value: T) -> Self {
        Self {
            sender,
            reservation: Reservation::new(1),
            value: Some(value),
            cancel,
        }
    }

    /// The message; the future is over.
    fn take(value: &mut Option<T>) -> T {
        match value.take() {
            Some(value) => value,
            None => panic!("a `send_or` future was polled after it was ready"),
        }
    }
}

impl<T, C: Future, F: Flavor> Future for SendOr<'_, T, C, F> {
    type Output = Result<(), SendTimeoutError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `reservation` and `cancel` are pinned with this future and not moved; the message is
        // pinned by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        let chan = this.sender.chan();
        assert!(
            this.value.is_some(),
            "a `send_or` future was polled after it was ready"
        );
        if this.reservation.stage() == Stage::New && wake::spend_budget() {
            // With room and no line, one step does it.
            if let Claim::Claimed { position, wake } = chan.claim() {
                let value = Self::take(&mut this.value);
                // SAFETY: claimed just now.
                unsafe { chan.publish(position, wake, value) };
                return Poll::Ready(Ok(()));
            }
            wake::refund_budget();
        }
        // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
        match unsafe { this.reservation.poll(chan, cx, "send_or") } {
            Poll::Ready(Ok(())) => {
                let value = Self::take(&mut this.value);
                // SAFETY: the word counts a permit for this future.
                let permit = unsafe { super::Permit::new(chan) };
                Poll::Ready(
                    permit
                        .send(value)
                        .map_err(|error| SendTimeoutError::Closed(error.0)),
                )
            }
            Poll::Ready(Err(_)) => {
                Poll::Ready(Err(SendTimeoutError::Closed(Self::take(&mut this.value))))
            }
            Poll::Pending => {
                // SAFETY: pinned, as said.
                let cancel = unsafe { Pin::new_unchecked(&mut this.cancel) };
                std::task::ready!(cancel.poll(cx));
                let value = Self::take(&mut this.value);
                this.reservation.cancel(chan);
                Poll::Ready(Err(SendTimeoutError::Timeout(value)))
            }
        }
    }
}

impl<T, C, F: Flavor> Drop for SendOr<'_, T, C, F> {
    fn drop(&mut self) {
        self.reservation.cancel(self.sender.chan());
    }
}

impl<T, C, F: Flavor> fmt::Debug for SendOr<'_, T, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendOr")
            .field("stage", &self.reservation.stage())
            .finish_non_exhaustive()
    }
}
