//! The state word of a task: six flags and a count of references, changed by named transitions.
//!
//! | state | SCHEDULED | RUNNING | COMPLETE | who may touch the future | who pushes it to a queue |
//! |---|:-:|:-:|:-:|---|---|
//! | idle | 0 | 0 | 0 | nobody | the wake that sets SCHEDULED |
//! | queued | 1 | 0 | 0 | whoever takes it from its queue, or shutdown | it stands in exactly one queue, or its waker is about to put it there |
//! | polled | 0 | 1 | 0 | the poller | nobody |
//! | polled, woken | 1 | 1 | 0 | the poller | the poller, when the poll is over |
//! | done | any | 0 | 1 | nobody; the output belongs to the join handle | nobody: stale entries are dropped |
//!
//! `ABORT` asks for the future to be dropped at the next start; it is set together with SCHEDULED,
//! so that a poll in progress ends in a requeue and the next start sees it.
//!
//! The join waker's cell has one owner at a time:
//!
//! | JOIN_INTEREST | JOIN_WAKER | COMPLETE | who may touch the waker cell |
//! |:-:|:-:|:-:|---|
//! | 1 | 0 | any | the join handle, alone |
//! | 1 | 1 | 0 | nobody writes; the handle may read |
//! | 1 | 1 | 1 | the task that completed may read (to wake it) until it clears JOIN_WAKER |
//! | 0 | 0 | any | whoever cleared the last of the two flags, once, to drop the waker |
//!
//! A reference is held by: the runtime's list of tasks, a queue entry or the poll it turned into,
//! each waker, the join handle, each abort handle, and the *stock*, a store of references that only
//! the poller touches: clones of the waker made inside the task's own poll come from there, without
//! a locked instruction, and the reference of a finished poll goes back into it.

use crate::sync::atomic::{AtomicUsize, Ordering};

const SCHEDULED: usize = 1;
const RUNNING: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const ABORT: usize = 1 << 3;
const JOIN_INTEREST: usize = 1 << 4;
const JOIN_WAKER: usize = 1 << 5;
/// One reference; the count fills the rest of the word.
const REF_ONE: usize = 1 << 6;
/// Beyond this the count is taken for a leak in a loop, and the process ends before it can wrap.
const REF_LIMIT: usize = usize::MAX / 2;

/// References that a start takes along for the stock when it runs low: in the same instruction.
const STOCK_REFILL: usize = 8;
/// A stock above this is given back at the end of the poll: in the same instruction.
const STOCK_LIMIT: usize = 32;

/// What a waker has to do after its transition.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Put the task into a queue; a reference goes with it.
    Submit,
    /// Nothing: it is queued, or its poller will queue it, or it is done.
    Done,
    /// The last reference went with this wake: free the memory.
    Free,
}

/// What the thread that took a task out of a queue has to do.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Poll the future; the task is RUNNING.
    Poll,
    /// Drop the future instead; the task is RUNNING.
    Cancel,
    /// Shutdown or completion was faster: give the queue's reference back.
    Stale,
}

/// What the poller has to do after a poll that returned Pending.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing; the task may already run elsewhere.
    Idle,
    /// Woken while polled: queue it. Until then it is still the poller's.
    Requeue,
}

/// What the thread that completed a task has to do about the join handle.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// Nobody will ask: drop the output.
    DropOutput,
    /// The handle has yet to ask, or reads it on its own: nothing to do.
    Leave,
    /// Wake the waker in the cell, then call [`State::waker_used`].
    WakeJoin,
}

/// What a dropped join handle has to clean up.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HandleDropped {
    pub(crate) drop_output: bool,
    pub(crate) drop_waker: bool,
}

/// The state word and the stock.
#[derive(Debug)]
pub(crate) struct State {
    word: AtomicUsize,
    /// References counted in `word` that belong to the poller. Written by whoever holds RUNNING;
    /// an atomic only so that a start that loses against shutdown reads it without a data race.
    stock: AtomicUsize,
}

