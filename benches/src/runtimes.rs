//! The runtimes. To add one, implement [`Runtime`] here, and pair it with channels in [`pairs`](crate::pairs).

use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::gate::Gate;

/// Runs the tasks of one workload, and is thrown away.
pub trait Runtime: 'static {
    /// Its name in tables.
    const NAME: &'static str;
    /// The package whose version the report names.
    const PACKAGE: &'static str;
    /// Whether it has one thread only.
    const ONE_WORKER: bool = false;

    /// A fresh runtime with `workers` threads that run tasks.
    fn new(workers: usize) -> Self;

    /// Spawns a task. It may run at once or wait for `finish`.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Blocks until all tasks have ended, which is when `done` is ready, and tears the runtime down.
    fn finish(self, done: impl Future<Output = ()>);
}

/// A runtime whose tasks can spawn more.
pub trait Inside: Runtime {
    /// Spawns a task from within another.
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static);
}

/// tokio's multi-threaded runtime.
#[derive(Debug)]
pub struct Tokio(tokio::runtime::Runtime);

impl Runtime for Tokio {
    const NAME: &'static str = "tokio";
    const PACKAGE: &'static str = "tokio";

    fn new(workers: usize) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(
            builder
                .worker_threads(workers)
                .build()
                .expect("tokio starts"),
        )
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn finish(self, done: impl Future<Output = ()>) {
        self.0.block_on(done);
    }
}

impl Inside for Tokio {
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }
}

/// tokio's runtime for one thread.
#[derive(Debug)]
pub struct TokioCurrentThread(tokio::runtime::Runtime);

impl Runtime for TokioCurrentThread {
    const NAME: &'static str = "tokio current-thread";
    const PACKAGE: &'static str = "tokio";
    const ONE_WORKER: bool = true;

    fn new(workers: usize) -> Self {
        assert_eq!(workers, 1, "this runtime has one worker");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Self(runtime.expect("tokio starts"))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn finish(self, done: impl Future<Output = ()>) {
        self.0.block_on(done);
    }
}

/// The executor of the nexosim simulator, by its hooks for benchmarks. It starts no task before `finish`, and
/// runs until all tasks have ended or none can go on.
#[derive(Debug)]
pub struct Nexosim(nexosim::dev_hooks::Executor);

impl Runtime for Nexosim {
    const NAME: &'static str = "nexosim";
    const PACKAGE: &'static str = "nexosim";

    fn new(workers: usize) -> Self {
        Self(nexosim::dev_hooks::Executor::new(workers))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_and_forget(task);
    }

    fn finish(mut self, _done: impl Future<Output = ()>) {
        self.0.run();
    }
}

/// async-executor, with a thread for each worker.
#[derive(Debug)]
pub struct AsyncExecutor {
    executor: Arc<async_executor::Executor<'static>>,
    stop: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
}

impl Runtime for AsyncExecutor {
    const NAME: &'static str = "async-executor";
    const PACKAGE: &'static str = "async-executor";

    fn new(workers: usize) -> Self {
        let executor = Arc::new(async_executor::Executor::new());
        let stop = Arc::new(Gate::new(workers));
        let work = || {
            let (executor, stop) = (executor.clone(), stop.clone());
            std::thread::spawn(move || futures_lite::future::block_on(executor.run(stop.pass())))
        };
        let threads = (0..workers).map(|_| work()).collect();
        Self {
            executor,
            stop,
            threads,
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(task).detach();
    }

    fn finish(self, done: impl Future<Output = ()>) {
        futures_lite::future::block_on(done);
        self.stop.open();
        for thread in self.threads {
            thread.join().expect("no worker panics");
        }
    }
}
