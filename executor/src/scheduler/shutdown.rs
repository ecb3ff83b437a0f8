//! The end of a runtime: workers leave, tasks are dropped outside every lock on one thread.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Shared, Worker};
use crate::context::Entered;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::task::header::Task;

/// How far the shutdown is.
pub(crate) struct Shutdown {
    /// Workers that have not left their loop.
    working: AtomicUsize,
    /// All tasks are gone.
    done: Mutex<bool>,
    changed: Condvar,
}

impl Shutdown {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            working: AtomicUsize::new(workers),
            done: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    fn done(&self) -> MutexGuard<'_, bool> {
        self.done
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A worker has left. `true`: it was the last one.
    fn leave(&self) -> bool {
        // Release hands its polls, its queues and its shelf to the last one; Acquire gives it those of the others.
        self.working.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Waits until all tasks are gone. `false`: the time is over first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let start = Instant::now();
        let mut done = self.done();
        while !*done {
            done = match timeout {
                None => self
                    .changed
                    .wait(done)
                    .unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(timeout) => {
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return false;
                    }
                    // Some systems refuse to wait for centuries; an hour at a time is as good.
                    let left = left.min(Duration::from_secs(3600));
                    self.changed
                        .wait_timeout(done, left)
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .0
                }
            };
        }
        true
    }
}

impl Shared {
    /// Tells everyone that it is over: no task is taken on any more, workers leave their loops.
    pub(crate) fn begin_shutdown(&self) {
        // Closed first: the flag lets the workers go, and the last of them drops what it finds, once.
        self.owned.close();
        self.injector.close();
        self.shut_down.store(true, Ordering::Release);
        for remote in &self.remotes {
            remote.phase.disturb();
        }
        // A worker that went to sleep before it could see the flag is on the list; one that comes later takes the
        // list's lock after the last look here, and looks at the flag behind that.
        while let Some(worker) = self.idle.notify_one() {
            self.unpark(worker);
        }
    }

    /// A worker has left its loop; the last one drops the tasks.
    pub(crate) fn worker_left(&self, worker: &Worker) {
        // Destructors of tasks are still inside the runtime: what they spawn is cancelled.
        let _entered = Entered::new(worker.shared().clone());
        worker.abandon_queues();
        if self.shutdown.leave() {
            self.drop_tasks();
            // Whoever else waits for a source of this runtime learns that nothing will come.
            self.driver.shut_down();
            *self.shutdown.done() = true;
            self.shutdown.changed.notify_all();
        }
    }

    /// Drops what is left, with no lock held: destructors may wake, spawn, send and lock.
    fn drop_tasks(&self) {
        self.owned.drain(|task| {
            if task.header().state.take_for_shutdown() {
                task.shut_down();
                task.release_completed(0);
            }
        });
        // What stands here are entries of tasks that are gone.
        while let Ok(entry) = self.injector.pop() {
            drop(entry);
        }
    }
}

/// Ends a new task that the closed list has refused, with the references of its queue entry and of
/// the list.
pub(crate) fn cancel_unlisted(task: Task) {
    if task.header().state.take_for_shutdown() {
        task.shut_down();
    }
    // SAFETY: the list's reference was counted at birth and is this function's.
    drop(unsafe { Task::from_raw(task.as_ptr()) });
    task.release_completed(0);
}
