//! A future that is done at a time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use super::Instant;
use crate::context;
use crate::driver::{Brought, Driver, Entry, State};
use crate::wake;

/// Waits for at least `duration`.
///
/// Never ends early. It ends late by a millisecond at most, the grain of the timers, plus what the
/// runtime needs to come to it: some ten microseconds when a worker is idle, two milliseconds when
/// some are, the longest poll when none is. Any duration will do; one that the clock cannot express
/// ends some decades from now.
///
/// *Cancel safe*: dropping it leaves nothing behind.
///
/// # Panics
/// Outside a runtime; and if the runtime's poller, which is made for its first timer, cannot be (no
/// descriptors left).
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{Instant, sleep};
///
/// wakerun::block_on(async {
///     let start = Instant::now();
///     sleep(Duration::from_millis(5)).await;
///     assert!(start.elapsed() >= Duration::from_millis(5));
/// });
/// ```
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let driver = current_driver();
    let now = Instant::from_std(driver.clock.now());
    Sleep::new(driver, now.after(duration), duration.is_zero())
}

/// Waits until `deadline`. At once if that has been.
///
/// As [`sleep`] in everything else.
///
/// # Panics
/// As [`sleep`].
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{Instant, sleep_until};
///
/// wakerun::block_on(async {
///     let deadline = Instant::now() + Duration::from_millis(5);
///     sleep_until(deadline).await;
///     assert!(Instant::now() >= deadline);
/// });
/// ```
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(current_driver(), deadline, true)
}

#[track_caller]
fn current_driver() -> Arc<Driver> {
    let driver =
        context::with_current_ref(|shared| shared.start_driver().map(|()| shared.driver.clone()));
    match driver {
        Ok(Ok(driver)) => driver,
        Ok(Err(error)) => panic!("the runtime's poller cannot be made: {error}"),
        Err(error) => panic!("{error}"),
    }
}

/// The future of [`sleep`] and [`sleep_until`].
///
/// It may be polled anywhere, by any executor; its own runtime wakes it. If that has been shut down,
/// a poll of a timer that has not ended panics, for its end would never be told.
///
/// It stands in the timers' lists from its first poll on, and must not move then: to poll it by
/// reference, pin it, with [`std::pin::pin!`] or [`Box::pin`].
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::{Instant, sleep};
///
/// wakerun::block_on(async {
///     let mut timer = std::pin::pin!(sleep(Duration::from_secs(3600)));
///     timer.as_mut().reset(Instant::now());
///     timer.as_mut().await;
///     assert!(timer.is_elapsed());
/// });
/// ```
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Sleep {
    driver: Arc<Driver>,
    deadline: Instant,
    /// Whether the deadline may have been before the first poll.
    may_be_over: bool,
    /// The waker that the entry has while it is WAITING, by its addresses: kept here so that a poll
    /// with the same one needs no lock. While the entry waits its waker lives, so that no other can
    /// have them.
    waker: (usize, usize),
    entry: Entry,
}

impl Sleep {
    fn new(driver: Arc<Driver>, deadline: Instant, may_be_over: bool) -> Self {
        Self {
            driver,
            deadline,
            may_be_over,
            waker: (0, 0),
            entry: Entry::new(),
        }
    }

    /// When it ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether that time has come.
    pub fn is_elapsed(&self) -> bool {
        self.entry.state() == State::Fired || self.driver.clock.now() >= self.deadline.into_std()
    }

    /// Changes the deadline, of a timer that has ended, too. A task that waits for it is woken at the
    /// new time without another poll.
    ///
    /// ```
    /// use std::time::Duration;
    /// use wakerun::time::{Instant, sleep};
    ///
    /// wakerun::block_on(async {
    ///     let mut timer = std::pin::pin!(sleep(Duration::from_millis(1)));
    ///     for _ in 0..3 {
    ///         timer.as_mut().await;
    ///         let next = timer.deadline() + Duration::from_millis(1);
    ///         timer.as_mut().reset(next);
    ///     }
    /// });
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        this.deadline = deadline;
        this.may_be_over = true;
        if this.entry.state() == State::Waiting {
            // SAFETY: pinned, and inserted into these timers.
            let moved = unsafe { this.driver.move_timer(&this.entry, deadline.into_std()) };
            if let Some(waker) = moved {
                waker.wake();
            }
        }
        this.entry.rewind();
    }

    /// The poll without the budget, for those who charge their own caller.
    pub(super) fn poll_elapsed(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        match this.entry.state() {
            State::Fired => return Poll::Ready(()),
            State::Waiting if this.waker == addresses(cx.waker()) => return Poll::Pending,
            State::Waiting => {
                let waker = wake::clone_waker(cx.waker());
                this.waker = addresses(&waker);
                // SAFETY: inserted into these timers.
                if unsafe { this.driver.timers.replace_waker(&this.entry, waker) } {
                    return Poll::Pending;
                }
            }
            State::Idle if this.is_over() => {
                this.entry.finish();
                return Poll::Ready(());
            }
            State::Idle => {
                let waker = wake::clone_waker(cx.waker());
                this.waker = addresses(&waker);
                // SAFETY: IDLE and pinned; `drop` takes it back.
                match unsafe {
                    this.driver
                        .insert_timer(&this.entry, this.deadline.into_std(), waker)
                } {
                    Brought::Due => {
                        this.entry.finish();
                        return Poll::Ready(());
                    }
                    Brought::Closed => {}
                    Brought::Waits | Brought::Interrupt => return Poll::Pending,
                }
            }
            State::Closed => {}
        }
        // It has left WAITING under our hands, or never came to it.
        assert!(
            this.entry.state() == State::Fired,
            "the runtime that this timer belongs to has been shut down: it would never end"
        );
        Poll::Ready(())
    }

    /// Whether the deadline has been before the timer was set.
    fn is_over(&self) -> bool {
        self.may_be_over && self.driver.clock.now() >= self.deadline.into_std()
    }
}

/// What tells a waker from others, as [`Waker::will_wake`] does.
fn addresses(waker: &Waker) -> (usize, usize) {
    (
        waker.data().addr(),
        std::ptr::from_ref(waker.vtable()).addr(),
    )
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Charged when there is something to give, so that waiting for many costs nothing.
        ready!(self.as_mut().poll_elapsed(cx));
        wake::poll_budget(cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if self.entry.state() == State::Waiting {
            // SAFETY: inserted into these timers.
            unsafe { self.driver.timers.remove(&self.entry) };
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
