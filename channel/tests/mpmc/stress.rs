//! Many senders and many receivers, as tasks and threads, that do everything there is at random. The
//! variables of the shared `stress.rs` hold here, too.

use std::env;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::StreamExt;
use futures_lite::future::or;

use crate::common::{
    CAPACITIES, LIMIT, Ledger, Place, Rng, Tracked, Watchdog, block_on, noop, poll_once, yield_once,
};
use crate::flavor::{Receiver, Sender, channel};

/// What happens, for the watchdog to tell.
#[derive(Default)]
struct Board {
    round: AtomicUsize,
    accepted: AtomicUsize,
    received: AtomicUsize,
    evicted: AtomicUsize,
    /// Sends that were given up: received or not.
    cancelled: AtomicUsize,
}

fn add(count: &AtomicUsize, n: usize) {
    count.fetch_add(n, Ordering::SeqCst);
}

async fn produce(tx: Sender<Tracked>, steps: usize, ledger: Ledger, board: Arc<Board>, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..steps {
        let sent = match rng.below(9) {
            0..3 => tx.send(ledger.make()).await.is_ok(),
            3 => match tx.reserve().await {
                Ok(permit) => permit.send(ledger.make()).is_ok(),
                Err(_) => false,
            },
            4 => {
                let count = 1 + rng.below(tx.max_capacity());
                let mut messages = (0..1 + rng.below(count)).map(|_| ledger.make()).collect();
                match tx.reserve_many(count).await {
                    Ok(permits) => {
                        let sent = permits.send_many(&mut messages).unwrap_or(0);
                        add(&board.accepted, sent.saturating_sub(1));
                        sent > 0
                    }
                    Err(_) => false,
                }
            }
            5 => tx.try_send(ledger.make()).is_ok(),
            6 => match tx.force_send(ledger.make()) {
                Ok(evicted) => {
                    add(&board.evicted, evicted.iter().count());
                    true
                }
                Err(_) => false,
            },
            7 => {
                // Given up after a turn; also a reservation that was granted meanwhile.
                let send = async { Some(tx.send(ledger.make()).await.is_ok()) };
                let patience = async {
                    yield_once().await;
                    None
                };
                match or(send, patience).await {
                    Some(sent) => sent,
                    None => {
                        add(&board.cancelled, 1);
                        false
                    }
                }
            }
            _ => {
                let mut held = pin!(tx.reserve());
                if let Poll::Ready(Ok(permit)) = poll_once(held.as_mut(), noop()) {
                    drop(permit);
                }
                false
            }
        };
        add(&board.accepted, usize::from(sent));
        if tx.is_closed() {
            break;
        }
    }
}

async fn consume(mut rx: Receiver<Tracked>, steps: usize, board: Arc<Board>, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..steps {
        let got = match rng.below(8) {
            0..3 => rx.recv().await.map(|_| 1),
            3 => {
                let mut many = Vec::new();
                let limit = 1 + rng.below(4);
                Some(rx.recv_many(&mut many, limit).await).filter(|&n| n > 0)
            }
            4 => rx.next().await.map(|_| 1),
            5 => {
                // Woken or not, it goes; what it was woken for goes to another.
                let recv = async { rx.recv().await.map(|_| 1) };
                let patience = async {
                    yield_once().await;
                    Some(0)
                };
                or(recv, patience).await
            }
            6 => {
                let mut held = pin!(rx.recv());
                match poll_once(held.as_mut(), noop()) {
                    Poll::Ready(got) => got.map(|_| 1),
                    Poll::Pending => {
                        // From a foreign waker to the task's own.
                        yield_once().await;
                        held.await.map(|_| 1)
                    }
                }
            }
            _ => {
                let got = usize::from(rx.try_recv().is_ok());
                yield_once().await;
                rx = rx.clone();
                Some(got)
            }
        };
        match got {
            Some(n) => add(&board.received, n),
            None => return,
        }
    }
}

/// One channel from its beginning to its end.
fn round(runtime: &wakerun::Runtime, seed: u64, board: &Arc<Board>) {
    let mut rng = Rng::new(seed);
    let capacity = CAPACITIES[rng.below(CAPACITIES.len())];
    let ledger = Ledger::new();
    let (tx, rx) = channel(capacity);
    let before = [
        &board.accepted,
        &board.received,
        &board.evicted,
        &board.cancelled,
    ]
    .map(|count| count.load(Ordering::SeqCst));
    let steps = 20 + rng.below(200);
    // Some receivers leave early; at least one stays to the end, unless all are to go.
    let abandon = rng.one_in(4);
    let mut tasks = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..1 + rng.below(4) {
        let patience = if abandon || rng.one_in(2) {
            rng.below(60)
        } else {
            usize::MAX
        };
        let consumer = consume(rx.clone(), patience, Arc::clone(board), rng.next());
        tasks.push(runtime.spawn(consumer));
    }
    if !abandon {
        let consumer = consume(rx.clone(), usize::MAX, Arc::clone(board), rng.next());
        if rng.one_in(2) {
            threads.push(thread::spawn(|| block_on(consumer)));
        } else {
            tasks.push(runtime.spawn(consumer));
        }
    }
    drop(rx);
    for _ in 0..1 + rng.below(5) {
        let producer = produce(
            tx.clone(),
            steps,
            ledger.clone(),
            Arc::clone(board),
            rng.next(),
        );
        if rng.one_in(4) {
            threads.push(thread::spawn(|| block_on(producer)));
        } else {
            tasks.push(runtime.spawn(producer));
        }
    }
    drop(tx);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    for thread in threads {
        thread.join().unwrap();
    }
    ledger.assert_all_dropped_once();
    let after = [
        &board.accepted,
        &board.received,
        &board.evicted,
        &board.cancelled,
    ]
    .map(|count| count.load(Ordering::SeqCst));
    let [accepted, received, evicted, cancelled] = [0, 1, 2, 3].map(|i| after[i] - before[i]);
    if !abandon {
        let gone = received + evicted;
        assert!(
            accepted <= gone && gone <= accepted + cancelled,
            "{accepted} accepted, {cancelled} given up, {received} received, {evicted} evicted"
        );
    }
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
    let _dog = Watchdog::new("stress", time + LIMIT, move || {
        let get = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        format!(
            "round {}: {} accepted, {} received, {} evicted, {} cancelled",
            get(&state.round),
            get(&state.accepted),
            get(&state.received),
            get(&state.evicted),
            get(&state.cancelled),
        )
    });
    let runtime = place.runtime().expect("a place with a runtime");
    let end = Instant::now() + time;
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        board.round.store(rounds as usize, Ordering::SeqCst);
        round(&runtime, seed.unwrap_or(rounds), &board);
        rounds += 1;
        if cfg!(miri) {
            break;
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
