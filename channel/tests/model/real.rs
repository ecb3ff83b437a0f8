//! Does the operations on a channel and on the model side by side, and compares.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_lite::Stream;
use wakerun_channel::mpsc::error::{TryRecvError, TrySendError};
use wakerun_channel::mpsc::{Receiver, Sender, WeakSender, channel};

use crate::common::{Counter, Ledger, Tracked, counter, poll_once, settle};
use crate::op::{Fresh, Op};
use crate::spec::{Id, Kind, Outcome, Received, Spec, State};

const MAX_SENDERS: usize = 4;
const MAX_FUTURES: usize = 12;
const MAX_FORGOTTEN: usize = 6;

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

/// A waker that counts, replaced when an operation asks for a fresh one.
struct Watch {
    count: Arc<Counter>,
    waker: Waker,
}

impl Watch {
    fn new(all: &mut Vec<Arc<Counter>>) -> Self {
        let (count, waker) = counter();
        all.push(Arc::clone(&count));
        Self { count, waker }
    }

    /// Ready for the next poll.
    fn before_poll(&mut self, fresh: Fresh, all: &mut Vec<Arc<Counter>>) {
        if fresh {
            *self = Self::new(all);
        }
        self.count.take();
    }

    fn check(&self, what: &str, woken: bool) -> Result<(), String> {
        match (self.count.count(), woken) {
            (0, true) => Err(format!("{what} was not woken")),
            (1.., false) => Err(format!("{what} was woken for nothing")),
            _ => Ok(()),
        }
    }
}

/// How a future on the sending side ended.
enum Ended {
    Sent,
    Closed(Option<Tracked>),
    GivenBack,
}

/// What the holder of a permit is told to do with it.
enum Order {
    Send(Tracked),
    GiveBack,
}

#[derive(Default)]
struct Desk {
    holding: AtomicBool,
    order: Mutex<Option<Order>>,
}

/// A future on the sending side, which owns its share of a sender.
struct Waiting {
    id: Id,
    handle: usize,
    future: Pin<Box<dyn Future<Output = Ended> + Send>>,
    desk: Arc<Desk>,
    watch: Watch,
}

/// Futures that were leaked: never polled nor dropped again, but still to be found by a tool that
/// looks for real leaks.
static ATTIC: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

type Busy = Pin<Box<dyn Future<Output = (Receiver<Tracked>, Option<Got>)> + Send>>;

/// What a receive future came to.
enum Got {
    One(Option<Tracked>),
    Many(Vec<Tracked>),
}

enum Rx {
    Idle(Receiver<Tracked>),
    Busy {
        future: Busy,
        cancel: Arc<AtomicBool>,
        limit: Option<usize>,
    },
    Gone,
}

struct Side {
    ledger: Ledger,
    spec: Spec,
    handles: Vec<Option<Arc<Sender<Tracked>>>>,
    /// Shares of each handle: the handle itself and the futures made from it.
    shares: Vec<usize>,
    weaks: Vec<WeakSender<Tracked>>,
    futures: Vec<Waiting>,
    forgotten: Vec<Waiting>,
    leaked: Vec<usize>,
    any_leaked: bool,
    next: Id,
    rx: Rx,
    rx_watch: Watch,
    counters: Vec<Arc<Counter>>,
}

/// Waits for an order with a permit in hand.
async fn hold(desk: &Desk, permit: wakerun_channel::mpsc::Permit<'_, Tracked>) -> Ended {
    desk.holding.store(true, Ordering::SeqCst);
    let order = poll_fn(|_| match desk.order.lock().unwrap().take() {
        Some(order) => Poll::Ready(order),
        None => Poll::Pending,
    })
    .await;
    match order {
        Order::GiveBack => {
            drop(permit);
            Ended::GivenBack
        }
        Order::Send(message) => match permit.send(message) {
            Ok(()) => Ended::Sent,
            Err(error) => Ended::Closed(Some(error.into_inner())),
        },
    }
}

fn seen(message: &Result<Tracked, TryRecvError>) -> Received {
    match message {
        Ok(message) => Received::Message(message.id),
        Err(TryRecvError::Empty) => Received::Nothing,
        Err(TryRecvError::Disconnected) => Received::End,
    }
}

fn polled(message: &Poll<Option<Tracked>>) -> Received {
    match message {
        Poll::Ready(Some(message)) => Received::Message(message.id),
        Poll::Ready(None) => Received::End,
        Poll::Pending => Received::Nothing,
    }
}

