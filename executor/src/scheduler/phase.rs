//! Whether a worker is inside a poll, and whether somebody takes from its queues: what lets it take its own
//! tasks without an exchange.
//!
//! A queue that others may steal from costs its owner a locked instruction for each task taken, though it is
//! seldom stolen from. Here thieves come only while the owner is inside a poll, when it takes nothing, and
//! announce themselves; the owner, which makes a full fence at the end of its poll anyway, looks whether there
//! is one.
//!
//! | owner, at the end of a poll | thief |
//! |---|---|
//! | 1 `polls` becomes even | 1 `thieves` + 1 |
//! | 2 a full fence | 2 a full fence |
//! | 3 `thieves` is 0: take without an exchange; else with one | 3 `polls` is odd: steal, with exchanges; else leave |
//! | | 4 `thieves` − 1 |
//!
//! By the fences at least one of the two sees the other. A thief that sees a *later* odd number than that of the
//! poll which is over is no danger: whatever the owner took without an exchange is behind it by then, and the end
//! of that later poll is ordered against the thief in the same way.
//!
//! The owner's fence is the locked instruction by which the task goes idle, or an exchange of `polls` itself where
//! there is none, as where the task is queued again. A lone worker has no thieves, and needs none of that.
//!
//! Wakers of others and destructors of primitives that the worker runs between two polls may take long, and what is
//! queued must not wait for them: each counts as a poll ([`Worker::foreign`](super::Worker::foreign)).
//!
//! The model is in `loom_tests.rs`.

use crate::sync::atomic::{AtomicU32, Ordering, fence};
use crate::sync::{fence_after_locked, spin_loop};

/// Looks of a thief at an owner that is between two polls: a few hundred nanoseconds, in which one whose polls are
/// short begins the next.
const PATIENCE: u32 = if cfg!(wakerun_loom) { 1 } else { 16 };

#[derive(Debug)]
pub(crate) struct Phase {
    /// Beginnings and ends of polls: odd inside one. Written by the owner only.
    polls: AtomicU32,
    thieves: AtomicU32,
}

/// Leave to take from the queues of a worker that is inside a poll, or was when it was given.
#[must_use = "the thief has left as soon as this is dropped"]
pub(crate) struct Visit<'a>(&'a Phase);

impl Phase {
    pub(crate) fn new() -> Self {
        Self {
            polls: AtomicU32::new(0),
            thieves: AtomicU32::new(0),
        }
    }

    /// How often a poll has begun or ended, modulo 2³². Relaxed: a look that comes early sees less, and the next
    /// look makes up for it.
    pub(crate) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Whether the owner, who asks, is inside a poll.
    #[inline]
    pub(crate) fn is_in_poll(&self) -> bool {
        self.polls() % 2 == 1
    }

    /// The owner begins or ends a poll.
    #[inline]
    fn advance(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        // Release pairs with the Acquire in `visit`: a thief that sees a poll sees what was taken before it.
        self.polls.store(polls.wrapping_add(1), Ordering::Release);
    }

    /// As [`advance`](Self::advance), with a full fence behind it.
    #[inline]
    fn advance_and_fence(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.swap(polls.wrapping_add(1), Ordering::Release);
        fence_after_locked();
    }

    /// The owner makes a full fence: by an exchange, which costs less than the instruction for it.
    #[inline]
    pub(crate) fn fence(&self) {
        self.polls.swap(self.polls(), Ordering::Release);
        fence_after_locked();
    }

    /// Comes as a thief and stays, so that the owner takes no task any more without looking up.
    pub(crate) fn disturb(&self) {
        // Release pairs with the Acquire in `Turns::alone`: what the owner is to see.
        self.thieves.fetch_add(1, Ordering::Release);
    }

    /// A thief announces itself. `None`: the owner is not inside a poll, and nothing may be taken.
    pub(crate) fn visit(&self) -> Option<Visit<'_>> {
        self.thieves.fetch_add(1, Ordering::Relaxed);
        let visit = Visit(self);
        // Pairs with the owner's fence: the thief's second step.
        fence(Ordering::SeqCst);
        for _ in 0..PATIENCE {
            if self.polls.load(Ordering::Acquire) % 2 == 1 {
                return Some(visit);
            }
            spin_loop();
        }
        None
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire in `Turns::alone`: what was taken is gone from the queues.
        self.0.thieves.fetch_sub(1, Ordering::Release);
    }
}

/// The owner's side: only its thread calls it.
#[derive(Debug)]
pub(crate) struct Turns {
    /// There is no other worker.
    lone: bool,
}

impl Turns {
    /// For the owner; `lone`: it has no thieves.
    pub(crate) fn new(lone: bool) -> Self {
        Self { lone }
    }

    #[inline]
    pub(crate) fn begin(&self, phase: &Phase) {
        phase.advance();
    }

    /// The poll is over, with all foreign code that belongs to it, and `locked` executes a locked instruction.
    #[inline]
    pub(crate) fn end_by<R>(&self, phase: &Phase, locked: impl FnOnce() -> R) -> R {
        phase.advance();
        let result = locked();
        fence_after_locked();
        result
    }

    /// As [`end_by`](Self::end_by), where it is seen afterwards whether there was a locked instruction. `wanted`:
    /// somebody else needs the full fence, too.
    #[inline]
    pub(crate) fn end_perhaps_by(
        &self,
        phase: &Phase,
        wanted: bool,
        locked: impl FnOnce() -> bool,
    ) {
        phase.advance();
        if locked() {
            fence_after_locked();
        } else if !self.lone || wanted {
            phase.fence();
        }
    }

    /// As [`end_by`](Self::end_by), where no locked instruction comes by itself.
    #[inline]
    pub(crate) fn end(&self, phase: &Phase, wanted: bool) {
        if self.lone && !wanted {
            phase.advance();
        } else {
            phase.advance_and_fence();
        }
    }

    /// Whether tasks may be taken without an exchange, between two polls, until the next one begins or code of a task
    /// runs.
    #[inline]
    pub(crate) fn alone(&self, phase: &Phase) -> bool {
        // Acquire: see `Visit`.
        phase.thieves.load(Ordering::Acquire) == 0
    }
}
