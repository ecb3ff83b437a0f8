//! Models of the channel's handshakes, through the public interface, with plain threads as tasks.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use loom::thread;
use wakerun::wake::block_on_thread;

use crate::error::{TryRecvError, TrySendError};
use crate::mpsc;

/// As many preemptions as the environment says, or two: enough for each pair of steps that meet.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(f);
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Claim against park, PARKED against acknowledge: the receiver sleeps and is woken.
#[test]
fn a_sleeping_receiver_gets_the_message_and_the_end() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let sender = thread::spawn(move || {
            tx.try_send(7).unwrap();
        });
        assert_eq!(block_on_thread(rx.recv()), Some(7));
        assert_eq!(block_on_thread(rx.recv()), None);
        sender.join().unwrap();
    });
}

/// Park against release: a sender waits for room that the receiver makes.
#[test]
fn a_waiting_sender_is_served() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let sender = thread::spawn(move || {
            for n in 0..3 {
                block_on_thread(tx.send(n)).unwrap();
            }
        });
        for n in 0..3 {
            assert_eq!(block_on_thread(rx.recv()), Some(n));
        }
        sender.join().unwrap();
    });
}

/// The fence of a receive that does not sleep: the parked sender is seen by `try_recv`'s own fence.
#[test]
fn a_receive_without_sleep_serves_the_line() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.try_send(0).unwrap();
        let sender = thread::spawn(move || block_on_thread(tx.send(1)).unwrap());
        assert_eq!(rx.try_recv(), Ok(0));
        // Nothing more is received until the sender is through.
        sender.join().unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
    });
}

#[test]
fn two_senders_and_a_receiver_lose_nothing() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let senders: Vec<_> = (1..=2)
            .map(|n| {
                let tx = tx.clone();
                thread::spawn(move || block_on_thread(tx.send(n)).unwrap())
            })
            .collect();
        drop(tx);
        let mut sum = 0;
        while let Some(n) = block_on_thread(rx.recv()) {
            sum += n;
        }
        assert_eq!(sum, 3);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

/// Close against park: each message is received or comes back.
#[test]
fn closing_gives_waiting_messages_back() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.try_send(0).unwrap();
        let sender = thread::spawn(move || block_on_thread(tx.send(1)).map_err(|e| e.0));
        rx.close();
        let mut got = Vec::new();
        while let Some(n) = block_on_thread(rx.recv()) {
            got.push(n);
        }
        match sender.join().unwrap() {
            Ok(()) => assert_eq!(got, [0, 1]),
            Err(back) => {
                assert_eq!(back, 1);
                assert_eq!(got, [0]);
            }
        }
    });
}

/// The receiver's drop against a claim: what was accepted is dropped once.
#[test]
fn dropping_the_receiver_drops_what_was_accepted() {
    model(|| {
        let (tx, rx) = mpsc::channel(1);
        let value = std::sync::Arc::new(());
        let other = value.clone();
        let sender = thread::spawn(move || match tx.try_send(other) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => panic!("the channel is empty"),
        });
        drop(rx);
        sender.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&value), 1);
    });
}

/// Permit against park: room that comes back from a permit reaches the line.
#[test]
fn a_returned_permit_serves_the_line() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let other = tx.clone();
        let sender = thread::spawn(move || block_on_thread(other.send(1)).unwrap());
        if let Ok(permit) = tx.try_reserve() {
            drop(permit);
        }
        assert_eq!(block_on_thread(rx.recv()), Some(1));
        sender.join().unwrap();
    });
}

/// Permit against the end: the last permit of a closed channel ends a sleeping receiver.
#[test]
fn a_returned_permit_ends_a_closed_channel() {
    model(|| {
        let (tx, mut rx) = mpsc::channel::<u8>(1);
        let sender = thread::spawn(move || match tx.try_reserve() {
            Ok(permit) => drop(permit),
            Err(error) => assert!(error.is_closed()),
        });
        rx.close();
        assert_eq!(block_on_thread(rx.recv()), None);
        sender.join().unwrap();
    });
}

/// Grant against claim: a reservation is granted by the receiver's exclusive round and used at once.
#[test]
fn a_grant_can_be_used_before_its_round_is_over() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.try_send(0).unwrap();
        let sender = thread::spawn(move || {
            let mut reserve = pin!(tx.reserve());
            // Polled once more without having been woken, so that the grant may be seen as early as
            // it can be.
            let mut permit = poll_once(reserve.as_mut());
            if permit.is_pending() {
                permit = poll_once(reserve.as_mut());
            }
            let permit = match permit {
                Poll::Ready(permit) => permit,
                Poll::Pending => block_on_thread(reserve),
            };
            permit.unwrap().send(1).unwrap();
        });
        assert_eq!(block_on_thread(rx.recv()), Some(0));
        assert_eq!(block_on_thread(rx.recv()), Some(1));
        assert_eq!(block_on_thread(rx.recv()), None);
        sender.join().unwrap();
    });
}

/// Deposit against withdraw: the message is received or discarded, and its room comes back.
#[test]
fn a_withdrawn_message_is_received_or_discarded() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.try_send(0).unwrap();
        let other = tx.clone();
        let sender = thread::spawn(move || {
            let mut send = pin!(other.send(1));
            matches!(poll_once(send.as_mut()), Poll::Ready(Ok(())))
        });
        assert_eq!(rx.try_recv(), Ok(0));
        let got = rx.try_recv();
        let sent = sender.join().unwrap();
        let rest = rx.try_recv();
        if sent {
            assert!(got == Ok(1) || rest == Ok(1));
        } else {
            assert!(got == Err(TryRecvError::Empty) || rest == Err(TryRecvError::Empty));
        }
        tx.try_send(2).unwrap();
        assert_eq!(rx.try_recv(), Ok(2));
    });
}

/// Last sender against upgrade: an end that was seen is final.
#[test]
fn an_upgrade_after_the_end_fails() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let weak = tx.downgrade();
        let other = thread::spawn(move || weak.upgrade().is_some_and(|tx| tx.try_send(1).is_ok()));
        drop(tx);
        let first = block_on_thread(rx.recv());
        let sent = other.join().unwrap();
        assert_eq!(first.is_some(), sent);
        assert_eq!(block_on_thread(rx.recv()), None);
    });
}
