//! Messages that are counted when they are made and when they are dropped.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Book {
    /// Drops seen of each message, by its number.
    drops: Mutex<Vec<u32>>,
    /// Messages made and not dropped yet.
    alive: AtomicUsize,
}

/// Makes messages and knows how often each was dropped.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Book>);

impl Ledger {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The next message; its `id` counts from 0.
    pub(crate) fn make(&self) -> Tracked {
        let mut drops = self.0.drops.lock().unwrap();
        let id = drops.len();
        drops.push(0);
        drop(drops);
        self.0.alive.fetch_add(1, Ordering::SeqCst);
        Tracked {
            id,
            book: Arc::clone(&self.0),
            panics: false,
        }
    }

    /// A message whose destructor panics after it has been counted.
    pub(crate) fn make_panicking(&self) -> Tracked {
        let mut message = self.make();
        message.panics = true;
        message
    }

    pub(crate) fn made(&self) -> usize {
        self.0.drops.lock().unwrap().len()
    }

    pub(crate) fn alive(&self) -> usize {
        self.0.alive.load(Ordering::SeqCst)
    }

    pub(crate) fn drops_of(&self, id: usize) -> u32 {
        self.0.drops.lock().unwrap()[id]
    }

    /// Asserts that every message made so far was dropped once.
    #[track_caller]
    pub(crate) fn assert_all_dropped_once(&self) {
        for (id, &n) in self.0.drops.lock().unwrap().iter().enumerate() {
            assert_eq!(n, 1, "message {id} was dropped {n} times");
        }
    }
}

/// A message made by a [`Ledger`].
pub(crate) struct Tracked {
    pub(crate) id: usize,
    book: Arc<Book>,
    panics: bool,
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.book.drops.lock().unwrap()[self.id] += 1;
        self.book.alive.fetch_sub(1, Ordering::SeqCst);
        assert!(!self.panics, "destructor of message {} panics", self.id);
    }
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.id)
    }
}
