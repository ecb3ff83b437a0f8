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
        }
        received
    }

    pub(crate) fn close(&mut self) {
        self.shut(|_| true);
    }
}
