//! How a worker goes to sleep, and what it does when it keeps watch.

use std::time::{Duration, Instant};

use super::Worker;
use crate::driver::{Hold, Turn};
use crate::scheduler::remote::Remote;
use crate::scheduler::worth::UNKNOWN_MEAN_NS;
use crate::task::header::Task;

/// How often a parked worker looks at the others while any of them runs.
const WATCH_INTERVAL: Duration = Duration::from_millis(1);
/// Looks at a sleeping runtime before the watcher sleeps, too: a runtime that is woken a few
/// hundred times a second keeps its watcher, and needs not wake it each time.
const IDLE_LOOKS: u32 = 4;

/// How a worker lies: on watch or not, in the driver or not.
struct Bed<'a> {
    watch: Option<Watch>,
    hold: Option<Hold<'a>>,
}

struct Watch {
    /// Looks in a row at a runtime that sleeps.
    idle_looks: u32,
    /// The driver's turns at the last look.
    turns: Option<u32>,
}

impl<'a> Bed<'a> {
    fn new(watch: bool, hold: Option<Hold<'a>>) -> Self {
        let watch = watch.then_some(Watch {
            idle_looks: 0,
            turns: None,
        });
        Self { watch, hold }
    }
}

impl Worker {
    /// Sleeps until notified. Returns a task if it rescued one; this worker is a searcher then, and
    /// if it was notified.
    pub(super) fn park(&self) -> Option<Task> {
        // Hooks and what the end-of-poll hooks keep are foreign code, which may queue tasks right
        // here: all of it runs before this worker is on the list of sleepers, or after it has left it.
        self.hooks.clear();
        let before = Instant::now();
        self.pause_measure(before);
        self.seen_spread.slept();
        self.shared.hooks.on_park();
        let rescued = if self.has_own_work() {
            None
        } else {
            self.sleep()
        };
        self.resume_measure(before, Instant::now());
        self.shared.hooks.on_unpark();
        rescued
    }

    /// Announces itself, looks once more, and sleeps.
    fn sleep(&self) -> Option<Task> {
        let announced = self
            .shared
            .idle
            .announce(self.index, self.searching.replace(false));
        // The sleeper's third step.
        if !self.shared.injector.is_empty() || self.shared.is_shut_down() {
            self.wake_up();
            return None;
        }
        let mut bed = Bed::new(announced.watch, self.take_driver(announced.last));
        if bed.watch.is_some() {
            self.look(&mut |_| None);
        }
        let rescued = loop {
            let turn = self.lie(&mut bed);
            if turn.token {
                self.searching.set(true);
                break None;
            }
            if turn.events {
                self.wake_up();
                break None;
            }
            if let Some(watch) = &mut bed.watch {
                let rescued = self.look(&mut |victim| self.rescue(victim));
                if rescued.is_some() {
                    self.wake_up();
                    break rescued;
                }
                if bed.hold.is_none() {
                    bed.hold = self.take_stalled_driver(&mut watch.turns);
                }
                if self.is_watch_over(&mut watch.idle_looks) {
                    bed.watch = None;
                }
            }
        };
        // Off the list by now: on it, and out of the driver, nobody would be in it.
        self.get_up(bed.hold);
        rescued
    }

    /// One sleep, in the driver or outside, for as long as the watch allows.
    fn lie(&self, bed: &mut Bed<'_>) -> Turn {
        let limit = bed.watch.is_some().then_some(WATCH_INTERVAL);
        let parker = &self.remote().parker;
        let token = match (&mut bed.hold, limit) {
            (Some(hold), limit) => return self.lie_in_driver(hold, limit),
            (None, Some(limit)) => parker.park_timeout(limit),
            (None, None) => {
                parker.park();
                true
            }
        };
        Turn {
            token,
            events: false,
        }
    }

    /// Whether a task stands in this worker's own queues.
    fn has_own_work(&self) -> bool {
        !self.ring.is_empty() || !self.remote().next.is_empty()
    }

    /// Sleeps on a current-thread runtime, until notified or until the main future's waker unparks;
    /// not if `reason` says so.
    pub(crate) fn park_unless(&self, reason: impl FnOnce() -> bool) {
        self.hooks.clear();
        self.forget_mean();
        self.shared.hooks.on_park();
        if !self.has_own_work() {
            // A lone worker has nobody to watch.
            let _ = self.shared.idle.announce(self.index, false);
            let mut hold = None;
            if self.shared.injector.is_empty() && !self.shared.is_shut_down() && !reason() {
                // Nobody else can have the driver.
                hold = self.take_driver(true);
                match &mut hold {
                    Some(hold) => {
                        let _ = self.lie_in_driver(hold, None);
                    }
                    None => self.remote().parker.park(),
                }
            }
            // Still on the list if it was not work that ended the sleep. If it is off, a token may
            // be left behind; it ends the next sleep early, and nothing is lost by that.
            let _ = self.shared.idle.retract(self.index);
            let _ = self.shared.idle.stop_searching();
            self.get_up(hold);
        }
        self.shared.hooks.on_unpark();
    }

    /// Leaves the list of sleepers, by own decision or because somebody took this worker off it.
    fn wake_up(&self) {
        if !self.shared.idle.retract(self.index) {
            // The token is there, or about to be: take it, so that it does not end a later sleep.
            self.remote().parker.park();
        }
        self.searching.set(true);
    }

    /// Whether all have slept for a while, so that this watcher may sleep without a limit, too.
    fn is_watch_over(&self, idle_looks: &mut u32) -> bool {
        if self.shared.idle.relaxed().parked() < self.shared.remotes.len() {
            *idle_looks = 0;
            return false;
        }
        *idle_looks += 1;
        *idle_looks >= IDLE_LOOKS && self.shared.idle.stop_watching(self.index)
    }

    /// One look: calls `stuck` for each other worker that has not moved since the last one.
    fn look(&self, stuck: &mut dyn FnMut(&Remote) -> Option<Task>) -> Option<Task> {
        let mut seen = self.seen.borrow_mut();
        for (index, remote) in self.shared.remotes.iter().enumerate() {
            let polls = remote.phase.polls();
            let before = std::mem::replace(&mut seen[index], polls);
            if index != self.index
                && before == polls
                && let Some(task) = stuck(remote)
            {
                return Some(task);
            }
        }
        None
    }

    /// Takes work from a worker that has been in one poll since the last look.
    fn rescue(&self, victim: &Remote) -> Option<Task> {
        // Its polls are not what they were.
        victim.set_mean_ns(UNKNOWN_MEAN_NS);
        if victim.stealer.is_empty() && victim.next.is_empty() {
            return None;
        }
        let visit = victim.phase.visit()?;
        victim
            .stealer
            .steal(&self.ring, |queued| queued - queued / 2);
        let next = victim.next.take(false);
        drop(visit);
        next.or_else(|| self.ring.pop(false))
    }
}
