//! The receiving handle.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::Ordering;
use wakerun::time::Instant;

use super::chan::Chan;
use crate::error::{RecvTimeoutError, TryRecvError};
use crate::receivers::{Source, Taken};
use crate::reception::Reception;
use crate::recv::RecvFrom;

/// Takes messages from senders that wait; clone it for more receivers. It is a [`Stream`], too.
///
/// Dropping the last one closes the channel; senders that wait get their messages back.
pub struct Receiver<T> {
    chan: Arc<Chan<T>>,
    /// The wait of the poll forms; made when it is needed.
    polled: Option<Pin<Box<Reception>>>,
}

// SAFETY: a receiver takes `T`s that senders have moved in.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above; all methods work under the lock.
unsafe impl<T: Send> Sync for Receiver<T> {}

impl<T> Unpin for Receiver<T> {}
impl<T> std::panic::UnwindSafe for Receiver<T> {}
impl<T> std::panic::RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// Takes over a counted receiver.
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan, polled: None }
    }

    /// Takes the next sender's message, waiting in line for one; `None` when the channel is closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message and no wake-up.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel();
    /// wakerun::spawn(async move { tx.send(1).await });
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    pub fn recv(&self) -> Recv<'_, T> {
        Recv(RecvFrom::new(&self.chan))
    }

    /// The poll form of [`recv`](Self::recv). On Pending, the waker of the last poll is woken. The
    /// receiver keeps its place in line from poll to poll.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let reception = self
            .polled
            .get_or_insert_with(|| Box::pin(Reception::new()))
            .as_ref()
            .get_ref();
        // SAFETY: pinned in its box, for this channel only, and cancelled when the receiver is dropped.
        unsafe { reception.poll(&self.chan, cx) }
    }

    /// Takes a message if a sender waits.
    ///
    /// # Errors
    /// Empty, or disconnected: closed.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.chan.take_now() {
            Taken::Value(value) => Ok(value),
            Taken::End => Err(TryRecvError::Disconnected),
            Taken::Empty | Taken::Unpublished | Taken::Withdrawn(_) => Err(TryRecvError::Empty),
        }
    }

    /// Takes the next sender's message, blocking the thread. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        crate::handle::assert_may_block("blocking_recv");
        wakerun::wake::block_on_thread(self.recv())
    }

    /// As [`blocking_recv`](Self::blocking_recv), but gives up after `timeout`; nothing is lost then. Any
    /// duration is good.
    ///
    /// # Errors
    /// The time is over, or the channel has come to its end.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wakerun_channel::error::RecvTimeoutError;
    ///
    /// let (tx, rx) = wakerun_channel::rendezvous::channel::<u8>();
    /// let received = rx.blocking_recv_timeout(Duration::from_millis(1));
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// ```
    #[track_caller]
    pub fn blocking_recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        crate::handle::assert_may_block("blocking_recv_timeout");
        crate::timed::blocking_recv(self.recv(), crate::timed::deadline_after(timeout))
    }

    /// Receives the next message, unless `cancel` is ready: a timer of any runtime, a signal to stop. `cancel` is
    /// looked at first, so that it ends a receiver that always finds messages, too.
    ///
    /// # Errors
    /// Cancelled (named timeout, since that is what it mostly is), or the channel has come to its end.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// use wakerun_channel::error::RecvTimeoutError;
    ///
    /// let (tx, rx) = wakerun_channel::rendezvous::channel::<u8>();
    /// let received = rx.recv_or(std::future::ready(())).await;
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// # });
    /// ```
    pub async fn recv_or<C: Future>(&self, cancel: C) -> Result<T, RecvTimeoutError> {
        crate::timed::recv_or(self.recv(), cancel).await
    }

    /// Receives the next message, but gives up after `timeout`; nothing is lost then, and a message that is there
    /// wins. Any duration is good.
    ///
    /// # Errors
    /// The time is over, or the channel has come to its end.
    ///
    /// # Panics
    /// Outside a wakerun runtime. (On another one, use [`recv_or`](Self::recv_or) with its timer.)
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wakerun_channel::error::RecvTimeoutError;
    ///
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel::<u8>();
    /// let received = rx.recv_timeout(Duration::from_millis(1)).await;
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// # });
    /// ```
    #[track_caller]
    pub fn recv_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<T, RecvTimeoutError>> {
        crate::timed::recv_within(wakerun::time::timeout(timeout, self.recv()))
    }

    /// As [`recv_or`](Self::recv_or) with a timer of wakerun: once the moment has come, it ends a receiver that
    /// always finds messages, too.
    ///
    /// # Errors
    /// The moment has come, or the channel has come to its end.
    ///
    /// # Panics
    /// Outside a wakerun runtime.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    #[track_caller]
    pub fn recv_deadline(
        &self,
        deadline: Instant,
    ) -> impl Future<Output = Result<T, RecvTimeoutError>> {
        self.recv_or(wakerun::time::sleep_until(deadline))
    }

    /// Closes the channel: senders that wait get their messages back.
    pub fn close(&self) {
        self.chan.close(false);
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// How many receivers there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.receivers.load(Ordering::Relaxed) as usize
    }

    /// How many senders there are. A snapshot.
    pub fn sender_strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        crate::handle::count_clone(&self.chan.receivers);
        Self::new(self.chan.clone())
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        if let Some(reception) = self.polled.take() {
            panics.catch(|| reception.cancel(&*self.chan));
        }
        // AcqRel: what all receivers did happens before the channel is closed by the last one.
        if self.chan.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            panics.catch(|| self.chan.close(false));
            self.chan.drain(&mut panics);
        }
        panics.resume("a waker or a message");
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// The future of [`Receiver::recv`].
///
/// # Cancel safety
/// As [`mpmc::future::Recv`](crate::mpmc::future::Recv).
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Recv<'a, T>(RecvFrom<'a, Chan<T>>);

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: the only field, pinned with this future and not moved.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}
