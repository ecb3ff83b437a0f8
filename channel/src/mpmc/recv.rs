//! The futures of a receiver.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Receiver;
use crate::reception::Reception;

/// The future of [`Receiver::recv`].
///
/// # Cancel safety
/// Dropping it loses no message and no wake-up: the message stays in the queue, and a wake that it has
/// not used goes to the next receiver. One that is kept but not polled any more lets its wake lapse on a
/// wakerun task, as a [`reserve`](crate::bounded::Reserve) its grant.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recv<'a, T> {
    receiver: &'a Receiver<T>,
    reception: Reception,
}

// SAFETY: no message is in it; the waiter is reached by other threads under the receivers' lock only.
unsafe impl<T: Send> Send for Recv<'_, T> {}
// SAFETY: `&Recv` gives access to nothing.
unsafe impl<T: Send> Sync for Recv<'_, T> {}

impl<T> std::panic::UnwindSafe for Recv<'_, T> {}
impl<T> std::panic::RefUnwindSafe for Recv<'_, T> {}

impl<'a, T> Recv<'a, T> {
    #[inline]
    pub(super) fn new(receiver: &'a Receiver<T>) -> Self {
        Self {
            receiver,
            reception: Reception::new(),
        }
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.into_ref().get_ref();
        // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
        unsafe { this.reception.poll(this.receiver.chan(), cx) }
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.reception.cancel(&**self.receiver.chan());
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
/// Dropping it loses no message: it touches the buffer only when it is Ready. Otherwise as [`Recv`].
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvMany<'a, T> {
    recv: Recv<'a, T>,
    buffer: &'a mut Vec<T>,
    limit: usize,
}

impl<'a, T> RecvMany<'a, T> {
    pub(super) fn new(receiver: &'a Receiver<T>, buffer: &'a mut Vec<T>, limit: usize) -> Self {
        Self {
            recv: Recv::new(receiver),
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
        Poll::Ready(1 + this.recv.receiver.take_more(this.buffer, this.limit - 1))
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMany")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
