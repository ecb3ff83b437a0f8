//! A future with a limit.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::error::Elapsed;
use super::{Instant, Sleep, sleep, sleep_until};
use crate::wake;

/// Gives `future` so long to be done.
///
/// The future is polled first: one that is done in time wins, even if it is polled late. When the
/// time is over it is not polled again, and dropped with the `Timeout`.
///
/// *Cancel safe* if `future` is.
///
/// # Panics
/// As [`sleep`].
///
/// ```
/// use std::time::Duration;
/// use wakerun::time::timeout;
///
/// wakerun::block_on(async {
///     assert_eq!(timeout(Duration::from_secs(9), async { 7 }).await, Ok(7));
///     let never = std::future::pending::<()>();
///     assert!(timeout(Duration::from_millis(2), never).await.is_err());
/// });
/// ```
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        delay: sleep(duration),
    }
}

/// As [`timeout`], until a point in time.
///
/// # Panics
/// As [`sleep`].
///
/// ```
/// use wakerun::time::{Instant, timeout_at};
///
/// wakerun::block_on(async {
///     let never = std::future::pending::<()>();
///     assert!(timeout_at(Instant::now(), never).await.is_err());
/// });
/// ```
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        delay: sleep_until(deadline),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        delay: Sleep,
    }
}

impl<F> Timeout<F> {
    /// The future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// The future, without its limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // A look at it; it is spent below.
        let has_budget = wake::spend_budget();
        if has_budget {
            wake::refund_budget();
        }
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        ready!(this.delay.poll_elapsed(cx));
        if !has_budget {
            // A loop of limits that are over lets others run, too.
            wake::force_yield(cx);
            return Poll::Pending;
        }
        // Even if the future has used up the rest: it would do so each time, and never be told that
        // its time is over.
        let _ = wake::spend_budget();
        Poll::Ready(Err(Elapsed::new()))
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("deadline", &self.delay.deadline())
            .finish_non_exhaustive()
    }
}
