//! Does the operations on a channel and on the model side by side, and compares.

mod handles;
mod receiving;
mod sending;

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use super::channel::{Channel, Permits, View, Wait};
use super::lent::Lent;
use super::op::{End, LAST, Op};
use super::spec::{Id, Spec};
use super::tally::Tally;
use super::watch::Watch;
use crate::common::{Counter, Ledger};

const MAX_HANDLES: usize = 4;
const MAX_FUTURES: usize = 12;
const MAX_PERMITS: usize = 8;
const MAX_FORGOTTEN: usize = 6;
/// What is leaked is never given back: few of a sequence's things are.
const MAX_LEAKED: usize = 3;

/// Fails the sequence unless the channel and the model say the same.
fn agree<T: PartialEq + Debug>(what: &str, real: T, model: T) -> Result<(), String> {
    if real == model {
        Ok(())
    } else {
        Err(format!(
            "{what}: the channel says {real:?}, the model {model:?}"
        ))
    }
}

/// The handle that a future or a permit came from.
enum Share<X> {
    /// Borrowed; permits taken out of many share it.
    Lent(Arc<Lent<X>>),
    /// Owned, and gone with it.
    Owned,
}

impl<X> Share<X> {
    /// What borrows is gone: so is the handle, if nothing else borrows it. It comes back if it was lent.
    fn end(self) -> Option<Option<X>> {
        match self {
            Self::Lent(lent) => Some(Some(Arc::into_inner(lent)?.into_inner())),
            Self::Owned => Some(None),
        }
    }
}

/// A future. What borrows comes before what it borrows from, as fields are dropped in their order.
struct Waiting<C: Channel, X> {
    id: Id,
    future: Wait<C>,
    share: Share<X>,
    /// Of a receive of many: how many.
    limit: Option<usize>,
    /// Of a send that waits for something else, too.
    cancel: Option<Arc<AtomicBool>>,
    watch: Watch,
}

/// Permits in hand.
struct Holding<C: Channel> {
    permits: Box<dyn Permits<C>>,
    share: Share<C::Tx>,
}

/// A receiver that is not lent, and can be polled itself.
struct Port<X> {
    rx: X,
    id: Id,
    watch: Watch,
}

/// A future that is not polled any more: kept, or leaked.
struct Lost {
    id: Id,
    watch: Watch,
    _kept: Option<Box<dyn Any + Send>>,
}

