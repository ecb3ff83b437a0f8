//! The sending handle.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use wakerun::sync::atomic::Ordering;
use wakerun::time::{Instant, Sleep};

use super::chan::Chan;
use super::send::{Send, SendOr};
use crate::closed::{Closed, ClosedWaiters, Closing};
use crate::error::{SendError, SendTimeoutError};
use crate::receivers::Source;

/// Hands messages over; clone it for more senders.
///
/// ```
/// let (tx, rx) = wakerun_channel::rendezvous::channel();
/// std::thread::spawn(move || tx.blocking_send("hand to hand"));
/// assert_eq!(rx.blocking_recv(), Some("hand to hand"));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct Sender<T> {
    chan: Arc<Chan<T>>,
}

// SAFETY: a sender moves `T`s to the receivers' threads and hands out none.
unsafe impl<T: std::marker::Send> std::marker::Send for Sender<T> {}
// SAFETY: as above; all methods take `&self` and work under the lock.
unsafe impl<T: std::marker::Send> Sync for Sender<T> {}

impl<T> Unpin for Sender<T> {}
impl<T> std::panic::UnwindSafe for Sender<T> {}
impl<T> std::panic::RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// Takes over a counted sender.
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan }
    }

    pub(super) fn chan(&self) -> &Chan<T> {
        &self.chan
    }

    /// Hands a message to a receiver, waiting in line for one. Ready with `Ok` when a receiver has it.
    ///
    /// # Errors
    /// If the channel is closed, or is closed while the message waits; it comes back.
    ///
    /// # Cancel safety
    /// See [`future::Send`](super::future::Send).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel();
    /// let task = wakerun::spawn(async move { rx.recv().await });
    /// tx.send(5).await.unwrap();
    /// assert_eq!(task.await.unwrap(), Some(5));
    /// # });
    /// ```
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send::new(self, value)
    }

    /// As [`send`](Self::send), unless `cancel` is ready first: then the message comes back, and no
    /// receiver has got it.
    ///
    /// # Errors
    /// Cancelled (named timeout, since that is what it mostly is), or closed. The message comes back.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel();
    /// let error = tx.send_or(std::future::ready(()), 5).await.unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.into_inner(), 5);
    /// # });
    /// ```
    pub fn send_or<C: Future>(&self, cancel: C, value: T) -> SendOr<'_, T, C> {
        SendOr::new(self.send(value), cancel)
    }

    /// Hands a message over, blocking the thread. For plain threads.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        crate::handle::assert_may_block("blocking_send");
        wakerun::wake::block_on_thread(self.send(value))
    }

    /// As [`send_or`](Self::send_or) with a timer of wakerun: gives up after `timeout`. Any duration is good.
    ///
    /// # Errors
    /// The time is over, or the channel is closed. The message comes back, and nobody has got it.
    ///
    /// # Panics
    /// Outside a wakerun runtime. (On another one, use [`send_or`](Self::send_or) with its timer.)
    ///
    /// # Cancel safety
    /// As [`send_or`](Self::send_or).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel();
    /// let error = tx.send_timeout(2, Duration::from_millis(1)).await.unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.into_inner(), 2);
    /// # });
    /// ```
    #[track_caller]
    pub fn send_timeout(&self, value: T, timeout: Duration) -> SendOr<'_, T, Sleep> {
        self.send_or(wakerun::time::sleep(timeout), value)
    }

    /// As [`send_timeout`](Self::send_timeout), to a moment.
    ///
    /// # Errors
    /// The moment has come, or the channel is closed. The message comes back, and nobody has got it.
    ///
    /// # Panics
    /// Outside a wakerun runtime.
    #[track_caller]
    pub fn send_deadline(&self, value: T, deadline: Instant) -> SendOr<'_, T, Sleep> {
        self.send_or(wakerun::time::sleep_until(deadline), value)
    }

    /// As [`blocking_send`](Self::blocking_send), but gives up after `timeout`, or at once if there is no
    /// room and it is zero; then the message comes back, and nobody gets it. Any duration is good.
    ///
    /// # Errors
    /// The time is over, or the channel is closed; the message comes back.
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (tx, rx) = wakerun_channel::rendezvous::channel();
    /// let error = tx.blocking_send_timeout(2, Duration::from_millis(1)).unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.into_inner(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        crate::handle::assert_may_block("blocking_send_timeout");
        crate::timed::blocking_send(crate::timed::deadline_after(timeout), |expiry| {
            self.send_or(expiry, value)
        })
    }

    /// Closes the channel, as a receiver's `close` does: senders that wait get their messages back, and
    /// receivers find the end.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::rendezvous::channel::<u8>();
    /// tx.close();
    /// assert!(tx.is_closed());
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&self) {
        self.chan.close(false);
    }

    /// Waits until the channel is closed by a `close` or by the last receiver's drop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::rendezvous::channel::<u8>();
    /// wakerun::spawn(async move { drop(rx) });
    /// tx.closed().await;
    /// # });
    /// ```
    pub fn closed(&self) -> Closed<'_, Self> {
        Closed::new(self)
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// How many senders there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }
}

impl<T> Closing for Sender<T> {
    fn closed_waiters(&self) -> &ClosedWaiters {
        &self.chan.closed_waiters
    }

    fn has_closed(&self) -> bool {
        self.chan.is_closed()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        crate::handle::count_clone(&self.chan.senders);
        Self::new(self.chan.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what all senders did happens before the channel is closed by the last one.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.close(true);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
