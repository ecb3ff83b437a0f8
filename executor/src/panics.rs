//! What happens to panics of foreign code (wakers, hooks, destructors) inside the scheduler.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs foreign code where there is nobody to give its panic to: says so on stderr and goes on.
///
/// The panic hook has already printed the message and the place; this adds what it interrupted.
pub(crate) fn report(what: &str, f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        say(format_args!("{what} panicked; the runtime goes on"));
        drop_payload(payload);
    }
}

/// Tells the user. A stderr that is gone is no reason to panic.
pub(crate) fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "wakerun: {what}");
}

/// Drops a panic's payload, whose own destructor may panic too.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload that panics for ever is leaked rather than followed.
        std::mem::forget(again);
    }
}

/// Goes on after a panic of foreign code until all is done, and then lets the first one go on.
#[derive(Default)]
pub struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    /// None yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Runs foreign code; keeps its panic if it is the first.
    #[inline]
    pub fn catch(&mut self, f: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
            self.keep(payload);
        }
    }

    #[cold]
    fn keep(&mut self, payload: Box<dyn Any + Send>) {
        if self.0.is_none() {
            self.0 = Some(payload);
        } else {
            drop_payload(payload);
        }
    }

    /// Whether there was one.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Lets the first panic go on; if this thread is unwinding already, reports it instead, since a
    /// second panic would end the process.
    #[inline]
    pub fn resume(self, what: &str) {
        if let Some(payload) = self.0 {
            resume(payload, what);
        }
    }
}

#[cold]
fn resume(payload: Box<dyn Any + Send>, what: &str) {
    if std::thread::panicking() {
        say(format_args!(
            "{what} panicked while another panic was under way"
        ));
        drop_payload(payload);
    } else {
        resume_unwind(payload);
    }
}

impl std::fmt::Debug for FirstPanic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FirstPanic").field(&self.is_some()).finish()
    }
}
