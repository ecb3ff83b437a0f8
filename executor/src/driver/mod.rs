//! What turns the outside world into wakes: readiness of sources, and time.
//!
//! There is one driver in a runtime and no thread of its own for it. It is a resource that one
//! worker holds at a time: a parked worker waits in it, a busy one looks into it every now and then.
//! Who takes it, and when, is the scheduler's business (`scheduler/worker/drive.rs`); this module
//! knows nothing of workers.
//!
//! It starts empty. The poller, with its three descriptors, is made when the first source or timer
//! asks for it; until then nobody waits here and parking costs what it costs without a driver.

mod arming;
pub(crate) mod clock;
mod direction;
#[cfg(all(test, wakerun_loom))]
mod loom_tests;
mod reactor;
mod registration;
mod timers;
mod wakes;

use std::io;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use clock::Clock;
pub(crate) use direction::Interest;
use reactor::{Reactor, Wait};
pub(crate) use registration::Registration;
use timers::Timers;
pub(crate) use timers::{Brought, Entry, State};
pub(crate) use wakes::Wakes;

use crate::scheduler::parker::Parker;

/// The reactor and the timers of a runtime.
///
/// Sources and timers count references to it, and it holds their wakers, which count references to
/// tasks, which own sources: a circle that [`shut_down`](Self::shut_down) opens.
pub(crate) struct Driver {
    /// Absent until somebody needs it.
    reactor: OnceLock<Reactor>,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    /// Turns so far, modulo 2³²: whether anybody has looked since.
    turns: AtomicU32,
}

impl Driver {
    pub(crate) fn new() -> Self {
        Self {
            reactor: OnceLock::new(),
            timers: Timers::new(),
            clock: Clock::new(),
            turns: AtomicU32::new(0),
        }
    }

    /// Whether there is anything to wait for.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.reactor.get().is_some()
    }

    /// Makes the reactor unless it is there. `true`: it is new, and the caller has to see to it that
    /// a worker comes to wait in it.
    pub(crate) fn start(&self) -> io::Result<bool> {
        if self.in_use() {
            return Ok(false);
        }
        let new = self.reactor.set(Reactor::new()?).is_ok();
        // Pairs with the fence in `Idle::announce`: a worker that parks now sees the driver, or is
        // on the list of sleepers, where the caller finds it.
        fence(Ordering::SeqCst);
        Ok(new)
    }

    /// Turns so far. Relaxed: who reads it wants to know whether it moves within a millisecond.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Takes the driver, unless it does not exist or somebody has it.
    pub(crate) fn try_hold(&self) -> Option<Hold<'_>> {
        let wait = self.reactor.get()?.try_wait()?;
        Some(Hold { driver: self, wait })
    }

    /// Ends the wait of the one who is in [`Hold::park`], or the next one if it has just ended.
    pub(crate) fn interrupt(&self) {
        if let Some(reactor) = self.reactor.get() {
            reactor.interrupt();
        }
    }

    /// Sets a timer.
    ///
    /// # Safety
    /// The entry is the caller's and IDLE, and stays in place until it is not WAITING any more.
    pub(crate) unsafe fn insert_timer(
        &self,
        entry: &Entry,
        deadline: Instant,
        waker: Waker,
    ) -> Brought {
        let when = self.clock.tick_of(deadline);
        // SAFETY: handed on.
        let brought = unsafe { self.timers.insert(entry, when, waker) };
        if brought == Brought::Interrupt {
            self.interrupt();
        }
        brought
    }

    /// Changes the time of a timer that waits. If it is due by that, it is IDLE, and its waker is to
    /// be woken.
    ///
    /// # Safety
    /// As [`insert_timer`](Self::insert_timer), and it has been inserted here.
    pub(crate) unsafe fn move_timer(&self, entry: &Entry, deadline: Instant) -> Option<Waker> {
        let when = self.clock.tick_of(deadline);
        // SAFETY: handed on.
        let (brought, waker) = unsafe { self.timers.move_to(entry, when) }?;
        if brought == Brought::Interrupt {
            self.interrupt();
        }
        waker
    }

    /// Wakes those whose timers are due.
    pub(crate) fn fire_timers(&self) {
        let now = self.clock.tick();
        if self.timers.is_due(now) {
            self.timers.fire(now);
        }
    }

    /// Lets go of every waker. Sources and timers fail from now on.
    pub(crate) fn shut_down(&self) {
        let mut wakes = Wakes::default();
        if let Some(reactor) = self.reactor.get() {
            reactor.close(&mut wakes);
        }
        wakes.fire();
        self.timers.close();
    }

    /// How long to sleep; tells those who bring timers.
    fn plan_sleep(&self, limit: Option<Duration>) -> Option<Duration> {
        if self.clock.is_paused() {
            // No timer comes by itself.
            return limit;
        }
        let now = self.clock.now();
        let end = limit.and_then(|limit| now.checked_add(limit));
        let until = self.timers.plan(end.map(|end| self.clock.tick_of(end)))?;
        let time = self.clock.instant_of(until)?.saturating_duration_since(now);
        Some(limit.map_or(time, |limit| time.min(limit)))
    }

    /// Sets a paused clock to the next timer. `false`: there is none.
    fn run_ahead(&self) -> bool {
        let Some(next) = self.timers.next() else {
            return false;
        };
        if let Some(time) = self.clock.instant_of(next) {
            self.clock.advance_to(time);
        }
        true
    }

    /// Keeps a paused clock from running ahead while the guard lives.
    pub(crate) fn hold_clock_back(self: &Arc<Self>) -> HeldBack {
        self.clock.hold_back();
        HeldBack(self.clone())
    }

    fn reactor(&self) -> io::Result<&Reactor> {
        self.reactor
            .get()
            .ok_or_else(|| io::Error::other("the runtime's reactor has not been started"))
    }
}