/// Futures and permits that were leaked: never touched again, but still to be found by a tool that
/// looks for real leaks.
static ATTIC: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// A future that only lies there.
struct Corpse<C: Channel>(#[expect(dead_code, reason = "kept only")] Wait<C>);

fn leak(thing: impl Any + Send) {
    ATTIC.lock().unwrap().push(Box::new(thing));
}

/// All that there is on both ends of one channel, and its model.
pub(crate) struct Sides<C: Channel> {
    ledger: Ledger,
    pub(crate) spec: Spec,
    // First what borrows from handles and what uses the channel, then handles.
    sends: Vec<Waiting<C, C::Tx>>,
    recvs: Vec<Waiting<C, C::Rx>>,
    permits: Vec<Holding<C>>,
    lost: Vec<Lost>,
    senders: Vec<C::Tx>,
    weak_senders: Vec<C::WeakTx>,
    receivers: Vec<Port<C::Rx>>,
    weak_receivers: Vec<C::WeakRx>,
    /// Messages in leaked futures.
    leaked: Vec<usize>,
    leaks: usize,
    next: Id,
    counters: Vec<Arc<Counter>>,
}

impl<C: Channel> Sides<C> {
    pub(crate) fn new(capacity: usize) -> Self {
        let (tx, rx) = C::new(capacity);
        let mut new = Self {
            ledger: Ledger::new(),
            spec: Spec::new(C::capacity(capacity), C::MANY),
            sends: Vec::new(),
            recvs: Vec::new(),
            permits: Vec::new(),
            lost: Vec::new(),
            senders: vec![tx],
            weak_senders: Vec::new(),
            receivers: Vec::new(),
            weak_receivers: Vec::new(),
            leaked: Vec::new(),
            leaks: 0,
            next: 0,
            counters: Vec::new(),
        };
        new.add_receiver(rx);
        new
    }

    fn id(&mut self) -> Id {
        self.next += 1;
        self.next - 1
    }

    /// Does one operation and compares; `task` is the own waker of the task being polled. A panic is a
    /// failure as any other.
    pub(crate) fn step(&mut self, op: Op, task: Option<&Waker>) -> Result<(), String> {
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.apply(op, task).and_then(|()| self.compare())
        }));
        done.unwrap_or_else(|payload| {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("?")))
        })
    }

    fn apply(&mut self, op: Op, task: Option<&Waker>) -> Result<(), String> {
        match op {
            Op::TrySend(n) => self.try_send(n),
            Op::ForceSend(n) => self.force_send(n),
            Op::TryReserve(n, way) => self.try_reserve(n, way),
            Op::Send(n) => self.send(n),
            Op::SendOr(n) => self.send_or(n),
            Op::SendMany(n, count) => self.send_many(n, count),
            Op::Cancel(n) => self.cancel(n),
            Op::Reserve(n, way) => self.reserve(n, way),
            Op::Closed(n) => self.closed(n),
            Op::Recv(n, limit) => self.recv(n, limit),
            Op::Poll(End::Tx, n, with) => self.poll_send(n, with, task),
            Op::Poll(End::Rx, n, with) => self.poll_recv(n, with, task),
            Op::Drop(End::Tx, n) => self.drop_send(n),
            Op::Drop(End::Rx, n) => self.drop_recv(n),
            Op::Forget(End::Tx, n) => self.forget_send(n),
            Op::Forget(End::Rx, n) => self.forget_recv(n),
            Op::Leak(End::Tx, n) => self.leak_send(n),
            Op::Leak(End::Rx, n) => self.leak_recv(n),
            Op::PermitSend(n, count) => self.permit_send(n, count),
            Op::PermitNext(n) => self.permit_next(n),
            Op::PermitDrop(n) => self.permit_drop(n, drop),
            Op::PermitRelease(n) => self.permit_drop(n, |permits| permits.release()),
            Op::PermitLeak(n) => self.permit_leak(n),
            Op::TryRecv(n) => self.try_recv(n),
            Op::PollReceiver(n, with) => self.poll_receiver(n, with, task, None, C::poll_recv),
            Op::TryRecvRef(n, moved) => self.try_recv_ref(n, moved),
            Op::PollRef(n, with) => self.poll_receiver(n, with, task, None, C::poll_recv_ref),
            Op::PollStream(n, with) => self.poll_receiver(n, with, task, None, C::poll_next),
            Op::PollMany(..) if !C::POLLS_MANY => Ok(()),
            Op::PollMany(n, limit, with) => {
                self.poll_receiver(n, with, task, Some(limit), |rx, cx| {
                    C::poll_recv_many(rx, cx, limit)
                })
            }
            Op::Close(n) => self.close(n),
            Op::Clone(end, n) => self.clone_handle(end, n),
            Op::DropHandle(end, n) => self.drop_handle(end, n),
            Op::DropAll(end) => self.drop_all(end),
            Op::Downgrade(end, n) => self.downgrade(end, n),
            Op::Upgrade(end, n) => self.upgrade(end, n),
            Op::DropWeak(end, n) => self.drop_weak(end, n),
            Op::EndPoll(_) => Ok(()),
        }
    }

    /// Everything that can be seen from outside.
    pub(crate) fn compare(&self) -> Result<(), String> {
        let spec = &self.spec;
        spec.at_rest()?;
        let sends = self.sends.iter().map(|w| ("future", w.id, &w.watch));
        let recvs = self.recvs.iter().map(|w| ("receive", w.id, &w.watch));
        let ports = self.receivers.iter().map(|p| ("receiver", p.id, &p.watch));
        let lost = self.lost.iter().map(|l| ("lost future", l.id, &l.watch));
        for (what, id, watch) in sends.chain(recvs).chain(ports).chain(lost) {
            watch.check(&format!("{what} {id}"), spec.waiter(id))?;
        }
        agree("messages alive", self.ledger.alive(), spec.alive())?;
        let model = View {
            len: Some(spec.len()),
            empty: Some(spec.len() == 0),
            free: Some(spec.free()),
            closed: Some(spec.is_closed()),
            senders: Some(spec.senders),
            weak_senders: Some(self.weak_senders.len()),
            receivers: Some(spec.receivers),
            weak_receivers: Some(self.weak_receivers.len()),
        };
        if let Some(tx) = self.senders.first() {
            let real = C::view(tx);
            agree("Sender", real, model.like(real))?;
        }
        if let Some(port) = self.receivers.first() {
            let real = C::view_receiver(&port.rx);
            agree("Receiver", real, model.like(real))?;
        }
        Ok(())
    }

    /// Drops everything; each message must have been dropped once, and each waker released.
    pub(crate) fn end(self, receivers_first: bool) -> Result<Tally, String> {
        let Self {
            ledger,
            spec,
            sends,
            recvs,
            permits,
            lost,
            senders,
            weak_senders,
            receivers,
            weak_receivers,
            leaked,
            leaks,
            counters,
            ..
        } = self;
        if receivers_first {
            drop((recvs, receivers));
            drop((sends, permits, lost, senders));
        } else {
            drop((sends, permits, lost, senders));
            drop((recvs, receivers));
        }
        drop((weak_senders, weak_receivers));
        for number in 0..ledger.made() {
            let drops = ledger.drops_of(number);
            if drops != 1 && !(drops == 0 && leaked.contains(&number)) {
                return Err(format!(
                    "message {number} was dropped {drops} times in the end"
                ));
            }
        }
        if leaks == 0 {
            let kept = counters.iter().filter(|c| Arc::strong_count(c) > 1).count();
            agree("wakers kept in the end", kept, 0)?;
        }
        Ok(spec.tally)
    }
}

/// The index of the `n`-th of `len` things, counted round and round.
fn pick(n: usize, len: usize) -> Option<usize> {
    if n == LAST {
        return len.checked_sub(1);
    }
    n.checked_rem(len)
}
