//! The contract of a channel, sequentially: what each operation returns, and whom it wakes.
//!
//! A capacity of 0 is one where messages go from the line to the receiver only; `usize::MAX` is one
//! without a bound.

use std::collections::{BTreeMap, VecDeque};

use super::tally::{Event, Tally};

/// Names a future, or a receiver that is polled itself.
pub(crate) type Id = usize;

/// What a future waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// That its message, of this number, is accepted.
    Send(usize),
    /// So many permits.
    Reserve(usize),
    /// Room for each of the messages that it carries: an exact send, or one of many.
    Exact,
    /// `Sender::closed`.
    Closed,
    /// A message for it.
    Receive,
}

impl Kind {
    /// How many permits it waits for in line.
    fn permits(self) -> Option<usize> {
        match self {
            Self::Reserve(count) => Some(count),
            Self::Exact => Some(1),
            Self::Send(_) | Self::Closed | Self::Receive => None,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In no line: not polled yet, or a receiver that has got its message.
    New,
    /// In line.
    Waiting,
    /// A reservation whose permits are there to be claimed, or a receiver that was woken for a message:
    /// in line, but passed over. Since that epoch of the task.
    Granted(u64),
    /// A grant that the task did not come for: whoever wants it may have it.
    Due,
    /// It was taken back. In line, but passed over until it is polled again.
    Lapsed,
    /// A send whose message is in the queue, or was.
    Accepted,
    /// The channel closed while it waited.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// It was polled last with the own waker of the task.
    pub(crate) own: bool,
    /// The waker of its last poll must have been woken since.
    pub(crate) woken: bool,
}

/// What a poll or a try operation on the sending side comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Sent,
    Permits,
    Full,
    TooMany,
    Closed,
    /// It was told to give up.
    Cancelled,
}

/// What a receive comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(usize),
    Nothing,
    End,
}

struct Slot {
    message: usize,
    /// The future that waited with it, while it has not been told.
    from: Option<Id>,
    withdrawn: bool,
}

pub(crate) struct Spec {
    capacity: usize,
    /// Whether there can be several receivers.
    many: bool,
    queue: VecDeque<Slot>,
    /// Senders and reservations, in the order in which they came.
    line: Vec<Id>,
    /// Receivers that wait or were woken, likewise.
    receivers_line: Vec<Id>,
    waiters: BTreeMap<Id, Waiter>,
    /// The messages that exact sends still have.
    carried: BTreeMap<Id, VecDeque<usize>>,
    /// The send in line that a receiver was last woken for.
    nudged_for: Option<Id>,
    /// Permits held and grants not yet claimed.
    permits: usize,
    closed: bool,
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
    /// Of the task that all happens in: odd while it is polled, even between two polls.
    epoch: u64,
    /// The task itself has been woken since its poll began.
    pub(crate) task_woken: bool,
    pub(crate) tally: Tally,
}

impl Spec {
    pub(crate) fn new(capacity: usize, many: bool) -> Self {
        Self {
            capacity,
            many,
            queue: VecDeque::new(),
            line: Vec::new(),
            receivers_line: Vec::new(),
            waiters: BTreeMap::new(),
            carried: BTreeMap::new(),
            nudged_for: None,
            permits: 0,
            closed: false,
            senders: 1,
            receivers: 1,
            epoch: 1,
            task_woken: false,
            tally: Tally::default(),
        }
    }

