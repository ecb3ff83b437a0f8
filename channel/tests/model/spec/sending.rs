//! The sending end: attempts, futures, permits.

use std::collections::VecDeque;

use super::{Event, Id, Kind, Outcome, Spec, State, Waiter};

impl Spec {
    /// Whether what `kind` wants is to be had now: nobody overtakes the line.
    fn attempt(&self, kind: Kind) -> Outcome {
        match kind {
            Kind::Reserve(count) if count > self.capacity => Outcome::TooMany,
            _ if self.closed => Outcome::Closed,
            Kind::Reserve(0) => Outcome::Permits,
            _ if self.first().is_some() || !self.has_room(kind) => Outcome::Full,
            Kind::Reserve(_) => Outcome::Permits,
            _ => Outcome::Sent,
        }
    }

    /// `try_send`, `try_reserve`, `try_reserve_many`.
    pub(crate) fn attempt_now(&mut self, kind: Kind) -> Outcome {
        let mut outcome = self.attempt(kind);
        while outcome == Outcome::Full && self.lapse() && self.first().is_none() {
            self.tally.add(Event::LapseForTry, 1);
            outcome = self.attempt(kind);
        }
        self.take_now(outcome, kind);
        outcome
    }

    fn take_now(&mut self, outcome: Outcome, kind: Kind) {
        match (outcome, kind) {
            (Outcome::Sent, Kind::Send(message)) => self.push(message, None),
            (Outcome::Permits, kind) => self.permits += kind.permits().unwrap_or(0),
            _ => {}
        }
    }

    /// The oldest message makes way if need be, and comes back.
    pub(crate) fn force_send(&mut self, message: usize) -> (Outcome, Option<usize>) {
        let outcome = self.attempt_now(Kind::Send(message));
        if outcome != Outcome::Full {
            return (outcome, None);
        }
        let mut oldest = None;
        if self.free() == 0 {
            let Some(slot) = self.queue.pop_front() else {
                return (Outcome::Full, None);
            };
            self.tally.add(Event::Evict, 1);
            oldest = (!slot.withdrawn).then_some(slot.message);
        }
        self.push(message, None);
        (Outcome::Sent, oldest)
    }

    /// A new future, not polled yet; or a receiver that can be polled itself.
    pub(crate) fn make(&mut self, id: Id, kind: Kind) {
        let waiter = Waiter {
            kind,
            state: State::New,
            own: false,
            woken: false,
        };
        self.waiters.insert(id, waiter);
    }

    pub(crate) fn make_exact(&mut self, id: Id, messages: impl IntoIterator<Item = usize>) {
        self.make(id, Kind::Exact);
        self.carried.insert(id, messages.into_iter().collect());
    }

    /// A poll of a future on the sending side. Anything but `Pending` ends it; messages that it still has
    /// come back. `cancelled`: it gives up if it has to wait.
    pub(crate) fn poll(&mut self, id: Id, own: bool, cancelled: bool) -> (Outcome, Vec<usize>) {
        let outcome = self.poll_once(id, own);
        let messages = self.messages_of(id);
        match outcome {
            Outcome::Pending if cancelled => {
                self.drop(id);
                (Outcome::Cancelled, messages)
            }
            Outcome::Pending => (outcome, Vec::new()),
            _ => {
                self.waiters.remove(&id);
                self.carried.remove(&id);
                let closed = outcome == Outcome::Closed;
                (outcome, if closed { messages } else { Vec::new() })
            }
        }
    }

    fn poll_once(&mut self, id: Id, own: bool) -> Outcome {
        self.at(id).woken = false;
        let Waiter { kind, state, .. } = *self.at(id);
        let outcome = match (kind, state) {
            (Kind::Closed, _) if self.closed => Outcome::Closed,
            (Kind::Closed, _) => {
                self.set(id, State::Waiting);
                Outcome::Pending
            }
            (Kind::Exact, State::New) => self.send_exactly(id, own),
            (kind, State::New) => self.poll_new(id, kind, own),
            (_, State::Waiting) => Outcome::Pending,
            (_, State::Granted(_) | State::Due) => Outcome::Permits,
            (_, State::Lapsed) if self.closed => Outcome::Closed,
            (kind, State::Lapsed) => self.wait_again(id, kind),
            (_, State::Accepted) => Outcome::Sent,
            (_, State::Refused) => Outcome::Closed,
        };
        if outcome != Outcome::Pending {
            self.line.retain(|&other| other != id);
        }
        if outcome == Outcome::Permits && self.carried.contains_key(&id) {
            return self.use_permit(id, own);
        }
        if outcome == Outcome::Pending {
            self.at(id).own = own;
        } else {
            // It has been told: nothing can be withdrawn any more.
            for slot in self.queue.iter_mut().filter(|slot| slot.from == Some(id)) {
                slot.from = None;
            }
        }
        outcome
    }

