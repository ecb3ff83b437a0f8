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
use wakerun::wake::Patience;

use super::{Recv, RecvMany, WeakReceiver};
use crate::chan::Chan;
use crate::error::{RecvTimeoutError, TryRecvError};
use crate::flavor::Mpmc;
use crate::gate::{CLOSED, RX_GONE};
use crate::receivers::{Source, Taken};
use crate::reception::Reception;

/// Receives messages; clone it for more receivers. Each message goes to one of them.
///
/// Dropping the last one closes the channel and drops what is queued. It is a [`Stream`], too.
///
/// ```
/// let (tx, rx) = wakerun_channel::mpmc::channel(4);
/// let other = rx.clone();
/// tx.try_send(1).unwrap();
/// drop(rx);
/// assert_eq!(other.try_recv(), Ok(1));
/// drop(other);
/// assert!(tx.try_send(2).unwrap_err().is_closed());
/// ```
pub struct Receiver<T> {
    chan: Arc<Chan<T, Mpmc>>,
    /// The wait of the poll forms; made when it is needed.
    polled: Option<Pin<Box<Reception>>>,
}

// SAFETY: a receiver takes `T`s that senders have moved in.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: all that takes messages claims them under a lock.
unsafe impl<T: Send> Sync for Receiver<T> {}

