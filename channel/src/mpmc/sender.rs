//! What senders of many receivers have beside the others.

use wakerun::sync::atomic::Ordering;

use super::Sender;

impl<T> Sender<T> {
    /// How many receivers there are. A snapshot.
    ///
    /// ```
    /// let (tx, rx) = wakerun_channel::mpmc::channel::<u8>(1);
    /// let other = rx.clone();
    /// assert_eq!(tx.receiver_strong_count(), 2);
    /// # drop((rx, other));
    /// ```
    pub fn receiver_strong_count(&self) -> usize {
        self.chan().rx.side.strong.load(Ordering::Relaxed) as usize
    }

    /// How many weak receivers there are. A snapshot.
    pub fn receiver_weak_count(&self) -> usize {
        self.chan().rx.side.weak.load(Ordering::Relaxed) as usize
    }
}
