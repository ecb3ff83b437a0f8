//! The runtime's list of live tasks, by which shutdown reaches those that nobody will wake.
//!
//! Each worker has a shelf of slots for the tasks that it spawns, and fills and empties it without a locked
//! instruction. A slot whose task ends elsewhere is given back on a stack, which the shelf's owner takes as a
//! whole when it needs slots. Tasks spawned from outside the workers share one more shelf, behind a lock.
//!
//! | a slot is | its task | it stands |
//! |---|---|---|
//! | free | null | in the owner's list, or on the stack |
//! | taken | the task, whose reference is the list's | nowhere; its task's header knows it |
//!
//! Slots are never freed before the runtime, so a shelf keeps the room for the most tasks that it has had.

use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::header::{Header, Task};
use crate::lock::Lock;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Slots that a shelf is given at a time, at first and at most: twice as many each time.
const FIRST: usize = if cfg!(wakerun_loom) { 1 } else { 32 };
const MOST: usize = 1024;

/// The place of one task.
pub(crate) struct Slot {
    task: AtomicPtr<Header>,
    /// The next free slot of whichever list this one stands in.
    next: AtomicPtr<Slot>,
}

/// Slots that were made together.
struct Chunk {
    slots: Box<[Slot]>,
    before: *mut Chunk,
}

/// What others than its owner see of a shelf.
struct Shelf {
    /// Slots whose tasks ended elsewhere.
    returned: AtomicPtr<Slot>,
    /// All slots; the owner adds to them.
    chunks: AtomicPtr<Chunk>,
    /// Tasks that were put here, and tasks that the owner has seen to their end; written by the owner only.
    listed: AtomicUsize,
    ended: AtomicUsize,
}

// SAFETY: the pointers stand for slots and chunks, which are made of atomics and live as long as the shelf, and for
// counted references to tasks, which are `Send` and `Sync`.
unsafe impl Send for Shelf {}
// SAFETY: as above.
unsafe impl Sync for Shelf {}

/// The owner's side of a shelf: a worker's, used by its thread only.
pub(crate) struct Owner {
    index: usize,
    shelves: Arc<[CachePadded<Shelf>]>,
    /// A list of free slots.
    free: Cell<*mut Slot>,
}

// SAFETY: whoever has it is the owner; the free slots are nobody else's.
unsafe impl Send for Owner {}

/// All shelves: those of the workers, and behind them the one for tasks from outside.
pub(crate) struct OwnedTasks {
    shelves: Arc<[CachePadded<Shelf>]>,
    outside: Lock<Outside>,
}

struct Outside {
    owner: Owner,
    closed: bool,
}

