//! A sender that does not keep the channel open.

use std::fmt;
use std::sync::Arc;

use wakerun::sync::atomic::Ordering;

use super::Sender;
use crate::chan::Chan;

/// Becomes a [`Sender`] while there is another one; see [`Sender::downgrade`].
pub struct WeakSender<T> {
    chan: Arc<Chan<T>>,
}

// SAFETY: as `Sender`, which it can become.
unsafe impl<T: Send> Send for WeakSender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for WeakSender<T> {}

impl<T> Unpin for WeakSender<T> {}
impl<T> std::panic::UnwindSafe for WeakSender<T> {}
impl<T> std::panic::RefUnwindSafe for WeakSender<T> {}

impl<T> WeakSender<T> {
    pub(super) fn new(chan: Arc<Chan<T>>) -> Self {
        chan.weak_senders.fetch_add(1, Ordering::Relaxed);
        Self { chan }
    }

    /// A sender, unless the last one is gone: then the channel is closed for good.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let senders = &self.chan.senders;
        let mut count = senders.load(Ordering::Relaxed);
        while count != 0 {
            // Acquire pairs with nothing but keeps the sender's first use after the count; from 0
            // there is no way back, so an end that the receiver has seen is final.
            match senders.compare_exchange_weak(
                count,
                count + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Sender::new(self.chan.clone())),
                Err(found) => count = found,
            }
        }
        None
    }

    /// How many senders there are. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.senders.load(Ordering::Relaxed)
    }

    /// How many weak senders there are, this one among them. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.weak_senders.load(Ordering::Relaxed)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self::new(self.chan.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.chan.weak_senders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::recv::debug(f, "WeakSender", &self.chan)
    }
}
