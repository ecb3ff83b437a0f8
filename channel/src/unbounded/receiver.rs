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

/// Receives messages; clone it for more receivers. Each message goes to one of them.
///
/// Dropping the last one closes the channel and drops what is queued. It is a [`Stream`], too.
///
/// ```
/// let (tx, rx) = wakerun_channel::unbounded::channel();
/// tx.send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// drop(rx);
/// assert!(tx.send(2).is_err());
/// ```
pub struct Receiver<T> {
    chan: Arc<Chan<T>>,
    /// The wait of the poll forms; made when it is needed.
    polled: Option<Pin<Box<Reception>>>,
}

/// Becomes a [`Receiver`] while there is another one; see [`Receiver::downgrade`].
pub struct WeakReceiver<T> {
    chan: Arc<Chan<T>>,
}

// SAFETY: a receiver takes `T`s that senders have moved in.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above; the queue gives messages to many threads.
unsafe impl<T: Send> Sync for Receiver<T> {}
// SAFETY: as `Receiver`, which it can become.
unsafe impl<T: Send> Send for WeakReceiver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for WeakReceiver<T> {}

impl<T> Unpin for Receiver<T> {}
impl<T> std::panic::UnwindSafe for Receiver<T> {}
impl<T> std::panic::RefUnwindSafe for Receiver<T> {}
impl<T> Unpin for WeakReceiver<T> {}
impl<T> std::panic::UnwindSafe for WeakReceiver<T> {}
impl<T> std::panic::RefUnwindSafe for WeakReceiver<T> {}

impl<T> Receiver<T> {
    /// Takes over a counted receiver.
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan, polled: None }
    }

    /// Receives the next message; `None` when the channel is closed and empty.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message and no wake-up.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// tx.send(1).unwrap();
    /// drop(tx);
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

    /// Receives up to `limit` messages into `buffer` as soon as there is one; gives their number,
    /// which is 0 when the channel has ended or `limit` is 0.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message: it touches the buffer only when it is Ready.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// (0..4).for_each(|n| tx.send(n).unwrap());
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.recv_many(&mut buffer, 3).await, 3);
    /// assert_eq!(buffer, [0, 1, 2]);
    /// # });
    /// ```
    pub fn recv_many<'a>(&'a self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T> {
        RecvMany {
            recv: RecvFrom::new(&self.chan),
            chan: &self.chan,
            buffer,
            limit,
        }
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
    /// # Errors
    /// Empty, or disconnected: closed and empty.
    ///
    /// ```
    /// use wakerun_channel::unbounded::{self, error::TryRecvError};
    ///
    /// let (tx, rx) = unbounded::channel::<u8>();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.chan.take_now() {
            Taken::Value(value) => Ok(value),
            Taken::End => Err(TryRecvError::Disconnected),
            Taken::Empty | Taken::Unpublished | Taken::Withdrawn(_) => Err(TryRecvError::Empty),
        }
    }

    /// Receives the next message, blocking the thread. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// std::thread::spawn(move || tx.send("from a thread"));
    /// assert_eq!(rx.blocking_recv(), Some("from a thread"));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        crate::handle::assert_may_block("blocking_recv");
        match self.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => wakerun::wake::block_on_thread(self.recv()),
        }
    }

    /// Receives up to `limit` messages into `buffer`, blocking the thread until there is one; gives their
    /// number, which is 0 when the channel has ended or `limit` is 0. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// tx.send(1).unwrap();
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
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
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
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
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
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
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

    /// Closes the channel for senders; what is queued is still received.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// tx.send(1).unwrap();
    /// rx.close();
    /// assert!(tx.send(2).is_err());
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&self) {
        self.chan.close();
    }

    /// Whether the channel is closed. There may still be messages to receive.
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// How many messages are queued. A snapshot.
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Whether no message is queued. A snapshot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both receive from the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// A handle that does not keep the channel open.
    pub fn downgrade(&self) -> WeakReceiver<T> {
        self.chan.weak_receivers.fetch_add(1, Ordering::Relaxed);
        WeakReceiver {
            chan: self.chan.clone(),
        }
    }

    /// How many receivers there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.receivers.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_receivers.load(Ordering::Relaxed) as usize
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

impl<T> WeakReceiver<T> {
    /// A receiver, unless the last one is gone: then the channel is closed for good.
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        crate::handle::count_up(&self.chan.receivers).then(|| Receiver::new(self.chan.clone()))
    }

    /// How many receivers there are. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.receivers.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are, this one among them. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_receivers.load(Ordering::Relaxed) as usize
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        crate::handle::count_clone(&self.chan.receivers);
        Self::new(self.chan.clone())
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        self.chan.weak_receivers.fetch_add(1, Ordering::Relaxed);
        Self {
            chan: self.chan.clone(),
        }
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
        if self.chan.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            panics.catch(|| self.chan.close());
            self.chan.drain(&mut panics);
        }
        panics.resume("dropping a message");
    }
}

impl<T> Drop for WeakReceiver<T> {
    fn drop(&mut self) {
        self.chan.weak_receivers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Receiver", &self.chan)
    }
}

impl<T> fmt::Debug for WeakReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "WeakReceiver", &self.chan)
    }
}

/// What the handles show.
pub(super) fn debug<T>(f: &mut fmt::Formatter<'_>, name: &str, chan: &Chan<T>) -> fmt::Result {
    f.debug_struct(name)
        .field("len", &chan.len())
        .field("closed", &chan.is_closed())
        .field("senders", &chan.senders.load(Ordering::Relaxed))
        .finish_non_exhaustive()
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

/// The future of [`Receiver::recv_many`].
///
/// # Cancel safety
/// Dropping it loses no message: it touches the buffer only when it is Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct RecvMany<'a, T> {
    recv: RecvFrom<'a, Chan<T>>,
    chan: &'a Arc<Chan<T>>,
    buffer: &'a mut Vec<T>,
    limit: usize,
}

// SAFETY: the buffer holds `T`s, and the channel moves them between threads.
unsafe impl<T: Send> Send for RecvMany<'_, T> {}
// SAFETY: `&RecvMany` gives no more than the limit.
unsafe impl<T: Send> Sync for RecvMany<'_, T> {}

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
        Poll::Ready(1 + this.chan.take_more(this.buffer, this.limit - 1))
    }
}

impl<T> fmt::Debug for RecvMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvMany")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
