//! A look at a task from a primitive it waits in.

use std::fmt;
use std::ptr::NonNull;

use crate::context;
use crate::task::Id;
use crate::task::header::{Header, Task};

/// Keeps a task's memory, and tells how far it is. Cloning counts a reference.
///
/// ```
/// wakerun::block_on(async {
///     wakerun::spawn(async {
///         let me = wakerun::wake::current_task().unwrap();
///         assert_eq!(me.epoch() % 2, 1, "odd while the task is polled");
///     })
///     .await
///     .unwrap();
/// });
/// ```
#[derive(Clone)]
pub struct TaskRef(Task);

impl TaskRef {
    /// # Safety
    /// `header` is alive.
    pub(crate) unsafe fn retain(header: NonNull<Header>) -> Self {
        // SAFETY: alive, says the caller.
        unsafe { header.as_ref() }.state.retain();
        // SAFETY: the reference just counted.
        Self(unsafe { Task::from_raw(header) })
    }

    /// How often a poll of the task has begun or ended, modulo 2⁶⁴: odd while it is polled, even in
    /// between. Two equal even values mean that it has not been polled in between.
    pub fn epoch(&self) -> u64 {
        self.0.header().epoch()
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.0.header().id
    }
}

impl PartialEq for TaskRef {
    /// Whether both are of the same task.
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr()
    }
}

impl Eq for TaskRef {}

impl fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRef")
            .field("id", &self.id())
            .field("epoch", &self.epoch())
            .finish()
    }
}

/// The task whose poll is going on on this thread, if it is one of a wakerun runtime.
///
/// ```
/// assert!(wakerun::wake::current_task().is_none());
/// ```
pub fn current_task() -> Option<TaskRef> {
    context::current_task()
}
