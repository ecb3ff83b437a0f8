//! Ticks at equal distances.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Instant, Sleep, sleep_until};

/// A tick that comes later than this has been missed; less is the grain of the timers and the pace
/// of the machine.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Ticks at once, and then every `period`.
///
/// # Panics
/// If `period` is zero; and as [`sleep`](super::sleep()).
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::interval;
///
/// wakerun::block_on(async {
///     let mut ticks = interval(Duration::from_millis(2));
///     let first = ticks.tick().await;
///     let second = ticks.tick().await;
///     assert_eq!(second - first, Duration::from_millis(2));
/// });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks at `start`, and then every `period`.
///
/// # Panics
/// As [`interval`].
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{Instant, interval_at};
///
/// wakerun::block_on(async {
///     let start = Instant::now() + Duration::from_millis(3);
///     let mut ticks = interval_at(start, Duration::from_millis(2));
///     assert_eq!(ticks.tick().await, start);
/// });
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval must not be zero"
    );
    Interval {
        delay: Box::pin(sleep_until(start)),
        period,
        missed: MissedTickBehavior::default(),
    }
}

/// What an [`Interval`] does when it was not asked for a tick in time, by more than five
/// milliseconds.
///
/// With a period of 10 ms, ticks at 0, 10 and then, since the task was busy, at 35:
///
/// | | the next ones |
/// |---|---|
/// | `Burst` | at once (for 30), 40, 50: none is lost |
/// | `Delay` | 45, 55: the distance is kept |
/// | `Skip` | 40, 50: the raster is kept |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// Catches up: one tick after the other without a pause.
    #[default]
    Burst,
    /// Goes on a period after the late tick.
    Delay,
    /// Leaves the missed ones out.
    Skip,
}

impl MissedTickBehavior {
    /// When the tick after a late one is due.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due.after(period),
            Self::Delay => now.after(period),
            Self::Skip => {
                let late = now - due;
                let over = late.as_nanos() % period.as_nanos();
                // Less than a period, which is a Duration.
                let over =
                    Duration::new((over / 1_000_000_000) as u64, (over % 1_000_000_000) as u32);
                now.after(period - over)
            }
        }
    }
}

/// Ticks at equal distances; see [`interval`].
///
/// It measures from tick to tick, whatever the task does in between: the distance of two ticks does
/// not grow with that.
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

impl Interval {
    /// Waits for the next tick, and returns when it was due.
    ///
    /// *Cancel safe*: a tick is not lost when the future is dropped.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The `poll_` form of [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(cx));
        let due = self.delay.deadline();
        let now = Instant::now();
        let next = if now - due > TOLERANCE {
            self.missed.next(due, now, self.period)
        } else {
            due.after(self.period)
        };
        self.delay.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// The next tick is a period from now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wakerun::time::{Instant, interval};
    ///
    /// wakerun::block_on(async {
    ///     let mut ticks = interval(Duration::from_millis(2));
    ///     ticks.reset();
    ///     let start = Instant::now();
    ///     ticks.tick().await;
    ///     assert!(start.elapsed() >= Duration::from_millis(1));
    /// });
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// The next tick is now.
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// The next tick is this much later than now.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(Instant::now().after(after));
    }

    /// The next tick is at `deadline`.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// What happens to missed ticks.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets what happens to missed ticks; [`Burst`](MissedTickBehavior::Burst) by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wakerun::time::{MissedTickBehavior, interval};
    ///
    /// wakerun::block_on(async {
    ///     let mut ticks = interval(Duration::from_millis(2));
    ///     ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ///     ticks.tick().await;
    /// });
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// The distance of two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.delay.deadline())
            .field("period", &self.period)
            .field("missed_tick_behavior", &self.missed)
            .finish()
    }
}
