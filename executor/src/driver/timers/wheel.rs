//! A hierarchical timing wheel: insert, remove and fire in constant time.
//!
//! Levels of 64 slots. A slot of level 0 is one tick, of level n as much as all of level n − 1. There are as many as
//! it takes for every tick to have its place, so that time comes from entry to entry in a few steps, however far that
//! is. An entry stands on the lowest level on which its slot is not the one that `elapsed` is in; so every entry of a
//! level is due before every entry of the next. When time comes to a slot of a higher level, its entries move down.
//!
//! A slot may hold a million entries. So it is emptied in steps, between which the lock can be given
//! back: `elapsed` is set to the slot's start first, and from then on nothing is inserted into that
//! slot, since it is the one that `elapsed` is in. `open` remembers it.

use std::ptr::NonNull;
use std::task::Waker;

use super::entry::{Entry, State};

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = u64::BITS.div_ceil(SLOT_BITS) as usize;

pub(super) struct Wheel {
    /// Everything that is due by this tick has fired.
    elapsed: u64,
    /// A bit for each slot that is not empty.
    occupied: [u64; LEVELS],
    /// All levels' slots, one after the other.
    slots: Box<[List]>,
    /// The slot that is being emptied.
    open: Option<usize>,
}

// SAFETY: the pointers are to entries, which may be touched by any thread that has the wheel.
unsafe impl Send for Wheel {}

/// What a step has done.
pub(super) enum Step {
    /// An entry has fired; its waker, if it had one.
    Fired(Option<Waker>),
    /// An entry or the time has moved on.
    Moved,
    /// Nothing is due.
    Done,
}

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            elapsed: 0,
            occupied: [0; LEVELS],
            slots: (0..LEVELS * SLOTS).map(|_| List::default()).collect(),
            open: None,
        }
    }

    /// Links an entry that is due at `when`. `false`: it is due already and has not been linked.
    ///
    /// # Safety
    /// The caller owns its node, and gives it to the lock: the entry stays in place until it has been
    /// removed or has left WAITING.
    pub(super) unsafe fn insert(&mut self, entry: &Entry, when: u64) -> bool {
        if when <= self.elapsed {
            return false;
        }
        // SAFETY: owned, says the caller.
        unsafe { entry.with_node(|node| node.when = when) };
        // SAFETY: as above, and not linked.
        unsafe { self.link(entry, when) };
        entry.set(State::Waiting);
        true
    }

    /// Unlinks an entry that is WAITING, and gives its waker out.
    ///
    /// # Safety
    /// It is linked in this wheel.
    pub(super) unsafe fn remove(&mut self, entry: &Entry) -> Option<Waker> {
        // SAFETY: WAITING and we have the lock, so the node is ours.
        let (slot, waker) = unsafe { entry.with_node(|node| (node.slot, node.waker.take())) };
        // SAFETY: it stands in that list.
        unsafe { self.slots[slot].unlink(entry) };
        self.note_if_empty(slot);
        entry.set(State::Idle);
        waker
    }

    /// Does one step of what is due at `now`.
    pub(super) fn step(&mut self, now: u64) -> Step {
        let Some(slot) = self.open else {
            return match self.next_slot() {
                Some((slot, start)) if start <= now => {
                    self.elapsed = start;
                    self.open = Some(slot);
                    Step::Moved
                }
                _ => {
                    // Nothing starts before `now`, so each entry's place is right for it, too.
                    self.elapsed = self.elapsed.max(now);
                    Step::Done
                }
            };
        };
        let Some(entry) = self.slots[slot].pop() else {
            self.open = None;
            self.note_if_empty(slot);
            return Step::Moved;
        };
        // SAFETY: entries in a list are alive: they are unlinked before they go.
        let entry = unsafe { entry.as_ref() };
        // SAFETY: WAITING and we have the lock.
        let when = unsafe { entry.with_node(|node| node.when) };
        if when <= self.elapsed {
            return Step::Fired(leave(entry, State::Fired));
        }
        // SAFETY: popped, so ours and not linked.
        unsafe { self.link(entry, when) };
        Step::Moved
    }

    /// Takes any entry out for good.
    pub(super) fn close_one(&mut self) -> Option<Option<Waker>> {
        self.open = None;
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
        let entry = self.slots[slot].pop();
        self.note_if_empty(slot);
        let Some(entry) = entry else {
            return Some(None);
        };
        // SAFETY: as in `step`.
        Some(leave(unsafe { entry.as_ref() }, State::Closed))
    }

    /// The tick by which the next step is to be made; no entry is due before.
    pub(super) fn next(&self) -> Option<u64> {
        match self.open {
            Some(_) => Some(self.elapsed),
            None => self.next_slot().map(|(_, start)| start),
        }
    }

    /// The first slot that is not empty, and its start.
    fn next_slot(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|bits| *bits != 0)?;
        let shift = SLOT_BITS * level as u32;
        let index = self.occupied[level].trailing_zeros();
        // What is not empty comes after the slot that `elapsed` is in, and in the same slot of the level above.
        let first = (self.elapsed >> shift) & !(SLOTS as u64 - 1);
        let start = (first + u64::from(index)) << shift;
        Some((level * SLOTS + index as usize, start))
    }

    /// # Safety
    /// The entry's node is ours, it is not linked, and it is due after `elapsed`.
    unsafe fn link(&mut self, entry: &Entry, when: u64) {
        let differ = (when ^ self.elapsed) | 1;
        let level = ((63 - differ.leading_zeros()) / SLOT_BITS) as usize;
        let index = (when >> (SLOT_BITS * level as u32)) as usize % SLOTS;
        let slot = level * SLOTS + index;
        self.occupied[level] |= 1 << index;
        // SAFETY: ours and not linked, says the caller.
        unsafe { entry.with_node(|node| node.slot = slot) };
        // SAFETY: as above.
        unsafe { self.slots[slot].push(entry) };
    }

    fn note_if_empty(&mut self, slot: usize) {
        if self.slots[slot].head.is_none() {
            self.occupied[slot / SLOTS] &= !(1 << (slot % SLOTS));
        }
    }
}