impl Shelf {
    fn new() -> Self {
        Self {
            returned: AtomicPtr::new(null_mut()),
            chunks: AtomicPtr::new(null_mut()),
            listed: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// Calls `f` with each slot.
    fn each_slot(&self, mut f: impl FnMut(&Slot)) {
        // Acquire pairs with the Release in `grow`.
        let mut at = self.chunks.load(Ordering::Acquire);
        // SAFETY: chunks are made by `grow`, and live as long as the shelf.
        while let Some(chunk) = unsafe { at.as_ref() } {
            chunk.slots.iter().for_each(&mut f);
            at = chunk.before;
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let mut at = self.chunks.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: made by `Box::into_raw` in `grow`, and nobody else is left.
            let chunk = unsafe { Box::from_raw(at) };
            at = chunk.before;
        }
    }
}

/// One more; for counts that one thread writes.
#[inline]
fn add_one(count: &AtomicUsize) {
    // Relaxed: read for a snapshot only.
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Owner {
    fn shelf(&self) -> &Shelf {
        &self.shelves[self.index]
    }

    /// Takes over the list's reference of a new task, which has not been queued yet.
    #[inline]
    pub(crate) fn insert(&self, task: &Task) {
        let header = task.header();
        let slot = match NonNull::new(self.free.get()) {
            Some(slot) => slot,
            None => self.find_free(),
        };
        // SAFETY: slots live as long as the shelf.
        let free = unsafe { slot.as_ref() };
        self.free.set(free.next.load(Ordering::Relaxed));
        // Relaxed, here and below: who ends the task got it through a queue, and shutdown comes after the workers.
        free.task.store(task.as_ptr().as_ptr(), Ordering::Relaxed);
        header.slot.store(slot.as_ptr(), Ordering::Relaxed);
        header.shelf.store(self.index as u32, Ordering::Relaxed);
        add_one(&self.shelf().listed);
    }

    /// Takes a task out that this owner's thread has seen to its end. The list's reference is the caller's now.
    #[inline]
    pub(crate) fn remove(&self, task: &Task) {
        let header = task.header();
        let slot = header.slot.load(Ordering::Relaxed);
        let shelf = header.shelf.load(Ordering::Relaxed) as usize;
        // SAFETY: a task that has not ended is listed, and its shelf lives as long as the runtime.
        let taken = unsafe { &*slot };
        taken.task.store(null_mut(), Ordering::Relaxed);
        if shelf == self.index {
            taken.next.store(self.free.get(), Ordering::Relaxed);
            self.free.set(slot);
        } else {
            give_back(&self.shelves[shelf], slot);
        }
        add_one(&self.shelf().ended);
    }

    /// A free slot, from those that were given back, or a new one. The list behind it becomes the owner's.
    #[cold]
    #[inline(never)]
    fn find_free(&self) -> NonNull<Slot> {
        // Acquire pairs with the Release in `give_back`.
        let returned = self.shelf().returned.swap(null_mut(), Ordering::Acquire);
        NonNull::new(returned).unwrap_or_else(|| self.grow())
    }

    /// Makes more slots: a list of them.
    fn grow(&self) -> NonNull<Slot> {
        let before = self.shelf().chunks.load(Ordering::Relaxed);
        // SAFETY: chunks live as long as the shelf.
        let last = unsafe { before.as_ref() };
        let count = last.map_or(FIRST, |chunk| (2 * chunk.slots.len()).min(MOST));
        let free = || Slot {
            task: AtomicPtr::new(null_mut()),
            next: AtomicPtr::new(null_mut()),
        };
        let slots: Box<[Slot]> = (0..count).map(|_| free()).collect();
        let chunk = Box::into_raw(Box::new(Chunk { slots, before }));
        // SAFETY: made just now; shared from here on.
        let slots = unsafe { &(*chunk).slots };
        for pair in slots.windows(2) {
            let next = (&raw const pair[1]).cast_mut();
            pair[0].next.store(next, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `each_slot`.
        self.shelf().chunks.store(chunk, Ordering::Release);
        NonNull::from(&slots[0])
    }
}

/// Gives a free slot back to the owner of its shelf.
fn give_back(shelf: &Shelf, slot: *mut Slot) {
    let mut top = shelf.returned.load(Ordering::Relaxed);
    loop {
        // SAFETY: slots live as long as the shelf.
        unsafe { &*slot }.next.store(top, Ordering::Relaxed);
        // Release: the owner that takes the stack sees the slot free. It takes all, so no slot that is on it can
        // come back between the look and the exchange.
        let put =
            shelf
                .returned
                .compare_exchange_weak(top, slot, Ordering::Release, Ordering::Relaxed);
        match put {
            Ok(_) => return,
            Err(now) => top = now,
        }
    }
}

impl OwnedTasks {
    /// Shelves for so many workers, and their owners' sides.
    pub(crate) fn new(workers: usize) -> (Self, Vec<Owner>) {
        let shelves: Arc<[_]> = (0..=workers)
            .map(|_| CachePadded::new(Shelf::new()))
            .collect();
        let owner = |index| Owner {
            index,
            shelves: Arc::clone(&shelves),
            free: Cell::new(null_mut()),
        };
        let outside = Lock::new(Outside {
            owner: owner(workers),
            closed: false,
        });
        let owners = (0..workers).map(owner).collect();
        (Self { shelves, outside }, owners)
    }

    /// Takes over the list's reference of a new task; from any thread. `false`: the list is closed, the reference
    /// stays the caller's.
    pub(crate) fn insert(&self, task: &Task) -> bool {
        let outside = self.outside.lock();
        if !outside.closed {
            outside.owner.insert(task);
        }
        !outside.closed
    }

    /// Takes a task out that was inserted by [`insert`](Self::insert) and has ended on any thread. `true`: it was
    /// there, and the list's reference is the caller's now.
    pub(crate) fn remove(&self, task: &Task) -> bool {
        let outside = self.outside.lock();
        // SAFETY: it was inserted, and slots live as long as the shelf.
        let slot = unsafe { &*task.header().slot.load(Ordering::Relaxed) };
        let listed = !slot.task.load(Ordering::Relaxed).is_null();
        if listed {
            outside.owner.remove(task);
        }
        listed
    }

    /// Refuses further tasks from outside. Workers look whether the runtime has been shut down.
    pub(crate) fn close(&self) {
        self.outside.lock().closed = true;
    }

    /// Takes all tasks out, with the list's references, and calls `f` with each, under no lock. Only when the list
    /// is closed and all workers have left.
    pub(crate) fn drain(&self, mut f: impl FnMut(Task)) {
        for (index, shelf) in self.shelves.iter().enumerate() {
            shelf.each_slot(|slot| {
                // The workers have left, but threads that block may end tasks of the shelf for those from outside.
                let outside = (index + 1 == self.shelves.len()).then(|| self.outside.lock());
                let task = slot.task.load(Ordering::Relaxed);
                slot.task.store(null_mut(), Ordering::Relaxed);
                if !task.is_null() {
                    add_one(&shelf.ended);
                }
                drop(outside);
                if let Some(task) = NonNull::new(task) {
                    // SAFETY: the list's reference moves to the caller.
                    f(unsafe { Task::from_raw(task) });
                }
            });
        }
    }

    /// How many tasks are alive; a snapshot.
    pub(crate) fn len(&self) -> usize {
        let sum = |count: fn(&Shelf) -> &AtomicUsize| {
            let each = self.shelves.iter().map(|shelf| count(shelf));
            each.fold(0_usize, |sum, count| {
                sum.wrapping_add(count.load(Ordering::Acquire))
            })
        };
        // Ends first, so that none is counted whose beginning is not.
        let ended = sum(|shelf| &shelf.ended);
        sum(|shelf| &shelf.listed).wrapping_sub(ended)
    }
}
