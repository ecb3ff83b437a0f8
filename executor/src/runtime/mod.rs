//! The runtime as its users hold it: building, entering, blocking on, shutting down.

mod block_on;
mod builder;
mod core_slot;
mod handle;
mod hooks;
mod main_future;

pub use block_on::{block_on_thread, block_on_thread_until};
pub use builder::Builder;
pub use handle::{EnterGuard, Handle, RuntimeFlavor, TryCurrentError};
pub(crate) use hooks::Hooks;
pub(crate) use main_future::{Main, main_of};

use std::fmt;
use std::future::Future;
use std::io;
use std::thread;
use std::time::Duration;

use crate::context;
use crate::task::JoinHandle;
pub(crate) use core_slot::CoreSlot;

/// A scheduler with its worker threads.
///
/// Dropping it shuts it down: workers finish the poll that they are in, then every task is dropped,
/// wherever it stands, and the drop returns. It waits for a long poll without limit;
/// [`shutdown_timeout`](Self::shutdown_timeout) does not. Inside a task or a `block_on`, where nothing may wait,
/// the same goes on in the background instead.
///
/// ```
/// let runtime = wakerun::Runtime::new()?;
/// let answer = runtime.block_on(async {
///     let task = wakerun::spawn(async { 40 });
///     task.await.unwrap() + 2
/// });
/// assert_eq!(answer, 42);
/// # std::io::Result::Ok(())
/// ```
#[must_use = "dropping a runtime ends its tasks"]
pub struct Runtime {
    handle: Handle,
    /// Worker threads, taken out when they are joined or let go.
    threads: Vec<thread::JoinHandle<()>>,
}

impl Runtime {
    /// A multi-thread runtime with the defaults of [`Builder`].
    ///
    /// # Errors
    /// If a thread cannot be started.
    ///
    /// # Panics
    /// If `WAKERUN_WORKER_THREADS` is set to anything but a positive number.
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().build()
    }

    /// As [`Builder::new_multi_thread`].
    pub fn builder() -> Builder {
        Builder::new_multi_thread()
    }

    pub(crate) fn from_parts(handle: Handle, threads: Vec<thread::JoinHandle<()>>) -> Self {
        Self { handle, threads }
    }

    /// Runs a future on the calling thread until it is done.
    ///
    /// On a multi-thread runtime the workers run the tasks meanwhile; on a current-thread runtime
    /// this call runs them. The future itself is no task and need not be `Send`.
    ///
    /// # Panics
    /// Inside a task or another `block_on`; and if the future panics, with its panic.
    ///
    /// ```
    /// let runtime = wakerun::Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.block_on(async { 1 + 1 }), 2);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Spawns a task; see [`crate::spawn`]. Works from any thread.
    ///
    /// ```
    /// let runtime = wakerun::Runtime::new()?;
    /// let task = runtime.spawn(async { 5 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 5);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// A handle for other threads, which does not keep the runtime alive.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// As [`Handle::enter`].
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Shuts down and waits for it, but no longer than `timeout`; any duration is good. What is not
    /// done by then, such as a poll that does not end, goes on in the background.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = wakerun::Runtime::new()?;
    /// runtime.spawn(std::future::pending::<()>());
    /// runtime.shutdown_timeout(Duration::from_secs(1));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_timeout(mut self, timeout: Duration) {
        self.shut_down(Some(timeout));
    }

    /// Shuts down without waiting: tasks are dropped by the workers as they leave.
    ///
    /// On a current-thread runtime, which has no other thread to do it, they are dropped here.
    pub fn shutdown_background(mut self) {
        self.shut_down(Some(Duration::ZERO));
    }

    /// Starts the shutdown, and waits for its end if this thread may wait.
    fn shut_down(&mut self, timeout: Option<Duration>) {
        let shared = self.handle.shared().clone();
        shared.begin_shutdown();
        if let Some(slot) = shared.core.get() {
            slot.shut_down(&shared);
            return;
        }
        let threads = std::mem::take(&mut self.threads);
        let wait = timeout != Some(Duration::ZERO) && !context::must_not_block();
        if wait && shared.shutdown.wait(timeout) {
            for thread in threads {
                // The thread has nothing more to do than to call its stop hook. Its panics have
                // been reported where they were caught.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.handle.shared().is_shut_down() {
            self.shut_down(None);
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("flavor", &self.handle.flavor())
            .field("workers", &self.handle.num_workers())
            .finish_non_exhaustive()
    }
}

/// Runs a future on a new multi-thread runtime, which ends with it: the quick start.
///
/// # Panics
/// Inside a task or another `block_on`, if the runtime's threads cannot be started, and if the
/// future panics, with its panic.
///
/// ```
/// let sum = wakerun::block_on(async {
///     let task = wakerun::spawn(async { (1..=4).sum::<u32>() });
///     task.await.unwrap()
/// });
/// assert_eq!(sum, 10);
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !context::must_not_block(),
        "`wakerun::block_on` was called inside a task or another `block_on`: it would block a \
         thread that has tasks to run; `.await` the future, or `spawn` it"
    );
    match Runtime::new() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => panic!("the runtime's threads cannot be started: {error}"),
    }
}
