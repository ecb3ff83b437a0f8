//! Whether short queues are shared out, too: a trial tells.
//!
//! A queue that is not worth another worker (`worth.rs`) is left alone, since its tasks may talk to each other. But a
//! queue of many small groups that have nothing to do with each other is as short, stays so for ever, and would run
//! on two cores twice as fast. Length and time do not tell the one from the other. So it is tried: when a worker has
//! been busy for a while with some tasks queued, and another one sleeps, queues are *spread*, that is, shared out as
//! if they were long. What comes of it is seen by the tasks that *wander*, that is, are polled by another worker than
//! the time before:
//!
//! - Groups that are whole again stay. A group that was split comes together by itself, as a woken task goes to the
//!   worker that woke it; then nobody wanders, and the queues stay spread.
//! - One group over two workers never comes to rest: whoever has run dry takes from the other, and tasks are woken
//!   across. If so many wander for some time, queues are left alone again, and the group comes together. The next
//!   trial is after a pause, which doubles with each that fails.
//!
//! So a trial costs what the tasks lose in a millisecond or less, and less and less of the time.
//!
//! No more workers are woken for it than there are cores: one that has to wait for a core keeps what it has taken from
//! all others meanwhile.
//!
//! One answer serves the whole runtime: with several groups that are busy, workers do not run dry, and nobody wanders
//! while one of the groups is a large one.

use std::cell::Cell;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// How long a worker has been busy before it is tried.
const BUSY: Duration = Duration::from_micros(500);
/// Tasks that are queued at that time: two groups at the least.
const QUEUED: usize = 4;
/// Polls that are looked at together; fewer, but not below [`FEW_POLLS`], if they take longer than [`WINDOW_TIME`].
const WINDOW_POLLS: u32 = 256;
const FEW_POLLS: u32 = 64;
const WINDOW_TIME: Duration = Duration::from_millis(1);
/// More than one in so many polls is that of a task that has wandered: its move costs more than it brings.
const WANDERS: u32 = 16;
/// Windows in a row with such that end a trial, if there have been more of them in all than those that were split
/// by its beginning need to come together: so many for each task that was queued then.
const BAD_WINDOWS: u32 = 2;
const WANDERS_A_TASK: u32 = 4;
/// Windows in a row without such after which the trial has succeeded.
const GOOD_WINDOWS: u32 = 64;
/// The pause after the first trial that fails, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What all workers share.
pub(crate) struct Spread {
    /// Whether the runtime keeps talkers together at all: only then is there anything to try.
    keep_together: bool,
    cores: usize,
    on: AtomicBool,
    /// How often `on` was changed.
    changes: AtomicU32,
    /// Tasks that were queued where the last trial began.
    queued: AtomicU32,
    start: Instant,
    /// When the next trial may be, in nanoseconds since `start`.
    next_trial: AtomicU64,
    /// The pause after the next failure, in nanoseconds.
    pause: AtomicU64,
}

impl Spread {
    pub(crate) fn new(keep_together: bool) -> Self {
        Self {
            keep_together,
            cores: thread::available_parallelism().map_or(usize::MAX, NonZero::get),
            on: AtomicBool::new(false),
            changes: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            start: Instant::now(),
            next_trial: AtomicU64::new(0),
            pause: AtomicU64::new(nanos(FIRST_PAUSE)),
        }
    }

    /// Whether short queues are left alone. Relaxed, as all here: a worker that learns it late decides once more as
    /// before.
    #[inline]
    pub(crate) fn keeps_together(&self) -> bool {
        self.keep_together && !self.on.load(Ordering::Relaxed)
    }

    /// Whether this is on trial, or has been found good.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Whether another worker would have a core to itself, if so many are awake.
    #[inline]
    pub(crate) fn has_core_beside(&self, awake: usize) -> bool {
        awake < self.cores
    }

