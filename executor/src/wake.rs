//! The wake queues, for primitives that are built into the runtime.
//!
//! A channel, lock or semaphore that only knows [`Waker::wake`] takes the long way round. What is
//! here lets it say more:
//!
//! - **where** a woken task goes: [`wake`], [`wake_owned`] and [`Batch`] with a [`Place`];
//! - **many at once**: a [`Batch`] collects under the primitive's lock and wakes after it, with one
//!   store to the worker's queue and at most one other worker notified;
//! - **cheap wakers**: [`clone_waker`] and [`recycle`] work without a locked instruction inside the
//!   own poll of the waker's task;
//! - **once a poll**: [`defer_to_poll_end`] does work, such as the full fence of a handshake, when
//!   the poll is over instead of once an operation;
//! - **fairness**: [`poll_budget`] makes a task that always finds its primitives ready yield;
//! - **epochs**: [`TaskRef::epoch`] and [`watch_polls`] tell whether a task has been polled since, so
//!   that what was granted to a task which does not come for it can be taken back;
//! - **blocking forms**: [`block_on_thread`] and [`block_on_thread_until`] wait for a future on a plain
//!   thread, and [`Patience`] for a moment before that; [`must_not_block`] tells where that would be a
//!   mistake.
//!
//! Everything works off the runtime, too, with any executor's wakers: then a placed wake is a wake,
//! a deferral is refused, and the budget is without limit.
//!
//! ```
//! use std::task::Waker;
//! use wakerun::wake::{Batch, Place};
//!
//! fn release_all(line: &mut Vec<Waker>) {
//!     let mut batch = Batch::new(Place::Tail);
//!     for waker in line.drain(..) {
//!         batch.push(waker);
//!     }
//!     batch.wake_all();
//! }
//! # release_all(&mut vec![Waker::noop().clone()]);
//! ```

mod batch;
#[cfg(wakerun_loom)]
mod model_task;
mod patience;
mod poll_end;
mod task_ref;
mod wakeup;
mod watch;

pub use crate::runtime::{block_on_thread, block_on_thread_until};
pub use batch::{BATCH, Batch};
#[cfg(wakerun_loom)]
pub use model_task::ModelTask;
pub use patience::Patience;
pub use poll_end::{
    PollEnd, cancel_deferred, defer_to_poll_end, defer_to_poll_end_unchecked, forget_deferred,
    is_deferred,
};
pub use task_ref::{TaskRef, current_task};
pub use wakeup::Wakeup;
pub use watch::{
    PollWatch, Poller, current_poller, epoch_of, is_own_waker, note_poll, unwatch_polls,
    watch_polls, watch_polls_unchecked,
};

pub use crate::scheduler::Place;

use std::task::{Context, Poll, Waker};

use crate::context;
use crate::scheduler::schedule;
use crate::task::waker;

/// Wakes, and says where the task is to be queued if it is one of the current worker's runtime.
///
/// ```
/// use wakerun::wake::{Place, wake};
///
/// wake(std::task::Waker::noop(), Place::Next);
/// ```
#[inline]
pub fn wake(waker: &Waker, place: Place) {
    match waker::task_of(waker) {
        Some(header) => {
            // SAFETY: the borrowed waker keeps the task.
            let woken = unsafe { waker::wake_kept(header) };
            if let Some(task) = woken {
                schedule(task, place);
            }
        }
        None => context::run_foreign(|| waker.wake_by_ref()),
    }
}

/// As [`wake`], and gives the waker away: one reference count less to touch.
///
/// ```
/// use wakerun::wake::{Place, wake_owned};
///
/// wake_owned(std::task::Waker::noop().clone(), Place::Tail);
/// ```
#[inline]
pub fn wake_owned(waker: Waker, place: Place) {
    match waker::task_of(&waker) {
        Some(header) => {
            std::mem::forget(waker);
            // SAFETY: the forgotten waker's reference is given away.
            if let Some(task) = unsafe { waker::wake_owned(header) } {
                schedule(task, place);
            }
        }
        None => context::run_foreign(|| waker.wake()),
    }
}

