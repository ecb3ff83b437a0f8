//! The futurelock: a task that keeps a future which stands in line, and waits for another one behind it.
//!
//! A fair channel grants room to the first in line. If that is a future which its task does not poll, because
//! the task waits for somebody behind it, both wait for ever. Sends cannot fall into it, since their
//! messages are moved out of them; reservations lapse.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use futures_lite::future::{or, poll_once, race, yield_now, zip};
use futures_lite::stream::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::common::{
    LIMIT, Ledger, Place, Rng, Watchdog, block_on, rounds, runtimes, within, yield_once,
};
use crate::flavor::error::TrySendError;
use crate::flavor::{Receiver, Sender, channel};

use super::full;

/// What a `select!` of two futures came to.
enum Either<A, B> {
    First(A),
    Second(B),
}

/// As `select!` in a loop does it: one of the two is borrowed, and stays where it is when the other wins.
async fn select<A, B>(
    first: Pin<&mut impl Future<Output = A>>,
    second: impl Future<Output = B>,
) -> Either<A, B> {
    or(async { Either::First(first.await) }, async {
        Either::Second(second.await)
    })
    .await
}

/// Ends a channel whose senders were leaked.
const LAST: usize = usize::MAX;

/// Takes all messages on this thread, or as a task, and gives them back in their order.
async fn collect(mut rx: Receiver<usize>) -> Vec<usize> {
    let mut got = Vec::new();
    while let Some(i) = rx.recv().await
        && i != LAST
    {
        got.push(i);
    }
    got
}

/// Runs a task on each runtime against a receiver that is a task, and one that is a thread outside; gives
/// the messages that arrived to `check`.
fn against_receivers<Fut>(
    what: &'static str,
    capacity: usize,
    task: impl Fn(Sender<usize>) -> Fut + Send + 'static,
    check: impl Fn(Vec<usize>) + Send + 'static,
) where
    Fut: Future<Output = ()> + Send + 'static,
{
    within(what, move || {
        for (place, runtime) in runtimes() {
            for outside in [false, true] {
                let (tx, rx) = full(capacity);
                let task = runtime.spawn(task(tx));
                let got = if outside {
                    let thread = std::thread::spawn(|| block_on(collect(rx)));
                    runtime.block_on(task).unwrap();
                    thread.join().unwrap()
                } else {
                    let receiver = runtime.spawn(collect(rx));
                    runtime.block_on(task).unwrap();
                    runtime.block_on(receiver).unwrap()
                };
                assert_eq!(
                    got[..capacity],
                    (0..capacity).collect::<Vec<_>>(),
                    "{place:?}"
                );
                check(got[capacity..].to_vec());
            }
        }
    });
}

#[test]
fn a_branch_that_sends_while_a_reservation_is_held_goes_on() {
    for capacity in [1, 2, 3] {
        against_receivers(
            "select over reserve",
            capacity,
            move |tx| async move {
                let mut ticks = 0;
                let mut reserve = pin!(tx.reserve());
                loop {
                    // The first tick comes while the reservation waits.
                    let tick = async {
                        if ticks == 5 {
                            std::future::pending::<()>().await;
                        }
                    };
                    match select(reserve.as_mut(), tick).await {
                        Either::First(permit) => {
                            permit.unwrap().send(1000).unwrap();
                            break;
                        }
                        Either::Second(()) => {
                            ticks += 1;
                            tx.send(100 + ticks).await.unwrap();
                        }
                    }
                }
            },
            |got| {
                assert_eq!(got.iter().filter(|&&i| i == 1000).count(), 1);
                let ticks: Vec<_> = got.into_iter().filter(|&i| i != 1000).collect();
                assert_eq!(ticks, (101..101 + ticks.len()).collect::<Vec<_>>());
                // None, if there was room at the first look.
                assert!(ticks.len() <= 5);
            },
        );
    }
}

