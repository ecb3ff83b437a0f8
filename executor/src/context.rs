//! What a thread knows about itself: its worker, the task it polls, the budget of that poll.
//!
//! All of it is plain cells in a thread-local without a destructor, so that every path works while
//! the thread's other thread-locals are being destroyed. Only the stack of entered runtimes needs
//! one; where it is gone, there is no entered runtime.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::runtime::{Main, TryCurrentError};
use crate::scheduler::{Shared, Worker};
use crate::task::header::Header;

/// Operations after which a poll's clock is read for the first time, and then once more.
///
/// So a poll that takes long for each operation yields after 128 of them: tokio's number, which has
/// stood the test of its users. But 128 channel operations of some ten nanoseconds are hardly more
/// than the switch to another task; such a poll goes on until it has used up its time.
const PROBE: u32 = 64;
/// Two probes this far apart, 80 ns an operation, are the mark of short operations.
const PROBE_TIME: Duration = Duration::from_micros(5);
/// Operations between readings of the clock in a poll of short operations.
const STRIDE: u32 = 128;
/// How long a poll of short operations goes on.
const SLICE: Duration = Duration::from_micros(10);
/// The budget where there is no poll of a task. It is counted, too, and renewed when it is used up.
const UNLIMITED: u32 = u32::MAX;
/// Forced yields after which a poll gets a new budget. A poll that sees as many does not return to
/// the scheduler between them: it is a foreign `block_on` inside a task, which would spin for ever.
const FORCED_LIMIT: u32 = 128;

/// How far a poll is with its budget.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Pace {
    /// There is no poll.
    Unlimited,
    /// In the first probe.
    Unknown,
    /// In the second probe.
    Probed,
    /// Past both: operations are short.
    Short,
}

/// What the poll in progress may still do. The first two are set together, at each poll's beginning and end.
#[repr(C, align(8))]
struct Budget {
    /// Operations left until the pace is looked at.
    left: Cell<u32>,
    pace: Cell<Pace>,
    /// When the first probe was over, if it is.
    probed: Cell<Option<Instant>>,
    /// Forced yields since then.
    forced: Cell<u32>,
}

impl Budget {
    const fn new() -> Self {
        Self {
            left: Cell::new(UNLIMITED),
            pace: Cell::new(Pace::Unlimited),
            probed: Cell::new(None),
            forced: Cell::new(0),
        }
    }

    #[inline(always)]
    fn begin_poll(&self) {
        self.left.set(PROBE);
        self.pace.set(Pace::Unknown);
    }

    #[inline(always)]
    fn end_poll(&self) {
        self.left.set(UNLIMITED);
        self.pace.set(Pace::Unlimited);
    }

    #[inline(always)]
    fn is_unlimited(&self) -> bool {
        self.pace.get() == Pace::Unlimited
    }
}

struct Local {
    worker: Cell<*const Worker>,
    task: Cell<Option<NonNull<Header>>>,
    budget: Budget,
    /// Who is to be called when this poll is over; see `scheduler/hook.rs`.
    deferred: Cell<*const ()>,
    /// Whether the poll in progress has asked for another one.
    again: Cell<bool>,
    /// Whether this thread is inside one of our `block_on`s.
    blocking: Cell<bool>,
    /// The runtime that was entered last, or null; saves a look at the stack.
    entered: Cell<*const Shared>,
    /// Task ids reserved for this thread: the next one and the end.
    ids: Cell<(u64, u64)>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            worker: Cell::new(std::ptr::null()),
            task: Cell::new(None),
            budget: Budget::new(),
            deferred: Cell::new(std::ptr::null()),
            again: Cell::new(false),
            blocking: Cell::new(false),
            entered: Cell::new(std::ptr::null()),
            ids: Cell::new((0, 0)),
        }
    };

    static ENTERED: RefCell<Vec<(usize, Arc<Shared>)>> = const { RefCell::new(Vec::new()) };
}