impl State {
    /// A new task: queued, with a join handle, and references for the handle, the queue entry and
    /// the runtime's list.
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(SCHEDULED | JOIN_INTEREST | (3 * REF_ONE)),
            stock: AtomicUsize::new(0),
        }
    }

    /// The one loop that changes the word: `next` gives the new word and an answer.
    #[inline(always)]
    fn update<R>(&self, mut next: impl FnMut(usize) -> (usize, R)) -> R {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let (new, answer) = next(now);
            // AcqRel: each transition hands over whatever the previous owner of the future, the
            // output or the waker cell wrote, and a wake that changes no flag still exchanges the
            // word, so that what was written before it is seen by the poll that follows.
            match self
                .word
                .compare_exchange_weak(now, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return answer,
                Err(found) => now = found,
            }
        }
    }

    /// A wake that gives its reference away.
    #[inline]
    pub(crate) fn wake_owned(&self) -> Wake {
        self.update(|now| {
            if now & (SCHEDULED | RUNNING | COMPLETE) == 0 {
                return (now | SCHEDULED, Wake::Submit);
            }
            let kept = (now - REF_ONE) | (SCHEDULED * usize::from(now & COMPLETE == 0));
            let answer = if kept < REF_ONE {
                Wake::Free
            } else {
                Wake::Done
            };
            (kept, answer)
        })
    }

    /// A wake that keeps its reference.
    #[inline]
    pub(crate) fn wake_by_ref(&self) -> Wake {
        self.update(|now| {
            if now & (SCHEDULED | RUNNING | COMPLETE) == 0 {
                ((now | SCHEDULED) + REF_ONE, Wake::Submit)
            } else if now & COMPLETE == 0 {
                (now | SCHEDULED, Wake::Done)
            } else {
                (now, Wake::Done)
            }
        })
    }

    /// Asks for the future to be dropped. Queues the task like a wake; keeps the reference.
    pub(crate) fn abort(&self) -> Wake {
        self.update(|now| {
            if now & COMPLETE != 0 {
                (now, Wake::Done)
            } else if now & (SCHEDULED | RUNNING) == 0 {
                ((now | SCHEDULED | ABORT) + REF_ONE, Wake::Submit)
            } else {
                (now | SCHEDULED | ABORT, Wake::Done)
            }
        })
    }

    /// A queue entry becomes a poll.
    #[inline]
    pub(crate) fn start(&self) -> Start {
        // Relaxed, and possibly stale when shutdown is at it too: then the exchange below refuses.
        let stock = self.stock.load(Ordering::Relaxed);
        let refill = if stock == 0 { STOCK_REFILL } else { 0 };
        let started = self.update(|now| {
            if now & (RUNNING | COMPLETE) != 0 {
                return (now, Start::Stale);
            }
            debug_assert!(now & SCHEDULED != 0, "a queued task lost its flag");
            let answer = if now & ABORT != 0 {
                Start::Cancel
            } else {
                Start::Poll
            };
            ((now - SCHEDULED + RUNNING) + refill * REF_ONE, answer)
        });
        if refill != 0 && started != Start::Stale {
            self.stock.store(refill, Ordering::Relaxed);
        }
        started
    }

    /// Shutdown takes a task that nobody polls, wherever it stands. `false`: it is polled or done.
    pub(crate) fn take_for_shutdown(&self) -> bool {
        self.update(|now| {
            if now & (RUNNING | COMPLETE) != 0 {
                (now, false)
            } else {
                (now | RUNNING, true)
            }
        })
    }

    /// A poll returned Pending; its reference goes into the stock, or along with the requeue.
    #[inline]
    pub(crate) fn end_pending(&self) -> End {
        let mut stock = self.stock.load(Ordering::Relaxed) + 1;
        let mut back = 0;
        if stock > STOCK_LIMIT {
            back = stock - STOCK_REFILL;
            stock = STOCK_REFILL;
        }
        self.stock.store(stock, Ordering::Relaxed);
        // Release hands the future and the stock to the next poller; Acquire sees what a waker
        // wrote that found the task RUNNING, should this thread poll it again.
        let before = self
            .word
            .fetch_sub(RUNNING + back * REF_ONE, Ordering::AcqRel);
        if before & SCHEDULED == 0 {
            return End::Idle;
        }
        // Queued in the word but in no queue: this thread still owns the task. The reference that
        // went into the stock comes out again, to go with the queue entry.
        self.stock.store(stock - 1, Ordering::Relaxed);
        End::Requeue
    }

    /// A poll returned Pending and has asked for another one: the task is queued, with the poll's
    /// reference, and still the poller's until it stands in the queue.
    #[inline]
    pub(crate) fn end_again(&self) {
        // The orderings are those of `end_pending`. A waker that found the task RUNNING has queued it
        // with this, too: one entry for both.
        self.update(|now| ((now - RUNNING) | SCHEDULED, ()));
    }

    /// The output is in place (or the future is gone): the task is done.
    pub(crate) fn complete(&self) -> Completed {
        // One addition clears RUNNING and sets COMPLETE.
        let before = self.word.fetch_add(COMPLETE - RUNNING, Ordering::AcqRel);
        debug_assert!(before & (RUNNING | COMPLETE) == RUNNING);
        if before & JOIN_INTEREST == 0 {
            Completed::DropOutput
        } else if before & JOIN_WAKER == 0 {
            Completed::Leave
        } else {
            Completed::WakeJoin
        }
    }

    /// The completed task has woken the join waker. `true`: the handle is gone meanwhile, and the
    /// caller drops the waker.
    pub(crate) fn waker_used(&self) -> bool {
        let before = self.word.fetch_and(!JOIN_WAKER, Ordering::AcqRel);
        before & JOIN_INTEREST == 0
    }

    /// Gives `count` references and the whole stock back. `true`: free the memory.
    ///
    /// Only for the thread that completed the task: it alone may still read the stock.
    pub(crate) fn release_completed(&self, count: usize) -> bool {
        let count = count + self.stock.load(Ordering::Relaxed);
        self.release(count)
    }

    /// Gives `count` references back. `true`: they were the last, free the memory.
    #[inline]
    pub(crate) fn release(&self, count: usize) -> bool {
        // AcqRel: Release for this holder's accesses, Acquire for everyone's before the memory goes.
        let before = self.word.fetch_sub(count * REF_ONE, Ordering::AcqRel);
        debug_assert!(
            before / REF_ONE >= count,
            "a reference was given back twice"
        );
        before / REF_ONE == count
    }

    /// One more reference, for a holder of one.
    #[inline]
    pub(crate) fn retain(&self) {
        // Relaxed: the new holder gets the task from the old one, who orders the hand-over.
        let before = self.word.fetch_add(REF_ONE, Ordering::Relaxed);
        if before > REF_LIMIT {
            std::process::abort();
        }
    }

    /// Takes a reference out of the stock. Only for the poller, inside the poll.
    #[inline]
    pub(crate) fn retain_from_stock(&self) -> bool {
        let stock = self.stock.load(Ordering::Relaxed);
        if stock == 0 {
            return false;
        }
        self.stock.store(stock - 1, Ordering::Relaxed);
        true
    }

    /// Puts a reference into the stock. Only for the poller, inside the poll.
    #[inline]
    pub(crate) fn release_to_stock(&self) {
        let stock = self.stock.load(Ordering::Relaxed);
        self.stock.store(stock + 1, Ordering::Relaxed);
    }

    /// Whether the output is in place. Acquire: `true` lets the join handle read it.
    pub(crate) fn is_complete(&self) -> bool {
        self.word.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Whether the join waker's cell holds a waker that the task will wake.
    pub(crate) fn has_join_waker(&self) -> bool {
        self.word.load(Ordering::Acquire) & JOIN_WAKER != 0
    }

    /// The join handle has filled the waker cell. `false`: the task is done, take the waker back.
    pub(crate) fn set_join_waker(&self) -> bool {
        self.update(|now| {
            if now & COMPLETE != 0 {
                (now, false)
            } else {
                (now | JOIN_WAKER, true)
            }
        })
    }

    /// The join handle wants its waker cell back. `false`: the task is done and may be reading it.
    pub(crate) fn unset_join_waker(&self) -> bool {
        self.update(|now| {
            if now & COMPLETE != 0 {
                (now, false)
            } else {
                (now & !JOIN_WAKER, true)
            }
        })
    }

    /// The join handle is dropped (its reference is released separately).
    pub(crate) fn drop_handle(&self) -> HandleDropped {
        self.update(|now| {
            if now & COMPLETE == 0 {
                let dropped = HandleDropped {
                    drop_output: false,
                    drop_waker: true,
                };
                (now & !(JOIN_INTEREST | JOIN_WAKER), dropped)
            } else {
                // While JOIN_WAKER is set the completing thread may still read the cell; it will
                // find JOIN_INTEREST gone and drop the waker itself.
                let dropped = HandleDropped {
                    drop_output: true,
                    drop_waker: now & JOIN_WAKER == 0,
                };
                (now & !JOIN_INTEREST, dropped)
            }
        })
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    fn refs(state: &State) -> usize {
        state.word.load(Ordering::Relaxed) / REF_ONE
    }

    #[test]
    fn a_wake_submits_once_until_the_next_start() {
        let state = State::new();
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.end_pending(), End::Idle);
        assert_eq!(state.wake_by_ref(), Wake::Submit);
        assert_eq!(state.wake_by_ref(), Wake::Done);
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.wake_by_ref(), Wake::Done);
        assert_eq!(state.end_pending(), End::Requeue);
        assert_eq!(state.start(), Start::Poll);
    }

    #[test]
    fn references_balance_over_park_and_wake_cycles() {
        let state = State::new();
        for _ in 0..1000 {
            assert_eq!(state.start(), Start::Poll);
            assert!(state.retain_from_stock(), "a start always leaves a stock");
            assert_eq!(state.end_pending(), End::Idle);
            assert_eq!(state.wake_owned(), Wake::Submit);
        }
        let stock = state.stock.load(Ordering::Relaxed);
        // Handle, list, queue entry, stock.
        assert_eq!(refs(&state), 3 + stock);
        assert!(stock <= STOCK_LIMIT);
    }

    #[test]
    fn by_reference_wakes_do_not_grow_the_count() {
        let state = State::new();
        for _ in 0..10_000 {
            assert_eq!(state.start(), Start::Poll);
            assert_eq!(state.end_pending(), End::Idle);
            assert_eq!(state.wake_by_ref(), Wake::Submit);
        }
        assert!(refs(&state) <= 3 + STOCK_LIMIT + STOCK_REFILL);
    }

    #[test]
    fn abort_while_polled_is_seen_at_the_next_start() {
        let state = State::new();
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.abort(), Wake::Done);
        assert_eq!(state.end_pending(), End::Requeue);
        assert_eq!(state.start(), Start::Cancel);
        assert_eq!(state.complete(), Completed::Leave);
        assert_eq!(state.abort(), Wake::Done);
    }

    #[test]
    fn the_last_reference_frees() {
        let state = State::new();
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(
            state.drop_handle(),
            HandleDropped {
                drop_output: false,
                drop_waker: true
            }
        );
        assert!(!state.release(1));
        assert_eq!(state.complete(), Completed::DropOutput);
        assert!(state.release_completed(2));
    }

    #[test]
    fn shutdown_makes_a_queue_entry_stale() {
        let state = State::new();
        assert!(state.take_for_shutdown());
        assert_eq!(state.start(), Start::Stale);
        assert_eq!(state.complete(), Completed::Leave);
        assert_eq!(state.start(), Start::Stale);
    }
}
