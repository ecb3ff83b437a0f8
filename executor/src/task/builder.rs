//! Spawning with more said than the future.

use std::future::Future;

use super::JoinHandle;
use crate::{Handle, scheduler};

/// Describes a task before it is spawned.
///
/// ```
/// wakerun::block_on(async {
///     let task = wakerun::task::Builder::new()
///         .name("parser")
///         .spawn(async { 7 });
///     assert!(format!("{task:?}").contains("parser"));
///     assert_eq!(task.await.unwrap(), 7);
/// });
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder spawns nothing until `spawn` is called"]
pub struct Builder {
    name: Option<Box<str>>,
}

impl Builder {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name that the task's handles show in their `Debug` form.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into_boxed_str());
        self
    }

    pub(super) fn into_name(self) -> Option<Box<str>> {
        self.name
    }

    /// Spawns on the runtime that the calling code runs in.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        scheduler::spawn_here(future, self.name)
    }

    /// Spawns on the given runtime.
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        scheduler::spawn(handle.shared(), future, self.name)
    }
}
