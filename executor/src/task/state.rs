//! The state word of a task: seven flags and a count of references, changed by named transitions.
//!
//! | state | SCHEDULED | WOKEN | COMPLETE | who may touch the future | who pushes it to a queue |
//! |---|:-:|:-:|:-:|---|---|
//! | idle | 0 | 0 | 0 | nobody | the wake that sets SCHEDULED |
//! | queued | 1 | 0 | 0 | whoever takes it from its queue, and is its *poller* from then on | it stands in exactly one queue, or its waker is about to put it there |
//! | queued, woken again | 1 | 1 | 0 | as above | as above |
//! | polled | 1 | 0 | 0 | the poller | nobody |
//! | polled, woken | 1 | 1 | 0 | the poller | the poller, when the poll is over |
//! | done | any | any | 1 | nobody; the output belongs to the join handle | nobody: stale entries are dropped |
//!
//! **A start is a look.** There is one queue entry, and whoever takes it is the poller, so the word need not say
//! that the poll has begun. What it must not do is to forget a wake. One that finds SCHEDULED sets WOKEN: the start
//! that sees it takes it back, as its poll sees what that waker wrote; if it comes after the look, the end of the poll
//! sees it and queues the task once more. A poll that has asked for another one leaves the word alone at its end,
//! too.
//!
//! `ABORT` asks for the future to be dropped at the next start; it is set together with SCHEDULED or WOKEN, so that
//! a poll in progress ends in a requeue and the next start sees it.
//!
//! `CLAIMED` decides between the two that may reach a task at once without a queue between them: shutdown, which
//! comes by the list of tasks, and the thread of a pool that begins a job (`task/blocking.rs`). Workers have left
//! before shutdown takes their tasks, wherever those stand.
//!
//! The join waker's cell has one owner at a time:
//!
//! | JOIN_INTEREST | JOIN_WAKER | COMPLETE | who may touch the waker cell |
//! |:-:|:-:|:-:|---|
//! | 1 | 0 | any | the join handle, alone |
//! | 1 | 1 | 0 | nobody writes; the handle may read |
//! | 1 | 1 | 1 | the task that completed moves the waker out, to wake it; the handle may still compare it, and both leave the flags as they are |
//! | 0 | 0 | any | the handle that cleared them, once, to drop the waker if JOIN_WAKER was set |
//!
//! The cell holds a waker while JOIN_WAKER is set, and before that only in the hands of the handle.
//!
//! A reference is held by: the runtime's list of tasks, a queue entry or the poll it turned into,
//! each waker, the join handle, each abort handle, and the *stock*, a store of references that only
//! the poller touches: clones of the waker made inside the task's own poll come from there, without
//! a locked instruction, and the reference of a finished poll goes back into it.
//!
//! **Alone.** If the count says that all references are the worker's own (the entry it has taken, the stock, the
//! list's), no other thread can reach the task, and the worker completes it with a plain store. A task that
//! was detached and waits with one waker, which its wake gives away, is in that state in each poll. What others
//! did is ordered by the exchange with which they gave their references back, and the Acquire load that sees it.
//! Only shutdown reaches a task without a reference, through the list, after all workers have left.

use crate::sync::atomic::{AtomicUsize, Ordering};

const SCHEDULED: usize = 1;
const WOKEN: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const ABORT: usize = 1 << 3;
const CLAIMED: usize = 1 << 4;
const JOIN_INTEREST: usize = 1 << 5;
const JOIN_WAKER: usize = 1 << 6;
/// One reference; the count fills the rest of the word.
const REF_ONE: usize = 1 << 7;
/// Beyond this the count is taken for a leak in a loop, and the process ends before it can wrap.
const REF_LIMIT: usize = usize::MAX / 2;

/// A stock that has run out is filled up by so many references at the end of the poll: in the same instruction.
const STOCK_REFILL: usize = 8;
/// A stock from this on is brought down to the above at the end of the poll: in the same instruction.
const STOCK_LIMIT: usize = 32;

/// What a waker has to do after its transition.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Put the task into a queue; a reference goes with it.
    Submit,
    /// Nothing: it is queued, or its poller will queue it again, or it is done.
    Done,
    /// The last reference went with this wake: free the memory.
    Free,
}

/// What the thread that took a task out of a queue has to do.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Poll the future, as its poller.
    Poll,
    /// Drop the future instead, as its poller.
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

