//! Real threads, real wakes, random mixes of everything, for as long as `WAKERUN_STRESS_SECS` says
//! (a few seconds by default). `WAKERUN_STRESS_SEED` replays a mix; the schedule is the machine's.

use std::env;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    CAPACITIES, LIMIT, Ledger, Place, Rng, Tracked, Watchdog, noop, poll_once, yield_once,
};
use crate::flavor::{Receiver, Sender, channel};
use futures_lite::StreamExt;
use futures_lite::future::or;
use wakerun::task::JoinSet;

/// A message: who sent it, as how-manieth, and a body that is counted.
struct Message {
    from: usize,
    number: usize,
    _body: Tracked,
}

/// What happens, for the watchdog to tell.
#[derive(Default)]
struct Board {
    round: AtomicUsize,
    capacity: AtomicUsize,
    senders: AtomicUsize,
    accepted: AtomicUsize,
    received: AtomicUsize,
    refused: AtomicUsize,
    cancelled: AtomicUsize,
}

impl Board {
    fn report(&self) -> String {
        let get = |n: &AtomicUsize| n.load(Ordering::SeqCst);
        format!(
            "round {}, capacity {}: {} senders at work, {} accepted, {} received, {} refused, {} cancelled",
            get(&self.round),
            get(&self.capacity),
            get(&self.senders),
            get(&self.accepted),
            get(&self.received),
            get(&self.refused),
            get(&self.cancelled),
        )
    }

    fn add(n: &AtomicUsize) {
        n.fetch_add(1, Ordering::SeqCst);
    }
}

struct Working(Arc<Board>);

