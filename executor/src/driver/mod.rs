//! What turns the outside world into wakes: readiness of sources, and time.
//!
//! There is one driver in a runtime and no thread of its own for it. It is a resource that one
//! worker holds at a time: a parked worker waits in it, a busy one looks into it every now and then.
//! Who takes it, and when, is the scheduler's business (`scheduler/worker/drive.rs`); this module
//! knows nothing of workers.
//!
//! It starts empty. The poller, with its three descriptors, is made when the first source or timer
//! asks for it; until then nobody waits here and parking costs what it costs without a driver.

mod direction;
mod reactor;
mod registration;
mod wakes;

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use reactor::{Reactor, Wait};
pub(crate) use registration::{Interest, Registration};
pub(crate) use wakes::Wakes;

use crate::scheduler::parker::Parker;

/// The reactor and the timers of a runtime.
///
/// Sources and timers count references to it, and it holds their wakers, which count references to
/// tasks, which own sources: a circle that [`shut_down`](Self::shut_down) opens.
pub(crate) struct Driver {
    /// Absent until somebody needs it.
    reactor: OnceLock<Reactor>,
    /// Turns so far, modulo 2³²: whether anybody has looked since.
    turns: AtomicU32,
}

impl Driver {
    pub(crate) fn new() -> Self {
        Self {
            reactor: OnceLock::new(),
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

    /// Lets go of every waker. Sources fail from now on.
    pub(crate) fn shut_down(&self) {
        let mut wakes = Wakes::default();
        if let Some(reactor) = self.reactor.get() {
            reactor.close(&mut wakes);
        }
        wakes.fire();
    }

    fn reactor(&self) -> io::Result<&Reactor> {
        self.reactor
            .get()
            .ok_or_else(|| io::Error::other("the runtime's reactor has not been started"))
    }
}

/// The driver, held by one thread.
pub(crate) struct Hold<'a> {
    driver: &'a Driver,
    wait: Wait<'a>,
}

impl Hold<'_> {
    /// Sleeps here until an event, an interruption or the end of `limit`; not if there is a token.
    /// `true`: there was or is a token at `parker`, which has been taken.
    pub(crate) fn park(
        &mut self,
        parker: &Parker,
        limit: Option<Duration>,
        wakes: &mut Wakes,
    ) -> bool {
        let token = parker.park_in(|| self.wait.wait(limit, wakes));
        self.count_turn();
        token
    }

    /// Looks without sleeping.
    pub(crate) fn look(&mut self, wakes: &mut Wakes) {
        self.wait.wait(Some(Duration::ZERO), wakes);
        self.count_turn();
    }

    /// Only the holder counts.
    fn count_turn(&self) {
        let turns = self.driver.turns.load(Ordering::Relaxed);
        self.driver
            .turns
            .store(turns.wrapping_add(1), Ordering::Relaxed);
    }
}
