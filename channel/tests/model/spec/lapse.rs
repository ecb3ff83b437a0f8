//! Grants, and wakes of receivers, that lapse.

use super::{Event, Id, Spec, State};

impl Spec {
    /// A poll of the task is over. What was granted to it before that poll began, and not claimed in it,
    /// is due.
    pub(crate) fn end_poll(&mut self) {
        self.epoch += 1;
        let now = self.epoch;
        let over = |spec: &Self, id: Id| {
            let waiter = spec.waiters[&id];
            // Granted between two polls: the next one is over. During one: the one after it is.
            let due = |since: u64| now - since >= 2 + since % 2;
            waiter.own && matches!(waiter.state, State::Granted(since) if due(since))
        };
        for id in self.line.clone() {
            if over(self, id) {
                self.set(id, State::Due);
            }
        }
        // Somebody wants them, if it is a receiver that wants the end.
        if self.closed || self.first().is_some() {
            self.lapse();
        }
        let mut unused = 0;
        for id in self.receivers_line.clone() {
            if self.many && over(self, id) {
                self.set(id, State::Lapsed);
                unused += 1;
            }
        }
        self.pass_on(unused);
    }

    pub(crate) fn begin_poll(&mut self) {
        self.epoch += 1;
        self.task_woken = false;
    }

    /// Due grants go back, for those who wait; those who had them keep their places. `false`: there are
    /// none.
    pub(super) fn lapse(&mut self) -> bool {
        let some = self.take_back();
        if some {
            self.serve();
        }
        some
    }

    pub(super) fn take_back(&mut self) -> bool {
        let due = |id: &Id| self.waiters[id].state == State::Due;
        let due: Vec<Id> = self.line.iter().copied().filter(due).collect();
        for &id in &due {
            self.set(id, State::Lapsed);
            if let Some(count) = self.waiters[&id].kind.permits() {
                self.give_back(count);
            }
            self.tally.add(Event::Lapse, 1);
        }
        !due.is_empty()
    }

    /// Receivers go, or do not come, that had been woken: others are, if there may be a message.
    pub(super) fn pass_on(&mut self, count: usize) {
        if count > 0 && (!self.queue.is_empty() || self.first().is_some()) {
            let told = self.wake_receivers(count);
            self.tally.add(Event::PassOn, told);
        }
    }
}