impl Working {
    fn new(board: &Arc<Board>) -> Self {
        Board::add(&board.senders);
        Self(Arc::clone(board))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.senders.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Producer {
    tx: Sender<Message>,
    me: usize,
    next: usize,
    ledger: Ledger,
    board: Arc<Board>,
    rng: Rng,
    _working: Working,
}

impl Producer {
    fn message(&mut self) -> Message {
        self.next += 1;
        Message {
            from: self.me,
            number: self.next,
            _body: self.ledger.make(),
        }
    }

    /// True while the channel is open.
    fn judge<E>(&self, result: Result<(), E>) -> bool {
        Board::add(match result {
            Ok(()) => &self.board.accepted,
            Err(_) => &self.board.refused,
        });
        result.is_ok()
    }

    /// One operation; false once the channel is closed.
    async fn step(&mut self) -> bool {
        let tx = self.tx.clone();
        match self.rng.below(14) {
            0..4 => {
                let message = self.message();
                self.judge(tx.send(message).await)
            }
            4..6 => {
                let message = self.message();
                match tx.reserve().await {
                    Ok(permit) => {
                        if self.rng.one_in(4) {
                            yield_once().await;
                        }
                        self.judge(permit.send(message))
                    }
                    Err(error) => self.judge(Err(error)),
                }
            }
            6 => {
                // A permit that is given back.
                match tx.reserve().await {
                    Ok(permit) => {
                        yield_once().await;
                        drop(permit);
                        true
                    }
                    Err(_) => false,
                }
            }
            7 => {
                if let Ok(permit) = tx.try_reserve() {
                    let message = self.message();
                    self.judge(permit.send(message))
                } else {
                    !tx.is_closed()
                }
            }
            8 => {
                let message = self.message();
                if tx.try_send(message).is_ok() {
                    self.judge::<()>(Ok(()))
                } else {
                    !tx.is_closed()
                }
            }
            9 => {
                // A send that is given up after a while: delivered or not, and dropped once.
                let message = self.message();
                let limit = self.rng.below(3);
                let patience = async {
                    for _ in 0..limit {
                        yield_once().await;
                    }
                    None
                };
                match or(async { Some(tx.send(message).await) }, patience).await {
                    Some(result) => self.judge(result),
                    None => {
                        Board::add(&self.board.cancelled);
                        true
                    }
                }
            }
            10 => {
                // The same for a reservation.
                let message = self.message();
                let got = or(async { Some(tx.reserve().await) }, async {
                    yield_once().await;
                    None
                })
                .await;
                match got {
                    Some(Ok(permit)) => self.judge(permit.send(message)),
                    Some(Err(error)) => self.judge(Err(error)),
                    None => true,
                }
            }
            11 => {
                // Parked, polled with a foreign waker, then with ours.
                let message = self.message();
                let result = {
                    let mut send = pin!(tx.send(message));
                    match poll_once(send.as_mut(), noop()) {
                        Poll::Ready(result) => result,
                        Poll::Pending => {
                            yield_once().await;
                            send.await
                        }
                    }
                };
                self.judge(result)
            }
            12 => {
                // Abandoned for good while it waits: its message arrives all the same, or comes
                // back with the close; nobody is held up.
                let message = self.message();
                let tx = tx.clone();
                let mut send: Pin<Box<dyn Future<Output = bool> + Send>> =
                    Box::pin(async move { tx.send(message).await.is_ok() });
                if poll_once(send.as_mut(), noop()).is_pending() {
                    let next = self.message();
                    let result = self.tx.send(next).await;
                    let open = self.judge(result);
                    // First in line, so done by now; a close may have refused it.
                    assert!(poll_once(send.as_mut(), noop()).is_ready());
                    open
                } else {
                    !self.tx.is_closed()
                }
            }
            _ => {
                yield_once().await;
                !tx.is_closed()
            }
        }
    }
}

struct Consumer {
    rx: Receiver<Message>,
    last: Vec<usize>,
    capacity: usize,
    board: Arc<Board>,
    rng: Rng,
}

impl Consumer {
    fn take(&mut self, message: &Message) {
        let last = &mut self.last[message.from];
        assert!(message.number > *last, "out of order or twice");
        *last = message.number;
        Board::add(&self.board.received);
    }

    /// One operation; false at the end of the channel.
    async fn step(&mut self) -> bool {
        let len = self.rx.len();
        assert!(
            len <= self.capacity && self.rx.capacity() <= self.capacity - len.min(self.capacity)
        );
        let message = match self.rng.below(8) {
            0..3 => self.rx.recv().await,
            3 => match self.rx.try_recv() {
                Ok(message) => Some(message),
                Err(_) => {
                    yield_once().await;
                    self.rx.recv().await
                }
            },
            4 => {
                let mut many = Vec::new();
                let limit = 1 + self.rng.below(2 * self.capacity);
                let n = self.rx.recv_many(&mut many, limit).await;
                assert!(n == many.len() && n <= limit);
                for message in &many {
                    self.take(message);
                }
                return n > 0;
            }
            5 => self.rx.next().await,
            6 => {
                // A receive that is given up loses nothing.
                let rx = &mut self.rx;
                let got = or(async { Some(rx.recv().await) }, async {
                    yield_once().await;
                    None
                })
                .await;
                match got {
                    Some(message) => message,
                    None => return true,
                }
            }
            _ => {
                let mut recv = Box::pin(self.rx.recv());
                match poll_once(recv.as_mut(), noop()) {
                    Poll::Ready(message) => message,
                    Poll::Pending => recv.await,
                }
            }
        };
        if let Some(message) = &message {
            self.take(message);
        }
        message.is_some()
    }
}

/// How a round comes to its end.
#[derive(Clone, Copy, Debug)]
enum Finish {
    /// All senders end by themselves.
    Senders,
    /// The receiver closes and drains.
    Close,
    /// The receiver is dropped.
    Drop,
    /// Senders are aborted.
    Abort,
}

async fn consume(mut consumer: Consumer, finish: Finish) -> usize {
    let limit = match finish {
        Finish::Senders | Finish::Abort => usize::MAX,
        Finish::Close | Finish::Drop => consumer.rng.below(200),
    };
    let mut steps = 0;
    while steps < limit && consumer.step().await {
        steps += 1;
    }
    if matches!(finish, Finish::Drop) {
        return 0;
    }
    consumer.rx.close();
    while consumer.step().await {}
    assert!(consumer.rx.try_recv().is_err());
    1
}

/// One channel from its beginning to its end on the given runtime, with a thread or two besides.
fn round(runtime: &wakerun::Runtime, seed: u64, board: &Arc<Board>) {
    let mut rng = Rng::new(seed);
    let capacity = CAPACITIES[rng.below(CAPACITIES.len())];
    let producers = 1 + rng.below(6);
    let threads = rng.below(2);
    let steps = 20 + rng.below(300);
    let finish = [Finish::Senders, Finish::Close, Finish::Drop, Finish::Abort][rng.below(4)];
    board.capacity.store(capacity, Ordering::SeqCst);
    let ledger = Ledger::new();
    let (tx, rx) = channel(capacity);
    let watcher = tx.downgrade();

    let consumer = Consumer {
        rx,
        last: vec![0; producers + threads],
        capacity,
        board: Arc::clone(board),
        rng: Rng::new(rng.next()),
    };
    let consumer = runtime.spawn(consume(consumer, finish));
    let mut tasks = JoinSet::new();
    let mut aborts = Vec::new();
    for me in 0..producers {
        let mut producer = Producer {
            tx: tx.clone(),
            me,
            next: 0,
            ledger: ledger.clone(),
            board: Arc::clone(board),
            rng: Rng::new(rng.next()),
            _working: Working::new(board),
        };
        let task = tasks.spawn_on(
            async move {
                for _ in 0..steps {
                    if !producer.step().await {
                        break;
                    }
                }
            },
            runtime.handle(),
        );
        aborts.push(task);
    }
    let blocking: Vec<_> = (producers..producers + threads)
        .map(|me| {
            let (tx, ledger) = (tx.clone(), ledger.clone());
            let working = Working::new(board);
            thread::spawn(move || {
                for number in 1..=steps {
                    let message = Message {
                        from: me,
                        number,
                        _body: ledger.make(),
                    };
                    if tx.blocking_send(message).is_err() {
                        break;
                    }
                }
                drop(working);
            })
        })
        .collect();
    drop(tx);
    runtime.block_on(async {
        if matches!(finish, Finish::Abort) {
            for abort in &aborts {
                for _ in 0..rng.below(20) {
                    yield_once().await;
                }
                abort.abort();
            }
        }
        while let Some(result) = tasks.join_next().await {
            if let Err(error) = result {
                assert!(error.is_cancelled(), "{error}");
            }
        }
        consumer.await.unwrap();
    });
    for thread in blocking {
        thread.join().unwrap();
    }
    assert!(watcher.upgrade().is_none(), "a sender is left over");
    ledger.assert_all_dropped_once();
}

fn stress(place: Place, share: f64) {
    let seconds = env::var("WAKERUN_STRESS_SECS")
        .map_or(4.0, |text| text.parse().expect("a number of seconds"));
    let seed = env::var("WAKERUN_STRESS_SEED")
        .ok()
        .map(|text| text.parse::<u64>().expect("a seed"));
    let board = Arc::new(Board::default());
    let state = Arc::clone(&board);
    let time = Duration::from_secs_f64(seconds * share);
    let _dog = Watchdog::new("stress", time + LIMIT, move || state.report());
    let runtime = place.runtime().expect("a place with a runtime");
    let end = Instant::now() + time;
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        let seed = seed.unwrap_or(rounds);
        board.round.store(rounds as usize, Ordering::SeqCst);
        let _said = Said(place, seed);
        round(&runtime, seed, &board);
        rounds += 1;
        if cfg!(miri) {
            break;
        }
    }
}

/// Says which mix it was when a round fails.
struct Said(Place, u64);

impl Drop for Said {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed in {:?} with WAKERUN_STRESS_SEED={}", self.0, self.1);
        }
    }
}

#[test]
fn one_worker() {
    stress(Place::Workers(1), 0.25);
}

#[test]
fn two_workers() {
    stress(Place::Workers(2), 0.3);
}

#[test]
fn four_workers() {
    stress(Place::Workers(4), 0.3);
}

#[test]
fn the_callers_thread() {
    stress(Place::Current, 0.15);
}
