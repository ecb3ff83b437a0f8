//! The futures of the receiver, and what its handle shares with the senders'.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Receiver;
use crate::chan::Chan;

/// The future of [`Receiver::recv`].
///
/// # Cancel safety
/// Dropping it loses no message and no wake-up: the message stays in the queue.
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

    #[inline]
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

/// # Panics
/// Where blocking the thread would block the tasks that it runs.
#[track_caller]
pub(super) fn assert_may_block(name: &str) {
    assert!(
        !wakerun::wake::must_not_block(),
        "`{name}` was called inside a wakerun task or `block_on`, where it would block a thread \
         that has tasks to run; use the async form and `.await` it"
    );
}

/// What the handles show.
pub(super) fn debug<T>(f: &mut fmt::Formatter<'_>, name: &str, chan: &Chan<T>) -> fmt::Result {
    f.debug_struct(name)
        .field("len", &chan.len())
        .field("max_capacity", &chan.gate.capacity())
        .field("closed", &chan.is_closed())
        .finish_non_exhaustive()
}
