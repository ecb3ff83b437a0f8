//! Time: sleeping, ticking, giving up.
//!
//! - [`sleep`], [`sleep_until`]: a future that is done at a time;
//! - [`interval`], [`interval_at`]: ticks at equal distances;
//! - [`timeout`], [`timeout_at`]: a limit for a future;
//! - [`pause`], [`resume`], [`advance`]: the clock in a test's hands.
//!
//! Timers are exact to a millisecond, and never early. They go by the monotonic clock. Setting one
//! and taking it back cost constant time and no memory of their own, however many there are.
//!
//! ```
//! use std::time::Duration;
//! use wakerun::time::{interval, timeout};
//!
//! wakerun::block_on(async {
//!     let work = async {
//!         let mut ticks = interval(Duration::from_millis(1));
//!         for _ in 0..3 {
//!             ticks.tick().await;
//!         }
//!         "done"
//!     };
//!     assert_eq!(timeout(Duration::from_secs(10), work).await, Ok("done"));
//! });
//! ```

pub mod error;
mod instant;
mod interval;
mod sleep;
mod test_clock;
mod timeout;

pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use std::time::Duration;
pub use test_clock::{advance, pause, resume};
pub use timeout::{Timeout, timeout, timeout_at};
