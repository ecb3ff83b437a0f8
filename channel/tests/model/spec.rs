//! The contract of a channel, sequentially: what each operation returns, and whom it wakes.
//!
//! A capacity of 0 is one where messages go from the line to the receiver only; `usize::MAX` is one
//! without a bound.
//!
//! Here is what there is, and the steps that all operations are made of; then come [`sending`],
//! [`receiving`], and [`lapse`], which is what the ends of a task's polls do.

mod lapse;
mod receiving;
mod sending;
mod words;

use std::collections::{BTreeMap, VecDeque};

use super::tally::{Event, Tally};
use words::Slot;
pub(crate) use words::{Id, Kind, Outcome, Received, State, Waiter};

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
    /// The one receiver has served the only sender since it last waited: its next wait with the task's own waker
    /// begins by one more poll.
    expecting: bool,
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
            expecting: false,
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

    fn at(&mut self, id: Id) -> &mut Waiter {
        self.waiters.get_mut(&id).expect("it exists")
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

    /// What holds between any two operations, however it comes about: nobody waits for what is there.
    pub(crate) fn at_rest(&self) -> Result<(), String> {
        let first = self.first();
        // When all senders are gone, nobody but leaked sends is left.
        if let Some((id, kind)) = first
            && self.has_room(kind)
            && self.senders > 0
        {
            return Err(format!("there is room for future {id}, which waits"));
        }
        let messages = match first {
            Some(_) if self.is_hand_to_hand() => self.line.len(),
            Some((_, Kind::Send(_))) if self.queue.is_empty() => 1,
            _ => self.queue.len(),
        };
        let states = || (self.receivers_line.iter()).map(|id| self.waiters[id].state);
        let woken = states().filter(|state| matches!(state, State::Granted(_)));
        let woken = woken.count();
        if self.receivers_wait() && (woken < messages || self.ended()) {
            return Err(format!(
                "a receiver waits, {woken} are woken, and there are {messages} messages, or the end"
            ));
        }
        Ok(())
    }

    // ---- the steps that operations are made of

    fn wake(&mut self, id: Id, state: State) {
        let waiter = self.at(id);
        (waiter.state, waiter.woken) = (state, true);
        self.task_woken |= waiter.own;
    }

    fn set(&mut self, id: Id, state: State) {
        self.at(id).state = state;
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
        if ends(Kind::Send(0)) {
            self.take_back();
        }
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

    // ---- handles go

    pub(crate) fn drop_sender(&mut self) {
        self.senders -= 1;
        if self.senders == 0 {
            // What still stands in line was leaked: messages are delivered, reservations end.
            self.shut(|kind| !matches!(kind, Kind::Send(_)));
            let orphaned = self.first().is_some();
            self.tally.add(Event::Orphan, usize::from(orphaned));
        }
    }

    /// What is queued goes with the last one.
    pub(crate) fn drop_receiver(&mut self) {
        self.receivers -= 1;
        if self.receivers == 0 {
            self.shut(|_| true);
            self.queue.clear();
        }
    }
}