/// What came of giving references back.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// They were the last, before anything was done: free the memory.
    Last,
    /// They were the last when the exchange was made: free the memory.
    LastNow,
    /// Others hold the task.
    Kept,
}

/// What a dropped join handle has to clean up.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HandleDropped {
    /// Nothing, and its reference has been given back.
    Gone,
    /// Nothing but the memory: its reference was the last one.
    Free,
    /// The waker in the cell, and then its reference.
    Waker,
    /// The task is done: the output, if it has not been taken, and then its reference.
    Output,
}

/// The state word and the stock.
#[derive(Debug)]
pub(crate) struct State {
    word: AtomicUsize,
    /// References counted in `word` that belong to the poller, who alone reads and writes it: what one poller hands
    /// to the next is ordered by the word and the queue. An atomic, so that this needs no unsafe code.
    stock: AtomicUsize,
}

impl State {
    /// A new task: queued, with a join handle, and references for the handle, the queue entry, the runtime's list
    /// and the stock.
    #[inline]
    pub(crate) fn new() -> Self {
        let refs = (3 + STOCK_REFILL) * REF_ONE;
        Self {
            word: AtomicUsize::new(SCHEDULED | JOIN_INTEREST | refs),
            stock: AtomicUsize::new(STOCK_REFILL),
        }
    }

    /// The one loop that changes the word: `next` gives the new word and an answer.
    #[inline(always)]
    fn update<R>(&self, next: impl FnMut(usize) -> (usize, R)) -> R {
        self.update_from(self.word.load(Ordering::Relaxed), next)
    }

