//! A work-stealing async runtime whose wake queues are shared with its bounded channels.
//!
//! ```
//! let answer = wakerun::block_on(async {
//!     let task = wakerun::spawn(async { 6 * 7 });
//!     task.await.unwrap()
//! });
//! assert_eq!(answer, 42);
//! ```
//!
//! - [`Runtime`] and [`Builder`]: worker threads, or all on the caller's thread;
//! - [`spawn`], [`task`]: tasks, their handles, sets of them; [`task::spawn_blocking`] for what blocks;
//! - [`net`], [`time`], [`fs`], [`signal`]: sockets, timers, files, signals; [`io::Async`] for any
//!   descriptor. A worker that has nothing to do waits for them: there is no thread for it;
//! - [`wake`]: the wake queues, for primitives built into the runtime. `wakerun-channel` is one.
//!
//! # Systems
//!
//! It is developed and tested on Linux. For macOS, FreeBSD and Windows the code and its tests are
//! type-checked; on Windows they have not been run yet. There,
//!
//! - `net::unix`, `signal::unix` and `fs::symlink` do not exist; `signal::ctrl_c` does;
//! - [`io::Async`] is for sockets, `AsSocket` in place of `AsFd`;
//! - the system has no edge-triggered events, so an operation that would block costs a call more, which
//!   asks for the next event. (Linux takes that way with `--cfg wakerun_oneshot`, to test it.)
//!
//! # Other crates
//!
//! Streams have the traits of `futures-io`. With the feature `hyper` there is a module for hyper 1.x; the
//! folder `examples/ecosystem` of the repository shows it, and TLS, WebSockets, child processes and crates
//! that need tokio.
#![warn(missing_docs)]

mod context;
mod driver;
pub mod fs;
#[cfg(feature = "hyper")]
pub mod hyper;
pub mod io;
pub mod net;
mod runtime;
mod scheduler;
pub mod signal;
mod sys;
pub mod task;
pub mod time;
mod unblock;
pub mod wake;

#[doc(hidden)]
pub mod lock;
#[doc(hidden)]
pub mod panics;
#[doc(hidden)]
pub mod sync;

pub use runtime::{Builder, EnterGuard, Handle, Runtime, RuntimeFlavor, TryCurrentError, block_on};
pub use task::{JoinHandle, spawn};
#[cfg(feature = "macros")]
pub use wakerun_macros::{main, test};
