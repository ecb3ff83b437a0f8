//! One receiver.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;
use wakerun::wake::block_on_thread;

use super::{count_wakes, model, model_at_least, poll_once};
use crate::error::{TryRecvError, TrySendError};
use crate::{mpmc, mpsc};

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

/// The same with one waker for all sleeps: the later ones find it in the cell, and go the short way.
#[test]
fn a_receiver_sleeps_again_with_the_same_waker() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(2);
        let sender = thread::spawn(move || {
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap();
        });
        block_on_thread(async {
            assert_eq!(rx.recv().await, Some(1));
            assert_eq!(rx.recv().await, Some(2));
            assert_eq!(rx.recv().await, None);
        });
        sender.join().unwrap();
    });
}

/// The short way to sleep against a sender that begins a line.
#[test]
fn a_receiver_that_sleeps_again_leaves_no_sender_in_line() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let sender = thread::spawn(move || {
            block_on_thread(async {
                for n in 0..3 {
                    tx.send(n).await.unwrap();
                }
            });
        });
        block_on_thread(async {
            for n in 0..3 {
                assert_eq!(rx.recv().await, Some(n));
            }
            assert_eq!(rx.recv().await, None);
        });
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
        let value = Arc::new(());
        let other = value.clone();
        let sender = thread::spawn(move || match tx.try_send(other) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => panic!("the channel is empty"),
        });
        drop(rx);
        sender.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
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

/// Grant by the receiver against a permit that is given back: the room of both is there.
#[test]
fn a_grant_beside_a_returned_permit_loses_no_room() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(2);
        tx.try_send(0).unwrap();
        let out = tx.clone().try_reserve_owned().ok().unwrap();
        let mut reserve = pin!(tx.reserve());
        assert!(poll_once(reserve.as_mut()).is_pending());
        let other = thread::spawn(move || drop(out));
        assert_eq!(rx.try_recv(), Ok(0));
        other.join().unwrap();
        let Poll::Ready(permit) = poll_once(reserve.as_mut()) else {
            panic!("the room is lost");
        };
        assert_eq!(tx.capacity(), 1);
        permit.unwrap().send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(tx.capacity(), 2);
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

/// Close against the last permit: the end that the receiver sees is after what that permit sent, though
/// closed, permits, senders and line are looked at one after the other.
#[test]
fn the_end_does_not_overtake_the_last_permit() {
    // Three preemptions: the look at the word, at the senders, and at the line, each with the sender in
    // between.
    model_at_least(3, || {
        let (tx, mut rx) = mpsc::channel(1);
        let sender = thread::spawn(move || match tx.try_reserve() {
            Ok(permit) => permit.send(1).is_ok(),
            Err(_) => false,
        });
        rx.close();
        let got = match rx.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Empty) => block_on_thread(rx.recv()),
            Err(TryRecvError::Disconnected) => None,
        };
        assert_eq!(got.is_some(), sender.join().unwrap());
    });
}

/// A sleep whose future is gone, and then `try_recv`: what that takes out of the line, or puts into the
/// ring, leaves the waker of the sleep to be woken.
#[test]
fn a_parked_receiver_is_woken_for_what_try_recv_deposits() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let (wakes, waker) = count_wakes();
        let permit = tx.try_reserve().unwrap();
        assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        let mut first = pin!(tx.send(1));
        let mut second = pin!(tx.send(2));
        assert!(poll_once(first.as_mut()).is_pending());
        assert!(poll_once(second.as_mut()).is_pending());
        let receiver = thread::spawn(move || {
            let got = rx.try_recv();
            (rx, got)
        });
        drop(permit);
        let (mut rx, got) = receiver.join().unwrap();
        assert_eq!(poll_once(first.as_mut()), Poll::Ready(Ok(())));
        let second = poll_once(second.as_mut());
        assert_eq!(second.is_ready(), got.is_ok());
        // Whichever was received, a message lies in the ring.
        assert!(wakes.load(Ordering::Relaxed) > 0);
        assert_eq!(rx.try_recv(), Ok(if got.is_ok() { 2 } else { 1 }));
    });
}