#[test]
fn a_branch_that_sends_while_a_send_is_held_goes_on() {
    for capacity in [1, 2, 3] {
        against_receivers(
            "select over send",
            capacity,
            move |tx| async move {
                let mut ticks = 0;
                let mut send = pin!(tx.send(1000));
                loop {
                    match select(send.as_mut(), async {}).await {
                        Either::First(sent) => break sent.unwrap(),
                        Either::Second(()) => {
                            ticks += 1;
                            tx.send(100 + ticks).await.unwrap();
                        }
                    }
                }
            },
            // Strictly in line: the one that is held stands before the one that is awaited. There is no
            // other, if there was room at the first look.
            |got| assert!(got == [1000, 101] || got == [1000], "{got:?}"),
        );
    }
}

#[test]
fn a_branch_that_reserves_while_a_reservation_is_held_goes_on() {
    against_receivers(
        "select over two reservations",
        1,
        |tx| async move {
            let mut held = Box::pin(tx.clone().reserve_owned());
            for i in 0..20 {
                match select(held.as_mut(), async {}).await {
                    Either::First(permit) => {
                        drop(permit.unwrap().send(1000 + i).unwrap());
                        held = Box::pin(tx.clone().reserve_owned());
                    }
                    Either::Second(()) => tx.reserve().await.unwrap().send(100 + i).unwrap(),
                }
            }
        },
        |got| {
            let order: Vec<_> = got.iter().map(|i| i % 100).collect();
            assert_eq!(order, (0..20).collect::<Vec<_>>());
        },
    );
}

#[test]
fn a_leaked_reservation_of_a_task_that_lives_on_holds_nobody_up() {
    against_receivers(
        "leaked",
        1,
        |tx| async move {
            // Forgotten in its box; leaked as a reference; kept and never polled again.
            let mut forgotten = Box::pin(tx.clone().reserve_owned());
            drop(poll_once(forgotten.as_mut()).await);
            std::mem::forget(forgotten);
            let leaked = Box::leak(Box::new(tx.clone().reserve_owned()));
            // SAFETY: leaked, so it stays where it is for ever.
            let leaked = unsafe { Pin::new_unchecked(leaked) };
            drop(poll_once(leaked).await);
            let mut kept = Box::pin(tx.reserve());
            drop(poll_once(kept.as_mut()).await);
            for i in 0..10 {
                tx.send(100 + i).await.unwrap();
            }
            drop(kept);
            // What is leaked keeps its sender.
            tx.send(LAST).await.unwrap();
        },
        |got| assert_eq!(got, (100..110).collect::<Vec<_>>()),
    );
}

#[test]
fn a_leaked_reservation_of_a_task_that_ends_holds_nobody_up() {
    within("leaked by a task that ends", || {
        for (place, runtime) in runtimes() {
            for aborted in [false, true] {
                let (tx, mut rx) = full(1);
                let leaks = tx.clone();
                let parked = Arc::new(AtomicUsize::new(0));
                let tells = Arc::clone(&parked);
                let task = runtime.spawn(async move {
                    let leaked = Box::leak(Box::new(leaks.reserve_owned()));
                    // SAFETY: leaked, so it stays where it is for ever.
                    let leaked = unsafe { Pin::new_unchecked(leaked) };
                    assert!(poll_once(leaked).await.is_none());
                    tells.store(1, Ordering::SeqCst);
                    if aborted {
                        std::future::pending::<()>().await;
                    }
                });
                runtime.block_on(async {
                    while parked.load(Ordering::SeqCst) == 0 {
                        yield_once().await;
                    }
                    if aborted {
                        task.abort();
                    }
                    _ = task.await;
                    let sender = wakerun::spawn(async move {
                        for i in 1..10 {
                            tx.send(i).await.unwrap();
                        }
                    });
                    for i in 0..10 {
                        assert_eq!(rx.recv().await, Some(i), "{place:?}");
                    }
                    sender.await.unwrap();
                });
            }
        }
    });
}

