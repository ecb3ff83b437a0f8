//! The contract of the mpsc channel, sequentially: what each operation returns, and whom it wakes.

use std::collections::{BTreeMap, VecDeque};

/// Names a future on the sending side.
pub(crate) type Id = usize;

/// What a future waits for, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Never polled: it has done nothing yet.
    New,
    /// In line.
    Waiting,
    /// A send whose message is in the queue, or was.
    Deposited,
    /// A reservation whose slot waits to be claimed.
    Granted,
    /// A permit.
    Holding,
    /// The channel closed while it waited.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With the number of its message.
    Send(usize),
    Reserve,
    /// `Sender::closed`.
    Closed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// The waker of its last poll must have been woken since.
    pub(crate) woken: bool,
}

/// What a poll or a try operation on the sending side comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Sent,
    Permit,
    Full,
    Closed,
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
    queue: VecDeque<Slot>,
    line: VecDeque<Id>,
    waiters: BTreeMap<Id, Waiter>,
    /// Permits held and grants not yet claimed.
    permits: usize,
    closed: bool,
    receiver_gone: bool,
    pub(crate) senders: usize,
    /// The last poll of the receiver was left pending.
    parked: bool,
    /// The receiver's waker must have been woken since.
    pub(crate) receiver_woken: bool,
    /// It may have been: a close is news, though permits may still keep the channel from its end.
    pub(crate) receiver_told: bool,
}

