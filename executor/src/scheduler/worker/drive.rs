//! Who takes the driver, and when.
//!
//! A worker that goes to sleep waits in the driver if nobody else has it. Two kinds leave it alone:
//! one that was woken from elsewhere and has run nothing, and is therefore not the last to go to
//! sleep: it has been called to keep watch, and the worker that has left the driver with an event
//! comes back to it in a moment; and one that finds it taken.
//!
//! **Somebody waits in the driver whenever all are parked.** The last to park takes it. If another
//! one has it then, that one is parked, too, and a parked worker keeps the driver until it is off
//! the list of sleepers (`sleep`): it takes itself off first and gives the driver back after.
//!
//! **While some run** the driver is served within a bound:
//!
//! - a worker that runs tasks looks into it as often as [`READING_PATIENCE_NS`] says, by the clock that it reads
//!   anyway, when its polls are shorter than that, and after each poll when they are longer;
//! - a poll may take for ever. But if anyone is parked, one of them keeps watch (`idle.rs`; a worker
//!   that leaves the driver with work sees to that), and takes the driver at the second of two looks,
//!   a millisecond apart, between which nobody has turned it.
//!
//! So an event waits two milliseconds at most while a worker sleeps, and one poll while all work.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Worker;
use super::measure::READING_PATIENCE_NS;
use crate::driver::{Hold, Turn};

/// A worker's looks into the driver while it runs tasks.
#[derive(Default)]
pub(super) struct Looks {
    /// One is to be made before the next task.
    due: Cell<bool>,
    last: Cell<Option<Instant>>,
    /// The driver's turns at that time.
    turns: Cell<u32>,
}

impl Worker {
    /// Takes the driver for a sleep, if it is this worker's to take.
    pub(super) fn take_driver(&self, last: bool) -> Option<Hold<'_>> {
        let driver = &self.shared.driver;
        if !driver.in_use() || !(last || self.may_drive()) {
            return None;
        }
        let hold = driver.try_hold()?;
        self.shared.idle.note_in_driver(self.index, true);
        Some(hold)
    }

    /// Takes the driver if nobody has turned it since the last look.
    pub(super) fn take_stalled_driver(&self, turns: &mut Option<u32>) -> Option<Hold<'_>> {
        let driver = &self.shared.driver;
        let now = driver.turns();
        if turns.replace(now) != Some(now) {
            return None;
        }
        self.take_driver(true)
    }

    /// Whether this worker has run something since it was last woken from outside the driver.
    fn may_drive(&self) -> bool {
        self.woken_at.get() != Some(self.remote().phase.polls())
    }

    /// One sleep in the driver.
    pub(super) fn lie_in_driver(&self, hold: &mut Hold<'_>, limit: Option<Duration>) -> Turn {
        let mut wakes = self.wakes.take();
        let turn = hold.park(&self.remote().parker, limit, &mut wakes);
        self.wakes.set(wakes);
        turn
    }

    /// Gives the driver back after a sleep, and wakes what it has brought.
    pub(super) fn get_up(&self, hold: Option<Hold<'_>>) {
        let Some(hold) = hold else {
            self.woken_at.set(Some(self.remote().phase.polls()));
            return;
        };
        self.woken_at.set(None);
        self.shared.idle.note_in_driver(self.index, false);
        drop(hold);
        self.left_driver.set(true);
        self.fire();
    }

    /// Notes whether this busy worker is to look into the driver: some time has passed, and nobody else
    /// has turned it meanwhile.
    pub(super) fn note_due_look(&self, now: Instant) {
        let driver = &self.shared.driver;
        let patience = Duration::from_nanos(u64::from(READING_PATIENCE_NS));
        let soon = |last: Instant| now.saturating_duration_since(last) < patience;
        if !driver.in_use() || self.looks.last.get().is_some_and(soon) {
            return;
        }
        self.looks.last.set(Some(now));
        let turns = driver.turns();
        let due = self.looks.turns.replace(turns) == turns;
        self.looks.due.set(due);
    }

    /// The look, between two tasks.
    #[inline]
    pub(super) fn look_if_due(&self) {
        if self.looks.due.get() {
            self.look_into_driver();
        }
    }

    #[cold]
    fn look_into_driver(&self) {
        self.looks.due.set(false);
        let driver = &self.shared.driver;
        let Some(mut hold) = driver.try_hold() else {
            return;
        };
        let mut wakes = self.wakes.take();
        hold.look(&mut wakes);
        self.wakes.set(wakes);
        drop(hold);
        self.looks.turns.set(driver.turns());
        self.fire();
    }

    /// Wakes what a turn of the driver has brought; nothing is held.
    fn fire(&self) {
        // Foreign code may come here once more, and finds an empty list.
        let mut wakes = self.wakes.take();
        self.foreign(|| {
            wakes.fire();
            self.wakes.set(wakes);
            self.shared.driver.fire_timers();
        });
    }
}