#[test]
fn children_that_are_joined_go_on() {
    against_receivers(
        "joined",
        1,
        |tx| async move {
            // Each poll of the task polls both; whichever is granted claims.
            let one = async {
                for i in 0..10 {
                    tx.reserve().await.unwrap().send(100 + i).unwrap();
                }
            };
            let two = async {
                for i in 0..10 {
                    tx.send(200 + i).await.unwrap();
                }
            };
            zip(one, two).await;
        },
        |got| {
            for base in [100, 200] {
                let of_one: Vec<_> = got.iter().filter(|&&i| i / 100 == base / 100).collect();
                assert_eq!(of_one.len(), 10);
                assert!(of_one.is_sorted());
            }
        },
    );
}

#[test]
fn children_that_are_raced_go_on() {
    against_receivers(
        "raced",
        1,
        |tx| async move {
            for i in 0..50 {
                // The loser leaves the line, or passes its grant on.
                race(async { drop(tx.reserve().await.unwrap()) }, async {
                    drop(tx.reserve().await.unwrap())
                })
                .await;
                or(yield_now(), async { drop(tx.reserve().await) }).await;
                tx.send(100 + i).await.unwrap();
            }
        },
        |got| assert_eq!(got, (100..150).collect::<Vec<_>>()),
    );
}

#[test]
fn children_in_a_set_with_wakers_of_its_own_go_on() {
    against_receivers(
        "FuturesUnordered",
        1,
        |tx| async move {
            let mut set: FuturesUnordered<_> = (0..40)
                .map(|i| {
                    let tx = &tx;
                    async move {
                        if i % 2 == 0 {
                            tx.reserve().await.unwrap().send(100 + i).unwrap();
                        } else {
                            tx.send(100 + i).await.unwrap();
                        }
                    }
                })
                .collect();
            while set.next().await.is_some() {}
        },
        |mut got| {
            got.sort_unstable();
            assert_eq!(got, (100..140).collect::<Vec<_>>());
        },
    );
}

#[test]
fn a_grant_inside_such_a_set_is_kept_until_the_set_is_polled_or_dropped() {
    // The task's polls do not poll what is in the set, so they say nothing, and no grant lapses. Who holds
    // such a set must not wait for others of the same channel: that is documented, and as everywhere.
    within("kept in a set", || {
        for (place, runtime) in runtimes() {
            for dropped in [false, true] {
                let (tx, mut rx) = full(1);
                let task = runtime.spawn(async move {
                    let mut set = FuturesUnordered::new();
                    let other = tx.clone();
                    set.push(async move { other.reserve_owned().await });
                    assert!(poll_once(set.next()).await.is_none());
                    assert_eq!(rx.recv().await, Some(0));
                    for _ in 0..20 {
                        yield_once().await;
                    }
                    assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)), "{place:?}");
                    if dropped {
                        drop(set);
                    } else {
                        let permit = set.next().await.unwrap().unwrap();
                        drop(permit.send(7).unwrap());
                        assert_eq!(rx.recv().await, Some(7));
                    }
                    tx.send(8).await.unwrap();
                    assert_eq!(rx.recv().await, Some(8));
                });
                runtime.block_on(task).unwrap();
            }
        }
    });
}

