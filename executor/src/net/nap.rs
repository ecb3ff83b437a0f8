//! A short wait where the system tells nothing that one could wait for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use ::blocking::{Task, unblock};

use crate::context;
use crate::time::{Sleep, sleep};

/// Waits for a while, anywhere: operations of sockets may be awaited outside a runtime, where there are
/// no timers.
#[derive(Debug)]
pub(super) enum Nap {
    Timer(Pin<Box<Sleep>>),
    Thread(Task<()>),
}

pub(super) fn nap(duration: Duration) -> Nap {
    if context::try_current().is_ok() {
        Nap::Timer(Box::pin(sleep(duration)))
    } else {
        Nap::Thread(unblock(move || thread::sleep(duration)))
    }
}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Self::Timer(sleep) => sleep.as_mut().poll(cx),
            Self::Thread(task) => Pin::new(task).poll(cx),
        }
    }
}
