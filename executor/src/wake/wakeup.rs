//! A wake in two steps: take what is needed from a borrowed waker, let go of it, then wake.

use std::task::Waker;

use super::Place;
use crate::context;
use crate::scheduler::{schedule, schedule_next};
use crate::task::header::Task;
use crate::task::waker;

/// A wake that has been taken from a borrowed waker and is yet to be fired.
///
/// For primitives that lend a waker out of a cell: of a task of this runtime, the step costs the one
/// locked instruction that its wake costs anyway; of another, a clone. The task counts as woken from
/// here on, so the wakeup must be fired.
///
/// ```
/// use std::task::Waker;
/// use wakerun::wake::{Place, Wakeup};
///
/// let wakeup = Wakeup::of(Waker::noop());
/// // ...give the cell back...
/// wakeup.fire(Place::Next);
/// ```
#[derive(Debug)]
#[must_use = "the task counts as woken, but runs only when the wakeup is fired"]
pub struct Wakeup(Kind);

enum Kind {
    Task(Task),
    Other(Waker),
    /// The task was woken already.
    Nothing,
}

impl Wakeup {
    /// Takes a wake from a waker.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        Self(match waker::task_of(waker) {
            // SAFETY: the borrowed waker keeps the task.
            Some(header) => match unsafe { waker::wake_kept(header) } {
                Some(task) => Kind::Task(task),
                None => Kind::Nothing,
            },
            None => Kind::Other(waker.clone()),
        })
    }

    /// Wakes.
    #[inline]
    pub fn fire(mut self, place: Place) {
        let kind = std::mem::replace(&mut self.0, Kind::Nothing);
        // There is nothing left for the destructor.
        std::mem::forget(self);
        match kind {
            Kind::Task(task) => match place {
                Place::Next => schedule_next(task),
                Place::Tail => schedule(task, place),
            },
            Kind::Other(waker) => context::run_foreign(|| waker.wake()),
            Kind::Nothing => {}
        }
    }
}

impl Drop for Wakeup {
    /// A wakeup that is dropped unfired, by a panic, wakes all the same.
    #[inline]
    fn drop(&mut self) {
        match std::mem::replace(&mut self.0, Kind::Nothing) {
            Kind::Task(task) => schedule(task, Place::Tail),
            Kind::Other(waker) => {
                crate::panics::report("a waker", || context::run_foreign(|| waker.wake()));
            }
            Kind::Nothing => {}
        }
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Task(_) => "Task",
            Self::Other(_) => "Other",
            Self::Nothing => "Nothing",
        })
    }
}
