//! A receiver that always finds messages can be stopped: in a task, and in the future of each `block_on`.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::within;
use wakerun::{Builder, Runtime};
use wakerun_channel::error::RecvTimeoutError;
use wakerun_channel::{mpmc, mpsc};

/// Senders that keep a channel full until the flag is set.
fn flood(stop: &Arc<AtomicBool>, tx: mpsc::Sender<u8>) -> std::thread::JoinHandle<()> {
    let stop = Arc::clone(stop);
    std::thread::spawn(
        move || {
            while !stop.load(Ordering::SeqCst) && tx.blocking_send(0).is_ok() {}
        },
    )
}

fn everywhere<F>(what: &str, f: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    within(&format!("{what}, workers, main"), move || {
        Runtime::new().unwrap().block_on(f());
    });
    within(&format!("{what}, current thread, main"), move || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(f());
    });
    within(&format!("{what}, task"), move || {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(runtime.spawn(f())).unwrap();
    });
}

#[test]
fn recv_or_looks_at_the_stop_first() {
    everywhere("recv_or", || async {
        let (tx, mut rx) = mpsc::channel(4);
        let over = Arc::new(AtomicBool::new(false));
        let sender = flood(&over, tx);
        let mut stop = pin!(wakerun::time::sleep(Duration::from_millis(20)));
        while rx.recv_or(stop.as_mut()).await.is_ok() {
            std::thread::sleep(Duration::from_micros(50));
        }
        over.store(true, Ordering::SeqCst);
        drop(rx);
        sender.join().unwrap();
    });
}

#[test]
fn a_timeout_around_a_loop_of_receives_fires() {
    everywhere("timeout", || async {
        let (tx, mut rx) = mpsc::channel(4);
        let over = Arc::new(AtomicBool::new(false));
        let sender = flood(&over, tx);
        let receiving = async {
            while rx.recv().await.is_some() {
                std::thread::sleep(Duration::from_micros(50));
            }
        };
        let ended = wakerun::time::timeout(Duration::from_millis(20), receiving).await;
        assert!(ended.is_err(), "the channel does not end");
        over.store(true, Ordering::SeqCst);
        drop(rx);
        sender.join().unwrap();
    });
}

#[test]
fn a_message_that_is_there_wins_against_a_time_limit_and_not_against_a_stop() {
    wakerun::block_on(async {
        let (tx, rx) = mpmc::channel(1);
        tx.send(1).await.unwrap();
        let stopped = rx.recv_or(std::future::ready(())).await;
        assert_eq!(stopped, Err(RecvTimeoutError::Timeout));
        assert_eq!(rx.recv_timeout(Duration::ZERO).await, Ok(1));
        let none = rx.recv_timeout(Duration::ZERO).await;
        assert_eq!(none, Err(RecvTimeoutError::Timeout));
    });
}
