//! A receiver that does not keep the channel open.

use std::fmt;
use std::sync::Arc;

use wakerun::sync::atomic::Ordering;

use super::Receiver;
use crate::chan::Chan;
use crate::flavor::Mpmc;

/// Becomes a [`Receiver`] while there is another one; see [`Receiver::downgrade`].
pub struct WeakReceiver<T> {
    chan: Arc<Chan<T, Mpmc>>,
}

// SAFETY: as `Receiver`, which it can become.
unsafe impl<T: Send> Send for WeakReceiver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for WeakReceiver<T> {}

impl<T> Unpin for WeakReceiver<T> {}
impl<T> std::panic::UnwindSafe for WeakReceiver<T> {}
impl<T> std::panic::RefUnwindSafe for WeakReceiver<T> {}

impl<T> WeakReceiver<T> {
    pub(super) fn new(chan: Arc<Chan<T, Mpmc>>) -> Self {
        chan.rx.side.weak.fetch_add(1, Ordering::Relaxed);
        Self { chan }
    }

    /// A receiver, unless the last one is gone: then the channel is closed for good.
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        let receivers = &self.chan.rx.side.strong;
        crate::handle::count_up(receivers).then(|| Receiver::new(self.chan.clone()))
    }

    /// How many receivers there are. A snapshot.
    pub fn strong_count(&self) -> usize {
        self.chan.rx.side.strong.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are, this one among them. A snapshot.
    pub fn weak_count(&self) -> usize {
        self.chan.rx.side.weak.load(Ordering::Relaxed) as usize
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        Self::new(self.chan.clone())
    }
}

impl<T> Drop for WeakReceiver<T> {
    fn drop(&mut self) {
        self.chan.rx.side.weak.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for WeakReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::handle::debug(f, "WeakReceiver", &self.chan)
    }
}