/// Gives an entry that has been popped back to its future: the last touch.
fn leave(entry: &Entry, state: State) -> Option<Waker> {
    // SAFETY: WAITING and the caller has the lock.
    let waker = unsafe { entry.with_node(|node| node.waker.take()) };
    entry.set(state);
    waker
}

/// Entries linked both ways, first in first out.
#[derive(Default)]
struct List {
    head: Option<NonNull<Entry>>,
    tail: Option<NonNull<Entry>>,
}

impl List {
    /// # Safety
    /// The entry's node is the caller's, and it is in no list; it stays in place until it is out.
    unsafe fn push(&mut self, entry: &Entry) {
        let this = NonNull::from(entry);
        let before = self.tail.replace(this);
        // SAFETY: the caller's.
        unsafe {
            entry.with_node(|node| {
                node.previous = before;
                node.next = None;
            });
        }
        match before {
            None => self.head = Some(this),
            // SAFETY: in this list, so alive and its node ours with the lock.
            Some(before) => unsafe { set_next(before, Some(this)) },
        }
    }

    fn pop(&mut self) -> Option<NonNull<Entry>> {
        let first = self.head?;
        // SAFETY: in this list, so alive.
        let entry = unsafe { first.as_ref() };
        // SAFETY: in this list.
        unsafe { self.unlink(entry) };
        Some(first)
    }

    /// # Safety
    /// The entry is in this list.
    unsafe fn unlink(&mut self, entry: &Entry) {
        // SAFETY: in this list, so its node is ours with the lock.
        let (previous, next) =
            unsafe { entry.with_node(|node| (node.previous.take(), node.next.take())) };
        match previous {
            None => self.head = next,
            // SAFETY: in this list, too.
            Some(previous) => unsafe { set_next(previous, next) },
        }
        match next {
            None => self.tail = previous,
            // SAFETY: in this list, too.
            Some(next) => unsafe { set_previous(next, previous) },
        }
    }
}

/// # Safety
/// The entry is alive and its node is the caller's.
unsafe fn set_next(entry: NonNull<Entry>, next: Option<NonNull<Entry>>) {
    // SAFETY: alive.
    let entry = unsafe { entry.as_ref() };
    // SAFETY: the caller's.
    unsafe { entry.with_node(|node| node.next = next) };
}

/// # Safety
/// As [`set_next`].
unsafe fn set_previous(entry: NonNull<Entry>, previous: Option<NonNull<Entry>>) {
    // SAFETY: alive.
    let entry = unsafe { entry.as_ref() };
    // SAFETY: the caller's.
    unsafe { entry.with_node(|node| node.previous = previous) };
}
