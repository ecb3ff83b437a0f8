//! Many receivers.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use loom::thread;
use wakerun::wake::block_on_thread;

use super::{count_wakes, model, poll_once};
use crate::error::{TryRecvError, TrySendError};
use crate::mpmc;

/// Claim against the receivers' lock and PARKED: a receiver sleeps, and is woken.
#[test]
fn a_sleeping_receiver_gets_the_message_and_the_end() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let sender = thread::spawn(move || tx.try_send(7).unwrap());
        assert_eq!(block_on_thread(rx.recv()), Some(7));
        assert_eq!(block_on_thread(rx.recv()), None);
        sender.join().unwrap();
    });
}

/// Park against release: a sender waits for room that a receiver makes.
#[test]
fn a_waiting_sender_is_served() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        tx.try_send(0).unwrap();
        let sender = thread::spawn(move || block_on_thread(tx.send(1)).unwrap());
        for n in 0..2 {
            assert_eq!(block_on_thread(rx.recv()), Some(n));
        }
        sender.join().unwrap();
    });
}

/// A receiver that waits, one that is about to, and a sender: the one that comes has the message, or the
/// first that waits is woken for it.
#[test]
fn one_of_two_receivers_gets_the_message() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let (wakes, waker) = count_wakes();
        let mut waits = pin!(rx.recv());
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let sender = thread::spawn(move || {
            tx.try_send(7).unwrap();
            tx
        });
        let mut comes = pin!(rx.recv());
        let got = poll_once(comes.as_mut());
        let _tx = sender.join().unwrap();
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        match got {
            Poll::Ready(got) => {
                assert_eq!(got, Some(7));
                assert!(poll_once(waits.as_mut()).is_pending());
            }
            Poll::Pending => assert_eq!(poll_once(waits.as_mut()), Poll::Ready(Some(7))),
        }
    });
}

/// Two receivers take at the same time: neither the same message nor none.
#[test]
fn two_receives_take_two_messages() {
    model(|| {
        let (tx, rx) = mpmc::channel(2);
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        let other = rx.clone();
        let receiver = thread::spawn(move || other.try_recv().unwrap());
        let sum = rx.try_recv().unwrap() + receiver.join().unwrap();
        assert_eq!(sum, 3);
        assert_eq!(tx.capacity(), 2);
    });
}

/// A woken receiver goes against the claim that wakes it: the wake reaches the next one.
#[test]
fn a_receiver_that_goes_leaves_its_wake_to_the_next() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let mut first = Box::pin(rx.recv());
        assert!(poll_once(first.as_mut()).is_pending());
        let (wakes, waker) = count_wakes();
        let mut second = pin!(rx.recv());
        assert!(
            second
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let sender = thread::spawn(move || {
            tx.try_send(1).unwrap();
            tx
        });
        drop(first);
        let _tx = sender.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) > 0);
        assert_eq!(poll_once(second.as_mut()), Poll::Ready(Some(1)));
    });
}

/// A woken receiver comes too late and waits again, against the next claim.
#[test]
fn a_receiver_that_comes_too_late_is_woken_again() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let (wakes, waker) = count_wakes();
        let mut recv = pin!(rx.recv());
        let mut cx = Context::from_waker(&waker);
        assert!(recv.as_mut().poll(&mut cx).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(wakes.swap(0, Ordering::Relaxed), 1);
        let sender = thread::spawn(move || {
            tx.try_send(2).unwrap();
            tx
        });
        let got = recv.as_mut().poll(&mut cx);
        let _tx = sender.join().unwrap();
        match got {
            Poll::Ready(got) => assert_eq!(got, Some(2)),
            Poll::Pending => {
                assert!(wakes.load(Ordering::Relaxed) > 0);
                assert_eq!(poll_once(recv.as_mut()), Poll::Ready(Some(2)));
            }
        }
    });
}

/// A receiver that was woken for a message which another has taken waits again, with the waker that it left
/// in the line, against the next claim.
#[test]
fn a_receiver_that_was_woken_in_vain_is_woken_again() {
    model(|| {
        let (tx, rx) = mpmc::channel(2);
        let other = rx.clone();
        let sender = thread::spawn(move || {
            tx.try_send(1).unwrap();
            let taken = other.try_recv();
            tx.try_send(2).unwrap();
            taken
        });
        let got = block_on_thread(rx.recv());
        let taken = sender.join().unwrap();
        assert!(matches!(
            (got, taken),
            (Some(1), Err(TryRecvError::Empty)) | (Some(2), Ok(1))
        ));
    });
}

/// A receiver that was woken in vain waits again, against the end.
#[test]
fn a_receiver_that_was_woken_in_vain_is_told_of_the_end() {
    model(|| {
        let (tx, rx) = mpmc::channel(2);
        let other = rx.clone();
        let sender = thread::spawn(move || {
            tx.try_send(1).unwrap();
            other.try_recv()
        });
        let got = block_on_thread(rx.recv());
        let taken = sender.join().unwrap();
        assert!(matches!(
            (got, taken),
            (Some(1), Err(TryRecvError::Empty)) | (None, Ok(1))
        ));
    });
}

/// A woken receiver that finds its message, against a sender that enters the line for its room.
#[test]
fn a_woken_receiver_gives_its_room_to_a_sender_in_line() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let mut recv = Box::pin(rx.recv());
        assert!(poll_once(recv.as_mut()).is_pending());
        tx.try_send(1).unwrap();
        let sender = thread::spawn(move || block_on_thread(tx.send(2)).unwrap());
        assert_eq!(poll_once(recv.as_mut()), Poll::Ready(Some(1)));
        assert_eq!(block_on_thread(rx.recv()), Some(2));
        sender.join().unwrap();
    });
}