    fn since_start(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.start))
    }

    fn begin(&self, now: Instant, queued: usize) -> bool {
        let due = self.since_start(now) >= self.next_trial.load(Ordering::Relaxed);
        // One of several workers begins it.
        due && !self.on.swap(true, Ordering::Relaxed) && {
            self.queued.store(queued as u32, Ordering::Relaxed);
            self.changes.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    fn fail(&self, now: Instant) {
        if !self.is_on() {
            return;
        }
        let pause = self.pause.load(Ordering::Relaxed);
        let next = self.since_start(now).saturating_add(pause);
        // Before the end, so that nobody begins anew without the pause. Of two workers that end it at once one
        // has the say, and the pause doubles once more than it had to.
        self.next_trial.store(next, Ordering::Relaxed);
        self.pause
            .store((pause * 2).min(nanos(LONGEST_PAUSE)), Ordering::Relaxed);
        if self.on.swap(false, Ordering::AcqRel) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn succeed(&self) {
        self.pause.store(nanos(FIRST_PAUSE), Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What one worker sees; its thread only.
#[derive(Default)]
pub(crate) struct Seen {
    changes: Cell<u32>,
    busy_from: Cell<Option<Instant>>,
    window_from: Cell<Option<Instant>>,
    polls: Cell<u32>,
    wandered: Cell<u32>,
    /// Those of the windows since `on` was changed.
    wandered_before: Cell<u32>,
    bad: Cell<u32>,
    good: Cell<u32>,
}

impl Seen {
    /// A task is polled here that was polled elsewhere before.
    #[cold]
    pub(crate) fn count_wanderer(&self) {
        self.wandered.set(self.wandered.get().saturating_add(1));
    }

    /// The worker has nothing to do.
    pub(crate) fn slept(&self) {
        self.busy_from.set(None);
    }

    /// So many polls later. `true`: a trial begins, and somebody is to be woken for it.
    pub(crate) fn look(
        &self,
        spread: &Spread,
        now: Instant,
        polls: u32,
        can_try: impl FnOnce() -> usize,
    ) -> bool {
        if !spread.keep_together {
            return false;
        }
        let changes = spread.changes.load(Ordering::Relaxed);
        if self.changes.replace(changes) != changes {
            self.begin_window(now);
            self.wandered_before.set(0);
            self.bad.set(0);
            self.good.set(0);
        }
        if spread.is_on() {
            self.polls.set(self.polls.get() + polls);
            self.judge(spread, now);
            return false;
        }
        let busy_from = self.busy_from.get().unwrap_or(now);
        self.busy_from.set(Some(busy_from));
        if now - busy_from < BUSY {
            return false;
        }
        let queued = can_try();
        queued >= QUEUED && spread.begin(now, queued)
    }

    fn begin_window(&self, now: Instant) {
        self.window_from.set(Some(now));
        self.polls.set(0);
        self.wandered.set(0);
    }

    fn judge(&self, spread: &Spread, now: Instant) {
        let polls = self.polls.get();
        let is_long = || {
            self.window_from
                .get()
                .is_some_and(|from| now - from >= WINDOW_TIME)
        };
        if polls < FEW_POLLS || (polls < WINDOW_POLLS && !is_long()) {
            return;
        }
        let wandered = self.wandered.get();
        let is_bad = wandered.saturating_mul(WANDERS) > polls;
        let in_all = self.wandered_before.get().saturating_add(wandered);
        self.wandered_before.set(in_all);
        self.begin_window(now);
        if !is_bad {
            self.bad.set(0);
            self.good.set(self.good.get().saturating_add(1));
            if self.good.get() == GOOD_WINDOWS {
                spread.succeed();
            }
            return;
        }
        self.good.set(0);
        self.bad.set(self.bad.get().saturating_add(1));
        let split = spread.queued.load(Ordering::Relaxed);
        if self.bad.get() >= BAD_WINDOWS && in_all > split.saturating_mul(WANDERS_A_TASK) {
            spread.fail(now);
        }
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    /// One worker's looks, a window's polls each, at times that this tells.
    struct Worker {
        spread: Spread,
        seen: Seen,
        now: Instant,
    }

    impl Worker {
        fn new(keep_together: bool) -> Self {
            let spread = Spread::new(keep_together);
            let now = spread.start;
            let seen = Seen::default();
            Self { spread, seen, now }
        }

        fn look(&mut self, after: Duration, queued: usize) -> bool {
            self.now += after;
            self.seen
                .look(&self.spread, self.now, WINDOW_POLLS, || queued)
        }

        fn window(&mut self, wanderers: u32) {
            for _ in 0..wanderers {
                self.seen.count_wanderer();
            }
            assert!(!self.look(Duration::from_micros(100), 100));
        }

        /// Looks every while until a trial begins, and tells how long that took.
        fn until_trial(&mut self) -> Duration {
            let start = self.now;
            while !self.look(Duration::from_micros(100), QUEUED) {
                assert!(self.now - start < Duration::from_secs(10), "no trial");
            }
            self.now - start
        }

        fn fail(&mut self) {
            for _ in 0..=BAD_WINDOWS {
                self.window(WINDOW_POLLS / 2);
            }
        }
    }

    #[test]
    fn one_that_is_busy_for_a_while_is_tried_if_there_is_something_to_share() {
        let mut worker = Worker::new(true);
        assert!(!worker.look(Duration::ZERO, 100));
        assert!(!worker.look(BUSY / 2, 100), "not long enough");
        worker.seen.slept();
        assert!(!worker.look(BUSY, 100), "it has slept");
        assert!(!worker.look(BUSY, QUEUED - 1), "too few");
        assert!(worker.spread.keeps_together());
        assert!(worker.look(BUSY, QUEUED));
        assert!(!worker.spread.keeps_together());
    }

    #[test]
    fn groups_that_stay_are_left_spread() {
        let mut worker = Worker::new(true);
        assert!(!worker.look(Duration::ZERO, 100));
        assert!(worker.look(BUSY, 100));
        // At first those wander that were split.
        for _ in 0..=BAD_WINDOWS {
            worker.window(WINDOW_POLLS / 8);
        }
        for _ in 0..1000 {
            worker.window(WINDOW_POLLS / WANDERS);
        }
        assert!(worker.spread.is_on());
    }

    #[test]
    fn a_group_that_wanders_is_left_alone_and_tried_ever_less_often() {
        let mut worker = Worker::new(true);
        let _ = worker.until_trial();
        worker.fail();
        assert!(worker.spread.keeps_together());
        let first = worker.until_trial();
        worker.fail();
        let second = worker.until_trial();
        assert!(first > FIRST_PAUSE / 2, "{first:?}");
        assert!(second > first * 3 / 2, "{first:?}, {second:?}");
        for _ in 0..10 {
            worker.fail();
            let pause = worker.until_trial();
            assert!(pause < LONGEST_PAUSE * 2, "{pause:?}");
        }
        // A success forgets the failures.
        for _ in 0..=GOOD_WINDOWS {
            worker.window(0);
        }
        worker.fail();
        assert!(worker.until_trial() < FIRST_PAUSE * 2);
    }

    #[test]
    fn where_talkers_are_not_kept_together_there_is_nothing_to_try() {
        let mut worker = Worker::new(false);
        for _ in 0..10 {
            assert!(!worker.look(BUSY, 100));
        }
        assert!(!worker.spread.keeps_together());
        assert!(!worker.spread.is_on());
    }
}
