//! The future in `block_on` waits in channels as tasks do: what it is granted and does not come for lapses.

mod common;

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use common::within;
use wakerun::{Builder, Runtime};
use wakerun_channel::{mpmc, mpsc};

/// Runs `f` with each kind of `block_on`.
fn in_each_block_on<F: Future>(what: &str, f: impl Fn() -> F + Copy + Send + 'static) {
    within(&format!("{what}, wakerun::block_on"), move || {
        wakerun::block_on(async { drop(f().await) });
    });
    within(&format!("{what}, current thread"), move || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { drop(f().await) });
    });
    within(&format!("{what}, workers"), move || {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async { drop(f().await) });
    });
    within(&format!("{what}, thread"), move || {
        wakerun::wake::block_on_thread(async { drop(f().await) });
    });
}

/// Polls once, and goes on whatever comes of it.
async fn glance<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx: &mut Context<'_>| Poll::Ready(future.as_mut().poll(cx))).await
}

#[test]
fn a_reservation_that_is_not_polled_does_not_lock_out_a_send_of_the_same_future() {
    in_each_block_on("futurelock", || async {
        let (tx, mut rx) = mpsc::channel(1);
        tx.send(0).await.unwrap();
        let mut reserve = Box::pin(tx.reserve());
        assert!(glance(reserve.as_mut()).await.is_pending());
        let thread = std::thread::spawn(move || {
            let mut got = Vec::new();
            while let Some(message) = rx.blocking_recv() {
                got.push(message);
            }
            got
        });
        // The room that the receiver makes goes to the reservation first, which nobody polls here.
        tx.send(1).await.unwrap();
        reserve.as_mut().await.unwrap().send(2).unwrap();
        drop(reserve);
        drop(tx);
        assert_eq!(thread.join().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn a_receiver_that_is_not_polled_does_not_keep_a_message_from_another_one() {
    in_each_block_on("futurelock, recv", || async {
        let (tx, rx) = mpmc::channel(1);
        let other = rx.clone();
        let mut first = pin!(rx.recv());
        assert!(glance(first.as_mut()).await.is_pending());
        let thread = std::thread::spawn(move || tx.blocking_send(1).unwrap());
        // The first in line is woken for the message, and nobody polls it.
        assert_eq!(other.recv().await, Some(1));
        thread.join().unwrap();
        assert_eq!(first.await, None);
    });
}
