//! Letting others run.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::wake;

/// Goes to the back of the queue: the other runnable tasks of this worker get their turn first.
///
/// Outside this runtime it is one Pending with a wake, which most executors treat alike.
///
/// ```
/// wakerun::block_on(async {
///     for _ in 0..3 {
///         wakerun::task::yield_now().await;
///     }
/// });
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        wake::force_yield(cx);
        Poll::Pending
    }
}
