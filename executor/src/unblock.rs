//! Blocking work of this crate's own: files, name resolution.
//!
//! Other than [`task::spawn_blocking`](crate::task::spawn_blocking), it needs no runtime and does not
//! end with one. But in a runtime whose clock a test may pause, the clock must not run ahead of it; so
//! there it is a job of the runtime.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::context;
use crate::task::{JoinHandle, spawn_unlisted};

/// Runs a closure on the pool for blocking work, from anywhere.
pub(crate) fn unblock<F, T>(f: F) -> Unblock<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match context::try_current() {
        Ok(shared) if !shared.multi_thread => Unblock(Some(Kind::Job(spawn_unlisted(shared, f)))),
        _ => Unblock(Some(Kind::Free(::blocking::unblock(f)))),
    }
}

/// Waits for the closure's value. When it is dropped, a closure that has not begun is dropped, too.
#[derive(Debug)]
#[must_use = "the closure may not be run if this is dropped"]
pub(crate) struct Unblock<T>(
    /// Absent when it has been detached.
    Option<Kind<T>>,
);

#[derive(Debug)]
enum Kind<T> {
    Free(::blocking::Task<T>),
    Job(JoinHandle<T>),
}

impl<T> Unblock<T> {
    /// Lets the closure run, though nobody waits for it.
    pub(crate) fn detach(mut self) {
        match self.0.take() {
            Some(Kind::Free(task)) => task.detach(),
            Some(Kind::Job(job)) => drop(job),
            None => {}
        }
    }
}

impl<T> Future for Unblock<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(Kind::Free(task)) => Pin::new(task).poll(cx),
            Some(Kind::Job(job)) => Poll::Ready(match ready!(Pin::new(job).poll(cx)) {
                Ok(value) => value,
                // Nobody can have aborted it, so it is a panic.
                Err(error) => resume_unwind(error.into_panic()),
            }),
            None => unreachable!("a detached closure is not waited for"),
        }
    }
}

impl<T> Drop for Unblock<T> {
    fn drop(&mut self) {
        if let Some(Kind::Job(job)) = &self.0 {
            job.abort();
        }
    }
}