impl Side {
    fn new(capacity: usize) -> Self {
        let (tx, rx) = channel(capacity);
        let mut counters = Vec::new();
        Self {
            ledger: Ledger::new(),
            spec: Spec::new(capacity),
            handles: vec![Some(Arc::new(tx))],
            shares: vec![1],
            weaks: Vec::new(),
            futures: Vec::new(),
            forgotten: Vec::new(),
            leaked: Vec::new(),
            any_leaked: false,
            next: 0,
            rx: Rx::Idle(rx),
            rx_watch: Watch::new(&mut counters),
            counters,
        }
    }

    /// The `n`-th live handle.
    fn handle(&self, n: usize) -> Option<(usize, Arc<Sender<Tracked>>)> {
        let live: Vec<_> = (0..self.handles.len())
            .filter(|&i| self.handles[i].is_some())
            .collect();
        let i = *live.get(n % live.len().max(1))?;
        Some((i, Arc::clone(self.handles[i].as_ref()?)))
    }

    /// A share of a handle went, and perhaps with it the sender.
    fn drop_share(&mut self, handle: usize) {
        self.shares[handle] -= 1;
        if self.shares[handle] == 0 {
            self.spec.drop_sender();
        }
    }

    fn add_handle(&mut self, tx: Sender<Tracked>) {
        self.handles.push(Some(Arc::new(tx)));
        self.shares.push(1);
        self.spec.senders += 1;
    }

    fn add_future(
        &mut self,
        handle: usize,
        desk: Arc<Desk>,
        future: impl Future<Output = Ended> + Send + 'static,
    ) {
        self.shares[handle] += 1;
        self.futures.push(Waiting {
            id: self.next,
            handle,
            future: Box::pin(future),
            desk,
            watch: Watch::new(&mut self.counters),
        });
        self.next += 1;
    }

    /// The `n`-th future that is not, or is, a permit.
    fn pick(&self, n: usize, permit: bool) -> Option<usize> {
        let fit: Vec<_> = (0..self.futures.len())
            .filter(|&i| {
                let holding = self.spec.waiter(self.futures[i].id).state == State::Holding;
                holding == permit
            })
            .collect();
        fit.get(n % fit.len().max(1)).copied()
    }

    /// Polls the future and takes it out if it has ended.
    fn poll_future(&mut self, i: usize) -> Result<Outcome, String> {
        let waiting = &mut self.futures[i];
        let Poll::Ready(ended) = poll_once(waiting.future.as_mut(), &waiting.watch.waker) else {
            let holding = waiting.desk.holding.load(Ordering::SeqCst);
            return Ok(if holding {
                Outcome::Permit
            } else {
                Outcome::Pending
            });
        };
        let waiting = self.futures.remove(i);
        let outcome = match ended {
            Ended::Sent => Outcome::Sent,
            Ended::GivenBack => Outcome::Permit,
            Ended::Closed(message) => {
                if let Kind::Send(number) = self.spec.waiter(waiting.id).kind {
                    agree("the value given back", message.map(|m| m.id), Some(number))?;
                }
                Outcome::Closed
            }
        };
        Ok(outcome)
    }

