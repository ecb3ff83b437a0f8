//! How long a worker's polls take, and how often it looks at the clock for that.
//!
//! Polls are measured some dozens at a time, so that the clock is read seldom. What a measure gives is the mean by
//! which queues are judged (`scheduler/worth.rs`), and how often the worker looks at what comes from outside. Sleeps,
//! searches and the waking of other workers are left out of it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Worker;
use crate::scheduler::worth::UNKNOWN_MEAN_NS;

/// Polls that are measured together; and, if they are short, between two readings of the clock, and two looks at what
/// comes from outside. A power of two, to which steps that double come back.
const POLLS_PER_READING: u32 = 32;
/// Polls that are enough when nothing is known yet, or when they have taken long.
const FEW_POLLS: u32 = 8;
const LONG_MEASURE: Duration = Duration::from_millis(1);
/// Polls before the first reading after a sleep; then twice as many each time.
const FIRST_READING: u32 = 4;
/// A sleep after which the polls of before say nothing about the next ones. Shorter ones are those of tasks that
/// wait for each other.
const LONG_SLEEP: Duration = Duration::from_millis(1);
/// Time between two readings of the clock, if polls are long: a task from outside waits about this long at most while
/// the worker has work of its own. And the time between two looks of a busy worker into the driver, which cost two
/// microseconds each.
pub(super) const READING_PATIENCE_NS: u32 = 250_000;
/// Clock readings between two times that a worker lets go of what its end-of-poll hooks keep.
const READINGS_PER_CLEARING: u32 = 4096;

/// A worker's measure of its polls. What each poll needs comes first.
#[repr(C)]
pub(super) struct Measure {
    /// Polls until the clock is read, of how many.
    until_reading: Cell<u32>,
    step: Cell<u32>,
    /// Since when polls are measured, if they are; how many were counted, and the time of those before a sleep.
    since: Cell<Option<Instant>>,
    polls: Cell<u32>,
    before: Cell<Duration>,
    /// What the last measure gave.
    last_mean: Cell<u32>,
    readings: Cell<u32>,
}

impl Measure {
    pub(super) fn new() -> Self {
        Self {
            until_reading: Cell::new(FIRST_READING),
            step: Cell::new(FIRST_READING),
            since: Cell::new(None),
            polls: Cell::new(0),
            before: Cell::new(Duration::ZERO),
            last_mean: Cell::new(UNKNOWN_MEAN_NS),
            readings: Cell::new(0),
        }
    }

    /// Leaves the time since then out of the measure.
    pub(super) fn leave_out(&self, from: Instant) {
        if let Some(since) = self.since.get() {
            self.since.set(Some(since + from.elapsed()));
        }
    }
}

/// Polls until the next reading, after one of so many: twice as many, if they are short, but no further than the end of
/// the measure.
fn next_step(step: u32, mean: Option<u32>, measured: u32) -> u32 {
    let in_time = mean.map_or(u32::MAX, |mean| (READING_PATIENCE_NS / mean).max(1));
    (step * 2).min(in_time).min(POLLS_PER_READING - measured)
}

impl Worker {
    /// Counts a poll, and reads the clock every now and then. `true`: it did, and it is time to look at what comes from
    /// outside, too.
    #[inline(always)]
    pub(crate) fn count_poll(&self) -> bool {
        let left = self.measure.until_reading.get() - 1;
        self.measure.until_reading.set(left);
        if left == 0 {
            self.read_clock();
        }
        left == 0
    }

    #[cold]
    #[inline(never)]
    fn read_clock(&self) {
        let now = Instant::now();
        self.look_at_spread(now, self.measure.step.get());
        let mut mean_now = None;
        if let Some(start) = self.measure.since.get() {
            let polls = self.measure.polls.get() + self.measure.step.get();
            let time = self.measure.before.get() + (now - start);
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let mean = u32::try_from(nanos / u64::from(polls))
                .unwrap_or(UNKNOWN_MEAN_NS - 1)
                .max(1);
            mean_now = Some(mean);
            if polls >= self.polls_wanted(time) {
                self.row.measured(mean);
                // A worker that has lost its core for a while is no reason to split up tasks that talk: what counts
                // as long has been so twice in a row.
                let mean = mean.min(self.measure.last_mean.replace(mean));
                self.remote().set_mean_ns(mean);
                self.measure_from(now);
            } else {
                self.measure.polls.set(polls);
                // So few may be of one kind only: they make rows shorter, not longer.
                self.row.measured(mean.max(self.measure.last_mean.get()));
            }
        } else {
            self.measure_from(now);
        }
        let step = next_step(self.measure.step.get(), mean_now, self.measure.polls.get());
        self.measure.step.set(step);
        self.measure.until_reading.set(step);
        // Both looks are made between two tasks.
        self.note_due_look(now);
        self.look_outside.set(true);
        let readings = self.measure.readings.get() + 1;
        if readings < READINGS_PER_CLEARING {
            self.measure.readings.set(readings);
        } else {
            self.measure.readings.set(0);
            self.hooks.clear();
        }
    }

