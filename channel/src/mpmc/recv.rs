//! The futures of a receiver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Receiver;
use crate::chan::Chan;
use crate::flavor::Mpmc;
use crate::receivers::Source;
use crate::recv::RecvFrom;

/// The future of [`Receiver::recv`].
///
/// # Cancel safety
/// Dropping it loses no message and no wake-up: the message stays in the queue, and a wake that it has
/// not used goes to the next receiver. One that is kept but not polled any more lets its wake lapse on a
/// wakerun task or in its `block_on`, as a [`reserve`](crate::bounded::Reserve) its grant.
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recv<'a, T>(RecvFrom<'a, Chan<T, Mpmc>>);

impl<'a, T> Recv<'a, T> {
    #[inline]
    pub(super) fn new(receiver: &'a Receiver<T>) -> Self {
        Self(RecvFrom::new(receiver.chan()))
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: the only field, pinned with this future and not moved.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}

/// The future of [`Receiver::recv_many`].
///
/// # Cancel safety
/// Dropping it loses no message: it touches the buffer only when it is Ready. Otherwise as [`Recv`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvMany<'a, T> {
    recv: Recv<'a, T>,
    receiver: &'a Receiver<T>,
    buffer: &'a mut Vec<T>,
    limit: usize,
}

impl<'a, T> RecvMany<'a, T> {
    pub(super) fn new(receiver: &'a Receiver<T>, buffer: &'a mut Vec<T>, limit: usize) -> Self {
        Self {
            recv: Recv::new(receiver),
            receiver,
            buffer,
            limit,
        }
    }
}

impl<T> Future for RecvMany<'_, T> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        // SAFETY: `recv` is pinned with this future and not moved; the rest is pinned by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        if this.limit == 0 {
            return Poll::Ready(0);
        }
        // SAFETY: as above.
        let recv = unsafe { Pin::new_unchecked(&mut this.recv) };
        let Some(first) = std::task::ready!(recv.poll(cx)) else {
            return Poll::Ready(0);
        };
        this.buffer.push(first);
        Poll::Ready(1 + this.receiver.chan().take_more(this.buffer, this.limit - 1))
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMany")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
