//! Who wants to know when a poll of a task is over, beyond the one after which it asked.

use std::sync::Arc;

use crate::wake::{PollWatch, Poller};

/// The primitives that watch a task, as those whom its futures wait in do. Touched by the poller only.
///
/// Most tasks have none, now and ever: the list is allocated by the first.
#[derive(Default)]
pub(crate) struct Watches {
    #[expect(clippy::box_collection, reason = "one word in each task's header")]
    list: Option<Box<Vec<Watch>>>,
}

struct Watch {
    hook: Arc<dyn PollWatch>,
    /// That of the hook, for comparing.
    address: *const (),
    /// How often it was asked for and not taken back: the futures that wait in the primitive, as a rule.
    asked: usize,
    /// How many of them have been polled in the poll that is going on; never more than that.
    polled: usize,
}

impl Watches {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    /// Adds a watcher, or counts it once more.
    pub(crate) fn add(&mut self, address: *const (), hook: impl FnOnce() -> Arc<dyn PollWatch>) {
        let list = self.list.get_or_insert_default();
        match list.iter_mut().find(|watch| watch.address == address) {
            Some(watch) => watch.asked += 1,
            None => list.push(Watch {
                hook: hook(),
                address,
                asked: 1,
                polled: 0,
            }),
        }
    }

    /// Takes one ask back. The watcher goes at the end of the poll, which is no place of foreign code.
    pub(crate) fn take_back(&mut self, address: *const ()) {
        if let Some(list) = &mut self.list
            && let Some(watch) = list.iter_mut().find(|watch| watch.address == address)
        {
            watch.asked = watch.asked.saturating_sub(1);
            // Whether it was polled is not known: at worst, the primitive looks once too often.
            watch.polled = watch.polled.saturating_sub(1);
        }
    }

    /// One of those that have asked is being polled, for the first time in this poll.
    pub(crate) fn note_poll(&mut self, address: *const ()) {
        if let Some(list) = &mut self.list
            && let Some(watch) = list.iter_mut().find(|watch| watch.address == address)
        {
            watch.polled += 1;
        }
    }

    /// Whether the poll that is over, and is not the last one, has come to all who have asked, where that is seen
    /// at once: then nobody needs be told, and the next poll begins anew.
    #[inline]
    pub(crate) fn came_to_all(&mut self) -> bool {
        if let Some(list) = &mut self.list
            && let [watch] = &mut list[..]
        {
            let all = watch.asked > 0 && watch.polled >= watch.asked;
            if all {
                watch.polled = 0;
            }
            return all;
        }
        false
    }

    /// Tells that a poll is over those to whom it has not come everywhere, and lets those go that have seen enough, or that nobody asks for any
    /// more: a task that has got what it waited for costs its primitives nothing.
    #[cold]
    pub(crate) fn poll_over(&mut self, poller: &Poller<'_>) {
        let Some(list) = &mut self.list else { return };
        let mut at = 0;
        while let Some(watch) = list.get_mut(at) {
            // One that panicked has not said that it has seen enough.
            let mut stays = watch.asked > 0;
            let came_to_all = std::mem::take(&mut watch.polled) >= watch.asked;
            if stays && (!came_to_all || poller.is_over()) {
                crate::panics::report("the end-of-poll watch of a primitive", || {
                    stays = watch.hook.poll_over(poller);
                });
            }
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
fn discard(watch: Watch) {
    crate::panics::report("the destructor of a primitive", || drop(watch));
}
