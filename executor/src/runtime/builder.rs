//! How a runtime is configured and started.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

use super::core_slot::CoreSlot;
use super::hooks::{Hook, Hooks};
use super::{Handle, Runtime};
use crate::context::WorkerGuard;
use crate::scheduler::{Shared, Worker};

/// The environment variable that says how many workers a multi-thread runtime has by default.
const WORKERS_VARIABLE: &str = "WAKERUN_WORKER_THREADS";
/// More threads than this cannot be meant.
const MAX_WORKERS: usize = 1 << 15;

type NameFn = Arc<dyn Fn() -> String + Send + Sync + 'static>;

/// Configures a [`Runtime`].
///
/// ```
/// let runtime = wakerun::Builder::new_multi_thread()
///     .worker_threads(2)
///     .thread_name("pipeline")
///     .build()?;
/// let name = runtime.block_on(async {
///     wakerun::spawn(async { std::thread::current().name().map(str::to_owned) })
///         .await
///         .unwrap()
/// });
/// assert_eq!(name.as_deref(), Some("pipeline"));
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Builder {
    multi_thread: bool,
    workers: Option<usize>,
    name: NameFn,
    stack_size: Option<usize>,
    hooks: Hooks,
    keep_together: bool,
    start_paused: bool,
}

impl Builder {
    /// A runtime with worker threads of its own.
    pub fn new_multi_thread() -> Self {
        Self {
            multi_thread: true,
            workers: None,
            name: Arc::new(|| "wakerun-worker".to_owned()),
            stack_size: None,
            hooks: Hooks::default(),
            keep_together: true,
            start_paused: false,
        }
    }

    /// A runtime without threads: tasks run inside `block_on`, on its caller's thread.
    pub fn new_current_thread() -> Self {
        Self {
            multi_thread: false,
            ..Self::new_multi_thread()
        }
    }

    /// How many worker threads a multi-thread runtime has. By default the value of the environment
    /// variable `WAKERUN_WORKER_THREADS`, or else what
    /// [`available_parallelism`](thread::available_parallelism) says. A current-thread runtime has
    /// one worker whatever is said here.
    ///
    /// # Panics
    /// If `workers` is 0 or above 32768.
    #[track_caller]
    pub fn worker_threads(&mut self, workers: usize) -> &mut Self {
        assert!(workers > 0, "a runtime needs at least one worker thread");
        assert!(
            workers <= MAX_WORKERS,
            "{workers} worker threads are more than the maximum of {MAX_WORKERS}"
        );
        self.workers = Some(workers);
        self
    }

