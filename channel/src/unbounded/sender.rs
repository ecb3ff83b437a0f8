//! The sending handle.

use std::fmt;
use std::sync::Arc;

use wakerun::sync::atomic::Ordering;

use super::chan::Chan;
use crate::closed::{Closed, ClosedWaiters, Closing};
use crate::error::SendError;
use crate::receivers::Source;

/// Sends messages into a channel without a bound; clone it for more senders.
///
/// The channel closes when the last sender is dropped; receivers get what was sent before.
///
/// ```
/// let (tx, rx) = wakerun_channel::unbounded::channel();
/// tx.send("hello").unwrap();
/// drop(tx);
/// assert_eq!(rx.blocking_recv(), Some("hello"));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct Sender<T> {
    chan: Arc<Chan<T>>,
}

/// Becomes a [`Sender`] while there is another one; see [`Sender::downgrade`].
pub struct WeakSender<T> {
    chan: Arc<Chan<T>>,
}

// SAFETY: a sender moves `T`s to the receivers' threads and hands out none.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above; the queue takes messages from many threads.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as `Sender`, which it can become.
unsafe impl<T: Send> Send for WeakSender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for WeakSender<T> {}

impl<T> Unpin for Sender<T> {}
impl<T> std::panic::UnwindSafe for Sender<T> {}
impl<T> std::panic::RefUnwindSafe for Sender<T> {}
impl<T> Unpin for WeakSender<T> {}
impl<T> std::panic::UnwindSafe for WeakSender<T> {}
impl<T> std::panic::RefUnwindSafe for WeakSender<T> {}

impl<T> Sender<T> {
    /// Takes over a counted sender.
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        Self { chan }
    }

    /// Sends a message, at once and from anywhere: a plain thread, a destructor, a signal's task.
    ///
    /// # Errors
    /// If the channel is closed; the message comes back.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel();
    /// tx.send(1).unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(2).unwrap_err().into_inner(), 2);
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.chan.send(value)
    }

    /// Waits until the channel is closed by a receiver's `close` or by the last one's drop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// ```
    /// # wakerun::block_on(async {
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
    /// wakerun::spawn(async move { drop(rx) });
    /// tx.closed().await;
    /// assert!(tx.is_closed());
    /// # });
    /// ```
    pub fn closed(&self) -> Closed<'_, Self> {
        Closed::new(self)
    }

    /// Closes the channel, as a receiver's `close` does: senders that wait get their messages back, and
    /// what has been accepted still arrives.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
    /// tx.close();
    /// assert!(tx.is_closed());
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn close(&self) {
        self.chan.close();
    }

    /// Whether the channel is closed.
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

    /// Whether both send into the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::unbounded::channel::<u8>();
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn downgrade(&self) -> WeakSender<T> {
        self.chan.weak_senders.fetch_add(1, Ordering::Relaxed);
        WeakSender {
            chan: self.chan.clone(),
        }
    }

    /// How many receivers there are. A snapshot.
    pub fn receiver_strong_count(&self) -> usize {
        self.chan.receivers.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are. A snapshot.
    pub fn receiver_weak_count(&self) -> usize {
        self.chan.weak_receivers.load(Ordering::Relaxed) as usize
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

impl<T> WeakSender<T> {
    /// A sender, unless the last one is gone: then the channel is closed for good.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        crate::handle::count_up(&self.chan.senders).then(|| Sender::new(self.chan.clone()))
    }

    /// How many senders there are. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed) as usize
    }

    /// How many weak senders there are, this one among them. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed) as usize
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

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        self.chan.weak_senders.fetch_add(1, Ordering::Relaxed);
        Self {
            chan: self.chan.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // AcqRel: what all senders did happens before the channel is closed by the last one.
        if self.chan.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.chan.close();
        }
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.chan.weak_senders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::receiver::debug(f, "Sender", &self.chan)
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::receiver::debug(f, "WeakSender", &self.chan)
    }
}
