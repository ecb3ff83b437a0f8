//! The time of a runtime: the system's monotonic clock, until a test takes it over.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lock::Lock;

/// A timer's tick: a millisecond.
const TICK: Duration = Duration::from_millis(1);
/// The last tick; the number after it stands for "never".
const LAST_TICK: u64 = u64::MAX - 1;

/// Clocks that have ever been taken over. While there is none, nobody needs to ask which clock is
/// his.
static ALTERED: AtomicUsize = AtomicUsize::new(0);

/// Whether any runtime's time is not the system's.
#[inline]
pub(crate) fn any_altered() -> bool {
    // Relaxed: whoever alters a clock asks it on the same thread, or is told of it otherwise.
    ALTERED.load(Ordering::Relaxed) != 0
}

pub(crate) struct Clock {
    /// Tick 0.
    start: Instant,
    /// Has been paused at least once.
    altered: AtomicBool,
    hands: Lock<Hands>,
    /// Reasons for a paused clock not to run ahead when the runtime is idle.
    held_back: AtomicUsize,
}

/// The time shown is `shown`, and what has passed since `running`.
struct Hands {
    shown: Instant,
    running: Option<Instant>,
}

impl Clock {
    pub(super) fn new() -> Self {
        let start = Instant::now();
        Self {
            start,
            altered: AtomicBool::new(false),
            hands: Lock::new(Hands {
                shown: start,
                running: Some(start),
            }),
            held_back: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        if any_altered() && self.altered.load(Ordering::Acquire) {
            self.hands.lock().now()
        } else {
            Instant::now()
        }
    }

    /// The tick that is going on.
    pub(super) fn tick(&self) -> u64 {
        ticks(self.now().saturating_duration_since(self.start), false)
    }

    /// The first tick that does not begin before `deadline`.
    pub(super) fn tick_of(&self, deadline: Instant) -> u64 {
        ticks(deadline.saturating_duration_since(self.start), true)
    }

    /// When a tick begins; `None`: never.
    pub(super) fn instant_of(&self, tick: u64) -> Option<Instant> {
        self.start.checked_add(Duration::from_millis(tick))
    }

    /// Whether the clock stands.
    pub(crate) fn is_paused(&self) -> bool {
        self.altered.load(Ordering::Acquire) && self.hands.lock().running.is_none()
    }

    /// Stops the clock, at the beginning of a tick, so that a sleep of whole ticks takes just so long.
    /// `false`: it stands already.
    pub(crate) fn pause(&self) -> bool {
        let mut hands = self.hands.lock();
        if hands.running.is_none() {
            return false;
        }
        let altered = self.altered.load(Ordering::Relaxed);
        // Until it is altered it shows the system's time.
        let now = if altered { hands.now() } else { Instant::now() };
        *hands = Hands {
            shown: self.instant_of(self.tick_of(now)).unwrap_or(now),
            running: None,
        };
        if !altered {
            ALTERED.fetch_add(1, Ordering::Relaxed);
            self.altered.store(true, Ordering::Release);
        }
        true
    }

    /// Lets the clock go on from what it shows. `false`: it does not stand.
    pub(crate) fn resume(&self) -> bool {
        let mut hands = self.hands.lock();
        let stood = hands.running.is_none();
        if stood {
            hands.running = Some(Instant::now());
        }
        stood
    }

    /// Sets a clock that stands forward. `false`: it does not stand.
    pub(crate) fn advance(&self, time: Duration) -> bool {
        let mut hands = self.hands.lock();
        if hands.running.is_some() {
            return false;
        }
        // The end of time is as good a time as any.
        if let Some(later) = hands.shown.checked_add(time) {
            hands.shown = later;
        }
        true
    }

    /// Sets a clock that stands to a time, unless that has been.
    pub(super) fn advance_to(&self, time: Instant) {
        let mut hands = self.hands.lock();
        if hands.running.is_none() {
            hands.shown = hands.shown.max(time);
        }
    }

    /// Whether an idle runtime's clock may run ahead to its next timer.
    pub(super) fn may_run_ahead(&self) -> bool {
        any_altered() && self.held_back.load(Ordering::Acquire) == 0 && self.is_paused()
    }

    /// Something is under way that keeps a paused clock from running ahead.
    pub(super) fn hold_back(&self) {
        self.held_back.fetch_add(1, Ordering::AcqRel);
    }

    /// It is over.
    pub(super) fn let_go(&self) {
        self.held_back.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Hands {
    fn now(&self) -> Instant {
        match self.running {
            None => self.shown,
            Some(since) => self.shown + since.elapsed(),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if *self.altered.get_mut() {
            ALTERED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whole ticks in a time, rounded up or down, and never "never".
fn ticks(time: Duration, up: bool) -> u64 {
    let tick = TICK.as_nanos() as u32;
    let part = time.subsec_nanos() + if up { tick - 1 } else { 0 };
    let whole = time.as_secs().saturating_mul(1000);
    whole.saturating_add(u64::from(part / tick)).min(LAST_TICK)
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_rounded_up_and_the_present_down() {
        assert_eq!(ticks(Duration::ZERO, true), 0);
        assert_eq!(ticks(Duration::from_nanos(1), true), 1);
        assert_eq!(ticks(Duration::from_nanos(999_999), false), 0);
        assert_eq!(ticks(Duration::from_millis(1), true), 1);
        assert_eq!(ticks(Duration::from_nanos(1_999_999_999), true), 2000);
        assert_eq!(ticks(Duration::from_nanos(1_999_999_999), false), 1999);
        assert_eq!(ticks(Duration::MAX, true), LAST_TICK);
    }

    #[test]
    fn a_clock_that_stands_shows_one_time() {
        let clock = Clock::new();
        assert!(!clock.is_paused());
        assert!(!clock.advance(Duration::from_secs(1)));
        assert!(clock.pause());
        assert!(!clock.pause());
        let shown = clock.now();
        assert_eq!(clock.now(), shown);
        assert!(clock.advance(Duration::from_secs(5)));
        assert_eq!(clock.now(), shown + Duration::from_secs(5));
        assert!(
            clock.advance(Duration::MAX),
            "as far as it goes, which is nowhere"
        );
        clock.advance_to(shown);
        assert_eq!(clock.now(), shown + Duration::from_secs(5), "never back");
        assert!(clock.resume());
        assert!(!clock.resume());
        assert!(clock.now() >= shown + Duration::from_secs(5));
    }
}