    /// Looks what comes of sharing out short queues, or tries it.
    fn look_at_spread(&self, now: Instant, polls: u32) {
        let shared = &self.shared;
        let queued = || {
            let awake = shared.awake();
            let can_wake = awake < shared.remotes.len() && shared.spread.has_core_beside(awake);
            if can_wake { self.ring.len() } else { 0 }
        };
        if self.seen_spread.look(&shared.spread, now, polls, queued) {
            self.notify_one();
        }
    }

    /// How many polls make a measure, if they have taken that time.
    fn polls_wanted(&self, time: Duration) -> u32 {
        let few = self.remote().mean_ns() == UNKNOWN_MEAN_NS || time >= LONG_MEASURE;
        if few { FEW_POLLS } else { POLLS_PER_READING }
    }

    /// Begins a measure.
    fn measure_from(&self, now: Instant) {
        self.measure.since.set(Some(now));
        self.measure.polls.set(0);
        self.measure.before.set(Duration::ZERO);
    }

    /// A sleep begins: its time is not that of polls.
    pub(super) fn pause_measure(&self, now: Instant) {
        if let Some(start) = self.measure.since.take() {
            let time = self.measure.before.get() + (now - start);
            self.measure.before.set(time);
            let polls = self.measure.step.get() - self.measure.until_reading.get();
            self.measure.polls.set(self.measure.polls.get() + polls);
        }
    }

    /// A sleep that began then is over. After a short one the measure goes on, and the mean holds: tasks that talk
    /// to each other over two workers sleep again and again, and if that made their polls count as unknown, they
    /// would be worth two workers for ever.
    pub(super) fn resume_measure(&self, slept_from: Instant, now: Instant) {
        if now - slept_from >= LONG_SLEEP {
            self.forget_mean();
            return;
        }
        self.measure.since.set(Some(now));
        // No further than the end of the measure, to which it comes over many sleeps, too.
        let left = self
            .polls_wanted(Duration::ZERO)
            .saturating_sub(self.measure.polls.get());
        let step = left.clamp(1, FIRST_READING);
        self.measure.step.set(step);
        self.measure.until_reading.set(step);
    }

    /// Forgets what was measured: the next polls may be of another kind.
    pub(super) fn forget_mean(&self) {
        self.measure.since.set(None);
        self.measure.polls.set(0);
        self.measure.before.set(Duration::ZERO);
        self.measure.until_reading.set(FIRST_READING);
        self.measure.step.set(FIRST_READING);
        self.measure.last_mean.set(UNKNOWN_MEAN_NS);
        self.remote().set_mean_ns(UNKNOWN_MEAN_NS);
        self.row.forget();
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_once_a_measure_when_polls_are_short() {
        for first in 1..=POLLS_PER_READING {
            for measured in 0..=POLLS_PER_READING - first {
                let (mut step, mut measured) = (first, measured);
                for _ in 0..2 * POLLS_PER_READING {
                    measured = (measured + step) % POLLS_PER_READING;
                    step = next_step(step, Some(100), measured);
                }
                assert_eq!(step, POLLS_PER_READING, "from a step of {first}");
            }
        }
    }

    #[test]
    fn the_clock_is_read_after_each_poll_when_they_are_long() {
        assert_eq!(next_step(32, Some(READING_PATIENCE_NS), 0), 1);
        assert_eq!(next_step(32, Some(UNKNOWN_MEAN_NS - 1), 0), 1);
        assert_eq!(next_step(16, Some(READING_PATIENCE_NS / 5), 3), 5);
    }
}
