//! What a waiting future asks of its task: that the channel be told of the ends of its polls.

use std::cell::Cell;
use std::task::Context;

use wakerun::wake::{self, PollWatch};

/// Whether a channel watches a task on behalf of a future, and which task.
pub(crate) struct Watching {
    /// As [`wake::current_poller`] names it; 0: none.
    poller: Cell<usize>,
    /// The poll of it in which this future was polled last, as [`wake::note_poll`] names it.
    polled: Cell<u64>,
}

impl Watching {
    pub(crate) const fn new() -> Self {
        Self {
            poller: Cell::new(0),
            polled: Cell::new(0),
        }
    }

    /// The future is about to wait. Whether the polling task is one of ours and waits with its own waker;
    /// then `watch` has been called once for it, and the channel looks at the ends of its polls.
    pub(crate) fn begin(
        &self,
        cx: &Context<'_>,
        channel: &impl PollWatch,
        watch: impl FnOnce() -> bool,
    ) -> bool {
        if !wake::is_own_waker(cx.waker()) {
            self.end(channel);
            return false;
        }
        let poller = wake::current_poller();
        if self.poller.get() != poller {
            if !watch() {
                return false;
            }
            self.poller.set(poller);
            self.polled.set(0);
        }
        self.polled.set(wake::note_poll(channel, self.polled.get()));
        true
    }

    /// Whether no task is watched.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.poller.get() == 0
    }

    /// Whether the task that is being polled is one of ours that waited here with its own waker at its last poll.
    /// Then the future is about to wait again.
    #[inline]
    pub(crate) fn goes_on(&self, channel: &impl PollWatch) -> bool {
        let poller = self.poller.get();
        let same = poller != 0 && poller == wake::current_poller();
        if same {
            self.polled.set(wake::note_poll(channel, self.polled.get()));
        }
        same
    }

    /// The future waits no more. If that is in a poll of the task that is watched, its ask is taken back;
    /// else it stands, and costs that task a look at the end of each poll while others wait here.
    pub(crate) fn end(&self, channel: &impl PollWatch) {
        let poller = self.poller.replace(0);
        if poller != 0 && poller == wake::current_poller() {
            wake::unwatch_polls(channel);
        }
    }
}
