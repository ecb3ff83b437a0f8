//! The futures of the receiver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Receiver;

/// The future of [`Receiver::recv`].
///
/// # Cancel safety
/// Dropping it loses no message and no wake-up: the message stays in the queue. So does one that is not
/// polled any more, for the next receive.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recv<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<'a, T> Recv<'a, T> {
    #[inline]
    pub(super) fn new(receiver: &'a mut Receiver<T>) -> Self {
        Self { receiver }
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    // Always, as for `Send`.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.receiver.poll_recv(cx)
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}

/// The future of [`Receiver::recv_many`].
///
/// # Cancel safety
/// Dropping it loses no message: it touches the buffer only when it is Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvMany<'a, T> {
    receiver: &'a mut Receiver<T>,
    buffer: &'a mut Vec<T>,
    limit: usize,
}

impl<'a, T> RecvMany<'a, T> {
    pub(super) fn new(receiver: &'a mut Receiver<T>, buffer: &'a mut Vec<T>, limit: usize) -> Self {
        Self {
            receiver,
            buffer,
            limit,
        }
    }
}

impl<T> Future for RecvMany<'_, T> {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = &mut *self;
        this.receiver.poll_recv_many(cx, this.buffer, this.limit)
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMany")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