crate::sync::thread_local! {
    /// The future of a `block_on` whose poll is going on. Apart, since models have it, too.
    #[allow(
        clippy::missing_const_for_thread_local,
        reason = "the macro of models has no such form"
    )]
    static MAIN: Cell<*const Main> = Cell::new(std::ptr::null());
}

/// Calls `f` with this thread's worker, if it is one.
#[inline]
pub(crate) fn with_worker<R>(f: impl FnOnce(Option<&Worker>) -> R) -> R {
    LOCAL.with(|local| {
        // SAFETY: the pointer is set by `WorkerGuard`, which outlives all that runs on this thread
        // in between and puts the old one back before its worker goes.
        f(unsafe { local.worker.get().as_ref() })
    })
}

/// Runs foreign code, which may take long: a worker's tasks can be taken by others meanwhile.
#[cold]
pub(crate) fn run_foreign<R>(f: impl FnOnce() -> R) -> R {
    with_worker(|worker| match worker {
        Some(worker) => worker.foreign(f),
        None => f(),
    })
}

/// Calls `f` with this thread's worker, if it is one of the runtime that the calling code runs in.
#[inline]
pub(crate) fn with_worker_here<R>(f: impl FnOnce(Option<&Worker>) -> R) -> R {
    let entered = LOCAL.with(|local| local.entered.get());
    with_worker(|worker| {
        f(worker.filter(|worker| {
            entered.is_null() || std::ptr::eq(entered, Arc::as_ptr(worker.shared()))
        }))
    })
}

/// Whether this thread runs tasks or a `block_on` right now, so that it must not be blocked.
pub(crate) fn must_not_block() -> bool {
    LOCAL.with(|local| local.blocking.get() || !local.worker.get().is_null())
}

/// Makes a worker the thread's own while the guard lives.
pub(crate) struct WorkerGuard {
    previous: *const Worker,
}

impl WorkerGuard {
    /// # Safety
    /// `worker` stays where it is until the guard is dropped.
    pub(crate) unsafe fn new(worker: &Worker) -> Self {
        LOCAL.with(|local| Self {
            previous: local.worker.replace(worker),
        })
    }
}

impl Drop for WorkerGuard {
    fn drop(&mut self) {
        LOCAL.with(|local| local.worker.set(self.previous));
    }
}

/// Marks the thread as inside a `block_on`.
pub(crate) struct BlockGuard;

impl BlockGuard {
    /// # Panics
    /// Inside a task or another `block_on`.
    #[track_caller]
    pub(crate) fn new() -> Self {
        assert!(
            !must_not_block(),
            "`block_on` was called inside a task or another `block_on`: it would block a thread \
             that has tasks to run; `.await` the future, or `spawn` it"
        );
        LOCAL.with(|local| local.blocking.set(true));
        Self
    }
}

impl Drop for BlockGuard {
    fn drop(&mut self) {
        LOCAL.with(|local| local.blocking.set(false));
    }
}

/// The state of a poll: who is polled, with a budget. Polls of a thread do not nest: a task must not block.
pub(crate) struct PollGuard(());

impl PollGuard {
    #[inline]
    pub(crate) fn new(task: Option<NonNull<Header>>) -> Self {
        LOCAL.with(|local| {
            debug_assert!(local.budget.is_unlimited(), "a poll inside a poll");
            local.task.set(task);
            local.budget.begin_poll();
            Self(())
        })
    }
}

impl Drop for PollGuard {
    #[inline]
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.task.set(None);
            local.budget.end_poll();
        });
    }
}

/// Whether `header` is the task whose poll is going on.
#[inline]
pub(crate) fn is_current_task(header: NonNull<Header>) -> bool {
    LOCAL.with(|local| local.task.get() == Some(header))
}

/// Calls `f` with the task whose poll is going on.
pub(crate) fn with_current_task<R>(f: impl FnOnce(Option<&Header>) -> R) -> R {
    LOCAL.with(|local| {
        // SAFETY: the poll in progress keeps the task.
        f(local.task.get().map(|header| unsafe { header.as_ref() }))
    })
}

