//! Grants that their task does not come for, at the edges: whoever waits behind them is served.
#![cfg(not(wakerun_loom))]

mod common;

use std::future::{Future, poll_fn};
use std::task::Poll;

use common::{runtimes, within};
use wakerun_channel::mpsc::channel;

#[test]
fn a_grant_in_the_last_operation_of_a_poll_lapses_too() {
    within("the last operation", || {
        for (_, runtime) in runtimes() {
            let (tx, mut rx) = channel(1);
            let task = runtime.spawn(async move {
                let mut kept = Box::pin(tx.reserve());
                poll_fn(|cx| {
                    while wakerun::wake::spend_budget() {}
                    // It has got the room, but must not say so before the next poll.
                    assert!(kept.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                tx.reserve().await.unwrap().send(1).unwrap();
                drop(kept);
            });
            assert_eq!(runtime.block_on(rx.recv()), Some(1));
            runtime.block_on(task).unwrap();
        }
    });
}
