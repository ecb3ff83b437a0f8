//! Who wants to know when a poll of a task is over, beyond the one after which it asked.

use std::sync::Arc;

use crate::wake::{PollWatch, Poller};

/// The primitives that watch a task, as those whom its futures wait in do. Touched by the poller only.
///
/// Most tasks have none, now and ever: the list is allocated by the first.
#[derive(Default)]
pub(crate) struct Watches {
    #[expect(clippy::box_collection, reason = "one word in each task's header")]
    list: Option<Box<Vec<Arc<dyn PollWatch>>>>,
}

impl Watches {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// Adds a watcher, unless it is there already.
    pub(crate) fn add(&mut self, address: *const (), watch: impl FnOnce() -> Arc<dyn PollWatch>) {
        let list = self.list.get_or_insert_default();
        if !list
            .iter()
            .any(|old| std::ptr::eq(Arc::as_ptr(old).cast(), address))
        {
            list.push(watch());
        }
    }

    /// Tells all that a poll is over, and lets those go that have seen enough.
    #[cold]
    pub(crate) fn poll_over(&mut self, poller: &Poller<'_>) {
        let Some(list) = &mut self.list else { return };
        let mut at = 0;
        while let Some(watch) = list.get(at) {
            // One that panicked has not said that it has seen enough.
            let mut stays = true;
            crate::panics::report("the end-of-poll watch of a primitive", || {
                stays = watch.poll_over(poller);
            });
            if stays {
                at += 1;
            } else {
                discard(list.swap_remove(at));
            }
        }
        if list.is_empty() {
            self.list = None;
        }
    }

    /// Lets all go.
    pub(crate) fn clear(&mut self) {
        if let Some(list) = self.list.take() {
            list.into_iter().for_each(discard);
        }
    }
}

/// Drops a watcher: perhaps the last reference, and its destructor is foreign code.
fn discard(watch: Arc<dyn PollWatch>) {
    crate::panics::report("the destructor of a primitive", || drop(watch));
}
