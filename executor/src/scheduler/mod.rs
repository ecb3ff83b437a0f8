//! The scheduler: what all workers of a runtime share, and how tasks get into its queues.
//!
//! A runnable task stands in exactly one place: a worker's next slot, a worker's ring, the injector,
//! a wake batch under way, or under the poll itself.

mod counted;
mod hook;
pub(crate) mod idle;
pub(crate) mod parker;
mod phase;
pub(crate) mod remote;
mod ring;
mod shutdown;
mod spread;
mod worker;
mod worth;

#[cfg(all(test, wakerun_loom))]
mod loom_tests;

use std::future::Future;
use std::io;
use std::sync::{Arc, OnceLock};

use concurrent_queue::ConcurrentQueue;
use crossbeam_utils::CachePadded;

use crate::context;
use crate::driver::Driver;
use crate::runtime::{CoreSlot, Hooks};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::header::Task;
use crate::task::owned::{OwnedTasks, Owner};
use crate::task::{Id, JoinHandle, cell};
use idle::Idle;
use remote::Remote;
use ring::Ring;
pub(crate) use shutdown::{Shutdown, cancel_unlisted};
use spread::Spread;
pub(crate) use worker::Worker;

/// Where a woken task goes among those that its worker has to run.
///
/// ```
/// use wakerun::wake::{Place, wake};
///
/// // A waker of no task is simply woken.
/// wake(std::task::Waker::noop(), Place::Next);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Run it next: what it needs has just been touched. For the one receiver of a message.
    Next,
    /// Run it after what is queued already. For one of many, such as a line of senders.
    Tail,
}

/// What the workers, handles and tasks of one runtime share.
pub(crate) struct Shared {
    pub(crate) remotes: Box<[Arc<CachePadded<Remote>>]>,
    /// Tasks spawned or woken from outside, and what overflows a worker's ring.
    pub(crate) injector: ConcurrentQueue<Task>,
    pub(crate) idle: Idle,
    /// Counted apart, so that a source does not keep the rest.
    pub(crate) driver: Arc<Driver>,
    pub(crate) owned: OwnedTasks,
    pub(crate) hooks: Hooks,
    /// Whether short queues are kept together.
    pub(crate) spread: Spread,
    /// Whether workers have threads of their own.
    pub(crate) multi_thread: bool,
    pub(crate) shutdown: Shutdown,
    /// Only on a current-thread runtime: its worker, for whoever is in `block_on`. The worker counts
    /// a reference to this struct; shutdown takes it out.
    pub(crate) core: OnceLock<CoreSlot>,
    shut_down: AtomicBool,
}

/// The owner's sides of what a worker shares with others.
pub(crate) struct Tools {
    ring: Ring,
    owned: Owner,
}

impl Shared {
    /// How many workers are awake; a moment ago, perhaps.
    #[inline]
    pub(crate) fn awake(&self) -> usize {
        self.remotes.len() - self.idle.relaxed().parked()
    }

    /// The shared part, and what to build the workers from.
    pub(crate) fn new(
        workers: usize,
        multi_thread: bool,
        keep_together: bool,
        hooks: Hooks,
    ) -> (Arc<Self>, Vec<Tools>) {
        let rings: Vec<_> = (0..workers).map(|_| Ring::new()).collect();
        let remotes = rings
            .iter()
            .map(|ring| Arc::new(CachePadded::new(Remote::new(ring.stealer()))))
            .collect();
        let (owned, owners) = OwnedTasks::new(workers);
        let shared = Arc::new(Self {
            remotes,
            injector: ConcurrentQueue::unbounded(),
            idle: Idle::new(workers),
            driver: Arc::new(Driver::new()),
            owned,
            hooks,
            spread: Spread::new(keep_together && workers > 1),
            multi_thread,
            shutdown: Shutdown::new(workers),
            core: OnceLock::new(),
            shut_down: AtomicBool::new(false),
        });
        let tools = rings.into_iter().zip(owners);
        (
            shared,
            tools.map(|(ring, owned)| Tools { ring, owned }).collect(),
        )
    }

    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::Acquire)
    }

    /// Queues a task from a thread that is no worker of this runtime.
    pub(crate) fn inject(&self, task: Task) {
        self.inject_quietly(task);
        self.notify_for_injected();
    }

    /// Puts a task into the injector without telling anyone.
    fn inject_quietly(&self, task: Task) {
        // After shutdown the injector is closed; the entry is dropped, and the task itself, which
        // stands in the list, has been or will be cancelled by the thread that shuts down.
        drop(self.injector.push(task));
    }

    /// Wakes a worker for what has been put into the injector, unless one is looking already.
    fn notify_for_injected(&self) {
        if let Some(worker) = self.idle.worker_to_notify() {
            self.unpark(worker);
        }
    }

    /// Wakes a worker, if one sleeps.
    fn notify_one(&self) {
        if let Some(worker) = self.idle.notify_one() {
            self.unpark(worker);
        }
    }

    /// Leaves a worker a token, wherever it sleeps.
    pub(crate) fn unpark(&self, worker: usize) {
        let parker = &self.remotes[worker].parker;
        parker.unpark_or(|| self.driver.interrupt());
    }

    /// Makes the driver unless it is there, and gets a worker to wait in it.
    pub(crate) fn start_driver(&self) -> io::Result<()> {
        if self.driver.start()? {
            self.notify_one();
        }
        Ok(())
    }
}