/// One of many tasks that hold reservations, abandon them, move them about, and wait behind them. Sends
/// `count` messages.
async fn juggle(tx: Sender<usize>, me: usize, count: usize, ledger: Ledger) {
    let mut rng = Rng::new(me as u64);
    let mut held = Vec::new();
    let mut sent = 0;
    while sent < count {
        let token = ledger.make();
        match rng.below(8) {
            0 | 1 => {
                let mut reserve = Box::pin(tx.clone().reserve_owned());
                match poll_once(reserve.as_mut()).await {
                    Some(permit) => {
                        drop(permit.unwrap().send(me).unwrap());
                        sent += 1;
                    }
                    None => held.push(reserve),
                }
            }
            2 if !held.is_empty() => drop(held.swap_remove(rng.below(held.len()))),
            3 if !held.is_empty() => {
                let reserve = held.swap_remove(rng.below(held.len()));
                drop(reserve.await.unwrap().send(me).unwrap());
                sent += 1;
            }
            4 if !held.is_empty() => {
                // Finished by another task.
                let reserve = held.swap_remove(rng.below(held.len()));
                let task = wakerun::spawn(async move { reserve.await.unwrap().send(me).map(drop) });
                task.await.unwrap().unwrap();
                sent += 1;
            }
            5 => {
                let permits = tx
                    .reserve_many(1 + rng.below(tx.max_capacity()))
                    .await
                    .unwrap();
                let mut messages = (0..permits.len().min(count - sent)).map(|_| me).collect();
                sent += permits.send_many(&mut messages).unwrap();
            }
            6 => yield_once().await,
            _ => {
                tx.send(me).await.unwrap();
                sent += 1;
            }
        }
        if held.len() > 3 {
            drop(held.swap_remove(0));
        }
        drop(token);
    }
    // What is still held goes with the task, or after it.
    if rng.one_in(2) {
        drop(tx);
        std::thread::spawn(move || drop(held));
    }
}

#[test]
fn tasks_that_wait_behind_what_they_hold_all_get_on() {
    const TASKS: usize = 6;
    let count = rounds(4_000).min(4_000);
    for place in [
        Place::Current,
        Place::Workers(1),
        Place::Workers(2),
        Place::Workers(4),
    ] {
        for capacity in [1, 2, 3, 33] {
            let got = Arc::new([const { AtomicUsize::new(0) }; TASKS]);
            let seen = Arc::clone(&got);
            let _dog = Watchdog::new("juggling", LIMIT, move || {
                format!("{place:?}, capacity {capacity}: {seen:?}")
            });
            let runtime = place.runtime().unwrap();
            let ledger = Ledger::new();
            let (tx, mut rx) = channel(capacity);
            let tasks: Vec<_> = (0..TASKS)
                .map(|me| runtime.spawn(juggle(tx.clone(), me, count, ledger.clone())))
                .collect();
            let weak = tx.downgrade();
            drop(tx);
            runtime.block_on(async {
                while let Some(me) = rx.recv().await {
                    got[me].fetch_add(1, Ordering::SeqCst);
                }
                for task in tasks {
                    task.await.unwrap();
                }
            });
            assert!(weak.upgrade().is_none());
            for got in got.iter() {
                assert_eq!(got.load(Ordering::SeqCst), count, "{place:?} at {capacity}");
            }
            ledger.assert_all_dropped_once();
        }
    }
}

#[test]
fn off_the_runtime_the_order_of_a_line_stays_what_it_is() {
    // Nothing lapses there: a reservation that is polled late is still the first in line.
    within("off the runtime", || {
        let (tx, mut rx) = full(1);
        block_on(async {
            let mut reserve = pin!(tx.reserve());
            assert!(poll_once(reserve.as_mut()).await.is_none());
            let mut send = pin!(tx.send(2));
            assert!(poll_once(send.as_mut()).await.is_none());
            assert_eq!(rx.recv().await, Some(0));
            for _ in 0..10 {
                yield_once().await;
                assert!(poll_once(send.as_mut()).await.is_none());
            }
            std::future::poll_fn(|cx| match reserve.as_mut().poll(cx) {
                Poll::Ready(permit) => Poll::Ready(permit.unwrap().send(1)),
                Poll::Pending => panic!("the grant has gone"),
            })
            .await
            .unwrap();
            assert_eq!(rx.recv().await, Some(1));
            send.await.unwrap();
            assert_eq!(rx.recv().await, Some(2));
        });
    });
}
