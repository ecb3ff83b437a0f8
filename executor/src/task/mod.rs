//! Tasks: spawning them, waiting for them, ending them.
//!
//! A task is a future that the runtime owns and polls on its own. [`spawn`] gives a
//! [`JoinHandle`]; dropping the handle detaches the task, awaiting it gives the output or a
//! [`JoinError`].
//!
//! ```
//! wakerun::block_on(async {
//!     let task = wakerun::spawn(async { 6 * 7 });
//!     assert_eq!(task.await.unwrap(), 42);
//! });
//! ```

mod blocking;
mod builder;
pub(crate) mod cell;
mod error;
pub(crate) mod header;
mod id;
mod join;
mod join_set;
#[cfg(all(test, wakerun_loom))]
mod loom_tests;
pub(crate) mod owned;
pub(crate) mod state;
pub(crate) mod waker;
pub(crate) mod watches;
mod yield_now;

pub use blocking::spawn_blocking;
pub(crate) use blocking::spawn_unlisted;
pub use builder::Builder;
pub use error::JoinError;
pub use id::{Id, id, try_id};
pub use join::{AbortHandle, JoinHandle};
pub use join_set::JoinSet;
pub use yield_now::{YieldNow, yield_now};

use std::future::Future;

/// Spawns a task on the runtime that the calling code runs in.
///
/// The task is queued at once, whether or not the handle is awaited, and goes on when the handle is
/// dropped. When the runtime ends, tasks that have not ended, or not started, are dropped; a task that
/// is spawned after that is cancelled at once.
///
/// # Panics
/// Outside a runtime. [`Handle::spawn`](crate::Handle::spawn) works from anywhere.
///
/// ```
/// wakerun::block_on(async {
///     let one = wakerun::task::spawn(async { 1 });
///     let two = wakerun::task::spawn(async { 2 });
///     assert_eq!(one.await.unwrap() + two.await.unwrap(), 3);
/// });
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    crate::scheduler::spawn_here(future, None)
}