/// The first of the line leaves it with a waker whose destructor panics, and room comes: the next one's
/// message is deposited, and the receiver is woken for it.
#[test]
fn a_panicking_waker_drop_in_leave_line_loses_no_wake() {
    struct Bomb;

    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            // Past the panic hook, which would print each time.
            resume_unwind(Box::new("the drop of a waker panics"));
        }
    }

    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let tx = Arc::new(tx);
        let (wakes, waker) = count_wakes();
        let permit = tx.try_reserve().unwrap();
        assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        let own = Arc::clone(&tx);
        let mut first = Box::pin(async move { own.send(1).await });
        let bomb = Waker::from(Arc::new(Bomb));
        assert!(
            first
                .as_mut()
                .poll(&mut Context::from_waker(&bomb))
                .is_pending()
        );
        // The line has the last one.
        drop(bomb);
        let mut second = pin!(tx.send(2));
        assert!(poll_once(second.as_mut()).is_pending());
        let leaving = thread::spawn(move || {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(first)));
        });
        let _ = catch_unwind(AssertUnwindSafe(|| drop(permit)));
        leaving.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) > 0);
        assert_eq!(rx.try_recv(), Ok(2));
    });
}

/// Many at once against a claim and a receive: the word that the room is counted for may be older than the
/// head, even by a message that was sent and received meanwhile.
#[test]
fn send_many_counts_its_room_for_one_moment() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(2);
        let other = tx.clone();
        let many = thread::spawn(move || {
            let mut messages = VecDeque::from([1, 2]);
            block_on_thread(tx.send_many(&mut messages)).unwrap();
        });
        other
            .try_send(3)
            .map_or_else(|error| assert!(error.is_full()), drop);
        drop(other);
        let mut sum = 0;
        while let Some(n) = block_on_thread(rx.recv()) {
            sum += n;
        }
        assert!(sum == 3 || sum == 6);
        many.join().unwrap();
    });
}

/// Two messages wake two receivers, also if one of them is polled while the first message is being
/// written, so that it cannot take the second.
#[test]
fn two_messages_wake_two_receivers() {
    model(|| {
        let (tx, rx) = mpmc::channel(2);
        let receivers: [_; 2] = std::array::from_fn(|_| (Box::pin(rx.recv()), count_wakes()));
        let mut receivers = receivers.map(|(mut recv, (wakes, waker))| {
            let mut cx = Context::from_waker(&waker);
            assert!(recv.as_mut().poll(&mut cx).is_pending());
            (recv, wakes, waker, false)
        });
        let other = tx.clone();
        let sender = thread::spawn(move || other.try_send(1).unwrap());
        tx.try_send(2).unwrap();
        // Polls those that have been woken.
        let mut round = || {
            let mut polled = false;
            for (recv, wakes, waker, over) in &mut receivers {
                if !*over && wakes.swap(0, Ordering::Relaxed) > 0 {
                    polled = true;
                    *over = recv
                        .as_mut()
                        .poll(&mut Context::from_waker(waker))
                        .is_ready();
                }
            }
            polled
        };
        round();
        sender.join().unwrap();
        while round() {}
        assert!(receivers.iter().all(|(.., over)| *over));
    });
}

/// Building in place: a message that is not built after all wakes and is passed by.
#[test]
fn a_message_that_is_not_built_is_passed_by() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        let sender = thread::spawn(move || {
            let permit = tx.try_reserve().unwrap();
            let built = catch_unwind(AssertUnwindSafe(|| {
                permit.send_with(|| std::panic::resume_unwind(Box::new(())))
            }));
            assert!(built.is_err());
            block_on_thread(tx.send(1)).unwrap();
        });
        assert_eq!(block_on_thread(rx.recv()), Some(1));
        assert_eq!(block_on_thread(rx.recv()), None);
        sender.join().unwrap();
    });
}

/// Reading in place: the room comes back when the reference goes, to a sender that parks meanwhile.
#[test]
fn a_reference_that_goes_serves_the_line() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(1);
        tx.try_send(0).unwrap();
        let sender = thread::spawn(move || block_on_thread(tx.send(1)).unwrap());
        let message = rx.try_recv_ref().unwrap();
        assert_eq!(*message, 0);
        drop(message);
        sender.join().unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
    });
}
