//! What all handles share.

use std::fmt;

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
        .finish_non_exhaustive()
}
