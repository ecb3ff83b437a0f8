//! A task that is polled by hand: what it does in each of its polls is decided from outside.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use wakerun::task::JoinHandle;

use super::yield_once;

type Step = Box<dyn FnOnce(&mut Context<'_>) + Send>;

#[derive(Default)]
struct Strings {
    steps: VecDeque<Step>,
    waker: Option<Waker>,
    polls: usize,
    over: bool,
}

/// The strings of a task on a current-thread runtime, pulled by the future that is blocked on there:
/// both run on one thread, so between two polls of the one the other is at rest.
pub(crate) struct Puppet {
    strings: Arc<Mutex<Strings>>,
    task: JoinHandle<()>,
}

impl Puppet {
    /// Spawns the task, and waits until it has been polled once, with nothing to do.
    pub(crate) async fn new(runtime: &wakerun::Runtime) -> Self {
        let strings = Arc::new(Mutex::new(Strings::default()));
        let own = Arc::clone(&strings);
        let task = runtime.spawn(poll_fn(move |cx| {
            let step = {
                let mut strings = own.lock().unwrap();
                strings.polls += 1;
                strings.waker = Some(cx.waker().clone());
                strings.steps.pop_front()
            };
            if let Some(step) = step {
                step(cx);
            }
            if own.lock().unwrap().over {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        let puppet = Self { strings, task };
        while puppet.polls() == 0 {
            yield_once().await;
        }
        puppet
    }

    /// How often the task has been polled, for whatever reason.
    pub(crate) fn polls(&self) -> usize {
        self.strings.lock().unwrap().polls
    }

    /// Lets the task do this in its next poll, and waits for the end of that poll.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Context<'_>) -> R + Send + 'static,
    ) -> R {
        let result = Arc::new(Mutex::new(None));
        let writes = Arc::clone(&result);
        let waker = {
            let mut strings = self.strings.lock().unwrap();
            strings.steps.push_back(Box::new(move |cx| {
                let output = step(cx);
                *writes.lock().unwrap() = Some(output);
            }));
            strings.waker.clone()
        };
        waker.unwrap().wake();
        loop {
            if let Some(output) = result.lock().unwrap().take() {
                return output;
            }
            yield_once().await;
        }
    }

    /// What the task does in its next poll, which somebody else is going to cause.
    pub(crate) fn plan(&self, step: impl FnOnce(&mut Context<'_>) + Send + 'static) {
        let mut strings = self.strings.lock().unwrap();
        strings.steps.push_back(Box::new(step));
    }

    /// Lets the task be polled once for nothing, unless it is queued already: then that poll counts.
    pub(crate) async fn idle(&self) {
        self.act(|_| ()).await;
    }

    /// Lets the task do this in its last poll, and waits for its end.
    pub(crate) async fn end(self, step: impl FnOnce(&mut Context<'_>) + Send + 'static) {
        let strings = Arc::clone(&self.strings);
        self.act(move |cx| {
            step(cx);
            strings.lock().unwrap().over = true;
        })
        .await;
        self.task.await.unwrap();
    }
}

/// Lets all that is queued on the runtime run, a few turns over.
pub(crate) async fn rest() {
    for _ in 0..8 {
        yield_once().await;
    }
}
