//! The end of a runtime: workers leave, tasks are dropped outside every lock on one thread.

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::{Shared, Worker};
use crate::context::Entered;
use crate::task::header::Task;

/// How far the shutdown is.
pub(crate) struct Shutdown {
    progress: Mutex<Progress>,
    changed: Condvar,
}

struct Progress {
    /// Workers that have not left their loop.
    working: usize,
    /// All tasks are gone.
    done: bool,
}

impl Shutdown {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            progress: Mutex::new(Progress {
                working: workers,
                done: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until all tasks are gone. `false`: the time is over first.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let start = Instant::now();
        let mut progress = self.progress();
        while !progress.done {
            progress = match timeout {
                None => self
                    .changed
                    .wait(progress)
                    .unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(timeout) => {
                    let left = timeout.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return false;
                    }
                    // Some systems refuse to wait for centuries; an hour at a time is as good.
                    let left = left.min(Duration::from_secs(3600));
                    self.changed
                        .wait_timeout(progress, left)
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
        self.shut_down.store(true, Ordering::SeqCst);
        for remote in &self.remotes {
            remote.phase.disturb();
        }
        // A worker that went to sleep before it could see the flag is on the list; one that comes
        // later looks at the flag after it has announced itself (the fences of `idle.rs`).
        std::sync::atomic::fence(Ordering::SeqCst);
        while let Some(worker) = self.idle.notify_one() {
            self.unpark(worker);
        }
    }

    /// A worker has left its loop; the last one drops the tasks.
    pub(crate) fn worker_left(&self, worker: &Worker) {
        // Destructors of tasks are still inside the runtime: what they spawn is cancelled.
        let _entered = Entered::new(worker.shared().clone());
        worker.abandon_queues();
        let last = {
            let mut progress = self.shutdown.progress();
            progress.working -= 1;
            progress.working == 0
        };
        if last {
            self.drop_tasks();
            // Whoever else waits for a source of this runtime learns that nothing will come.
            self.driver.shut_down();
            self.shutdown.progress().done = true;
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