/// Clones a waker. Inside the own poll of the waker's task no locked instruction is needed.
///
/// ```
/// let waker = wakerun::wake::clone_waker(std::task::Waker::noop());
/// # wakerun::wake::recycle(waker);
/// ```
#[inline]
pub fn clone_waker(waker: &Waker) -> Waker {
    waker::clone_waker(waker)
}

/// Drops a waker. Inside the own poll of the waker's task no locked instruction is needed.
///
/// ```
/// wakerun::wake::recycle(std::task::Waker::noop().clone());
/// ```
#[inline]
pub fn recycle(waker: Waker) {
    waker::recycle(waker);
}

/// Charges one completed operation to the budget of the current poll.
///
/// Pending: the budget is used up; the waker has been woken, and the caller returns Pending without
/// having done anything. To keep a place in a line, take it first, and charge when there is
/// something to return ([`spend_budget`] and [`force_yield`] are the two halves).
///
/// ```
/// use std::task::{Context, Poll, Waker};
///
/// // Outside a task there is no limit.
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(wakerun::wake::poll_budget(&mut cx).is_ready());
/// ```
#[inline]
pub fn poll_budget(cx: &mut Context<'_>) -> Poll<()> {
    if spend_budget() {
        Poll::Ready(())
    } else {
        force_yield(cx);
        Poll::Pending
    }
}

/// The first half of [`poll_budget`]: `false` if the budget of the current poll is used up.
///
/// ```
/// assert!(wakerun::wake::spend_budget());
/// ```
#[inline]
pub fn spend_budget() -> bool {
    context::spend_budget(0)
}

/// As [`spend_budget`], but `false` already for the last operation: for an operation that can be
/// done now and reported after a yield, so that the whole budget is not one more than its number.
///
/// ```
/// assert!(wakerun::wake::spend_budget_but_last());
/// ```
#[inline]
pub fn spend_budget_but_last() -> bool {
    context::spend_budget(1)
}

/// As [`spend_budget`] or, with `but_last`, [`spend_budget_but_last`], where the budget needs not be looked
/// into. `false`: call the other one. For a short way that is to make no call.
///
/// ```
/// assert!(wakerun::wake::spend_budget_at_hand(false));
/// ```
#[inline(always)]
pub fn spend_budget_at_hand(but_last: bool) -> bool {
    context::try_spend_budget(u32::from(but_last))
}

/// Gives back what [`poll_budget`] or [`spend_budget`] took, when there was nothing to return.
///
/// ```
/// assert!(wakerun::wake::spend_budget());
/// wakerun::wake::refund_budget();
/// ```
#[inline]
pub fn refund_budget() {
    context::refund_budget();
}

/// The second half of [`poll_budget`]: wakes the task, which is about to return Pending.
///
/// ```
/// # use std::task::{Context, Waker};
/// wakerun::wake::force_yield(&mut Context::from_waker(Waker::noop()));
/// ```
#[inline]
pub fn force_yield(cx: &mut Context<'_>) {
    if !poll_again(cx.waker()) {
        cx.waker().wake_by_ref();
    }
}

/// Asks for the task to be polled again when this poll, which is about to return Pending, is over:
/// behind what is queued already, as if it woke itself, but without a locked instruction for that.
/// `false`: refused, as `waker` is not the own one of a task that is being polled here.
///
/// For a primitive that has reason to think that what it waits for will be there by then, and that
/// going to sleep and being woken costs more than a poll in vain.
///
/// ```
/// assert!(!wakerun::wake::poll_again(std::task::Waker::noop()));
/// ```
#[inline]
pub fn poll_again(waker: &Waker) -> bool {
    let own = waker::task_of(waker).is_some_and(context::is_current_task);
    if own {
        context::ask_again();
    }
    own
}

/// Whether the calling thread runs tasks or a `block_on` of this runtime, so that it must not be
/// blocked: what blocking forms of operations check, to panic with a clear message.
///
/// ```
/// assert!(!wakerun::wake::must_not_block());
/// wakerun::block_on(async { assert!(wakerun::wake::must_not_block()) });
/// ```
pub fn must_not_block() -> bool {
    context::must_not_block()
}
