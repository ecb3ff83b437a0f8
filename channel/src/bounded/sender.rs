//! The sending handle.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use wakerun::sync::atomic::Ordering;
use wakerun::time::{Instant, Sleep};

use super::{
    Closed, OwnedPermit, Permit, PermitIterator, Reserve, ReserveMany, ReserveOwned, Send,
    SendMany, SendOr, WeakSender,
};
use crate::chan::Chan;
use crate::closed::{ClosedWaiters, Closing};
use crate::error::{SendError, SendTimeoutError, TryReserveError, TrySendError};
use crate::flavor::{Flavor, Mpsc};
use crate::gate::{CLOSED, Claim, Simply};

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
pub struct Sender<T, F: Flavor = Mpsc> {
    chan: Arc<Chan<T, F>>,
}

// SAFETY: a sender moves `T`s to the receiver's thread and hands out none; the parts of the channel
// that it touches are atomics, locked, or claimed.
unsafe impl<T: std::marker::Send, F: Flavor> std::marker::Send for Sender<T, F> {}
// SAFETY: as above; all methods take `&self` and claim what they write.
unsafe impl<T: std::marker::Send, F: Flavor> Sync for Sender<T, F> {}

impl<T, F: Flavor> Unpin for Sender<T, F> {}
impl<T, F: Flavor> std::panic::UnwindSafe for Sender<T, F> {}
impl<T, F: Flavor> std::panic::RefUnwindSafe for Sender<T, F> {}

impl<T, F: Flavor> Sender<T, F> {
    /// Takes over a counted sender.
    pub(crate) fn new(chan: Arc<Chan<T, F>>) -> Self {
        Self { chan }
    }

    #[inline]
    pub(crate) fn chan(&self) -> &Arc<Chan<T, F>> {
        &self.chan
    }