impl<T> Unpin for Receiver<T> {}
impl<T> std::panic::UnwindSafe for Receiver<T> {}
impl<T> std::panic::RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    /// Takes over a counted receiver.
    pub(super) fn new(chan: Arc<Chan<T, Mpmc>>) -> Self {
        Self { chan, polled: None }
    }

    #[inline]
    pub(super) fn chan(&self) -> &Arc<Chan<T, Mpmc>> {
        &self.chan
    }

    /// Receives the next message; `None` when the channel is closed, empty, and no permit is out. (If it never
    /// ends, somebody still holds a sender: see [`sender_strong_count`](Self::sender_strong_count).)
    ///
    /// # Cancel safety
    /// Dropping the future loses no message; see [`future::Recv`](super::future::Recv).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::mpmc::channel(1);
    /// tx.send(1).await.unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    #[inline]
    pub fn recv(&self) -> Recv<'_, T> {
        Recv::new(self)
    }

    /// The poll form of [`recv`](Self::recv). On Pending, the waker of the last poll is woken. The
    /// receiver keeps its place in line from poll to poll.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let (tx, mut rx) = wakerun_channel::mpmc::channel(1);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(1)));
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let reception = self
            .polled
            .get_or_insert_with(|| Box::pin(Reception::new()))
            .as_ref()
            .get_ref();
        // SAFETY: pinned in its box, for this channel only, and cancelled when the receiver is dropped.
        unsafe { reception.poll(&self.chan, cx) }
    }

    /// Receives up to `limit` messages into `buffer` as soon as there is one; gives their number,
    /// which is 0 when the channel has ended or `limit` is 0.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message: it touches the buffer only when it is Ready.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::mpmc::channel(4);
    /// for n in 0..4 {
    ///     tx.send(n).await.unwrap();
    /// }
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.recv_many(&mut buffer, 3).await, 3);
    /// assert_eq!(rx.recv_many(&mut buffer, 3).await, 1);
    /// assert_eq!(buffer, [0, 1, 2, 3]);
    /// # });
    /// ```
    pub fn recv_many<'a>(&'a self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T> {
        RecvMany::new(self, buffer, limit)
    }

    /// The poll form of [`recv_many`](Self::recv_many).
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        let Some(first) = std::task::ready!(self.poll_recv(cx)) else {
            return Poll::Ready(0);
        };
        buffer.push(first);
        Poll::Ready(1 + self.chan.take_more(buffer, limit - 1))
    }

    /// Receives the next message if it is there.
    ///
    /// A message whose send has returned before this call is found, even while another thread is in
    /// the middle of an earlier one, which is waited for.
    ///
    /// # Errors
    /// Empty, or disconnected: closed, empty, and no permit out, so that none can ever come.
    ///
    /// ```
    /// use wakerun_channel::mpmc::{self, error::TryRecvError};
    ///
    /// let (tx, rx) = mpmc::channel(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(1).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        loop {
            match self.chan.take_now() {
                Taken::Value(value) => return Ok(value),
                Taken::Empty => return Err(TryRecvError::Empty),
                Taken::End => return Err(TryRecvError::Disconnected),
                Taken::Unpublished => self.chan.wait_published(),
                Taken::Withdrawn(_) => unreachable!("what is withdrawn is dropped on the way"),
            }
        }
    }

    /// Receives the next message, blocking the thread. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel(1);
    /// std::thread::spawn(move || tx.blocking_send("from a thread"));
    /// assert_eq!(rx.blocking_recv(), Some("from a thread"));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        crate::handle::assert_may_block("blocking_recv");
        let mut patience = Patience::new();
        loop {
            match self.try_recv() {
                Ok(value) => return Some(value),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if patience.wait(|| self.chan.has_news()) => {}
                Err(TryRecvError::Empty) => return wakerun::wake::block_on_thread(self.recv()),
            }
        }
    }

    /// Receives up to `limit` messages into `buffer`, blocking the thread until there is one; gives their
    /// number, which is 0 when the channel has ended or `limit` is 0. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel(2);
    /// tx.try_send(1).unwrap();
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.blocking_recv_many(&mut buffer, 8), 1);
    /// assert_eq!(buffer, [1]);
    /// ```
    #[track_caller]
    pub fn blocking_recv_many(&self, buffer: &mut Vec<T>, limit: usize) -> usize {
        crate::handle::assert_may_block("blocking_recv_many");
        wakerun::wake::block_on_thread(self.recv_many(buffer, limit))
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
    /// let (tx, rx) = wakerun_channel::mpmc::channel::<u8>(1);
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
    /// let (tx, rx) = wakerun_channel::mpmc::channel::<u8>(1);
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
    /// let (tx, rx) = wakerun_channel::mpmc::channel::<u8>(1);
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

    /// Closes the channel for senders. Waiting senders get their messages back; messages accepted
    /// before, and those of permits that are out, still arrive, and then [`recv`](Self::recv) ends.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel(2);
    /// tx.try_send(1).unwrap();
    /// rx.close();
    /// assert!(tx.try_send(2).unwrap_err().is_closed());
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&self) {
        self.chan.close(CLOSED, |_| true);
    }

    /// Whether the channel is closed: by [`close`](Self::close), or because all senders are gone.
    /// There may still be messages to receive.
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// How many messages are queued; see [`Sender::len`](super::Sender::len).
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Whether no message is queued. A snapshot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages or permits the channel has room for now. A snapshot.
    pub fn capacity(&self) -> usize {
        self.chan.free()
    }

    /// The capacity that the channel was made with.
    pub fn max_capacity(&self) -> usize {
        self.chan.gate.capacity() as usize
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel::<u8>(1);
    /// let weak = rx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(rx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(tx.is_closed());
    /// ```
    pub fn downgrade(&self) -> WeakReceiver<T> {
        WeakReceiver::new(self.chan.clone())
    }

    /// How many receivers there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.rx.side.strong.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.rx.side.weak.load(Ordering::Relaxed) as usize
    }

    /// How many senders there are. A snapshot.
    pub fn sender_strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }

    /// How many weak senders there are. A snapshot.
    pub fn sender_weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed) as usize
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        crate::handle::count_clone(&self.chan.rx.side.strong);
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
    /// The last one drops what is queued, each message once, also if one of them panics.
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        if let Some(reception) = self.polled.take() {
            panics.catch(|| reception.cancel(&*self.chan));
        }
        // AcqRel: what all receivers did happens before the channel is closed by the last one.
        if self.chan.rx.side.strong.fetch_sub(1, Ordering::AcqRel) == 1 {
            panics.catch(|| self.chan.close(CLOSED | RX_GONE, |_| true));
            self.chan.drain(&mut panics);
            wakerun::wake::forget_deferred(&self.chan);
        }
        panics.resume("dropping a message");
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::handle::debug(f, "Receiver", &self.chan)
    }
}
