//! What a runtime must tell the harness.

use std::future::Future;
use std::time::Duration;

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

/// A runtime for programs: its tasks can spawn more, and it starts them by itself.
pub trait General: Runtime {
    /// Spawns a task from within another.
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static);

    /// Waits so long, in a task.
    fn sleep(time: Duration) -> impl Future<Output = ()> + Send;

    /// Blocks on a future that other tasks make ready, and keeps the runtime.
    fn block_on(&self, future: impl Future<Output = ()>);
}
