//! The receiving end.

use super::{Id, Kind, Received, Spec, State};

impl Spec {
    /// Takes the next message, `by` whom leaves the line with it.
    fn take(&mut self, by: Option<Id>) -> Received {
        let leave = |spec: &mut Self| {
            let Some(id) = by else { return };
            spec.receivers_line.retain(|&other| other != id);
            spec.set(id, State::New);
        };
        while let Some(slot) = self.queue.pop_front() {
            if !slot.withdrawn {
                leave(self);
                if self.serves_one() {
                    self.expecting = self.senders == 1;
                }
            }
            self.serve();
            if !slot.withdrawn {
                return Received::Message(slot.message);
            }
        }
        if let Some((id, Kind::Send(message))) = self.first() {
            // Accepted and received in one moment: it takes no room.
            leave(self);
            self.accept(id);
            self.serve();
            return Received::Message(message);
        }
        if self.ended() {
            leave(self);
            return Received::End;
        }
        Received::Nothing
    }

    /// Whether the line is about to be served by the one receiver, by one and no more. For a send, nobody is passed
    /// over, and no permit is out.
    fn serves_one(&self) -> bool {
        let waits = |id: &&Id| self.waiters[id].state == State::Waiting;
        let waiting = self.line.iter().filter(waits).count();
        let alone = |count| waiting == 1 || self.free() == count;
        match self.first() {
            None => false,
            Some(_) if self.many => false,
            Some((_, Kind::Send(_))) => self.permits == 0 && waiting == self.line.len() && alone(1),
            Some((_, kind)) => self.has_room(kind) && kind.permits().is_some_and(alone),
        }
    }

    pub(crate) fn try_recv(&mut self) -> Received {
        self.take(None)
    }

    /// What comes with the first message of a receive of many.
    pub(crate) fn take_more(&mut self, limit: usize) -> Vec<usize> {
        let mut more = Vec::new();
        while more.len() < limit
            && let Received::Message(message) = self.take(None)
        {
            more.push(message);
        }
        more
    }

    /// A poll of a receive future, or of the receiver itself.
    pub(crate) fn poll_recv(&mut self, id: Id, own: bool) -> Received {
        let waiter = self.at(id);
        waiter.woken = false;
        let quiet = self.queue.is_empty() && self.first().is_none() && !self.closed;
        let received = self.take(Some(id));
        if received == Received::Nothing {
            if !self.many {
                // Only the last poll of the one receiver counts.
                self.receivers_line.clear();
            }
            if !self.receivers_line.contains(&id) {
                self.receivers_line.push(id);
            }
            let waiter = self.at(id);
            (waiter.state, waiter.own) = (State::Waiting, own);
            waiter.woken = false;
            if std::mem::take(&mut self.expecting) && quiet && own {
                // It has woken itself.
                self.wake(id, State::Granted(self.epoch));
            }
        }
        received
    }

    pub(crate) fn close(&mut self) {
        self.shut(|_| true);
    }
}