    fn poll_new(&mut self, id: Id, kind: Kind, own: bool) -> Outcome {
        let outcome = self.attempt(kind);
        if outcome != Outcome::Full {
            self.take_now(outcome, kind);
            return outcome;
        }
        self.line.push(id);
        let waiter = self.at(id);
        (waiter.state, waiter.own, waiter.woken) = (State::Waiting, own, false);
        if self.is_hand_to_hand() {
            // All messages are in the line: each is news.
            self.wake_receivers(1);
        } else if self.first() == Some((id, kind)) {
            self.nudge();
        }
        // Grants that others do not come for.
        self.lapse();
        Outcome::Pending
    }

    /// As many as there is room for; for the next one it waits in line.
    fn send_exactly(&mut self, id: Id, own: bool) -> Outcome {
        while !self.closed
            && self.first().is_none()
            && self.free() > 0
            && let Some(message) = self.carried.get_mut(&id).and_then(VecDeque::pop_front)
        {
            self.push(message, None);
        }
        if self.carried[&id].is_empty() {
            return Outcome::Sent;
        }
        self.poll_new(id, Kind::Exact, own)
    }

    /// The next message goes with the permit that its future has got; then it goes on.
    fn use_permit(&mut self, id: Id, own: bool) -> Outcome {
        if self.receivers == 0 {
            self.return_permits(1);
            return Outcome::Closed;
        }
        let carried = self.carried.get_mut(&id).expect("it carries messages");
        let message = carried.pop_front().expect("it waits for room for one");
        self.permits -= 1;
        self.push(message, None);
        self.set(id, State::New);
        self.send_exactly(id, own)
    }

    /// A reservation whose grant has lapsed is polled: it waits at its old place.
    fn wait_again(&mut self, id: Id, kind: Kind) -> Outcome {
        self.tally.add(Event::WaitAgain, 1);
        self.set(id, State::Waiting);
        if self.first() == Some((id, kind)) {
            // Whoever was woken for the message behind it may find this one instead.
            self.nudged_for = None;
            if self.has_room(kind) {
                self.take_now(Outcome::Permits, kind);
                return Outcome::Permits;
            }
        }
        self.lapse();
        match self.waiters[&id].state {
            State::Granted(_) => Outcome::Permits,
            _ => Outcome::Pending,
        }
    }

    /// Drops a future, or a receiver that was polled itself.
    pub(crate) fn drop(&mut self, id: Id) {
        let Waiter { kind, state, .. } = self.waiters[&id];
        if kind == Kind::Receive && !self.many {
            // The one receiver's waker stays, to be woken or replaced.
            return;
        }
        let was_first = self.first() == Some((id, kind));
        self.waiters.remove(&id);
        self.carried.remove(&id);
        self.line.retain(|&other| other != id);
        self.receivers_line.retain(|&other| other != id);
        match (kind, state) {
            // The next one may want less than this one did.
            (_, State::Waiting) if was_first => self.serve(),
            (Kind::Receive, State::Granted(_)) => self.pass_on(1),
            (kind, State::Granted(_) | State::Due) => {
                self.return_permits(kind.permits().unwrap_or(0));
            }
            (_, State::Accepted) => {
                for slot in self.queue.iter_mut().filter(|slot| slot.from == Some(id)) {
                    slot.withdrawn = true;
                    self.tally.add(Event::Withdraw, 1);
                }
            }
            _ => {}
        }
    }

    /// So many messages are sent with as many of so many permits; the others are given back. `Closed`:
    /// the receivers are gone, and all are.
    pub(crate) fn send_permits(&mut self, messages: &[usize], permits: usize) -> Outcome {
        if self.receivers == 0 {
            self.return_permits(permits);
            return Outcome::Closed;
        }
        self.permits -= messages.len();
        for &message in messages {
            self.push(message, None);
        }
        self.return_permits(permits - messages.len());
        Outcome::Sent
    }
}
