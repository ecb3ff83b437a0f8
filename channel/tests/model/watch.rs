//! Wakers that count, and whom they must have woken.

use std::sync::Arc;
use std::task::Waker;

use super::op::With;
use super::spec::{Kind, State, Waiter};
use crate::common::{Counter, counter};

/// What a future or a receiver is polled with: a waker that counts, replaced when an operation asks for
/// a fresh one, or the task's own.
pub(crate) struct Watch {
    count: Arc<Counter>,
    waker: Waker,
    own: bool,
}

impl Watch {
    pub(crate) fn new(all: &mut Vec<Arc<Counter>>) -> Self {
        let (count, waker) = counter();
        all.push(Arc::clone(&count));
        Self {
            count,
            waker,
            own: false,
        }
    }

    /// The waker of the next poll, and whether it is that of the task, which there may be none of.
    pub(crate) fn next(
        &mut self,
        with: With,
        task: Option<&Waker>,
        all: &mut Vec<Arc<Counter>>,
    ) -> (Waker, bool) {
        match (with, task) {
            (With::Own, Some(_)) => self.own = true,
            (With::Own, None) | (With::Same, _) => {}
            (With::Fresh, _) => *self = Self::new(all),
        }
        self.own &= task.is_some();
        self.count.take();
        match task {
            Some(task) if self.own => (task.clone(), true),
            _ => (self.waker.clone(), false),
        }
    }

    /// Woken once, or not at all. Who waits with the task's own waker shares it with others; a receiver
    /// that does not wait is owed nothing, and may have woken itself on the way.
    pub(crate) fn check(&self, what: &str, waiter: Waiter) -> Result<(), String> {
        let receives = (waiter.kind, waiter.state) == (Kind::Receive, State::New);
        match (self.count.count(), waiter.woken) {
            _ if waiter.own || receives => Ok(()),
            (0, false) | (1, true) => Ok(()),
            (0, true) => Err(format!("{what} was not woken ({waiter:?})")),
            (_, false) => Err(format!("{what} was woken for nothing ({waiter:?})")),
            (n, true) => Err(format!("{what} was woken {n} times ({waiter:?})")),
        }
    }
}
