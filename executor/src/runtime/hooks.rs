//! What the user wants to be called when worker threads start, stop and sleep.

use std::fmt;
use std::sync::Arc;

/// A hook: called on the worker's thread.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync + 'static>;

/// All hooks of a runtime. A hook that panics is reported and does no harm.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) start: Option<Hook>,
    pub(crate) stop: Option<Hook>,
    pub(crate) park: Option<Hook>,
    pub(crate) unpark: Option<Hook>,
}

impl Hooks {
    pub(crate) fn on_start(&self) {
        call(&self.start, "the thread-start hook");
    }

    pub(crate) fn on_stop(&self) {
        call(&self.stop, "the thread-stop hook");
    }

    pub(crate) fn on_park(&self) {
        call(&self.park, "the thread-park hook");
    }

    pub(crate) fn on_unpark(&self) {
        call(&self.unpark, "the thread-unpark hook");
    }
}

fn call(hook: &Option<Hook>, what: &str) {
    if let Some(hook) = hook {
        crate::panics::report(what, || hook());
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("start", &self.start.is_some())
            .field("stop", &self.stop.is_some())
            .field("park", &self.park.is_some())
            .field("unpark", &self.unpark.is_some())
            .finish()
    }
}