    /// As [`update`](Self::update), from a word that was read before.
    #[inline(always)]
    fn update_from<R>(&self, mut now: usize, mut next: impl FnMut(usize) -> (usize, R)) -> R {
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
            if now & (SCHEDULED | COMPLETE) == 0 {
                return (now | SCHEDULED, Wake::Submit);
            }
            let kept = (now - REF_ONE) | (WOKEN * usize::from(now & COMPLETE == 0));
            let answer = if kept < REF_ONE {
                Wake::Free
            } else {
                Wake::Done
            };
            (kept, answer)
        })
    }

    /// Whether it has been woken since its last start.
    #[cfg(wakerun_loom)]
    pub(crate) fn is_woken(&self) -> bool {
        self.word.load(Ordering::Acquire) & WOKEN != 0
    }

    /// A wake that keeps its reference.
    #[inline]
    pub(crate) fn wake_by_ref(&self) -> Wake {
        self.update(|now| {
            if now & (SCHEDULED | COMPLETE) == 0 {
                ((now | SCHEDULED) + REF_ONE, Wake::Submit)
            } else if now & COMPLETE == 0 {
                (now | WOKEN, Wake::Done)
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
            } else if now & SCHEDULED == 0 {
                ((now | SCHEDULED | ABORT) + REF_ONE, Wake::Submit)
            } else {
                (now | WOKEN | ABORT, Wake::Done)
            }
        })
    }

    /// A queue entry becomes a poll, on a worker: without an exchange, unless there is something to see.
    #[inline]
    pub(crate) fn start(&self) -> Start {
        // Acquire pairs with the exchange of a wake: if the look sees it, the poll sees what came before it. The
        // previous poll and the wake that queued the task are ordered by the queue, too.
        let now = self.word.load(Ordering::Acquire);
        if now & (WOKEN | ABORT | CLAIMED | COMPLETE) != 0 {
            return self.start_by_exchange(now);
        }
        debug_assert!(now & SCHEDULED != 0, "a queued task lost its flag");
        Start::Poll
    }

    /// The start of a task that has been woken once more since it was queued, or is not to be polled.
    #[cold]
    #[inline(never)]
    fn start_by_exchange(&self, now: usize) -> Start {
        self.update_from(now, |now| {
            let answer = if now & (CLAIMED | COMPLETE) != 0 {
                Start::Stale
            } else if now & ABORT != 0 {
                Start::Cancel
            } else {
                Start::Poll
            };
            (now & !WOKEN, answer)
        })
    }

    /// A job is begun by a thread of its pool.
    pub(crate) fn start_job(&self) -> Start {
        self.update(|now| {
            if now & (CLAIMED | COMPLETE) != 0 {
                return (now, Start::Stale);
            }
            let answer = if now & ABORT != 0 {
                Start::Cancel
            } else {
                Start::Poll
            };
            (now | CLAIMED, answer)
        })
    }

    /// Shutdown takes a task: one of the workers, who have left, or a job. `false`: the job has begun, or the task is
    /// done.
    pub(crate) fn take_for_shutdown(&self) -> bool {
        self.update(|now| {
            if now & (CLAIMED | COMPLETE) != 0 {
                (now, false)
            } else {
                (now | SCHEDULED | CLAIMED, true)
            }
        })
    }

    /// A poll returned Pending; its reference goes into the stock, or along with the requeue.
    #[inline]
    pub(crate) fn end_pending(&self) -> End {
        let stock = self.stock.load(Ordering::Relaxed);
        let now = self.word.load(Ordering::Relaxed);
        // Neither none left nor too many, and not woken.
        if stock.wrapping_sub(1) < STOCK_LIMIT - 1 && now & WOKEN == 0 {
            self.stock.store(stock + 1, Ordering::Relaxed);
            // Release hands the future and the stock to the next poller.
            let idle = self.word.compare_exchange(
                now,
                now - SCHEDULED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if idle.is_ok() {
                return End::Idle;
            }
        }
        self.end_pending_slowly(stock)
    }

    /// The end of a poll in general: a stock that has run out or grown too large is brought to its level, by
    /// references that are counted more or less, if the task goes idle.
    #[cold]
    #[inline(never)]
    fn end_pending_slowly(&self, stock: usize) -> End {
        let level = if stock.wrapping_sub(1) < STOCK_LIMIT - 1 {
            stock + 1
        } else {
            STOCK_REFILL
        };
        let more = level.wrapping_sub(stock + 1).wrapping_mul(REF_ONE);
        self.stock.store(level, Ordering::Relaxed);
        // Release as above; Acquire sees what a waker wrote that found the task SCHEDULED, as this thread queues it
        // for that.
        let end = self.update(|now| {
            if now & WOKEN == 0 {
                ((now - SCHEDULED).wrapping_add(more), End::Idle)
            } else {
                (now - WOKEN, End::Requeue)
            }
        });
        if end == End::Requeue {
            // Still this thread's: the reference of the poll goes with the queue entry, and none is counted more.
            self.stock.store(stock, Ordering::Relaxed);
        }
        end
    }

    /// The output is in place (or the future is gone): the task is done.
    pub(crate) fn complete(&self) -> Completed {
        // One addition clears SCHEDULED and sets COMPLETE.
        let before = self.word.fetch_add(COMPLETE - SCHEDULED, Ordering::AcqRel);
        debug_assert!(before & (SCHEDULED | COMPLETE) == SCHEDULED);
        if before & JOIN_INTEREST == 0 {
            Completed::DropOutput
        } else if before & JOIN_WAKER == 0 {
            Completed::Leave
        } else {
            Completed::WakeJoin
        }
    }

    /// The count when a worker has all references: the poll's, the list's, and the stock.
    #[inline]
    fn alone(stock: usize) -> usize {
        (2 + stock) * REF_ONE
    }

    /// As [`complete`](Self::complete), on a worker: without an exchange if the task is [alone](self).
    #[inline]
    pub(crate) fn complete_on_worker(&self) -> Completed {
        let alone = Self::alone(self.stock.load(Ordering::Relaxed));
        // Acquire pairs with the exchanges by which others gave their references back. A wake that came during the
        // last poll counts no more.
        if self.word.load(Ordering::Acquire) & !WOKEN != SCHEDULED | alone {
            return self.complete();
        }
        self.word.store(COMPLETE | alone, Ordering::Relaxed);
        Completed::DropOutput
    }

    /// Gives `count` references and the whole stock back; [`Released::Last`]: free the memory.
    ///
    /// Only for the thread that completed the task: it alone may still read the stock.
    pub(crate) fn release_completed(&self, count: usize) -> Released {
        self.release_perhaps_last(count + self.stock.load(Ordering::Relaxed))
    }

    /// As [`release`](Self::release), where the references are likely to be the last: then nobody else can see
    /// the count, and it is left as it is.
    #[inline]
    pub(crate) fn release_perhaps_last(&self, count: usize) -> Released {
        // Acquire: everyone's accesses, who gave their references back, before the memory goes.
        if self.word.load(Ordering::Acquire) / REF_ONE == count {
            Released::Last
        } else if self.release(count) {
            Released::LastNow
        } else {
            Released::Kept
        }
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

    /// The join handle is dropped.
    pub(crate) fn drop_handle(&self) -> HandleDropped {
        // Acquire: lets the handle read the output. Looked at first, since a handle is dropped after the end as a
        // rule, and nobody looks at its flags any more then.
        if self.is_complete() {
            return HandleDropped::Output;
        }
        self.update(|now| {
            if now & COMPLETE != 0 {
                (now, HandleDropped::Output)
            } else if now & JOIN_WAKER != 0 {
                let without = now & !(JOIN_INTEREST | JOIN_WAKER);
                (without, HandleDropped::Waker)
            } else {
                let without = (now & !JOIN_INTEREST) - REF_ONE;
                let dropped = if without < REF_ONE {
                    HandleDropped::Free
                } else {
                    HandleDropped::Gone
                };
                (without, dropped)
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
            assert!(state.retain_from_stock(), "a poll always leaves a stock");
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
        assert!(refs(&state) <= 3 + STOCK_LIMIT);
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
        assert_eq!(state.drop_handle(), HandleDropped::Gone);
        assert_eq!(state.complete(), Completed::DropOutput);
        assert_eq!(state.release_completed(2), Released::Last);
    }

    #[test]
    fn the_last_reference_frees_when_others_left_later() {
        let state = State::new();
        assert_eq!(state.start(), Start::Poll);
        assert!(state.retain_from_stock());
        assert_eq!(state.complete(), Completed::Leave);
        assert_eq!(state.drop_handle(), HandleDropped::Output);
        assert_eq!(state.release_completed(2), Released::Kept);
        assert_eq!(state.release_perhaps_last(1), Released::Kept);
        assert_eq!(state.wake_owned(), Wake::Free);
    }

    #[test]
    fn a_detached_task_that_is_alone_goes_through_the_same_states() {
        let state = State::new();
        assert_eq!(state.drop_handle(), HandleDropped::Gone);
        for _ in 0..3 {
            assert_eq!(state.start(), Start::Poll);
            assert!(state.retain_from_stock(), "a poll always leaves a stock");
            assert_eq!(state.end_pending(), End::Idle);
            assert_eq!(state.wake_owned(), Wake::Submit);
        }
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.wake_by_ref(), Wake::Done);
        assert_eq!(state.end_pending(), End::Requeue);
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(state.wake_by_ref(), Wake::Done);
        assert_eq!(state.complete_on_worker(), Completed::DropOutput);
        assert_eq!(state.release_completed(2), Released::Last);
    }

    #[test]
    fn a_task_that_somebody_holds_is_not_alone() {
        let state = State::new();
        assert_eq!(state.drop_handle(), HandleDropped::Gone);
        assert_eq!(state.start(), Start::Poll);
        assert!(state.retain_from_stock());
        assert_eq!(state.end_pending(), End::Idle);
        // A waker that is kept, and aborts: the next start must see it.
        assert_eq!(state.abort(), Wake::Submit);
        assert_eq!(state.start(), Start::Cancel);
        assert_eq!(state.complete_on_worker(), Completed::DropOutput);
        assert_eq!(state.release_completed(2), Released::Kept);
        assert_eq!(state.release_perhaps_last(1), Released::Last);
    }

    #[test]
    fn shutdown_makes_a_queue_entry_stale() {
        let state = State::new();
        assert!(state.take_for_shutdown());
        assert_eq!(state.start(), Start::Stale);
        assert_eq!(state.start_job(), Start::Stale);
        assert_eq!(state.complete(), Completed::Leave);
        assert_eq!(state.start(), Start::Stale);
    }

    #[test]
    fn a_job_that_has_begun_is_left_to_its_thread() {
        let state = State::new();
        assert_eq!(state.start_job(), Start::Poll);
        assert!(!state.take_for_shutdown());
        assert_eq!(state.abort(), Wake::Done);
        assert_eq!(state.complete(), Completed::Leave);
        assert!(!state.take_for_shutdown());
    }

    #[test]
    fn a_stock_that_has_run_out_is_filled_up() {
        let state = State::new();
        assert_eq!(state.start(), Start::Poll);
        for _ in 0..STOCK_REFILL {
            assert!(state.retain_from_stock());
        }
        assert!(!state.retain_from_stock());
        assert_eq!(state.end_pending(), End::Idle);
        assert_eq!(state.stock.load(Ordering::Relaxed), STOCK_REFILL);
        // Handle, list, those that were taken, stock.
        assert_eq!(refs(&state), 2 + STOCK_REFILL + STOCK_REFILL);
    }
}