    /// Sends a message, waiting in line for room.
    ///
    /// Ready with `Ok` when the channel has accepted the message, which a receiver gets unless they
    /// are dropped first. Nothing happens before the first poll.
    ///
    /// # Errors
    /// If the channel is closed, or is closed while the message waits; it comes back.
    ///
    /// # Cancel safety
    /// See [`Send`](super::Send).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// tx.send(5).await.unwrap();
    /// assert_eq!(rx.recv().await, Some(5));
    /// # });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> Send<'_, T, F> {
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
        if let Simply::Claimed { position, wake } = self.chan.claim_simply() {
            // SAFETY: claimed just now.
            unsafe { self.chan.publish(position, wake, value) };
            return Ok(());
        }
        self.try_send_slowly(value)
    }

    #[cold]
    #[inline(never)]
    fn try_send_slowly(&self, value: T) -> Result<(), TrySendError<T>> {
        loop {
            match self.chan.gate.try_claim(&self.chan.rx.head) {
                Claim::Claimed { position, wake } => {
                    // SAFETY: claimed just now.
                    unsafe { self.chan.publish(position, wake, value) };
                    return Ok(());
                }
                Claim::Full if self.chan.reclaim_due() => {}
                Claim::Full => return Err(TrySendError::Full(value)),
                Claim::Closed => return Err(TrySendError::Closed(value)),
            }
        }
    }

    /// As [`send`](Self::send), unless `cancel` is ready before there is room: then the message comes back.
    ///
    /// The outcome is known for sure: with `Ok` the channel has accepted the message, with an error
    /// nobody has got it and nobody will. So trying again never sends a message twice. For deadlines and
    /// shutdown signals, on any runtime: `cancel` can be its timer.
    ///
    /// # Errors
    /// Cancelled (named timeout, since that is what it mostly is), or closed. The message comes back.
    ///
    /// # Cancel safety
    /// See [`SendOr`](super::SendOr).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::mpsc::channel(1);
    /// tx.send_or(std::future::pending::<()>(), 1).await.unwrap();
    /// let error = tx.send_or(std::future::ready(()), 2).await.unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.into_inner(), 2);
    /// # });
    /// ```
    pub fn send_or<C: Future>(&self, cancel: C, value: T) -> SendOr<'_, T, C, F> {
        SendOr::new(self, cancel, value)
    }

    /// Sends all messages in `messages` in their order, side by side as far as there is room at a time:
    /// each such run is one step for the channel, and one wake.
    ///
    /// # Errors
    /// If the channel is closed; what has not been sent is left in `messages`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves those messages in `messages`, and only those, that have not been sent.
    ///
    /// ```
    /// use std::collections::VecDeque;
    ///
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(2);
    /// wakerun::spawn(async move {
    ///     let mut messages = VecDeque::from([1, 2, 3]);
    ///     tx.send_many(&mut messages).await.unwrap();
    ///     assert!(messages.is_empty());
    /// });
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, Some(2));
    /// assert_eq!(rx.recv().await, Some(3));
    /// # });
    /// ```
    pub fn send_many<'a>(&'a self, messages: &'a mut VecDeque<T>) -> SendMany<'a, T, F> {
        SendMany::new(self, messages)
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
        crate::handle::assert_may_block("blocking_send");
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError(value)),
            // At once into the line, where a receiver takes the message from, or makes room for it: a sender that
            // only watched for room would have to come back for that, and could be overtaken.
            Err(TrySendError::Full(value)) => wakerun::wake::block_on_thread(self.send(value)),
        }
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
    /// let (tx, rx) = wakerun_channel::mpsc::channel(1);
    /// tx.try_send(1).unwrap();
    /// let error = tx.send_timeout(2, Duration::from_millis(1)).await.unwrap_err();
    /// assert!(error.is_timeout());
    /// assert_eq!(error.into_inner(), 2);
    /// # });
    /// ```
    #[track_caller]
    pub fn send_timeout(&self, value: T, timeout: Duration) -> SendOr<'_, T, Sleep, F> {
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
    pub fn send_deadline(&self, value: T, deadline: Instant) -> SendOr<'_, T, Sleep, F> {
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
    /// let (tx, rx) = wakerun_channel::mpsc::channel(1);
    /// tx.try_send(1).unwrap();
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
    /// See [`Reserve`](super::Reserve).
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
    pub fn reserve(&self) -> Reserve<'_, T, F> {
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
    pub fn try_reserve(&self) -> Result<Permit<'_, T, F>, TrySendError<()>> {
        let chan = &*self.chan;
        match chan.gate.claim_permits_simply(1, &chan.rx.head) {
            Simply::Claimed { .. } => {}
            Simply::Full | Simply::Not => self.try_reserve_slowly()?,
        }
        // SAFETY: the permit was claimed just now.
        Ok(unsafe { Permit::new(chan) })
    }

    /// Claims one permit.
    #[inline(never)]
    fn try_reserve_slowly(&self) -> Result<(), TrySendError<()>> {
        match self.try_claim_permits(1) {
            Claim::Claimed { .. } => Ok(()),
            Claim::Full => Err(TrySendError::Full(())),
            Claim::Closed => Err(TrySendError::Closed(())),
        }
    }

    /// As [`reserve`](Self::reserve), but the permit owns the sender: it can be kept in a struct or moved to
    /// another task.
    ///
    /// # Errors
    /// If the channel is closed.
    ///
    /// # Cancel safety
    /// See [`ReserveOwned`](super::ReserveOwned).
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    /// let permit = tx.reserve_owned().await.unwrap();
    /// let tx = permit.send(1).unwrap();
    /// assert_eq!(rx.recv().await, Some(1));
    /// # drop(tx);
    /// # });
    /// ```
    pub fn reserve_owned(self) -> ReserveOwned<T, F> {
        ReserveOwned::new(self)
    }

    /// As [`try_reserve`](Self::try_reserve), but the permit owns the sender.
    ///
    /// # Errors
    /// Full or closed; the sender comes back.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// let tx = tx.try_reserve_owned().unwrap_err().into_inner();
    /// assert!(permit.same_channel_as_sender(&tx));
    /// ```
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T, F>, TrySendError<Self>> {
        match self.try_claim_permits(1) {
            // SAFETY: claimed just now.
            Claim::Claimed { .. } => Ok(unsafe { OwnedPermit::new(self) }),
            Claim::Full => Err(TrySendError::Full(self)),
            Claim::Closed => Err(TrySendError::Closed(self)),
        }
    }

    /// Waits in line for room for `count` messages, all at once. For 0 it is ready at once.
    ///
    /// # Errors
    /// At once if `count` is above the capacity; and if the channel is closed.
    ///
    /// # Cancel safety
    /// See [`ReserveMany`](super::ReserveMany).
    ///
    /// ```
    /// use wakerun_channel::mpsc::{self, error::ReserveError};
    ///
    /// # wakerun::block_on(async {
    /// let (tx, mut rx) = mpsc::channel(2);
    /// for (n, permit) in tx.reserve_many(2).await.unwrap().enumerate() {
    ///     permit.send(n).unwrap();
    /// }
    /// assert_eq!(rx.recv().await, Some(0));
    /// assert_eq!(tx.reserve_many(3).await.unwrap_err(), ReserveError::TooMany);
    /// # });
    /// ```
    pub fn reserve_many(&self, count: usize) -> ReserveMany<'_, T, F> {
        ReserveMany::new(self, count)
    }

    /// Reserves room for `count` messages if there is so much and nobody waits for it.
    ///
    /// # Errors
    /// Full, too many for this channel, or closed.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpsc::channel::<u8>(3);
    /// let permits = tx.try_reserve_many(2).unwrap();
    /// assert!(tx.try_reserve_many(2).unwrap_err().is_full());
    /// assert_eq!(tx.try_reserve_many(0).unwrap().len(), 0);
    /// # drop(permits);
    /// ```
    pub fn try_reserve_many(
        &self,
        count: usize,
    ) -> Result<PermitIterator<'_, T, F>, TryReserveError> {
        if count > self.max_capacity() {
            return Err(TryReserveError::TooMany);
        }
        let count = count as u64;
        if count == 0 && !self.is_closed() {
            // SAFETY: no permit needs to be counted.
            return Ok(unsafe { PermitIterator::new(&self.chan, 0) });
        }
        match self.try_claim_permits(count) {
            // SAFETY: claimed just now.
            Claim::Claimed { .. } => Ok(unsafe { PermitIterator::new(&self.chan, count) }),
            Claim::Full => Err(TryReserveError::Full),
            Claim::Closed => Err(TryReserveError::Closed),
        }
    }

    /// Claims permits, also such as have been granted to somebody who does not come for them.
    fn try_claim_permits(&self, count: u64) -> Claim {
        loop {
            let claim = self.chan.gate.try_claim_permits(count, &self.chan.rx.head);
            if claim != Claim::Full || !self.chan.reclaim_due() {
                return claim;
            }
        }
    }

    /// Waits until the channel is closed by a receiver's `close`, or by the last receiver's drop.
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
    pub fn closed(&self) -> Closed<'_, T, F> {
        Closed::new(self)
    }

    /// Closes the channel, as a receiver's `close` does: senders that wait get their messages back, and
    /// what has been accepted still arrives.
    ///
    /// ```
    /// let (tx, mut rx) = wakerun_channel::mpsc::channel::<u8>(1);
    /// tx.close();
    /// assert!(tx.is_closed());
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&self) {
        self.chan.close(CLOSED, |_| true);
    }

    /// Whether the channel is closed: by a receiver's `close`, or because the receivers are gone.
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
    pub fn downgrade(&self) -> WeakSender<T, F> {
        WeakSender::new(self.chan.clone())
    }

    /// How many senders there are, this one among them. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }

    /// How many weak senders there are. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed) as usize
    }
}

impl<T, F: Flavor> Closing for Sender<T, F> {
    fn closed_waiters(&self) -> &ClosedWaiters {
        &self.chan.closed_waiters
    }

    fn has_closed(&self) -> bool {
        self.chan.is_closed()
    }
}

impl<T, F: Flavor> Clone for Sender<T, F> {
    fn clone(&self) -> Self {
        crate::handle::count_clone(&self.chan.senders);
        Self::new(self.chan.clone())
    }
}

impl<T, F: Flavor> Drop for Sender<T, F> {
    fn drop(&mut self) {
        // AcqRel: what all senders did happens before the channel is closed by the last one.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.senders_gone();
        }
    }
}

impl<T, F: Flavor> fmt::Debug for Sender<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::handle::debug(f, "Sender", &self.chan)
    }
}
