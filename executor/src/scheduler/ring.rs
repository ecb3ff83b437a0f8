//! The queue of a worker's tasks: its owner pushes and pops, others steal from the same end that it pops from.
//!
//! `tail` is the owner's; `head` moves by exchanges, or by a plain store of an owner that is known to be
//! [alone](super::phase). Both are positions that only grow; a slot is a position modulo the size.
//!
//! **A thief copies first and then moves the head** over what it has copied. That the exchange succeeds proves that
//! the head has stood still meanwhile, and the owner overwrites no slot between head and tail. If it fails, what was
//! copied is nobody's and is forgotten.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::task::header::{Header, Task};

/// Tasks that a ring holds; more go to the injector. A power of two.
pub(crate) const RING: usize = if cfg!(wakerun_loom) { 4 } else { 1024 };

/// What owner and thieves share. A thief must have leave to come: [`Phase::visit`](super::phase::Phase::visit).
pub(crate) struct Stealer(Arc<Slots>);

/// The owner's end. Its thread alone calls it.
pub(crate) struct Ring(Arc<Slots>, PhantomData<Cell<()>>);

struct Slots {
    head: CachePadded<AtomicUsize>,
    /// Written by the owner only.
    tail: CachePadded<AtomicUsize>,
    tasks: [AtomicPtr<Header>; RING],
}

impl Slots {
    fn at(&self, position: usize) -> &AtomicPtr<Header> {
        &self.tasks[position % RING]
    }

    /// Reads the task at a position.
    ///
    /// Relaxed: the tail's Release made the slot visible to whoever saw the position below the tail, and the head's
    /// exchange tells whether it is still that task.
    fn get(&self, position: usize) -> *mut Header {
        self.at(position).load(Ordering::Relaxed)
    }
}

/// # Safety
/// `task` was put into a slot, and the head has been moved over it by the caller, once.
#[inline]
unsafe fn own(task: *mut Header) -> Task {
    // The compiler is told, as callers make an option of it.
    // SAFETY: slots below the tail hold what `push` put there, which is never null.
    unsafe { std::hint::assert_unchecked(!task.is_null()) };
    // SAFETY: as above.
    let task = unsafe { NonNull::new_unchecked(task) };
    // SAFETY: the slot's reference was counted when the task was put in, and is the caller's now.
    unsafe { Task::from_raw(task) }
}

impl Ring {
    /// An empty ring.
    pub(crate) fn new() -> Self {
        Self(
            Arc::new(Slots {
                head: CachePadded::new(AtomicUsize::new(0)),
                tail: CachePadded::new(AtomicUsize::new(0)),
                tasks: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            }),
            PhantomData,
        )
    }

    /// The other end.
    pub(crate) fn stealer(&self) -> Stealer {
        Stealer(Arc::clone(&self.0))
    }

    /// The owner's own position: no other thread writes it.
    #[inline]
    fn tail(&self) -> usize {
        self.0.tail.load(Ordering::Relaxed)
    }

    /// How many tasks are queued; thieves may make them less meanwhile.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail()
            .wrapping_sub(self.0.head.load(Ordering::Relaxed))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// For how many tasks there is room; thieves may make it more meanwhile.
    ///
    /// Acquire pairs with the thief's exchange of the head: it has read the slots that are written next.
    #[inline]
    pub(crate) fn spare(&self) -> usize {
        let head = self.0.head.load(Ordering::Acquire);
        RING - self.tail().wrapping_sub(head)
    }

    /// Adds a task. It comes back if the ring is full.
    #[inline]
    pub(crate) fn push(&self, task: Task) -> Result<(), Task> {
        let tail = self.tail();
        // Acquire as in `spare`.
        if tail.wrapping_sub(self.0.head.load(Ordering::Acquire)) == RING {
            return Err(task);
        }
        self.put(tail, task);
        self.publish(tail.wrapping_add(1));
        Ok(())
    }

    /// Adds tasks with one store, as many as there is room for; the iterator is asked for no more.
    #[inline]
    pub(crate) fn extend(&self, tasks: impl Iterator<Item = Task>) {
        let tail = self.tail();
        let mut end = tail;
        for task in tasks.take(self.spare()) {
            self.put(end, task);
            end = end.wrapping_add(1);
        }
        if end != tail {
            self.publish(end);
        }
    }

    #[inline]
    fn put(&self, position: usize, task: Task) {
        let task = task.into_raw().as_ptr();
        self.0.at(position).store(task, Ordering::Relaxed);
    }

    /// Release pairs with the Acquire of the thief's look at the tail.
    #[inline]
    fn publish(&self, tail: usize) {
        self.0.tail.store(tail, Ordering::Release);
    }

    /// Takes the oldest task. `alone`: no thief can come, as [`Turns::alone`](super::phase::Turns::alone) says.
    #[inline]
    pub(crate) fn pop(&self, alone: bool) -> Option<Task> {
        let mut head = self.0.head.load(Ordering::Relaxed);
        loop {
            if head == self.tail() {
                return None;
            }
            let task = self.0.get(head);
            let next = head.wrapping_add(1);
            if alone {
                self.0.head.store(next, Ordering::Release);
            } else if let Err(now) =
                self.0
                    .head
                    .compare_exchange_weak(head, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                head = now;
                continue;
            }
            // SAFETY: this thread has moved the head over it.
            return Some(unsafe { own(task) });
        }
    }

    /// Takes the older half out, to make room; at any time.
    pub(crate) fn halve(&self) -> impl Iterator<Item = Task> + '_ {
        let mut head = self.0.head.load(Ordering::Relaxed);
        let half = loop {
            let half = self.tail().wrapping_sub(head) / 2;
            match self.0.head.compare_exchange_weak(
                head,
                head.wrapping_add(half),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break half,
                Err(now) => head = now,
            }
        };
        // Read at once: what the caller does with a task may push others into the slots.
        let tasks: Vec<_> = (0..half)
            .map(|n| self.0.get(head.wrapping_add(n)))
            .collect();
        // SAFETY: this thread has moved the head over them, and each comes once.
        tasks.into_iter().map(|task| unsafe { own(task) })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while let Some(task) = self.pop(false) {
            drop(task);
        }
    }
}

impl Stealer {
    /// Whether there is nothing to steal; a hint.
    pub(crate) fn is_empty(&self) -> bool {
        let tail = self.0.tail.load(Ordering::Relaxed);
        tail == self.0.head.load(Ordering::Relaxed)
    }

    /// Moves as many of the queued tasks as `share` says into the thief's own ring, with one store there; how many
    /// that were.
    pub(crate) fn steal(&self, to: &Ring, share: impl Fn(usize) -> usize) -> usize {
        // Acquire here and in the exchange: pairs with the owner's plain stores of the head.
        let mut head = self.0.head.load(Ordering::Acquire);
        loop {
            // Acquire pairs with `publish`.
            let queued = self.0.tail.load(Ordering::Acquire).wrapping_sub(head);
            if queued > RING {
                // The head is older than the tail.
                head = self.0.head.load(Ordering::Acquire);
                continue;
            }
            let count = share(queued).min(queued).min(to.spare());
            if count == 0 {
                return 0;
            }
            let tail = to.tail();
            for n in 0..count {
                let task = self.0.get(head.wrapping_add(n));
                to.0.at(tail.wrapping_add(n)).store(task, Ordering::Relaxed);
            }
            // Release: the owner that sees the head moved may write the slots, which have been read.
            match self.0.head.compare_exchange(
                head,
                head.wrapping_add(count),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    to.publish(tail.wrapping_add(count));
                    return count;
                }
                Err(now) => head = now,
            }
        }
    }
}
