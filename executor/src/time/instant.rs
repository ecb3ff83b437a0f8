//! A time of the monotonic clock, or of a test's.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use crate::context;
use crate::driver::clock;

/// Waits "for ever" end this far in the future, where the clock cannot show their end.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A point in time of the clock that timers go by.
///
/// It is [`std::time::Instant`], from which and to which it converts, but in a runtime whose clock
/// has been [paused](super::pause): there it is that runtime's time. On Linux this clock does not
/// count the time that the machine is suspended; sleeps are longer by it.
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::Instant;
///
/// let start = Instant::now();
/// let later = start + Duration::from_millis(20);
/// assert_eq!(later - start, Duration::from_millis(20));
/// assert_eq!(Instant::from_std(later.into_std()), later);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// The present, by the clock of the current runtime, or by the system's outside one.
    pub fn now() -> Self {
        if clock::any_altered()
            && let Ok(now) = context::with_current_ref(|shared| shared.driver.clock.now())
        {
            return Self(now);
        }
        Self(std::time::Instant::now())
    }

    /// From `std`'s.
    pub fn from_std(std: std::time::Instant) -> Self {
        Self(std)
    }

    /// To `std`'s.
    pub fn into_std(self) -> std::time::Instant {
        self.0
    }

    /// This much time from now, or some decades from now if the clock does not reach that far.
    pub(crate) fn after(self, time: Duration) -> Self {
        self.checked_add(time).unwrap_or(Self(self.0 + FAR))
    }

    /// The time since `earlier`; zero if that is later.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The time since `earlier`; `None` if that is later.
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// As [`duration_since`](Self::duration_since).
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// How long ago this was; zero if it is yet to come.
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// `self + time`; `None` if the clock does not reach that far.
    pub fn checked_add(&self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }

    /// `self - time`; `None` if the clock does not reach that far back.
    pub fn checked_sub(&self, time: Duration) -> Option<Self> {
        self.0.checked_sub(time).map(Self)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Self {
        Self(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

/// # Panics
/// If the clock does not reach that far; [`checked_add`](Instant::checked_add) does not.
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        self.0 += time;
    }
}

/// The time between; zero if the other is later.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

/// # Panics
/// If the clock does not reach that far back.
impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self(self.0 - time)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, time: Duration) {
        self.0 -= time;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
