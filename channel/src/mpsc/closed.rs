//! Waiting for the receiver to close.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Sender;

/// The future of [`Sender::closed`].
///
/// # Cancel safety
/// Dropping it has no effect.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Closed<'a, T> {
    sender: &'a Sender<T>,
    key: Option<u64>,
}

impl<'a, T> Closed<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>) -> Self {
        Self { sender, key: None }
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let chan = self.sender.chan();
        if chan.is_closed() {
            return Poll::Ready(());
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

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.sender.chan().closed_waiters.remove(key);
        }
    }
}

impl<T> fmt::Debug for Closed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}
