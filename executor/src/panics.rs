//! What happens to panics of foreign code (wakers, hooks, destructors) inside the scheduler.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code where there is nobody to give its panic to: says so on stderr and goes on.
///
/// The panic hook has already printed the message and the place; this adds what it interrupted.
pub(crate) fn report(what: &str, f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        eprintln!("wakerun: {what} panicked; the runtime goes on");
        drop_payload(payload);
    }
}

/// Drops a panic's payload, whose own destructor may panic too.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload that panics for ever is leaked rather than followed.
        std::mem::forget(again);
    }
}
