//! A sender that does not keep the channel open.

use std::fmt;
use std::sync::Arc;

use wakerun::sync::atomic::Ordering;

use super::Sender;
use crate::chan::Chan;
use crate::flavor::{Flavor, Mpsc};

/// Becomes a [`Sender`] while there is another one; see [`Sender::downgrade`].
pub struct WeakSender<T, F: Flavor = Mpsc> {
    chan: Arc<Chan<T, F>>,
}

// SAFETY: as `Sender`, which it can become.
unsafe impl<T: Send, F: Flavor> Send for WeakSender<T, F> {}
// SAFETY: as above.
unsafe impl<T: Send, F: Flavor> Sync for WeakSender<T, F> {}

impl<T, F: Flavor> Unpin for WeakSender<T, F> {}
impl<T, F: Flavor> std::panic::UnwindSafe for WeakSender<T, F> {}
impl<T, F: Flavor> std::panic::RefUnwindSafe for WeakSender<T, F> {}

impl<T, F: Flavor> WeakSender<T, F> {
    pub(super) fn new(chan: Arc<Chan<T, F>>) -> Self {
        chan.weak_senders.fetch_add(1, Ordering::Relaxed);
        Self { chan }
    }

    /// A sender, unless the last one is gone: then the channel is closed for good.
    pub fn upgrade(&self) -> Option<Sender<T, F>> {
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

impl<T, F: Flavor> Clone for WeakSender<T, F> {
    fn clone(&self) -> Self {
        Self::new(self.chan.clone())
    }
}

impl<T, F: Flavor> Drop for WeakSender<T, F> {
    fn drop(&mut self) {
        self.chan.weak_senders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T, F: Flavor> fmt::Debug for WeakSender<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::handle::debug(f, "WeakSender", &self.chan)
    }
}
