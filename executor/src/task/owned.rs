//! The runtime's list of live tasks, by which shutdown reaches those that nobody will wake.

use std::ptr::NonNull;

use super::header::{Header, Task};
use crate::lock::Lock;

/// An intrusive list in shards, so that workers that spawn and finish tasks seldom meet.
pub(crate) struct OwnedTasks {
    shards: Box<[Lock<Shard>]>,
}

#[derive(Default)]
struct Shard {
    head: Option<NonNull<Header>>,
    closed: bool,
    count: usize,
}

// SAFETY: the pointers stand for counted references to tasks, which are `Send`.
unsafe impl Send for Shard {}

impl OwnedTasks {
    /// A list with at least `shards` shards.
    pub(crate) fn new(shards: usize) -> Self {
        let shards = shards.max(1);
        Self {
            shards: (0..shards).map(|_| Lock::new(Shard::default())).collect(),
        }
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Takes over the list's reference of a new task. `false`: the list is closed, the reference
    /// stays the caller's.
    pub(crate) fn insert(&self, task: &Task) -> bool {
        let header = task.as_ptr();
        let mut shard = self.shards[task.header().shard].lock();
        if shard.closed {
            return false;
        }
        let next = shard.head.replace(header);
        shard.count += 1;
        task.header().links.with_mut(|links| {
            // SAFETY: the links of a shard's tasks are guarded by its lock, held here.
            let links = unsafe { &mut *links };
            links.linked = true;
            links.prev = None;
            links.next = next;
        });
        if let Some(next) = next {
            // SAFETY: a linked task is kept by the list's reference.
            let next = unsafe { next.as_ref() };
            // SAFETY: the shard's lock is held.
            next.links
                .with_mut(|links| unsafe { (*links).prev = Some(header) });
        }
        true
    }

    /// Takes a task out. `true`: it was there, and the list's reference is the caller's now.
    pub(crate) fn remove(&self, task: &Task) -> bool {
        let mut shard = self.shards[task.header().shard].lock();
        Self::unlink(&mut shard, task.header())
    }

    fn unlink(shard: &mut Shard, header: &Header) -> bool {
        let (prev, next) = match header.links.with_mut(|links| {
            // SAFETY: the shard's lock is held.
            let links = unsafe { &mut *links };
            std::mem::take(&mut links.linked).then(|| (links.prev.take(), links.next.take()))
        }) {
            Some(neighbours) => neighbours,
            None => return false,
        };
        shard.count -= 1;
        match prev {
            None => shard.head = next,
            Some(prev) => {
                // SAFETY: a linked task is kept by the list's reference.
                let prev = unsafe { prev.as_ref() };
                // SAFETY: the shard's lock is held.
                prev.links.with_mut(|links| unsafe { (*links).next = next });
            }
        }
        if let Some(next) = next {
            // SAFETY: as above.
            let next = unsafe { next.as_ref() };
            // SAFETY: the shard's lock is held.
            next.links.with_mut(|links| unsafe { (*links).prev = prev });
        }
        true
    }

    /// Refuses further tasks.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            shard.lock().closed = true;
        }
    }

    /// Takes any task out, with the list's reference.
    pub(crate) fn pop(&self) -> Option<Task> {
        self.shards.iter().find_map(|shard| {
            let mut shard = shard.lock();
            let header = shard.head?;
            // SAFETY: a linked task is kept by the list's reference.
            Self::unlink(&mut shard, unsafe { header.as_ref() });
            // SAFETY: the list's reference moves to the caller.
            Some(unsafe { Task::from_raw(header) })
        })
    }

    /// How many tasks are alive; a snapshot.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().count).sum()
    }
}
