//! The polls of the task in which a sequence is run: where they end, what happens between two of them, and
//! whether anything has woken the task.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::common::yield_once;

type Job = Box<dyn FnOnce() + Send>;

/// Where a sequence runs.
#[derive(Clone)]
pub(crate) enum Turns {
    /// Off the runtime: polls have no ends.
    Off,
    /// In a task beside others on several threads: it wakes itself, so that it is polled again once.
    Free,
    /// In a task that shares its one thread with another: that one rings if nothing else wakes it.
    Rung(Arc<Bell>),
}

/// A task on the same thread that works between two polls of the one which is tested, and wakes it when
/// it has had its chance to be polled.
#[derive(Default)]
pub(crate) struct Bell(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    bell: Option<Waker>,
    tested: Option<Waker>,
    job: Option<Job>,
    /// Turns that the other task has to come by itself.
    turns: u32,
    asleep: bool,
    rung: bool,
}

/// More than a woken task can be passed over: it is in the same queue.
const TURNS: u32 = 6;

impl Bell {
    fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A turn of the task that rings.
    fn turn(&self, cx: &Context<'_>) {
        let job = self.with(|inner| {
            inner.bell = Some(cx.waker().clone());
            inner.job.take()
        });
        if let Some(job) = job {
            job();
            self.with(|inner| inner.turns = TURNS);
        }
        let ring = self.with(|inner| {
            if inner.turns == 0 {
                return None;
            }
            inner.turns -= 1;
            if inner.turns > 0 {
                return inner.bell.clone();
            }
            inner.rung = inner.asleep;
            inner.tested.take()
        });
        if let Some(waker) = ring {
            waker.wake();
        }
    }

    fn sleep(&self, waker: &Waker, job: Job) {
        let bell = self.with(|inner| {
            inner.tested = Some(waker.clone());
            inner.job = Some(job);
            inner.asleep = true;
            inner.rung = false;
            inner.bell.clone()
        });
        bell.expect("the bell is there before it is needed").wake();
    }

    /// Whether anything but the bell has woken the task.
    fn woken(&self) -> bool {
        self.with(|inner| {
            assert!(inner.job.is_none(), "the bell comes first");
            inner.asleep = false;
            !inner.rung
        })
    }
}

impl Turns {
    /// Runs a future where this says; on the runtime in a task of its own.
    pub(crate) async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if let Self::Off = self {
            return future.await;
        }
        let mut task = pin!(wakerun::spawn(future));
        poll_fn(|cx| {
            if let Self::Rung(bell) = self {
                bell.turn(cx);
            }
            task.as_mut().poll(cx)
        })
        .await
        .expect("what is tested reports its panics itself")
    }

    /// The waker of the current poll of the task, if there is one.
    pub(crate) fn task<'a>(&self, cx: &'a Context<'_>) -> Option<&'a Waker> {
        match self {
            Self::Off => None,
            _ => Some(cx.waker()),
        }
    }

    /// Whether anything can be done between two polls.
    pub(crate) fn has_between(&self) -> bool {
        matches!(self, Self::Rung(_))
    }

    /// Ends the current poll of the task and does the job when it is over. Returns whether the task has
    /// been woken by anything but this, where that can be told.
    pub(crate) async fn end_poll(&self, job: Job) -> Option<bool> {
        match self {
            Self::Off => {
                job();
                None
            }
            Self::Free => {
                yield_once().await;
                job();
                None
            }
            Self::Rung(bell) => {
                let mut job = Some(job);
                let woken = poll_fn(|cx| match job.take() {
                    Some(job) => {
                        bell.sleep(cx.waker(), job);
                        Poll::Pending
                    }
                    None => Poll::Ready(bell.woken()),
                });
                Some(woken.await)
            }
        }
    }
}
