//! Closures that block, on threads that may be blocked.
//!
//! A job is a task like any other, with a handle, a place in the runtime's list, and an end at
//! shutdown, but for one thing: its queue entry goes to the pool of the `blocking` crate instead of a
//! worker. There it is started once, and is over when the start returns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::header::Task;
use super::state::Start;
use super::{AbortHandle, Builder, Id, JoinHandle, JoinSet, cell};
use crate::context::{self, Entered};
use crate::driver::HeldBack;
use crate::scheduler::{self, Shared};
use crate::{Handle, Runtime};

/// Runs a closure that blocks or computes for long, on a thread where that disturbs nobody.
///
/// The handle is that of [`spawn`](super::spawn): awaiting it gives the closure's value, or a
/// [`JoinError`](super::JoinError) with its panic; dropping it lets the closure go on by itself. The
/// closure is inside the runtime: [`spawn`](super::spawn) and [`Handle::current`] work in it, and so
/// does `Handle::current().block_on(…)`.
///
/// [`abort`](JoinHandle::abort) helps only while the closure has not begun: then it is dropped instead
/// of run. Code that blocks cannot be interrupted; have it look at a flag, if it takes long.
///
/// # The threads
/// The pool is that of the [`blocking`](https://docs.rs/blocking) crate, one for the whole process,
/// shared with all runtimes and with crates such as `async-fs` and `async-process`. It starts threads
/// as they are needed, up to 500 or what the environment variable `BLOCKING_MAX_THREADS` says; beyond
/// that, closures wait for a free one, in order. Threads that are idle for half a second leave.
///
/// # Shutdown
/// When the runtime ends, closures that have not begun are dropped. Those that have are not waited for:
/// they go on, and their values are dropped. (The process does not wait for them either: what must not
/// be cut off has to be awaited before `main` returns.)
///
/// # Panics
/// Outside a runtime. [`Handle::spawn_blocking`] works from anywhere.
///
/// ```
/// wakerun::block_on(async {
///     let lines = wakerun::task::spawn_blocking(|| {
///         let text = std::fs::read_to_string("Cargo.toml")?;
///         std::io::Result::Ok(text.lines().count())
///     });
///     assert!(lines.await.unwrap().unwrap() > 0);
/// });
/// ```
#[track_caller]
pub fn spawn_blocking<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    context::with_current(|shared| spawn(shared, f, None))
}

/// Makes a job and hands it to the pool.
fn spawn<F, T>(shared: Arc<Shared>, f: F, name: Option<Box<str>>) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (handle, task) = allocate(shared, f, name);
    if task.header().shared.owned.insert(&task) {
        submit(task, true);
    } else {
        scheduler::cancel_unlisted(task);
    }
    handle
}

/// As [`spawn`], but the end of the runtime does not concern it.
pub(crate) fn spawn_unlisted<F, T>(shared: Arc<Shared>, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (handle, task) = allocate(shared, f, None);
    submit(task, false);
    handle
}

/// A new job: its handle and its queue entry.
fn allocate<F, T>(shared: Arc<Shared>, f: F, name: Option<Box<str>>) -> (JoinHandle<T>, Task)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let id = Id::next();
    let header = cell::allocate(Job(Some(f)), shared, id, name);
    // SAFETY: a new task counts a reference for its handle, of type `T`...
    let handle = unsafe { JoinHandle::new(header) };
    // SAFETY: ...and one for its queue entry.
    let task = unsafe { Task::from_raw(header) };
    (handle, task)
}

/// Queues a job at the pool. `listed`: the list has its third reference; else it goes with the entry.
fn submit(task: Task, listed: bool) {
    // A test's clock does not run ahead of it.
    let held_back = hold_clock_back_for(&task);
    ::blocking::unblock(move || {
        run(task, listed);
        drop(held_back);
    })
    .detach();
}

/// Holds the clock of the job's runtime back, if it is one that can be paused.
fn hold_clock_back_for(task: &Task) -> Option<HeldBack> {
    let shared = &task.header().shared;
    (!shared.multi_thread).then(|| shared.driver.hold_clock_back())
}

/// Runs a job on the thread of the pool that has taken it.
fn run(task: Task, listed: bool) {
    let header = task.header();
    // The closure, and destructors of what it captured or returns, are inside the runtime.
    let _entered = Entered::new(Arc::clone(&header.shared));
    match header.state.start_job() {
        Start::Stale => return,
        Start::Poll => {
            // SAFETY: `start_job` made this thread the poller.
            let over = unsafe { (header.vtable.poll)(task.as_ptr()) };
            debug_assert!(over, "a job is over after one poll");
        }
        // SAFETY: as above.
        Start::Cancel => unsafe { (header.vtable.cancel)(task.as_ptr()) },
    }
    task.settle(header.state.complete());
    let third = !listed || header.shared.owned.remove(&task);
    task.release_completed(usize::from(third));
}

/// A closure as a future that is ready at once. Nothing wakes it, so nothing queues it on a worker.
struct Job<F>(Option<F>);

// The closure is moved out before it is called, so it is never pinned.
impl<F> Unpin for Job<F> {}

impl<F: FnOnce() -> T, T> Future for Job<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        let f = self.0.take().expect("a job is polled once");
        Poll::Ready(f())
    }
}

impl Handle {
    /// Runs a closure that blocks; see [`task::spawn_blocking`](crate::task::spawn_blocking). Works
    /// from any thread.
    ///
    /// ```
    /// let runtime = wakerun::Runtime::new()?;
    /// let job = runtime.handle().spawn_blocking(|| 2 + 2);
    /// assert_eq!(runtime.block_on(job).unwrap(), 4);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn(self.shared().clone(), f, None)
    }
}

impl Runtime {
    /// Runs a closure that blocks; see [`task::spawn_blocking`](crate::task::spawn_blocking). Works
    /// from any thread.
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle().spawn_blocking(f)
    }
}

impl Builder {
    /// Runs a closure that blocks; see [`task::spawn_blocking`](crate::task::spawn_blocking).
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F, T>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        context::with_current(|shared| spawn(shared, f, self.into_name()))
    }

    /// As [`spawn_blocking`](Self::spawn_blocking), on the given runtime.
    pub fn spawn_blocking_on<F, T>(self, f: F, handle: &Handle) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn(handle.shared().clone(), f, self.into_name())
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// Runs a closure that blocks, and adds it; see
    /// [`task::spawn_blocking`](crate::task::spawn_blocking). What is said there about aborting is true
    /// of the set, too: closures that have begun go on when it is dropped.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let mut set = wakerun::task::JoinSet::new();
    ///     for n in 0..4 {
    ///         set.spawn_blocking(move || n * n);
    ///     }
    ///     assert_eq!(set.join_all().await.iter().sum::<i32>(), 14);
    /// });
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.insert(spawn_blocking(f))
    }

    /// As [`spawn_blocking`](Self::spawn_blocking), on the given runtime.
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.insert(handle.spawn_blocking(f))
    }
}
