//! The sending handle.

use std::fmt;
use std::sync::Arc;

use wakerun::sync::atomic::Ordering;

use super::{Closed, Permit, Reserve, Send, WeakSender};
use crate::chan::Chan;
use crate::error::{SendError, TrySendError};
use crate::gate::Claim;

/// Sends messages into a channel; clone it for more senders.
///
/// The channel closes when the last sender is dropped, and the receiver gets what was sent before.
///
/// ```
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
/// tx.try_send("hello").unwrap();
/// drop(tx);
/// assert_eq!(rx.blocking_recv(), Some("hello"));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct Sender<T> {
    chan: Arc<Chan<T>>,
}

// SAFETY: a sender moves `T`s to the receiver's thread and hands out none; the parts of the channel
// that it touches are atomics, locked, or claimed.
unsafe impl<T: std::marker::Send> std::marker::Send for Sender<T> {}
// SAFETY: as above; all methods take `&self` and claim what they write.
unsafe impl<T: std::marker::Send> Sync for Sender<T> {}

impl<T> Unpin for Sender<T> {}
impl<T> std::panic::UnwindSafe for Sender<T> {}
impl<T> std::panic::RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// Takes over a counted sender.
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan }
    }

    #[inline]
    pub(super) fn chan(&self) -> &Chan<T> {
        &self.chan
    }

    /// Sends a message, waiting in line for room.
    ///
    /// Ready with `Ok` when the channel has accepted the message, which the receiver gets unless it
    /// is dropped first. Nothing happens before the first poll.
    ///
    /// # Errors
    /// If the channel is closed, or is closed while the message waits; it comes back.
    ///
    /// # Cancel safety
    /// See [`future::Send`](super::future::Send).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.send(5).await.unwrap();
    /// assert_eq!(rx.recv().await, Some(5));
    /// # });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send::new(self, value)
    }

    /// Sends a message if there is room and nobody waits for it.
    ///
    /// # Errors
    /// Full or closed; the message comes back.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel(1);
    /// assert!(tx.try_send(1).is_ok());
    /// assert_eq!(tx.try_send(2).unwrap_err().into_inner(), 2);
    /// ```
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if let Some((position, wake)) = self.chan.gate.claim_simply() {
            // SAFETY: claimed just now.
            unsafe { self.chan.publish(position, wake, value) };
            return Ok(());
        }
        match self.chan.gate.try_claim(&self.chan.rx.head) {
            Claim::Claimed { position, wake } => {
                // SAFETY: claimed just now.
                unsafe { self.chan.publish(position, wake, value) };
                Ok(())
            }
            Claim::Full => Err(TrySendError::Full(value)),
            Claim::Closed => Err(TrySendError::Closed(value)),
        }
    }

    /// Sends a message, blocking the thread while it waits for room. For plain threads.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    ///
    /// # Panics
    /// Inside a wakerun task or `block_on`, which would be blocked with all that it runs. (A task of
    /// another executor is not noticed, and is blocked.)
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// let thread = std::thread::spawn(move || (0..3).for_each(|n| tx.blocking_send(n).unwrap()));
    /// assert_eq!(rx.blocking_recv(), Some(0));
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), Some(2));
    /// thread.join().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        super::recv::assert_may_block("blocking_send");
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => wakerun::wake::block_on_thread(self.send(value)),
        }
    }

    /// Waits in line for room for one message, and holds it as a [`Permit`].
    ///
    /// With a permit in hand, [`Permit::send`] neither waits nor loses the message to a
    /// cancellation. Receive first and reserve second where one task does both: an idle task that
    /// holds permits takes capacity from those that have something to send.
    ///
    /// # Errors
    /// If the channel is closed.
    ///
    /// # Cancel safety
    /// See [`future::Reserve`](super::future::Reserve).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// let permit = tx.reserve().await.unwrap();
    /// assert_eq!(tx.capacity(), 0);
    /// permit.send("kept a place for it").unwrap();
    /// assert_eq!(rx.recv().await, Some("kept a place for it"));
    /// # });
    /// ```
    #[inline]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(self)
    }

    /// Reserves room for one message if there is some and nobody waits for it.
    ///
    /// # Errors
    /// Full or closed.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let permit = tx.try_reserve().unwrap();
    /// assert!(tx.try_reserve().unwrap_err().is_full());
    /// drop(permit);
    /// assert!(tx.try_reserve().is_ok());
    /// ```
    #[inline]
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        match self.chan.gate.try_claim_permits(1, &self.chan.rx.head) {
            // SAFETY: the permit was claimed just now.
            Claim::Claimed { .. } => Ok(unsafe { Permit::new(&self.chan) }),
            Claim::Full => Err(TrySendError::Full(())),
            Claim::Closed => Err(TrySendError::Closed(())),
        }
    }

    /// Waits until the channel is closed by the receiver's `close` or drop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// wakerun::spawn(async move { drop(rx) });
    /// tx.closed().await;
    /// assert!(tx.is_closed());
    /// # });
    /// ```
    pub fn closed(&self) -> Closed<'_, T> {
        Closed::new(self)
    }

    /// Whether the channel is closed: by the receiver's `close`, or because the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// How many messages or permits the channel has room for now. A snapshot.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel(3);
    /// tx.try_send(()).unwrap();
    /// let permit = tx.try_reserve().unwrap();
    /// assert_eq!(tx.capacity(), 1);
    /// assert_eq!(tx.max_capacity(), 3);
    /// # drop(permit);
    /// ```
    pub fn capacity(&self) -> usize {
        self.chan.free()
    }

    /// The capacity that the channel was made with.
    pub fn max_capacity(&self) -> usize {
        self.chan.gate.capacity() as usize
    }

    /// How many messages are queued; those count, too, that have been withdrawn and that the
    /// receiver has yet to pass. A snapshot, between 0 and the capacity.
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Whether no message is queued. A snapshot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.chan.clone())
    }

    /// How many senders there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed)
    }

    /// How many weak senders there are. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // Relaxed: `self` keeps the count above zero, and how the clone gets elsewhere orders it.
        let before = self.chan.senders.fetch_add(1, Ordering::Relaxed);
        if before > usize::MAX / 2 {
            // Only leaks in a loop get here; a count that wrapped would close a live channel.
            std::process::abort();
        }
        Self::new(self.chan.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what all senders did happens before the channel is closed by the last one.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.senders_gone();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::recv::debug(f, "Sender", &self.chan)
    }
}
