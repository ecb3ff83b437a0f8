//! The channels that are left out here, since other crates have them, on tasks of the runtime: one
//! message, the latest value, every message to all.
#![cfg(not(wakerun_loom))]

mod common;

use std::sync::{Arc, Mutex};

use common::{runtimes, within};
use tokio::sync::broadcast::error::RecvError;
use wakerun::Builder;
use wakerun_channel::mpsc;

const ROUNDS: usize = if cfg!(miri) { 10 } else { 200 };

/// Tells that it is about to wait, in the poll in which it then waits.
type Told = mpsc::Sender<()>;

#[test]
fn a_reply_comes_back_through_a_oneshot_of_tokio() {
    within("tokio::sync::oneshot", || {
        for (_, runtime) in runtimes() {
            runtime.block_on(async {
                let (ask, mut asked) = mpsc::channel(1);
                let server = wakerun::spawn(async move {
                    while let Some((n, reply)) = asked.recv().await {
                        let reply: tokio::sync::oneshot::Sender<usize> = reply;
                        reply.send(n * 2).unwrap();
                    }
                });
                for n in 0..ROUNDS {
                    let (reply, answer) = tokio::sync::oneshot::channel();
                    ask.send((n, reply)).await.unwrap();
                    assert_eq!(answer.await, Ok(n * 2));
                }
                drop(ask);
                server.await.unwrap();
            });
        }
    });
}

#[test]
fn a_reply_comes_back_through_the_crate_oneshot() {
    within("oneshot", || {
        for (_, runtime) in runtimes() {
            runtime.block_on(async {
                let (ask, mut asked) = mpsc::channel(1);
                let server = wakerun::spawn(async move {
                    while let Some((n, reply)) = asked.recv().await {
                        let reply: oneshot::Sender<usize> = reply;
                        reply.send(n * 2).unwrap();
                    }
                });
                for n in 0..ROUNDS {
                    let (reply, answer) = oneshot::async_channel();
                    ask.send((n, reply)).await.unwrap();
                    assert_eq!(answer.await, Ok(n * 2));
                }
                drop(ask);
                server.await.unwrap();
            });
        }
    });
}

#[test]
fn whoever_waits_for_a_reply_learns_that_none_comes() {
    within("dropped oneshots", || {
        for (_, runtime) in runtimes() {
            runtime.block_on(async {
                let (told, mut waits) = mpsc::channel(2);
                let (of_tokio, answer) = tokio::sync::oneshot::channel::<()>();
                let (of_crate, other_answer) = oneshot::async_channel::<()>();
                let other_told: Told = told.clone();
                let task = wakerun::spawn(async move {
                    told.send(()).await.unwrap();
                    answer.await.is_err()
                });
                let other_task = wakerun::spawn(async move {
                    other_told.send(()).await.unwrap();
                    other_answer.await.is_err()
                });
                waits.recv().await.unwrap();
                waits.recv().await.unwrap();
                drop((of_tokio, of_crate));
                assert!(task.await.unwrap());
                assert!(other_task.await.unwrap());
            });
        }
    });
}

#[test]
fn every_watcher_comes_to_the_last_value() {
    within("tokio::sync::watch", || {
        for (_, runtime) in runtimes() {
            runtime.block_on(async {
                let (tx, rx) = tokio::sync::watch::channel(0);
                let watchers: Vec<_> = (0..3)
                    .map(|_| {
                        let mut rx = rx.clone();
                        wakerun::spawn(async move {
                            let mut last = *rx.borrow_and_update();
                            while rx.changed().await.is_ok() {
                                let value = *rx.borrow_and_update();
                                assert!(value > last, "values go back");
                                last = value;
                            }
                            last
                        })
                    })
                    .collect();
                for value in 1..=ROUNDS {
                    tx.send(value).unwrap();
                    if value % 10 == 0 {
                        wakerun::task::yield_now().await;
                    }
                }
                drop(tx);
                for watcher in watchers {
                    assert_eq!(watcher.await.unwrap(), ROUNDS);
                }
            });
        }
    });
}

#[test]
fn a_broadcast_reaches_all_and_tells_the_slow_what_they_missed() {
    const KEPT: usize = 4;
    within("tokio::sync::broadcast", || {
        for (_, runtime) in runtimes() {
            runtime.block_on(async {
                let (tx, mut slow) = tokio::sync::broadcast::channel(KEPT);
                let (ack, mut acked) = mpsc::channel(3);
                let readers: Vec<_> = (0..3)
                    .map(|_| {
                        let (mut rx, ack) = (tx.subscribe(), ack.clone());
                        wakerun::spawn(async move {
                            for expected in 0..ROUNDS {
                                assert_eq!(rx.recv().await, Ok(expected));
                                ack.send(()).await.unwrap();
                            }
                        })
                    })
                    .collect();
                for n in 0..ROUNDS {
                    tx.send(n).unwrap();
                    for _ in 0..3 {
                        acked.recv().await.unwrap();
                    }
                }
                for reader in readers {
                    reader.await.unwrap();
                }
                let missed = (ROUNDS - KEPT) as u64;
                assert_eq!(slow.recv().await, Err(RecvError::Lagged(missed)));
                assert_eq!(slow.recv().await, Ok(ROUNDS - KEPT));
            });
        }
    });
}

/// What wrapping them could give is there already: the wake of any primitive takes the next slot.
#[test]
fn whoever_gets_a_reply_runs_before_those_who_were_queued_earlier() {
    within("next slot", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        runtime.block_on(async {
            let (told, mut waits) = mpsc::channel(1);
            let (reply, answer) = tokio::sync::oneshot::channel();
            let log = order.clone();
            let waiter = wakerun::spawn(async move {
                told.send(()).await.unwrap();
                answer.await.unwrap();
                log.lock().unwrap().push("the one with the reply");
            });
            waits.recv().await.unwrap();
            let log = order.clone();
            let sender = wakerun::spawn(async move {
                let bystander = wakerun::spawn(async move {
                    log.lock().unwrap().push("the bystander");
                });
                reply.send(()).unwrap();
                bystander.await.unwrap();
            });
            sender.await.unwrap();
            waiter.await.unwrap();
        });
        let order = order.lock().unwrap();
        assert_eq!(*order, ["the one with the reply", "the bystander"]);
    });
}
