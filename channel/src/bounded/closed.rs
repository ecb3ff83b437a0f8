//! Waiting for the channel to be closed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use wakerun::wake;

use super::Sender;
use crate::flavor::{Flavor, Mpsc};

/// The future of [`Sender::closed`].
///
/// # Cancel safety
/// Dropping it has no effect.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Closed<'a, T, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    key: Option<u64>,
}

impl<'a, T, F: Flavor> Closed<'a, T, F> {
    pub(super) fn new(sender: &'a Sender<T, F>) -> Self {
        Self { sender, key: None }
    }
}

impl<T, F: Flavor> Future for Closed<'_, T, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let chan = self.sender.chan();
        if chan.is_closed() {
            return wake::poll_budget(cx);
        }
        let waker = cx.waker().clone();
        let key = chan
            .closed_waiters
            .register(self.key, waker, || chan.is_closed());
        match key {
            None => Poll::Ready(()),
            Some(key) => {
                self.key = Some(key);
                Poll::Pending
            }
        }
    }
}

impl<T, F: Flavor> Drop for Closed<'_, T, F> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.sender.chan().closed_waiters.remove(key);
        }
    }
}

impl<T, F: Flavor> fmt::Debug for Closed<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