    // ---- queries

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn free(&self) -> usize {
        self.capacity - self.queue.len() - self.permits
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether messages go from the line to the receiver only.
    pub(crate) fn is_hand_to_hand(&self) -> bool {
        self.capacity == 0
    }

    pub(crate) fn waiter(&self, id: Id) -> Waiter {
        self.waiters[&id]
    }

    /// The messages that a future has.
    pub(crate) fn messages_of(&self, id: Id) -> Vec<usize> {
        let carried = self.carried.get(&id).into_iter().flatten().copied();
        match self.waiters[&id] {
            Waiter {
                state: State::Accepted,
                ..
            } => Vec::new(),
            Waiter {
                kind: Kind::Send(message),
                ..
            } => vec![message],
            _ => carried.collect(),
        }
    }

    /// How many messages there are: queued, or in a future.
    pub(crate) fn alive(&self) -> usize {
        let ids = self.waiters.keys();
        self.queue.len() + ids.map(|&id| self.messages_of(id).len()).sum::<usize>()
    }

    fn receivers_wait(&self) -> bool {
        let waiting = |id: &Id| self.waiters[id].state == State::Waiting;
        self.receivers_line.iter().any(waiting)
    }

    /// The first in line that is not passed over.
    fn first(&self) -> Option<(Id, Kind)> {
        let mut waiting = self.line.iter().map(|&id| (id, self.waiters[&id]));
        let (id, waiter) = waiting.find(|(_, waiter)| waiter.state == State::Waiting)?;
        Some((id, waiter.kind))
    }

    fn has_room(&self, kind: Kind) -> bool {
        match kind {
            Kind::Reserve(count) => count <= self.free(),
            _ => self.free() > 0,
        }
    }

    fn ended(&self) -> bool {
        // When all senders are gone, permits that are still out have been leaked.
        let nobody_sends = self.closed && (self.permits == 0 || self.senders == 0);
        self.queue.is_empty() && self.first().is_none() && nobody_sends
    }

    // ---- the steps that operations are made of

    fn wake(&mut self, id: Id, state: State) {
        let waiter = self.waiters.get_mut(&id).expect("it exists");
        (waiter.state, waiter.woken) = (state, true);
        self.task_woken |= waiter.own;
    }

    fn set(&mut self, id: Id, state: State) {
        self.waiters.get_mut(&id).expect("it exists").state = state;
    }

    /// Wakes as many receivers as there is news for, in their order; all, if each message may be the
    /// last one. Returns how many.
    fn wake_receivers(&mut self, count: usize) -> usize {
        let count = if self.closed { usize::MAX } else { count };
        let waiting = |id: &Id| self.waiters[id].state == State::Waiting;
        let line = self.receivers_line.iter().copied();
        let told: Vec<Id> = line.filter(waiting).take(count).collect();
        for &id in &told {
            self.wake(id, State::Granted(self.epoch));
        }
        told.len()
    }

    fn push(&mut self, message: usize, from: Option<Id>) {
        self.queue.push_back(Slot {
            message,
            from,
            withdrawn: false,
        });
        self.wake_receivers(1);
    }

    /// The one routine that everything which frees capacity comes through: serves the line in its order
    /// while there is room for the first.
    fn serve(&mut self) {
        while let Some((id, kind)) = self.first() {
            if !self.has_room(kind) {
                self.nudge();
                return;
            }
            if let Some(count) = kind.permits() {
                self.permits += count;
                self.wake(id, State::Granted(self.epoch));
            } else if let Kind::Send(message) = kind {
                self.accept(id);
                self.push(message, Some(id));
            }
        }
    }

    /// A send leaves the line with success.
    fn accept(&mut self, id: Id) {
        self.line.retain(|&other| other != id);
        self.wake(id, State::Accepted);
    }

    /// Permits hold all capacity and the queue is empty: a message that comes to stand first in line can
    /// be taken from there, and a receiver is woken for it, once.
    fn nudge(&mut self) {
        if let Some((id, kind @ Kind::Send(_))) = self.first()
            && self.queue.is_empty()
            && !self.has_room(kind)
            && !self.is_hand_to_hand()
            && self.nudged_for != Some(id)
            && self.receivers_wait()
        {
            self.nudged_for = Some(id);
            let told = self.wake_receivers(1);
            self.tally.add(Event::Nudge, told);
        }
    }

    fn give_back(&mut self, count: usize) {
        self.permits -= count;
        if self.closed && self.permits == 0 {
            self.wake_receivers(usize::MAX);
        }
    }

    /// Permits, used or not, are given back to those who wait.
    pub(crate) fn return_permits(&mut self, count: usize) {
        if count > 0 {
            self.give_back(count);
            self.serve();
        }
    }

    /// Closes; the waiters whose kind `ends` says yes to are told.
    fn shut(&mut self, ends: impl Fn(Kind) -> bool) {
        self.closed = true;
        self.wake_receivers(usize::MAX);
        let told: Vec<Id> = (self.waiters.iter())
            .filter(|(_, waiter)| {
                let waits = matches!(waiter.state, State::Waiting | State::Lapsed);
                waits && waiter.kind != Kind::Receive && ends(waiter.kind)
            })
            .map(|(&id, _)| id)
            .collect();
        for id in told {
            self.line.retain(|&other| other != id);
            self.wake(id, State::Refused);
        }
    }

    // ---- grants that lapse

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
        if self.first().is_some() {
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
    fn lapse(&mut self) -> bool {
        let due = |id: &Id| self.waiters[id].state == State::Due;
        let due: Vec<Id> = self.line.iter().copied().filter(due).collect();
        for &id in &due {
            self.set(id, State::Lapsed);
            if let Some(count) = self.waiters[&id].kind.permits() {
                self.give_back(count);
            }
            self.tally.add(Event::Lapse, 1);
        }
        if !due.is_empty() {
            self.serve();
        }
        !due.is_empty()
    }

    /// Receivers go, or do not come, that had been woken: others are, if there may be a message.
    fn pass_on(&mut self, count: usize) {
        if count > 0 && (!self.queue.is_empty() || self.first().is_some()) {
            let told = self.wake_receivers(count);
            self.tally.add(Event::PassOn, told);
        }
    }

    // ---- sending

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
        let waiter = self.waiters.get_mut(&id).expect("it exists");
        waiter.woken = false;
        let outcome = match (waiter.kind, waiter.state) {
            (Kind::Closed, _) if self.closed => Outcome::Closed,
            (Kind::Closed, _) => {
                waiter.state = State::Waiting;
                Outcome::Pending
            }
            (Kind::Exact, State::New) => self.send_exactly(id, own),
            (kind, State::New) => self.poll_new(id, kind, own),
            (_, State::Waiting) => Outcome::Pending,
            (_, State::Granted(_) | State::Due) => Outcome::Permits,
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
            self.waiters.get_mut(&id).expect("it exists").own = own;
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
        let waiter = self.waiters.get_mut(&id).expect("it exists");
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
        if self.first() == Some((id, kind)) && self.has_room(kind) {
            self.take_now(Outcome::Permits, kind);
            return Outcome::Permits;
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

    // ---- receiving

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
        let waiter = self.waiters.get_mut(&id).expect("it exists");
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
            let waiter = self.waiters.get_mut(&id).expect("it exists");
            (waiter.state, waiter.own) = (State::Waiting, own);
            waiter.woken = false;
        }
        received
    }

    pub(crate) fn close(&mut self) {
        self.shut(|_| true);
    }

    // ---- handles go

    pub(crate) fn drop_sender(&mut self) {
        self.senders -= 1;
        if self.senders == 0 {
            // What still stands in line was leaked: messages are delivered, reservations end.
            self.shut(|kind| !matches!(kind, Kind::Send(_)));
        }
    }

    /// Returns the messages that go with the last one.
    pub(crate) fn drop_receiver(&mut self) -> Vec<usize> {
        self.receivers -= 1;
        if self.receivers > 0 {
            return Vec::new();
        }
        self.shut(|_| true);
        let queue = std::mem::take(&mut self.queue);
        queue.into_iter().map(|slot| slot.message).collect()
    }
}