/// Close against receivers that wait and that are about to: all are told.
#[test]
fn a_close_tells_all_receivers() {
    model(|| {
        let (tx, rx) = mpmc::channel::<u8>(1);
        let (wakes, waker) = count_wakes();
        let mut waits = pin!(rx.recv());
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let closer = {
            let rx = rx.clone();
            thread::spawn(move || rx.close())
        };
        let (late, waker) = count_wakes();
        let mut comes = pin!(rx.recv());
        let got = comes.as_mut().poll(&mut Context::from_waker(&waker));
        closer.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) > 0);
        assert!(got == Poll::Ready(None) || late.load(Ordering::Relaxed) > 0);
        assert_eq!(poll_once(waits.as_mut()), Poll::Ready(None));
        drop(tx);
    });
}

/// The last permit of a closed channel against two receivers, one of which is about to wait.
#[test]
fn the_last_permit_ends_two_receivers() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let permit = tx.clone().try_reserve_owned().unwrap();
        rx.close();
        let (wakes, waker) = count_wakes();
        let mut waits = pin!(rx.recv());
        assert!(
            waits
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let holder = thread::spawn(move || drop(permit.send(5).unwrap()));
        let (late, waker) = count_wakes();
        let mut comes = pin!(rx.recv());
        let got = comes.as_mut().poll(&mut Context::from_waker(&waker));
        holder.join().unwrap();
        assert!(wakes.load(Ordering::Relaxed) > 0);
        let rest = poll_once(waits.as_mut());
        match got {
            Poll::Ready(got) => assert_eq!((got, rest), (Some(5), Poll::Ready(None))),
            Poll::Pending => {
                assert!(late.load(Ordering::Relaxed) > 0);
                assert_eq!(rest, Poll::Ready(Some(5)));
                assert_eq!(poll_once(comes.as_mut()), Poll::Ready(None));
            }
        }
        drop(tx);
    });
}

/// The last receiver's drop against a claim: what was accepted is dropped once.
#[test]
fn dropping_the_last_receiver_drops_what_was_accepted() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let value = Arc::new(());
        let message = value.clone();
        let sender = thread::spawn(move || match tx.try_send(message) {
            Ok(()) | Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) => panic!("the channel is empty"),
        });
        drop(rx);
        sender.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// Two receivers go at the same time: one of them is the last.
#[test]
fn of_two_receivers_one_is_the_last() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let value = Arc::new(());
        tx.try_send(value.clone()).unwrap();
        let other = rx.clone();
        let goes = thread::spawn(move || drop(other));
        drop(rx);
        goes.join().unwrap();
        assert!(tx.is_closed());
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

/// The last receiver against an upgrade: a channel that was closed stays closed.
#[test]
fn an_upgrade_after_the_last_receiver_fails() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let weak = rx.downgrade();
        let upgrades = thread::spawn(move || weak.upgrade());
        drop(rx);
        match upgrades.join().unwrap() {
            Some(rx) => {
                tx.try_send(1).unwrap();
                assert_eq!(rx.try_recv(), Ok(1));
            }
            None => assert!(tx.try_send(1).unwrap_err().is_closed()),
        }
    });
}

/// Eviction against a receive: the oldest message goes to one of the two, and the new one stays.
#[test]
fn a_forced_message_and_a_receive_share_the_oldest() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        tx.try_send(1).unwrap();
        let sender = thread::spawn(move || tx.force_send(2).unwrap());
        let got = rx.try_recv().unwrap();
        match sender.join().unwrap() {
            Some(evicted) => assert_eq!((evicted, got), (1, 2)),
            None => {
                assert_eq!(got, 1);
                assert_eq!(rx.try_recv(), Ok(2));
            }
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// Eviction sets WAITING for a moment: a sender that sees it goes to the line, and is not left there.
#[test]
fn a_sender_that_meets_an_eviction_is_served() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        tx.try_send(1).unwrap();
        let other = tx.clone();
        let sender = thread::spawn(move || {
            let (wakes, waker) = count_wakes();
            let mut send = Box::pin(async move { other.send(3).await });
            let sent = send.as_mut().poll(&mut Context::from_waker(&waker));
            (send, sent, wakes)
        });
        assert_eq!(tx.force_send(2), Ok(Some(1)));
        let (mut send, sent, wakes) = sender.join().unwrap();
        // There was never any room.
        assert!(sent.is_pending());
        assert_eq!(rx.try_recv(), Ok(2));
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(poll_once(send.as_mut()), Poll::Ready(Ok(())));
        assert_eq!(rx.try_recv(), Ok(3));
    });
}

/// Eviction against a receive, with a sender in line: it gets the room that the receive makes.
#[test]
fn a_receive_that_meets_an_eviction_serves_the_line() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        tx.try_send(1).unwrap();
        let (wakes, waker) = count_wakes();
        let mut send = pin!(tx.send(3));
        assert!(
            send.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let own = rx.clone();
        let receiver = thread::spawn(move || own.try_recv().unwrap());
        // The room of what is received is the waiting sender's; its message can make way in turn.
        let evicted = tx.force_send(2).unwrap().unwrap();
        let got = receiver.join().unwrap();
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(poll_once(send.as_mut()), Poll::Ready(Ok(())));
        let mut all = vec![evicted, got, rx.try_recv().unwrap()];
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}
