//! A timer's node, which lives in the future that waits for it.
//!
//! | state | linked in the wheel | the node belongs to | who leads out of it |
//! |---|---|---|---|
//! | IDLE | no | the future | the future: `insert`, to WAITING |
//! | WAITING | yes | whoever has the timers' lock | the future: `remove`, to IDLE; the driver: FIRED, CLOSED |
//! | FIRED | no | the future | the future: `rewind`, to IDLE |
//! | CLOSED | no | the future | nobody: the runtime is gone |
//!
//! Every change out of or into WAITING is made under the lock. The driver's is its last touch of the
//! node, by a Release store that pairs with the Acquire load in [`Entry::state`]: a future that sees
//! FIRED may be freed at once, without the lock. A future that sees WAITING takes the lock and looks
//! again. All nine pairs of concurrent operations (insert, remove, re-arm of the future against fire,
//! close and each other's lists) come down to who has the lock first.
//!
//! The waker is replaced under the lock, too, and leaves the node before the state does: with the one
//! who fires, who wakes it, or with the future, which drops it; both when the lock has been given
//! back.

use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::task::Waker;

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, Ordering};

const IDLE: u32 = 0;
const WAITING: u32 = 1;
const FIRED: u32 = 2;
const CLOSED: u32 = 3;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Idle,
    Waiting,
    Fired,
    Closed,
}

pub(crate) struct Entry {
    state: AtomicU32,
    node: UnsafeCell<Node>,
    /// Others hold its address.
    _pinned: PhantomPinned,
}

/// What the lock guards while the entry is WAITING.
pub(super) struct Node {
    pub(super) previous: Option<NonNull<Entry>>,
    pub(super) next: Option<NonNull<Entry>>,
    /// When it is due, in ticks.
    pub(super) when: u64,
    /// The list it stands in.
    pub(super) slot: usize,
    pub(super) waker: Option<Waker>,
}

// SAFETY: the node is touched by whoever the table names, one thread at a time; its waker is Send,
// and its pointers are to entries under the same rule.
unsafe impl Send for Entry {}
// SAFETY: as above; a shared reference gives access to the state alone.
unsafe impl Sync for Entry {}

impl Entry {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(IDLE),
            node: UnsafeCell::new(Node {
                previous: None,
                next: None,
                when: 0,
                slot: 0,
                waker: None,
            }),
            _pinned: PhantomPinned,
        }
    }

    /// Where the entry stands; if WAITING and without the lock, where it stood a moment ago.
    #[inline]
    pub(crate) fn state(&self) -> State {
        // Acquire pairs with the Release in `set`: the one who set it is done with the node.
        match self.state.load(Ordering::Acquire) {
            IDLE => State::Idle,
            WAITING => State::Waiting,
            FIRED => State::Fired,
            _ => State::Closed,
        }
    }

    /// A transition; the caller owns the node by the table. Its last touch if it gives it away.
    #[inline]
    pub(super) fn set(&self, state: State) {
        let state = match state {
            State::Idle => IDLE,
            State::Waiting => WAITING,
            State::Fired => FIRED,
            State::Closed => CLOSED,
        };
        self.state.store(state, Ordering::Release);
    }

    /// The future starts again: FIRED to IDLE.
    pub(crate) fn rewind(&self) {
        if self.state() == State::Fired {
            self.set(State::Idle);
        }
    }

    /// The future has found the time to be over by itself: IDLE to FIRED.
    pub(crate) fn finish(&self) {
        debug_assert_eq!(self.state(), State::Idle);
        self.set(State::Fired);
    }

    /// Access to the node.
    ///
    /// # Safety
    /// The caller owns it by the table, and lets go of the reference before the next access.
    #[inline]
    pub(super) unsafe fn with_node<R>(&self, f: impl FnOnce(&mut Node) -> R) -> R {
        self.node.with_mut(|node| {
            // SAFETY: alone, says the caller.
            f(unsafe { &mut *node })
        })
    }
}

/// The model sees accesses, but not that memory is freed: make it one.
#[cfg(all(test, wakerun_loom))]
impl Drop for Entry {
    fn drop(&mut self) {
        self.node.with_mut(|_| ());
    }
}