    fn apply(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::TrySend(_) | Op::Send(_) | Op::Reserve(_) | Op::Closed(_) | Op::TryReserve(_) => {
                self.start(op)
            }
            Op::Poll(..)
            | Op::Drop(_)
            | Op::Forget(_)
            | Op::Leak(_)
            | Op::PermitSend(_)
            | Op::PermitDrop(_) => self.go_on(op),
            Op::Clone(_)
            | Op::DropSender(_)
            | Op::Downgrade(_)
            | Op::Upgrade(_)
            | Op::DropWeak(_) => self.handles(op),
            _ => self.receive(op),
        }
    }

    /// New sends and futures.
    fn start(&mut self, op: Op) -> Result<(), String> {
        let (Op::TrySend(n) | Op::Send(n) | Op::Reserve(n) | Op::Closed(n) | Op::TryReserve(n)) =
            op
        else {
            unreachable!()
        };
        let Some((handle, tx)) = self.handle(n) else {
            return Ok(());
        };
        if op != Op::TrySend(n) && self.futures.len() >= MAX_FUTURES {
            return Ok(());
        }
        let id = self.next;
        let desk = Arc::new(Desk::default());
        match op {
            Op::TrySend(_) => {
                let message = self.ledger.make();
                let number = message.id;
                let real = match tx.try_send(message) {
                    Ok(()) => Outcome::Sent,
                    Err(error) => {
                        let outcome = match &error {
                            TrySendError::Full(_) => Outcome::Full,
                            TrySendError::Closed(_) => Outcome::Closed,
                        };
                        agree("the value given back", error.into_inner().id, number)?;
                        outcome
                    }
                };
                agree("try_send", real, self.spec.try_send(number))?;
            }
            Op::Send(_) => {
                let message = self.ledger.make();
                self.spec.make(id, Kind::Send(message.id));
                self.add_future(handle, desk, async move {
                    match tx.send(message).await {
                        Ok(()) => Ended::Sent,
                        Err(error) => Ended::Closed(Some(error.into_inner())),
                    }
                });
            }
            Op::Reserve(_) => {
                self.spec.make(id, Kind::Reserve);
                self.add_future(handle, Arc::clone(&desk), async move {
                    match tx.reserve().await {
                        Ok(permit) => hold(&desk, permit).await,
                        Err(_) => Ended::Closed(None),
                    }
                });
            }
            Op::Closed(_) => {
                self.spec.make(id, Kind::Closed);
                self.add_future(handle, desk, async move {
                    tx.closed().await;
                    Ended::Closed(None)
                });
            }
            _ => {
                let full = Arc::new(AtomicBool::new(false));
                let told = Arc::clone(&full);
                let mut future = Box::pin({
                    let desk = Arc::clone(&desk);
                    async move {
                        match tx.try_reserve() {
                            Ok(permit) => hold(&desk, permit).await,
                            Err(TrySendError::Full(())) => {
                                told.store(true, Ordering::SeqCst);
                                Ended::Closed(None)
                            }
                            Err(TrySendError::Closed(())) => Ended::Closed(None),
                        }
                    }
                });
                let real = match poll_once(future.as_mut(), Waker::noop()) {
                    Poll::Pending => Outcome::Permit,
                    Poll::Ready(_) if full.load(Ordering::SeqCst) => Outcome::Full,
                    Poll::Ready(_) => Outcome::Closed,
                };
                agree("try_reserve", real, self.spec.try_reserve(id))?;
                if real == Outcome::Permit {
                    self.add_future(handle, desk, future);
                }
            }
        }
        Ok(())
    }

    /// Futures and permits that exist already.
    fn go_on(&mut self, op: Op) -> Result<(), String> {
        let (n, permit) = match op {
            Op::Poll(n, _) | Op::Drop(n) | Op::Forget(n) | Op::Leak(n) => (n, false),
            Op::PermitSend(n) | Op::PermitDrop(n) => (n, true),
            _ => unreachable!(),
        };
        let Some(i) = self.pick(n, permit) else {
            return Ok(());
        };
        let (id, handle) = (self.futures[i].id, self.futures[i].handle);
        match op {
            Op::Poll(_, fresh) => {
                self.futures[i].watch.before_poll(fresh, &mut self.counters);
                let real = self.poll_future(i)?;
                agree("poll", real, self.spec.poll(id))?;
                if !matches!(real, Outcome::Pending | Outcome::Permit) {
                    self.drop_share(handle);
                }
            }
            Op::Drop(_) => {
                drop(self.futures.remove(i));
                self.spec.drop(id);
                self.drop_share(handle);
            }
            Op::Forget(_) => {
                if self.forgotten.len() < MAX_FORGOTTEN {
                    self.forgotten.push(self.futures.remove(i));
                }
            }
            Op::Leak(_) => {
                let waiting = self.futures.remove(i);
                if let Kind::Send(number) = self.spec.waiter(id).kind {
                    self.leaked.push(number);
                }
                self.any_leaked = true;
                ATTIC.lock().unwrap().push(waiting);
            }
            _ => {
                let message = (op == Op::PermitSend(n)).then(|| self.ledger.make());
                let number = message.as_ref().map(|message| message.id);
                let order = message.map_or(Order::GiveBack, Order::Send);
                *self.futures[i].desk.order.lock().unwrap() = Some(order);
                let real = self.poll_future(i)?;
                let model = match number {
                    Some(number) => self.spec.permit_send(id, number),
                    None => {
                        self.spec.drop(id);
                        Outcome::Permit
                    }
                };
                agree("permit", real, model)?;
                self.drop_share(handle);
            }
        }
        Ok(())
    }

    /// Handles come and go.
    fn handles(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Clone(n) => {
                if let Some((_, tx)) = self.handle(n)
                    && self.handles.iter().flatten().count() < MAX_SENDERS
                {
                    self.add_handle(Sender::clone(&tx));
                }
            }
            Op::DropSender(n) => {
                if let Some((i, tx)) = self.handle(n) {
                    self.handles[i] = None;
                    drop(tx);
                    self.drop_share(i);
                }
            }
            Op::Downgrade(n) => {
                if let Some((_, tx)) = self.handle(n)
                    && self.weaks.len() < 3
                {
                    self.weaks.push(tx.downgrade());
                }
            }
            Op::Upgrade(n) => {
                if self.weaks.is_empty() || self.handles.iter().flatten().count() >= MAX_SENDERS {
                    return Ok(());
                }
                let up = self.weaks[n % self.weaks.len()].upgrade();
                agree("upgrade", up.is_some(), self.spec.senders > 0)?;
                if let Some(tx) = up {
                    self.add_handle(tx);
                }
            }
            Op::DropWeak(n) if !self.weaks.is_empty() => {
                drop(self.weaks.swap_remove(n % self.weaks.len()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops a receive future, if there is one, without another poll of it.
    fn cancel_receive(&mut self) -> Result<(), String> {
        if let Rx::Busy { future, cancel, .. } = &mut self.rx {
            cancel.store(true, Ordering::SeqCst);
            match poll_once(future.as_mut(), Waker::noop()) {
                Poll::Ready((rx, None)) => self.rx = Rx::Idle(rx),
                _ => return Err("a cancelled receive received".into()),
            }
            self.spec.unpark();
        }
        Ok(())
    }

    fn start_receive(&mut self, limit: Option<usize>) {
        match mem::replace(&mut self.rx, Rx::Gone) {
            Rx::Idle(mut rx) => {
                let cancel = Arc::new(AtomicBool::new(false));
                let cancelled = Arc::clone(&cancel);
                let future = Box::pin(async move {
                    let mut many = Vec::new();
                    let got = {
                        let mut receive = pin!(async {
                            match limit {
                                None => Got::One(rx.recv().await),
                                Some(limit) => {
                                    rx.recv_many(&mut many, limit).await;
                                    Got::Many(Vec::new())
                                }
                            }
                        });
                        poll_fn(|cx| {
                            if cancelled.load(Ordering::SeqCst) {
                                return Poll::Ready(None);
                            }
                            receive.as_mut().poll(cx).map(Some)
                        })
                        .await
                    };
                    match got {
                        Some(Got::Many(_)) => (rx, Some(Got::Many(many))),
                        got => (rx, got),
                    }
                });
                // The receiver's last poll, if it is still pending, is not this future's.
                self.spec.unpark();
                self.rx = Rx::Busy {
                    future,
                    cancel,
                    limit,
                };
            }
            other => self.rx = other,
        }
    }

    fn poll_receive(&mut self, fresh: Fresh) -> Result<(), String> {
        let Rx::Busy { future, limit, .. } = &mut self.rx else {
            return Ok(());
        };
        let limit = *limit;
        self.rx_watch.before_poll(fresh, &mut self.counters);
        let live = self.spec.live();
        match (poll_once(future.as_mut(), &self.rx_watch.waker), limit) {
            (Poll::Pending, Some(0)) => Err("a receive of no messages waits".into()),
            (Poll::Pending, _) => {
                let real = Received::Nothing;
                agree("recv", real, self.spec.poll_recv(real))
            }
            (Poll::Ready((rx, Some(Got::One(message)))), _) => {
                self.rx = Rx::Idle(rx);
                let real = polled(&Poll::Ready(message));
                agree("recv", real, self.spec.poll_recv(real))
            }
            (Poll::Ready((rx, Some(Got::Many(messages)))), Some(limit)) => {
                self.rx = Rx::Idle(rx);
                if messages.len() < live.min(limit) || messages.len() > limit {
                    let n = messages.len();
                    return Err(format!("recv_many took {n} of {live}, up to {limit}"));
                }
                if messages.is_empty() && limit > 0 {
                    let real = Received::End;
                    return agree("recv_many", real, self.spec.poll_recv(real));
                }
                for (i, message) in messages.iter().enumerate() {
                    let real = Received::Message(message.id);
                    let model = match i {
                        0 => self.spec.poll_recv(real),
                        _ => self.spec.try_recv(real),
                    };
                    agree("recv_many", real, model)?;
                }
                Ok(())
            }
            _ => Err("a receive ended in nothing".into()),
        }
    }

    fn receive(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Recv => {
                self.start_receive(None);
                return Ok(());
            }
            Op::RecvMany(limit) => {
                self.start_receive(Some(limit));
                return Ok(());
            }
            Op::PollRecv(fresh) => return self.poll_receive(fresh),
            _ => self.cancel_receive()?,
        }
        let Rx::Idle(rx) = &mut self.rx else {
            return Ok(());
        };
        match op {
            Op::TryRecv => {
                let real = seen(&rx.try_recv());
                agree("try_recv", real, self.spec.try_recv(real))?;
            }
            Op::PollReceiver(fresh) | Op::PollStream(fresh) => {
                self.rx_watch.before_poll(fresh, &mut self.counters);
                let mut cx = Context::from_waker(&self.rx_watch.waker);
                let real = if op == Op::PollStream(fresh) {
                    Pin::new(rx).poll_next(&mut cx)
                } else {
                    rx.poll_recv(&mut cx)
                };
                let real = polled(&real);
                agree("poll_recv", real, self.spec.poll_recv(real))?;
            }
            Op::Close => {
                rx.close();
                self.spec.close();
            }
            Op::DropReceiver => {
                self.rx = Rx::Gone;
                for number in self.spec.drop_receiver() {
                    agree("drops of a queued message", self.ledger.drops_of(number), 1)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A receive may have passed withdrawn messages behind the one it took.
    fn reconcile(&mut self) {
        let real = match (self.handle(0), &self.rx) {
            (Some((_, tx)), _) => tx.len(),
            (None, Rx::Idle(rx)) => rx.len(),
            _ => return,
        };
        let early = self.spec.len().saturating_sub(real);
        if early > 0 && early <= self.spec.passable() {
            self.spec.pass(early);
        }
    }

    /// Everything that can be seen from outside.
    fn compare(&self) -> Result<(), String> {
        for waiting in self.futures.iter().chain(&self.forgotten) {
            let waiter = self.spec.waiter(waiting.id);
            let what = format!("future {} ({waiter:?})", waiting.id);
            waiting.watch.check(&what, waiter.woken)?;
        }
        let told = self.spec.receiver_told && self.rx_watch.count.fired();
        if self.spec.parked() && !told {
            self.rx_watch
                .check("the receiver", self.spec.receiver_woken)?;
        }
        let (len, free) = (self.spec.len(), self.spec.free());
        let strong = self.spec.senders;
        if let Some((_, tx)) = self.handle(0) {
            agree("Sender::len", tx.len(), len)?;
            agree("Sender::is_empty", tx.is_empty(), len == 0)?;
            agree("Sender::capacity", tx.capacity(), free)?;
            agree(
                "Sender::is_closed",
                tx.is_closed(),
                self.spec.closed_to_senders(),
            )?;
            agree("Sender::strong_count", tx.strong_count(), strong)?;
            agree("Sender::weak_count", tx.weak_count(), self.weaks.len())?;
        }
        if let Rx::Idle(rx) = &self.rx {
            agree("Receiver::len", rx.len(), len)?;
            agree("Receiver::is_empty", rx.is_empty(), len == 0)?;
            agree("Receiver::capacity", rx.capacity(), free)?;
            agree(
                "Receiver::is_closed",
                rx.is_closed(),
                self.spec.closed_to_receiver(),
            )?;
            agree(
                "Receiver::sender_strong_count",
                rx.sender_strong_count(),
                strong,
            )?;
            agree(
                "Receiver::sender_weak_count",
                rx.sender_weak_count(),
                self.weaks.len(),
            )?;
        }
        Ok(())
    }

    /// Drops everything; each message must have been dropped once, and each waker released.
    fn end(self, receiver_first: bool) -> Result<(), String> {
        let Self {
            ledger,
            handles,
            weaks,
            futures,
            forgotten,
            leaked,
            any_leaked,
            rx,
            rx_watch,
            counters,
            ..
        } = self;
        if receiver_first {
            drop(rx);
            drop((forgotten, futures, handles, weaks));
        } else {
            drop((forgotten, futures, handles, weaks));
            drop(rx);
        }
        drop(rx_watch);
        for number in 0..ledger.made() {
            let drops = ledger.drops_of(number);
            if drops != 1 && !(drops == 0 && leaked.contains(&number)) {
                return Err(format!(
                    "message {number} was dropped {drops} times in the end"
                ));
            }
        }
        if !any_leaked {
            let kept = counters.iter().filter(|c| Arc::strong_count(c) > 1).count();
            agree("wakers kept in the end", kept, 0)?;
        }
        Ok(())
    }
}

/// Does the operations one by one, each in a poll of its own.
pub(crate) async fn run(capacity: usize, ops: Vec<Op>) -> Result<(), String> {
    let mut side = Side::new(capacity);
    let length = ops.len();
    for (step, op) in ops.into_iter().enumerate() {
        let result = side.apply(op);
        settle().await;
        side.reconcile();
        result
            .and_then(|()| side.compare())
            .map_err(|error| format!("step {step}, {op:?}: {error}"))?;
    }
    side.end(length.is_multiple_of(2))
        .map_err(|error| format!("at the end: {error}"))
}