/// Sets the future of a `block_on` whose poll is going on; returns the one before.
pub(crate) fn replace_main(main: *const Main) -> *const Main {
    MAIN.with(|mine| mine.replace(main))
}

/// The future of a `block_on` whose poll is going on, unless it is that of a task.
pub(crate) fn current_main() -> *const Main {
    LOCAL.with(|local| match local.task.get() {
        None => MAIN.with(Cell::get),
        Some(_) => std::ptr::null(),
    })
}

/// The task whose poll is going on.
#[inline]
pub(crate) fn current_task() -> Option<crate::wake::TaskRef> {
    let header = LOCAL.with(|local| local.task.get())?;
    // SAFETY: the poll in progress keeps the task.
    Some(unsafe { crate::wake::TaskRef::retain(header) })
}

/// Takes one operation out of the budget, but for the last `kept`. `false`: it is used up.
#[inline]
pub(crate) fn spend_budget(kept: u32) -> bool {
    try_spend_budget(kept) || LOCAL.with(|local| budget_exhausted(&local.budget))
}

/// As [`spend_budget`], but `false` may also mean that it is to be seen whether there is more.
#[inline(always)]
pub(crate) fn try_spend_budget(kept: u32) -> bool {
    LOCAL.with(|local| {
        let left = local.budget.left.get();
        if left > kept {
            local.budget.left.set(left - 1);
        }
        left > kept
    })
}

/// Gives the operation back that the last [`spend_budget`] took.
#[inline]
pub(crate) fn refund_budget() {
    LOCAL.with(|local| {
        let left = &local.budget.left;
        left.set(left.get().wrapping_add(1));
    });
}

#[cold]
#[inline(never)]
fn budget_exhausted(budget: &Budget) -> bool {
    let pace = budget.pace.get();
    if pace == Pace::Unlimited {
        // One was spent.
        budget.left.set(UNLIMITED - 1);
        return true;
    }
    if pace == Pace::Unknown {
        budget.probed.set(Some(Instant::now()));
        budget.forced.set(0);
        budget.pace.set(Pace::Probed);
        budget.left.set(PROBE - 1);
        return true;
    }
    if budget.forced.get() == 0 {
        let limit = if pace == Pace::Probed {
            PROBE_TIME
        } else {
            SLICE
        };
        let in_time = |probed: Instant| probed.elapsed() < limit;
        if budget.probed.get().is_some_and(in_time) {
            budget.pace.set(Pace::Short);
            budget.left.set(STRIDE - 1);
            return true;
        }
    }
    let forced = budget.forced.get() + 1;
    budget.forced.set(forced);
    budget.left.set(0);
    if forced <= FORCED_LIMIT {
        return false;
    }
    budget.forced.set(0);
    budget.left.set(PROBE - 1);
    true
}

/// Defers `address` to the end of this poll, if nothing else is deferred and `kept` (which is asked
/// the first time in a poll) says that the worker keeps it.
#[inline(always)]
pub(crate) fn defer(address: *const (), kept: impl FnOnce() -> bool) -> bool {
    LOCAL.with(|local| {
        let deferred = local.deferred.get();
        if deferred == address {
            return true;
        }
        if !deferred.is_null() || local.budget.is_unlimited() || !kept() {
            return false;
        }
        local.deferred.set(address);
        true
    })
}

/// Whether this address has been deferred to the end of the poll in progress.
#[inline(always)]
pub(crate) fn is_deferred(address: *const ()) -> bool {
    LOCAL.with(|local| local.deferred.get() == address)
}

/// Whether anything has been deferred to the end of the poll in progress.
#[inline]
pub(crate) fn has_deferred() -> bool {
    LOCAL.with(|local| !local.deferred.get().is_null())
}

/// Takes a deferral of this poll back.
#[inline]
pub(crate) fn cancel_deferred(address: *const ()) {
    LOCAL.with(|local| {
        if local.deferred.get() == address {
            local.deferred.set(std::ptr::null());
        }
    });
}