/// Queues a runnable task: on this thread's worker if it is one of the task's runtime.
#[inline]
pub(crate) fn schedule(task: Task, place: Place) {
    context::with_worker(|worker| match worker {
        Some(worker) if is_of(&task, worker) => worker.push(task, place),
        _ => inject(task),
    });
}

/// [`schedule`] for [`Place::Next`], where the common case is to need no call.
#[inline(always)]
pub(crate) fn schedule_next(task: Task) {
    context::with_worker(|worker| match worker {
        Some(worker) if is_of(&task, worker) => worker.push_next(task),
        _ => inject(task),
    });
}

/// Whether a task belongs to this worker's runtime.
#[inline]
pub(crate) fn is_of(task: &Task, worker: &Worker) -> bool {
    Arc::ptr_eq(&task.header().shared, worker.shared())
}

/// Queues a task from outside its runtime.
#[cold]
#[inline(never)]
fn inject(task: Task) {
    // The task may run, end and be freed as soon as it is queued, and the runtime with it.
    let shared = Arc::clone(&task.header().shared);
    shared.inject(task);
}

/// Lets go of a task's count of its runtime; a worker of it keeps the count for its next task.
pub(crate) fn give_back_shared(shared: Arc<Shared>) {
    context::with_worker(|worker| match worker {
        Some(worker) if Arc::ptr_eq(&shared, worker.shared()) => worker.keep_shared(shared),
        _ => drop(shared),
    });
}

/// Makes a task of the runtime that the calling code runs in, and queues it.
#[track_caller]
pub(crate) fn spawn_here<F>(future: F, name: Option<Box<str>>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    context::with_worker_here(|worker| match worker {
        Some(worker) if !worker.shared().is_shut_down() => spawn_on(worker, future, name),
        _ => context::with_current(|shared| spawn_outside(shared, future, name)),
    })
}

/// Makes a task and queues it.
pub(crate) fn spawn<F>(
    shared: &Arc<Shared>,
    future: F,
    name: Option<Box<str>>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    context::with_worker(|worker| match worker {
        Some(worker) if Arc::ptr_eq(worker.shared(), shared) && !shared.is_shut_down() => {
            spawn_on(worker, future, name)
        }
        _ => spawn_outside(shared.clone(), future, name),
    })
}

/// Makes a task on a worker that has not left its loop.
#[inline]
fn spawn_on<F>(worker: &Worker, future: F, name: Option<Box<str>>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let header = cell::allocate(future, worker.count_shared(), Id::next(), name);
    // SAFETY: a new task counts a reference for its queue entry...
    worker.take_on(unsafe { Task::from_raw(header) });
    // SAFETY: ...and one for its handle, of type `F::Output`.
    unsafe { JoinHandle::new(header) }
}

/// Makes a task on a thread that is no worker of its runtime, or when the runtime has been shut down.
fn spawn_outside<F>(shared: Arc<Shared>, future: F, name: Option<Box<str>>) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let header = cell::allocate(future, shared, Id::next(), name);
    // SAFETY: a new task counts a reference for its handle, of type `F::Output`...
    let handle = unsafe { JoinHandle::new(header) };
    // SAFETY: ...and one for its queue entry.
    let task = unsafe { Task::from_raw(header) };
    if task.header().shared.owned.insert(&task) {
        inject(task);
    } else {
        cancel_unlisted(task);
    }
    handle
}