    /// The name of the worker threads; `wakerun-worker` by default.
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name_fn(move || name.clone())
    }

    /// A name for each worker thread, as it is started.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let count = AtomicUsize::new(0);
    /// let runtime = wakerun::Builder::new_multi_thread()
    ///     .thread_name_fn(move || format!("pump-{}", count.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_name_fn<F>(&mut self, name: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.name = Arc::new(name);
        self
    }

    /// The stack size of the worker threads, in bytes; by default that of `std`'s threads.
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Called on each worker thread before it runs tasks. A hook that panics is reported on stderr.
    pub fn on_thread_start<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.set_hook(|hooks| &mut hooks.start, hook)
    }

    /// Called on each worker thread after its last task.
    pub fn on_thread_stop<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.set_hook(|hooks| &mut hooks.stop, hook)
    }

    /// Called on each worker thread before it goes to sleep for want of work. It must be short: what it or others
    /// spawn meanwhile may wait for it.
    pub fn on_thread_park<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.set_hook(|hooks| &mut hooks.park, hook)
    }

    /// Called on each worker thread when it has been woken. It must be short, too.
    pub fn on_thread_unpark<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.set_hook(|hooks| &mut hooks.unpark, hook)
    }

    fn set_hook<F>(&mut self, place: fn(&mut Hooks) -> &mut Option<Hook>, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        *place(&mut self.hooks) = Some(Arc::new(hook));
        self
    }

    /// Whether tasks that talk to each other stay on one worker while that pays; `true` by default.
    ///
    /// With it, queued work draws in another worker only when it would take its owner longer than
    /// waking the other costs (some 20 µs). Polls are unknown at first and count as long; and what
    /// waits behind a poll that turns out long is fetched by another worker within a millisecond or
    /// two. Many small groups of talkers, whose queue is as short, are spread over the workers on trial,
    /// for as long as few tasks wander from one to the other. Without the rule, any queued task draws in
    /// a sleeping worker at once: the better choice only where that first millisecond matters more than
    /// throughput.
    pub fn keep_talkers_together(&mut self, keep: bool) -> &mut Self {
        self.keep_together = keep;
        self
    }

    /// Whether the clock is paused from the start, for tests; see [`time::pause`](crate::time::pause).
    /// Only on a current-thread runtime.
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.start_paused = paused;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If a thread cannot be started.
    ///
    /// # Panics
    /// If the number of workers comes from `WAKERUN_WORKER_THREADS` and that is not a positive
    /// number; and if a multi-thread runtime is to start with its clock paused.
    pub fn build(&mut self) -> io::Result<Runtime> {
        if self.multi_thread {
            assert!(
                !self.start_paused,
                "the clock can be paused only on a current-thread runtime"
            );
            self.build_multi_thread()
        } else {
            Ok(self.build_current_thread())
        }
    }

    fn build_current_thread(&mut self) -> Runtime {
        let (shared, tools) = Shared::new(1, false, self.keep_together, self.hooks.clone());
        for (index, tools) in tools.into_iter().enumerate() {
            let worker = Worker::new(shared.clone(), index, tools);
            // The one worker fills the empty place.
            let _ = shared.core.set(CoreSlot::new(worker));
        }
        if self.start_paused {
            shared.driver.clock.pause();
        }
        Runtime::from_parts(Handle::new(shared), Vec::new())
    }

    fn build_multi_thread(&mut self) -> io::Result<Runtime> {
        let workers = self.workers.unwrap_or_else(default_workers);
        let (shared, tools) = Shared::new(workers, true, self.keep_together, self.hooks.clone());
        // All before the first thread, since the function is foreign code and may panic.
        let names: Vec<String> = (0..workers).map(|_| (self.name)()).collect();
        let mut threads = Vec::with_capacity(workers);
        for ((index, tools), name) in tools.into_iter().enumerate().zip(names) {
            let shared_for_worker = shared.clone();
            let mut builder = thread::Builder::new().name(name);
            if let Some(bytes) = self.stack_size {
                builder = builder.stack_size(bytes);
            }
            let started = builder.spawn(move || {
                work(&Worker::new(shared_for_worker, index, tools));
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    // Those that run already have no tasks; they leave at once.
                    shared.begin_shutdown();
                    for thread in threads {
                        let _ = thread.join();
                    }
                    return Err(error);
                }
            }
        }
        Ok(Runtime::from_parts(Handle::new(shared), threads))
    }
}

/// The life of a worker thread.
fn work(worker: &Worker) {
    let shared = worker.shared().clone();
    shared.hooks.on_start();
    {
        // Whatever happens, shutdown does not wait for this worker in vain.
        let _leave = Leave(worker);
        // SAFETY: the worker is borrowed for longer than the guard lives, so it stays in place.
        let _guard = unsafe { WorkerGuard::new(worker) };
        worker.run();
        // The guard goes first: destructors that wake or spawn then use the closed injector.
    }
    shared.hooks.on_stop();
}

struct Leave<'a>(&'a Worker);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.shared().worker_left(self.0);
    }
}

/// The number of workers where the builder was told nothing.
fn default_workers() -> usize {
    match std::env::var(WORKERS_VARIABLE) {
        Ok(text) => match text.trim().parse() {
            Ok(workers) if (1..=MAX_WORKERS).contains(&workers) => workers,
            _ => panic!(
                "{WORKERS_VARIABLE} must be a number from 1 to {MAX_WORKERS}, but is {text:?}"
            ),
        },
        Err(std::env::VarError::NotPresent) => {
            thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
        }
        Err(std::env::VarError::NotUnicode(text)) => {
            panic!("{WORKERS_VARIABLE} must be a number from 1 to {MAX_WORKERS}, but is {text:?}")
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("multi_thread", &self.multi_thread)
            .field("worker_threads", &self.workers)
            .field("thread_stack_size", &self.stack_size)
            .field("hooks", &self.hooks)
            .field("keep_talkers_together", &self.keep_together)
            .field("start_paused", &self.start_paused)
            .finish_non_exhaustive()
    }
}
