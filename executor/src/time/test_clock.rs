//! The clock in a test's hands.

use std::time::Duration;

use crate::context;
use crate::driver::Driver;
use crate::task::yield_now;

/// Stops the clock of the current runtime, a current-thread one.
///
/// From now on [`Instant::now`](super::Instant::now) stands still there, and time passes in two ways
/// only: by [`advance`]; and when every task waits and nothing else happens, at once to the next
/// timer. So a test of an hour takes no time, and its timers end in their order.
///
/// While blocking work is under way (`task::spawn_blocking`), the clock waits for it. Of other
/// threads and processes it knows nothing: a task that waits for one of them and for a timer sees the
/// timer end first. `std`'s clock, and with it the system's own timeouts, goes on.
///
/// # Panics
/// Outside a runtime, on a multi-thread one, and if the clock stands already.
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{self, Instant};
///
/// let runtime = wakerun::Builder::new_current_thread().build()?;
/// runtime.block_on(async {
///     time::pause();
///     let start = Instant::now();
///     time::sleep(Duration::from_secs(3600)).await;
///     assert!(start.elapsed() >= Duration::from_secs(3600));
/// });
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn pause() {
    with_driver(|driver| {
        assert!(driver.clock.pause(), "the clock has been paused already");
    });
}

/// Lets a paused clock go on from the time that it shows.
///
/// # Panics
/// Outside a runtime, on a multi-thread one, and if the clock is not paused.
///
/// ```
/// use wakerun::time;
///
/// let runtime = wakerun::Builder::new_current_thread().start_paused(true).build()?;
/// runtime.block_on(async {
///     time::resume();
///     time::sleep(std::time::Duration::from_millis(1)).await;
/// });
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn resume() {
    with_driver(|driver| assert!(driver.clock.resume(), "the clock is not paused"));
}

/// Sets a paused clock forward, and lets the tasks run whose timers have ended by that.
///
/// All of them are woken at once, in the order of their deadlines, and see the new time. To see the
/// times in between, sleep instead.
///
/// # Panics
/// As [`resume`].
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{self, Instant};
///
/// let runtime = wakerun::Builder::new_current_thread().start_paused(true).build()?;
/// runtime.block_on(async {
///     let start = Instant::now();
///     time::advance(Duration::from_secs(60)).await;
///     assert_eq!(start.elapsed(), Duration::from_secs(60));
/// });
/// # std::io::Result::Ok(())
/// ```
pub async fn advance(duration: Duration) {
    with_driver(|driver| {
        let advanced = driver.clock.advance(duration);
        assert!(
            advanced,
            "the clock can be advanced only while it is paused"
        );
        driver.fire_timers();
    });
    yield_now().await;
}

#[track_caller]
fn with_driver(f: impl FnOnce(&Driver)) {
    let driver = context::with_current_ref(|shared| {
        assert!(
            !shared.multi_thread,
            "the clock can be paused only on a current-thread runtime"
        );
        shared.driver.clone()
    });
    match driver {
        Ok(driver) => f(&driver),
        Err(error) => panic!("{error}"),
    }
}
