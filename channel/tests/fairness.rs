//! A task that is always answered at once gives way to others all the same: also when all that a closed
//! channel has to say is that it is closed.
#![cfg(not(wakerun_loom))]

mod common;

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use common::{on_drop, within};
use wakerun::Builder;
use wakerun_channel::{mpmc, mpsc, rendezvous, unbounded};

/// Far more than any budget.
const MANY: usize = 100_000;

/// Runs `$round` over and over in one task, until a task that was queued behind it has run.
macro_rules! gives_way {
    ($what:expr, $round:expr) => {{
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let others_ran = Arc::new(AtomicBool::new(false));
            let ran = others_ran.clone();
            let task = wakerun::spawn(async move {
                let mut rounds = 0;
                while !ran.load(Ordering::Relaxed) {
                    $round;
                    rounds += 1;
                    assert!(rounds < MANY, "{}: others never run", $what);
                }
            });
            wakerun::spawn(async move { others_ran.store(true, Ordering::Relaxed) });
            task.await.unwrap();
        });
    }};
}

macro_rules! bounded_channels_give_way {
    ($flavor:ident, $name:ident) => {
        #[test]
        fn $name() {
            within(stringify!($name), || {
                let closed = || {
                    let (tx, rx) = $flavor::channel(2);
                    drop(rx);
                    tx
                };
                let tx = closed();
                gives_way!("send", tx.send(1).await.unwrap_err());
                let tx = closed();
                gives_way!("send_or", tx.send_or(pending::<()>(), 1).await.unwrap_err());
                let tx = closed();
                gives_way!("send_many", {
                    tx.send_many(&mut VecDeque::from([1])).await.unwrap_err()
                });
                let tx = closed();
                gives_way!("reserve", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    tx.reserve().await.unwrap_err()
                });
                let tx = closed();
                gives_way!("reserve_many", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    tx.reserve_many(2).await.unwrap_err()
                });
                let tx = closed();
                gives_way!("reserve_owned", {
                    let tx: $flavor::Sender<u8> = tx.clone();
                    tx.reserve_owned().await.unwrap_err()
                });
                let tx = closed();
                gives_way!("closed", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    tx.closed().await
                });
                #[allow(unused_mut)]
                let (_, mut rx) = $flavor::channel::<u8>(2);
                gives_way!("recv", assert_eq!(rx.recv().await, None));
                #[allow(unused_mut)]
                let (_, mut rx) = $flavor::channel::<u8>(2);
                gives_way!("recv_many", rx.recv_many(&mut Vec::new(), 2).await);

                #[allow(unused_mut)]
                let (tx, mut rx) = $flavor::channel(2);
                gives_way!("messages", {
                    tx.send(1).await.unwrap();
                    rx.recv().await.unwrap()
                });

                let (tx, _rx) = $flavor::channel::<u8>(2);
                gives_way!("room that is given back", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    drop(tx.reserve().await.unwrap())
                });
                #[allow(unused_mut)]
                let (tx, mut rx) = $flavor::channel(2);
                gives_way!("reserved messages", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    tx.reserve().await.unwrap().send(1).unwrap();
                    rx.recv().await.unwrap()
                });
                #[allow(unused_mut)]
                let (tx, mut rx) = $flavor::channel(1);
                gives_way!("a line of one", {
                    let tx: &$flavor::Sender<u8> = &tx;
                    let permit = tx.try_reserve().unwrap();
                    let (sent, _) = futures_lite::future::zip(tx.send(1), async {
                        permit.send(0).unwrap();
                        rx.recv().await.unwrap();
                        rx.recv().await.unwrap()
                    })
                    .await;
                    sent.unwrap()
                });
            });
        }
    };
}

bounded_channels_give_way!(mpsc, the_only_receiver_and_its_senders_give_way);
bounded_channels_give_way!(mpmc, many_receivers_and_their_senders_give_way);

#[test]
fn messages_that_come_between_two_looks_of_a_poll_are_counted() {
    within("between two looks", || {
        let (tx, mut rx) = mpsc::channel(2);
        // A waker that is replaced sends a message: the receiver has found none, and looks once more.
        let mut poll = move || {
            let tx = tx.clone();
            let waker = on_drop(move || {
                let _ = tx.try_send(1);
            });
            rx.poll_recv(&mut Context::from_waker(&waker))
        };
        assert!(poll().is_pending(), "there is no waker to be replaced");
        gives_way!("recv", {
            poll_fn(|cx| match poll() {
                Poll::Ready(message) => Poll::Ready(message),
                Poll::Pending => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            })
            .await
            .unwrap()
        });
    });
}

#[test]
fn channels_without_a_queue_give_way() {
    within("rendezvous", || {
        let (tx, rx) = rendezvous::channel();
        drop(rx);
        gives_way!("send", tx.send(1).await.unwrap_err());
        let (tx, rx) = rendezvous::channel();
        drop(rx);
        gives_way!("send_or", tx.send_or(pending::<()>(), 1).await.unwrap_err());
        let (_, rx) = rendezvous::channel::<u8>();
        gives_way!("recv", assert_eq!(rx.recv().await, None));
    });
}

#[test]
fn channels_without_a_bound_give_way() {
    within("unbounded", || {
        let (tx, rx) = unbounded::channel::<u8>();
        drop(rx);
        gives_way!("closed", tx.closed().await);
        let (_, rx) = unbounded::channel::<u8>();
        gives_way!("recv", assert_eq!(rx.recv().await, None));
        let (tx, rx) = unbounded::channel();
        gives_way!("messages", {
            tx.send(1).unwrap();
            rx.recv().await.unwrap()
        });
    });
}
