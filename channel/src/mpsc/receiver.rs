//! The receiving handle.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::Ordering;
use wakerun::time::Instant;
use wakerun::wake::Patience;

use super::{Recv, RecvMany, RecvRef};
use crate::chan::Chan;
use crate::error::{RecvTimeoutError, TryRecvError};
use crate::flavor::Mpsc;
use crate::gate::{CLOSED, RX_GONE};
use crate::out::InPlace;
use crate::receive::{Cursor, Took};

/// Receives messages in the order in which they were sent.
///
/// Dropping it closes the channel and drops what is queued. It is a [`Stream`], too.
///
/// ```
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(4);
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// drop(rx);
/// assert!(tx.try_send(3).unwrap_err().is_closed());
/// ```
pub struct Receiver<T> {
    pub(super) chan: Arc<Chan<T, Mpsc>>,
    pub(super) cursor: Cursor<T>,
}

// SAFETY: the receiver takes `T`s that senders have moved in.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: `&Receiver` only looks at counts.
unsafe impl<T: Send> Sync for Receiver<T> {}

impl<T> Unpin for Receiver<T> {}
impl<T> std::panic::UnwindSafe for Receiver<T> {}
impl<T> std::panic::RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    pub(super) fn new(chan: Arc<Chan<T, Mpsc>>) -> Self {
        let cursor = Cursor::new(&chan.ring);
        Self { chan, cursor }
    }

    /// Receives the next message; `None` when the channel is closed, empty, and no permit is out. (If it never
    /// ends, somebody still holds a sender: see [`sender_strong_count`](Self::sender_strong_count).)
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.send(1).await.unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    #[inline]
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv::new(self)
    }

    /// The poll form of [`recv`](Self::recv). On Pending, the waker of the last poll is woken.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(1)));
    /// ```
    #[inline(always)]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.cursor.poll(&self.chan, cx)
    }

    /// Receives up to `limit` messages into `buffer` as soon as there is one; gives their number,
    /// which is 0 when the channel has ended or `limit` is 0.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message: it touches the buffer only when it is Ready.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(4);
    /// for n in 0..4 {
    ///     tx.send(n).await.unwrap();
    /// }
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.recv_many(&mut buffer, 3).await, 3);
    /// assert_eq!(rx.recv_many(&mut buffer, 3).await, 1);
    /// assert_eq!(buffer, [0, 1, 2, 3]);
    /// # });
    /// ```
    #[inline]
    pub fn recv_many<'a>(&'a mut self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T> {
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
        let first = std::task::ready!(self.cursor.poll_into(&self.chan, cx, buffer));
        if first != Took::Message {
            return Poll::Ready(0);
        }
        let mut count = 1;
        while count < limit && self.cursor.take(&self.chan, buffer) == Took::Message {
            count += 1;
        }
        Poll::Ready(count)
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
    /// use wakerun_channel::mpsc::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(1).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.cursor.try_recv(&self.chan)
    }

    /// Receives the next message where it is; `None` when the channel has ended. See [`RecvRef`].
    ///
    /// # Cancel safety
    /// Dropping the future loses no message.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.send([1_u64; 512]).await.unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv_ref().await.unwrap().iter().sum::<u64>(), 512);
    /// assert!(rx.recv_ref().await.is_none());
    /// # });
    /// ```
    pub async fn recv_ref(&mut self) -> Option<RecvRef<'_, T>> {
        let found = poll_fn(|cx| self.poll_front(cx)).await;
        // SAFETY: found just now.
        (found == Took::Message).then(|| unsafe { RecvRef::new(self) })
    }

    /// Looks for the next message, and leaves it where it is.
    fn poll_front(&mut self, cx: &mut Context<'_>) -> Poll<Took> {
        self.cursor.poll_into(&self.chan, cx, &mut InPlace)
    }

    /// The poll form of [`recv_ref`](Self::recv_ref).
    pub fn poll_recv_ref(&mut self, cx: &mut Context<'_>) -> Poll<Option<RecvRef<'_, T>>> {
        let found = std::task::ready!(self.poll_front(cx));
        // SAFETY: found just now.
        Poll::Ready((found == Took::Message).then(|| unsafe { RecvRef::new(self) }))
    }

    /// Receives the next message where it is, if it is there. See [`RecvRef`], and
    /// [`try_recv`](Self::try_recv).
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.try_send([1_u64; 512]).unwrap();
    /// assert_eq!(rx.try_recv_ref().unwrap()[511], 1);
    /// assert!(rx.try_recv_ref().is_err());
    /// ```
    pub fn try_recv_ref(&mut self) -> Result<RecvRef<'_, T>, TryRecvError> {
        match self.cursor.take_now(&self.chan, &mut InPlace) {
            // SAFETY: found just now.
            Took::Message => Ok(unsafe { RecvRef::new(self) }),
            Took::End => Err(TryRecvError::Disconnected),
            Took::Empty | Took::Unpublished => Err(TryRecvError::Empty),
        }
    }

    /// Receives the next message, blocking the thread. For plain threads.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// std::thread::spawn(move || tx.blocking_send("from a thread"));
    /// assert_eq!(rx.blocking_recv(), Some("from a thread"));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
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
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.blocking_recv_many(&mut buffer, 8), 1);
    /// assert_eq!(buffer, [1]);
    /// ```
    #[track_caller]
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
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
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let received = rx.blocking_recv_timeout(Duration::from_millis(1));
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// ```
    #[track_caller]
    pub fn blocking_recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
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
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let received = rx.recv_or(std::future::ready(())).await;
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// # });
    /// ```
    pub async fn recv_or<C: Future>(&mut self, cancel: C) -> Result<T, RecvTimeoutError> {
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
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let received = rx.recv_timeout(Duration::from_millis(1)).await;
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// # drop(tx);
    /// # });
    /// ```
    #[track_caller]
    pub fn recv_timeout(
        &mut self,
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
        &mut self,
        deadline: Instant,
    ) -> impl Future<Output = Result<T, RecvTimeoutError>> {
        self.recv_or(wakerun::time::sleep_until(deadline))
    }

    /// Closes the channel for senders. Waiting senders get their messages back; messages accepted
    /// before, and those of permits that are out, still arrive, and then [`recv`](Self::recv) ends.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// rx.close();
    /// assert!(tx.try_send(2).unwrap_err().is_closed());
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&mut self) {
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

    /// How many senders there are. A snapshot.
    pub fn sender_strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }

    /// How many weak senders there are. A snapshot.
    pub fn sender_weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed) as usize
    }
}

impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(cx)
    }
}

impl<T> Drop for Receiver<T> {
    /// Drops what is queued, each message once, also if one of them panics.
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        panics.catch(|| self.chan.close(CLOSED | RX_GONE, |_| true));
        self.cursor.drain(&self.chan, &mut panics);
        wakerun::wake::forget_deferred(&self.chan);
        panics.resume("dropping a message");
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::handle::debug(f, "Receiver", &self.chan)
    }
}