impl Spec {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            queue: VecDeque::new(),
            line: VecDeque::new(),
            waiters: BTreeMap::new(),
            permits: 0,
            closed: false,
            receiver_gone: false,
            senders: 1,
            parked: false,
            receiver_woken: false,
            receiver_told: false,
        }
    }

    // Queries.

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn free(&self) -> usize {
        self.capacity - self.queue.len() - self.permits
    }

    pub(crate) fn closed_to_senders(&self) -> bool {
        self.closed
    }

    pub(crate) fn closed_to_receiver(&self) -> bool {
        self.closed || self.senders == 0
    }

    pub(crate) fn waiter(&self, id: Id) -> Waiter {
        self.waiters[&id]
    }

    fn ended(&self) -> bool {
        let nobody_sends = self.senders == 0 || (self.closed && self.permits == 0);
        self.queue.is_empty() && nobody_sends
    }

    /// The numbers of the messages a receive would find without anybody's help.
    pub(crate) fn live(&self) -> usize {
        self.queue.iter().filter(|slot| !slot.withdrawn).count()
    }

    /// Withdrawn messages at the front, which the receiver may pass at any receive.
    pub(crate) fn passable(&self) -> usize {
        self.queue.iter().take_while(|slot| slot.withdrawn).count()
    }

    // The steps that operations are made of.

    fn push(&mut self, message: usize, from: Option<Id>) {
        self.queue.push_back(Slot {
            message,
            from,
            withdrawn: false,
        });
        self.receiver_woken |= self.parked;
    }

    /// The one routine that everything which frees capacity, or ends something, comes through.
    fn release(&mut self) {
        while self.free() > 0
            && let Some(id) = self.line.pop_front()
        {
            let waiter = self.waiters.get_mut(&id).expect("waiters in line exist");
            waiter.woken = true;
            match waiter.kind {
                Kind::Send(message) => {
                    waiter.state = State::Deposited;
                    self.push(message, Some(id));
                }
                Kind::Reserve => {
                    waiter.state = State::Granted;
                    self.permits += 1;
                }
                Kind::Closed => unreachable!("never in line"),
            }
        }
        self.receiver_woken |= self.parked && self.ended();
        self.nudge();
    }

    /// A message that can be taken straight from the line, since permits hold all capacity, is news.
    fn nudge(&mut self) {
        let takeable = self.line.front().is_some_and(|id| {
            let waits = self.waiters.get(id).map(|waiter| waiter.kind);
            matches!(waits, None | Some(Kind::Send(_)))
        });
        self.receiver_told |= self.parked && takeable && self.queue.is_empty();
    }

    fn shut(&mut self) {
        self.closed = true;
        self.receiver_told |= self.parked;
        self.line.clear();
        for waiter in self.waiters.values_mut() {
            if waiter.state == State::Waiting {
                waiter.state = State::Refused;
                waiter.woken = true;
            }
        }
        self.release();
    }

    fn attempt(&self) -> Outcome {
        if self.closed {
            Outcome::Closed
        } else if self.line.is_empty() && self.free() > 0 {
            Outcome::Sent
        } else {
            Outcome::Full
        }
    }

    // The sending side.

    pub(crate) fn try_send(&mut self, message: usize) -> Outcome {
        let outcome = self.attempt();
        if outcome == Outcome::Sent {
            self.push(message, None);
        }
        outcome
    }

    pub(crate) fn make(&mut self, id: Id, kind: Kind) {
        let waiter = Waiter {
            kind,
            state: State::New,
            woken: false,
        };
        self.waiters.insert(id, waiter);
    }

    /// `try_reserve` makes a permit at once, or nothing.
    pub(crate) fn try_reserve(&mut self, id: Id) -> Outcome {
        match self.attempt() {
            Outcome::Sent => {
                self.permits += 1;
                self.make(id, Kind::Reserve);
                self.waiters.get_mut(&id).expect("just made").state = State::Holding;
                Outcome::Permit
            }
            outcome => outcome,
        }
    }

    /// A poll of a future. Anything but `Pending` and `Permit` ends it.
    pub(crate) fn poll(&mut self, id: Id) -> Outcome {
        let Waiter { kind, state, .. } = self.waiters[&id];
        let (state, outcome) = match (kind, state) {
            (Kind::Closed, _) if self.closed => (State::Refused, Outcome::Closed),
            (Kind::Closed, _) => (State::Waiting, Outcome::Pending),
            (_, State::New) => match (self.attempt(), kind) {
                (Outcome::Sent, Kind::Send(message)) => {
                    self.push(message, None);
                    (State::Deposited, Outcome::Sent)
                }
                (Outcome::Sent, _) => {
                    self.permits += 1;
                    (State::Holding, Outcome::Permit)
                }
                (Outcome::Full, _) => {
                    self.line.push_back(id);
                    self.nudge();
                    (State::Waiting, Outcome::Pending)
                }
                (outcome, _) => (State::Refused, outcome),
            },
            (_, State::Waiting) => (State::Waiting, Outcome::Pending),
            (_, State::Deposited) => (State::Deposited, Outcome::Sent),
            (_, State::Granted) => (State::Holding, Outcome::Permit),
            (_, State::Refused) => (State::Refused, Outcome::Closed),
            (_, State::Holding) => unreachable!("permits are not polled"),
        };
        let waiter = self.waiters.get_mut(&id).expect("it exists");
        (waiter.state, waiter.woken) = (state, false);
        if !matches!(outcome, Outcome::Pending | Outcome::Permit) {
            self.waiters.remove(&id);
            for slot in &mut self.queue {
                if slot.from == Some(id) {
                    // It has been told: nothing can be withdrawn any more.
                    slot.from = None;
                }
            }
        }
        outcome
    }

    /// Drops a future or a permit.
    pub(crate) fn drop(&mut self, id: Id) {
        let waiter = self.waiters.remove(&id).expect("it exists");
        match waiter.state {
            State::New | State::Refused => {}
            State::Waiting => self.line.retain(|&other| other != id),
            State::Deposited => {
                for slot in &mut self.queue {
                    slot.withdrawn |= slot.from == Some(id);
                }
            }
            State::Granted | State::Holding => self.permits -= 1,
        }
        self.release();
    }

    /// A permit's send; `Closed` gives the message back.
    pub(crate) fn permit_send(&mut self, id: Id, message: usize) -> Outcome {
        self.waiters.remove(&id);
        self.permits -= 1;
        if self.receiver_gone {
            return Outcome::Closed;
        }
        self.push(message, None);
        Outcome::Sent
    }

    /// One sender fewer.
    pub(crate) fn drop_sender(&mut self) {
        self.senders -= 1;
        self.receiver_told |= self.parked && self.senders == 0;
        self.release();
    }

    // The receiving side.

    fn pop(&mut self, direct: Option<usize>) -> Option<usize> {
        loop {
            match self.queue.pop_front() {
                Some(slot) if slot.withdrawn => {}
                Some(slot) => {
                    self.release();
                    return Some(slot.message);
                }
                None => {
                    self.release();
                    if self.queue.is_empty() {
                        return direct.filter(|&message| self.take_from_line(message));
                    }
                }
            }
        }
    }

    /// While permits take all of the capacity, the receiver may take the message of the first in
    /// line straight from there: accepted and received in one moment, it takes no slot.
    fn take_from_line(&mut self, message: usize) -> bool {
        let Some(&id) = self.line.front() else {
            return false;
        };
        let waiter = self.waiters.get_mut(&id).expect("waiters in line exist");
        if waiter.kind != Kind::Send(message) {
            return false;
        }
        (waiter.state, waiter.woken) = (State::Deposited, true);
        self.line.pop_front();
        true
    }

    /// The receiver passed withdrawn messages at the front earlier than it had to.
    pub(crate) fn pass(&mut self, count: usize) {
        self.queue.drain(..count);
        self.release();
    }

    fn receive(&mut self, real: Received) -> Received {
        let direct = match real {
            Received::Message(message) => Some(message),
            _ => None,
        };
        match self.pop(direct) {
            Some(message) => Received::Message(message),
            None if self.ended() => Received::End,
            None => Received::Nothing,
        }
    }

    /// What a receive comes to. The contract leaves one choice to the channel, see `take_from_line`;
    /// what it `real`ly did decides that.
    pub(crate) fn try_recv(&mut self, real: Received) -> Received {
        self.receive(real)
    }

    /// The same for a poll of the receiver or of a receive future.
    pub(crate) fn poll_recv(&mut self, real: Received) -> Received {
        self.parked = false;
        self.receiver_woken = false;
        let received = self.receive(real);
        self.parked = received == Received::Nothing;
        self.receiver_woken = false;
        self.receiver_told = false;
        received
    }

    /// A receive future went, or its receiver did something else: its waker owes nothing more.
    pub(crate) fn unpark(&mut self) {
        self.parked = false;
        self.receiver_woken = false;
    }

    pub(crate) fn parked(&self) -> bool {
        self.parked
    }

    pub(crate) fn close(&mut self) {
        self.shut();
    }

    /// Returns the messages that go with it.
    pub(crate) fn drop_receiver(&mut self) -> Vec<usize> {
        self.receiver_gone = true;
        self.unpark();
        let queue = std::mem::take(&mut self.queue);
        self.shut();
        queue.into_iter().map(|slot| slot.message).collect()
    }
}
