//! Names for tasks that no two share.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::context;

/// How many ids a thread takes at a time, so that spawning does not fight over one counter.
const BLOCK: u64 = 1024;

/// Identifies a task among all tasks of the process, for ever.
///
/// ```
/// wakerun::block_on(async {
///     let task = wakerun::spawn(async { wakerun::task::id() });
///     let id = task.id();
///     assert_eq!(task.await.unwrap(), id);
/// });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(NonZeroU64);

impl Id {
    /// A new id.
    pub(crate) fn next() -> Self {
        static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);
        let id = context::next_task_id(|| {
            // Relaxed: only the uniqueness of the answer counts.
            let first = NEXT_BLOCK.fetch_add(BLOCK, Ordering::Relaxed);
            (first, first + BLOCK)
        });
        Self(NonZeroU64::new(id).unwrap_or(NonZeroU64::MIN))
    }
}

impl Id {
    pub(crate) fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of the task that is being polled.
///
/// # Panics
/// Outside a task; inside [`Runtime::block_on`](crate::Runtime::block_on)'s own future too, which is
/// no task.
///
/// ```
/// wakerun::block_on(async {
///     wakerun::spawn(async { println!("task {}", wakerun::task::id()) }).await.unwrap();
/// });
/// ```
#[track_caller]
pub fn id() -> Id {
    try_id().expect("`wakerun::task::id()` was called outside a task")
}

/// The id of the task that is being polled, if there is one.
///
/// ```
/// assert!(wakerun::task::try_id().is_none());
/// ```
pub fn try_id() -> Option<Id> {
    context::current_task().map(|task| task.id())
}