/// Something is under way that the runtime does not see, such as blocking work: a paused clock waits
/// for its end.
pub(crate) struct HeldBack(Arc<Driver>);

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.0.clock.let_go();
        // A runtime that sleeps looks again whether it may run ahead.
        if self.0.clock.is_paused() {
            self.0.interrupt();
        }
    }
}

/// The driver, held by one thread.
pub(crate) struct Hold<'a> {
    driver: &'a Driver,
    wait: Wait<'a>,
}

impl Hold<'_> {
    /// Sleeps here until an event, a timer, an interruption or the end of `limit`; not if there is a
    /// token at `parker`.
    pub(crate) fn park(
        &mut self,
        parker: &Parker,
        limit: Option<Duration>,
        wakes: &mut Wakes,
    ) -> Turn {
        let driver = self.driver;
        let ahead = driver.clock.may_run_ahead();
        let time = if ahead {
            Some(Duration::ZERO)
        } else {
            driver.plan_sleep(limit)
        };
        let token = parker.park_in(|| self.wait.wait(time, wakes));
        if !ahead {
            driver.timers.awake();
        }
        self.count_turn();
        let mut due = driver.timers.is_due(driver.clock.tick());
        if ahead && !token && !due && wakes.is_empty() {
            due = driver.run_ahead();
        }
        let events = due || !wakes.is_empty();
        Turn { token, events }
    }

    /// Looks without sleeping.
    pub(crate) fn look(&mut self, wakes: &mut Wakes) {
        self.wait.wait(Some(Duration::ZERO), wakes);
        self.count_turn();
    }

    /// Only the holder counts.
    fn count_turn(&self) {
        let turns = &self.driver.turns;
        let now = turns.load(Ordering::Relaxed);
        turns.store(now.wrapping_add(1), Ordering::Relaxed);
    }
}

/// What has ended a sleep in the driver; nothing, if it was time or an interruption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// There was or is a token, which has been taken.
    pub(crate) token: bool,
    /// There is something to be woken: what has been collected, or timers.
    pub(crate) events: bool,
}
