//! A task without a runtime, for loom models of primitives that watch the polls of tasks.

use std::fmt;
use std::future::pending;
use std::task::Context;

use crate::context::PollGuard;
use crate::runtime::Hooks;
use crate::scheduler::Shared;
use crate::task::header::Task;
use crate::task::state::Start;
use crate::task::{Id, cell, waker};

/// A task that one thread of a model polls by hand.
///
/// It counts as running all its life, so that its wakes queue it nowhere. A model has one of them only:
/// loom's threads share the thread-local that says which task is being polled.
pub struct ModelTask {
    /// Until it ends.
    task: Option<Task>,
}

impl ModelTask {
    /// A task that has not been polled yet.
    #[expect(clippy::new_without_default, reason = "a task is no value")]
    pub fn new() -> Self {
        let (shared, _) = Shared::new(1, false, true, Hooks::default());
        let header = cell::allocate(pending::<()>(), shared, Id::next(), None);
        // SAFETY: a new task counts three references, one of them for a queue entry.
        let task = unsafe { Task::from_raw(header) };
        assert_eq!(task.header().state.start(), Start::Poll);
        Self { task: Some(task) }
    }

    /// One poll of the task, with the end-of-poll calls of those who watch it.
    pub fn poll<R>(&self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let Some(task) = &self.task else {
            unreachable!("only `end` takes it")
        };
        let poll = PollGuard::new(Some(task.as_ptr()));
        task.header().advance_epoch();
        let output =
            waker::with_borrowed(task.as_ptr(), |waker| f(&mut Context::from_waker(waker)));
        task.header().advance_epoch();
        drop(poll);
        // SAFETY: the poller since `new` is the one thread that polls.
        unsafe { task.header().poll_over(false) };
        output
    }

    /// Polls that come to nothing, while there are wakes that no poll has answered: as a scheduler would.
    pub fn poll_while_woken(&self) {
        while let Some(task) = &self.task
            && task.header().state.is_woken()
        {
            assert_eq!(task.header().state.start(), Start::Poll);
            self.poll(|_| ());
        }
    }

    /// The end of the task, as after its last poll.
    pub fn end(mut self) {
        self.end_now();
    }

    fn end_now(&mut self) {
        if let Some(task) = self.task.take() {
            // SAFETY: as in `poll`.
            unsafe { task.header().poll_over(true) };
            task.settle(task.header().state.complete());
            // Those of the handle and the list, which there are not.
            task.release_completed(2);
        }
    }
}

impl Drop for ModelTask {
    fn drop(&mut self) {
        self.end_now();
    }
}

impl fmt::Debug for ModelTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelTask").finish_non_exhaustive()
    }
}
