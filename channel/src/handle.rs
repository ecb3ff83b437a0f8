//! What all handles share.

use std::fmt;

use wakerun::sync::atomic::{AtomicU32, Ordering};

use crate::chan::Chan;
use crate::flavor::Flavor;

/// # Panics
/// Where blocking the thread would block the tasks that it runs.
#[track_caller]
pub(crate) fn assert_may_block(name: &str) {
    assert!(
        !wakerun::wake::must_not_block(),
        "`{name}` was called inside a wakerun task or `block_on`, where it would block a thread \
         that has tasks to run; use the async form and `.await` it"
    );
}

/// What the handles of a bounded channel show.
pub(crate) fn debug<T, F: Flavor>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    chan: &Chan<T, F>,
) -> fmt::Result {
    f.debug_struct(name)
        .field("len", &chan.len())
        .field("max_capacity", &chan.gate.capacity())
        .field("closed", &chan.is_closed())
        .field("senders", &chan.senders.load(Ordering::Relaxed))
        .finish_non_exhaustive()
}

/// Counts a clone of a handle that is itself counted.
pub(crate) fn count_clone(handles: &AtomicU32) {
    // Relaxed: the cloned handle keeps the count above zero, and how the clone gets elsewhere orders it.
    let before = handles.fetch_add(1, Ordering::Relaxed);
    if before > u32::MAX / 2 {
        // Only leaks in a loop get here; a count that wrapped would close a live channel.
        std::process::abort();
    }
}

/// Counts a handle more, unless there is none any more.
pub(crate) fn count_up(handles: &AtomicU32) -> bool {
    let mut count = handles.load(Ordering::Relaxed);
    while count != 0 {
        // Acquire keeps the handle's first use after the count; from 0 there is no way back, so an end
        // that was seen is final.
        match handles.compare_exchange_weak(count, count + 1, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => return true,
            Err(found) => count = found,
        }
    }
    false
}
