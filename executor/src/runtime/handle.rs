//! Reaching a runtime from anywhere.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use super::block_on;
use crate::context::{self, BlockGuard, Entered};
use crate::scheduler::{self, Shared};
use crate::task::JoinHandle;

/// A reference to a runtime, for spawning onto it. It does not keep the runtime running: after
/// the [`Runtime`](crate::Runtime) is dropped, spawned tasks are cancelled at once.
///
/// ```
/// let runtime = wakerun::Runtime::new()?;
/// let handle = runtime.handle().clone();
/// let thread = std::thread::spawn(move || handle.block_on(async { wakerun::spawn(async { 3 }).await }));
/// assert_eq!(thread.join().unwrap().unwrap(), 3);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The runtime that the calling code runs in.
    ///
    /// # Panics
    /// Outside a runtime; [`try_current`](Self::try_current) asks.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let handle = wakerun::Handle::current();
    ///     assert_eq!(handle.spawn(async { 1 }).await.unwrap(), 1);
    /// });
    /// ```
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The runtime that the calling code runs in.
    ///
    /// # Errors
    /// Outside a runtime.
    ///
    /// ```
    /// assert!(wakerun::Handle::try_current().is_err());
    /// ```
    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::try_current().map(Self::new)
    }

    /// Spawns a task; see [`crate::spawn`]. Works from any thread.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        scheduler::spawn(&self.shared, future, None)
    }

    /// As [`Runtime::block_on`](crate::Runtime::block_on). On a current-thread runtime, of several
    /// such calls at a time one runs the tasks, and another takes over when it returns.
    ///
    /// # Panics
    /// Inside a task or another `block_on`; and if the future panics, with its panic.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _blocking = BlockGuard::new();
        let _entered = self.enter();
        match self.shared.core.get() {
            None => block_on::block_on_with_budget(future),
            Some(slot) => slot.block_on(&self.shared, future),
        }
    }

    /// Makes this the current runtime of the calling thread while the guard lives, so that
    /// [`crate::spawn`] works.
    ///
    /// ```
    /// let runtime = wakerun::Runtime::new()?;
    /// let task = {
    ///     let _guard = runtime.handle().enter();
    ///     wakerun::spawn(async { "from a plain thread" })
    /// };
    /// assert_eq!(runtime.block_on(task).unwrap(), "from a plain thread");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _entered: Entered::new(self.shared.clone()),
            _handle: PhantomData,
        }
    }

    /// Which kind of runtime this is.
    pub fn flavor(&self) -> RuntimeFlavor {
        if self.shared.multi_thread {
            RuntimeFlavor::MultiThread
        } else {
            RuntimeFlavor::CurrentThread
        }
    }

    /// How many workers the runtime has; 1 if it is a current-thread runtime.
    pub fn num_workers(&self) -> usize {
        self.shared.remotes.len()
    }

    /// How many tasks have been spawned and have not ended; a snapshot.
    ///
    /// ```
    /// let runtime = wakerun::Runtime::new()?;
    /// assert_eq!(runtime.handle().num_alive_tasks(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_alive_tasks(&self) -> usize {
        self.shared.owned.len()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("flavor", &self.flavor())
            .field("workers", &self.num_workers())
            .finish_non_exhaustive()
    }
}

/// The kinds of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// Tasks run inside `block_on`, on its caller's thread.
    CurrentThread,
    /// Tasks run on worker threads.
    MultiThread,
}

/// Keeps a runtime entered; see [`Handle::enter`].
#[must_use = "the runtime is left as soon as the guard is dropped"]
pub struct EnterGuard<'a> {
    _entered: Entered,
    _handle: PhantomData<&'a Handle>,
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}

/// There is no current runtime.
#[derive(Clone, PartialEq, Eq)]
pub struct TryCurrentError {
    _private: (),
}

impl TryCurrentError {
    pub(crate) fn new() -> Self {
        Self { _private: () }
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is no wakerun runtime here: call this inside `Runtime::block_on` or a task, \
             enter a runtime with `Handle::enter`, or use `Handle::spawn`",
        )
    }
}

impl fmt::Debug for TryCurrentError {
    /// The message, too: this is what `unwrap` and `main` show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TryCurrentError({self})")
    }
}

impl std::error::Error for TryCurrentError {}