/// Who was deferred to the end of the poll that is over, or null.
#[inline]
pub(crate) fn take_deferred() -> *const () {
    LOCAL.with(|local| {
        let deferred = local.deferred.get();
        if !deferred.is_null() {
            local.deferred.set(std::ptr::null());
        }
        deferred
    })
}

/// The task that is polled shall be queued again when the poll is over.
#[inline]
pub(crate) fn ask_again() {
    LOCAL.with(|local| local.again.set(true));
}

/// Whether the poll that is over has asked to be followed by another one.
#[inline]
pub(crate) fn take_again() -> bool {
    LOCAL.with(|local| {
        let again = local.again.get();
        if again {
            local.again.set(false);
        }
        again
    })
}

/// The next id of this thread's block; `refill` gives a new block.
pub(crate) fn next_task_id(refill: impl FnOnce() -> (u64, u64)) -> u64 {
    LOCAL.with(|local| {
        let (mut next, mut end) = local.ids.get();
        if next == end {
            (next, end) = refill();
        }
        local.ids.set((next + 1, end));
        next
    })
}

/// Calls `f` with the runtime that the calling code runs in: the one entered last, or the worker's.
///
/// # Panics
/// Outside a runtime.
#[track_caller]
pub(crate) fn with_current<R>(f: impl FnOnce(Arc<Shared>) -> R) -> R {
    match try_current() {
        Ok(shared) => f(shared),
        Err(error) => panic!("{error}"),
    }
}

/// The runtime that the calling code runs in.
pub(crate) fn try_current() -> Result<Arc<Shared>, TryCurrentError> {
    with_current_ref(Arc::clone)
}

/// Calls `f` with the runtime that the calling code runs in, without a count of references. `f` runs
/// no foreign code and enters no runtime.
pub(crate) fn with_current_ref<R>(f: impl FnOnce(&Arc<Shared>) -> R) -> Result<R, TryCurrentError> {
    let mut f = Some(f);
    let mut call = |shared: &Arc<Shared>| f.take().map(|f| f(shared));
    let mut found = None;
    if !LOCAL.with(|local| local.entered.get()).is_null() {
        let _ = ENTERED.try_with(|stack| {
            if let Some((_, shared)) = stack.borrow().last() {
                found = call(shared);
            }
        });
    }
    found
        .or_else(|| with_worker(|worker| worker.and_then(|worker| call(worker.shared()))))
        .ok_or(TryCurrentError::new())
}

/// Makes a runtime the current one while it lives; guards may be dropped in any order.
pub(crate) struct Entered {
    key: usize,
    /// The stack is this thread's.
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Entered {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // Ids are as good as any other number that no two guards of the thread share.
        let key = crate::task::Id::next().as_u64() as usize;
        // While the thread is being torn down there is no stack any more, and nothing to enter.
        let _ = ENTERED.try_with(|stack| {
            let mut stack = stack.borrow_mut();
            stack.push((key, shared));
            note_entered(&stack);
        });
        Self {
            key,
            _not_send: std::marker::PhantomData,
        }
    }
}

/// Notes which runtime stands on top of the stack.
fn note_entered(stack: &[(usize, Arc<Shared>)]) {
    let top = stack.last();
    let top = top.map_or(std::ptr::null(), |(_, shared)| Arc::as_ptr(shared));
    LOCAL.with(|local| local.entered.set(top));
}

impl Drop for Entered {
    fn drop(&mut self) {
        let removed = ENTERED.try_with(|stack| {
            let mut stack = stack.borrow_mut();
            let at = stack.iter().rposition(|(key, _)| *key == self.key)?;
            let removed = stack.remove(at);
            note_entered(&stack);
            Some(removed)
        });
        if removed.is_err() {
            // The stack is gone, and with it all that was entered.
            LOCAL.with(|local| local.entered.set(std::ptr::null()));
        }
        // The runtime's last reference may go here, with foreign code in its tasks: after the borrow.
        drop(removed);
    }
}
