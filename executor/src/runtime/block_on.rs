//! Running one future on a thread that has nothing else to run.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::main_future::Main;
use crate::context::PollGuard;
use crate::scheduler::parker::Parker;
use crate::wake::Patience;

/// Runs a future on a plain thread, without a runtime: polls it whenever it is woken, and sleeps in
/// between, after some [patience](Patience). What the blocking forms of operations are made of; they check
/// [`must_not_block`](crate::wake::must_not_block) first.
///
/// ```
/// assert_eq!(wakerun::wake::block_on_thread(async { 7 }), 7);
/// ```
pub fn block_on_thread<F: Future>(future: F) -> F::Output {
    block_on(future, |parker| {
        let _ = Patience::new().wait(|| parker.has_token());
        // Returns at once if there is a token, and takes it.
        parker.park();
    })
}

/// Polls a future, and waits in between until there is a token.
fn block_on<F: Future>(future: F, wait: impl Fn(&Parker)) -> F::Output {
    let mut thread = OnThread::new();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = thread.poll(future.as_mut()) {
            return output;
        }
        wait(&thread.main.parker);
    }
}

/// [`block_on_thread`] for the future of a runtime's `block_on`, which has a budget as tasks have: it comes to
/// its timers and stop signals however many messages it finds. It sleeps at once, since the cores are the
/// workers'.
pub(super) fn block_on_with_budget<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let polled = poll_fn(|cx| {
        let _budget = PollGuard::new(None);
        future.as_mut().poll(cx)
    });
    block_on(polled, Parker::park)
}

/// As [`block_on_thread`], but gives up when `deadline` has passed: `None`, and the future, which is the
/// caller's, can be polled on, or asked what has become of it. It is polled at least once, and once more
/// after the deadline.
///
/// ```
/// use std::pin::{Pin, pin};
/// use std::time::Instant;
/// use wakerun::wake::block_on_thread_until;
///
/// assert_eq!(block_on_thread_until(pin!(async { 7 }), Instant::now()), Some(7));
/// assert_eq!(block_on_thread_until(pin!(std::future::pending::<()>()), Instant::now()), None);
/// ```
pub fn block_on_thread_until<F: Future>(
    mut future: Pin<&mut F>,
    deadline: Instant,
) -> Option<F::Output> {
    let mut thread = OnThread::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Poll::Ready(output) = thread.poll(future.as_mut()) {
            return Some(output);
        }
        if left.is_zero() {
            return None;
        }
        // Some systems refuse to wait for centuries; an hour at a time is as good.
        let _ = thread
            .main
            .parker
            .park_timeout(left.min(Duration::from_secs(3600)));
    }
}

/// A thread that polls a future.
struct OnThread {
    main: Arc<Main>,
    waker: Waker,
}

impl OnThread {
    fn new() -> Self {
        let main = Main::new(None);
        Self {
            waker: main.waker(),
            main,
        }
    }

    fn poll<F: Future>(&mut self, future: Pin<&mut F>) -> Poll<F::Output> {
        let mut cx = Context::from_waker(&self.waker);
        let polled = self.main.poll(|| future.poll(&mut cx));
        self.main.poll_over();
        polled
    }
}

impl Drop for OnThread {
    fn drop(&mut self) {
        self.main.end();
    }
}
