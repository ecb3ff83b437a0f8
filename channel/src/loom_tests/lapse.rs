//! Grants and wakes that a task does not come for.
//!
//! One thread of each model polls a task. A poll of it that does nothing passes its futures by.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use loom::thread;
use wakerun::wake::ModelTask;

use super::{count_wakes, model, poll_once};
use crate::error::SendError;
use crate::{mpmc, mpsc};

type Reserving = Pin<Box<mpsc::future::ReserveOwned<u8>>>;

/// A full channel, whose line the reservation of a task heads.
fn with_head() -> (mpsc::Sender<u8>, mpsc::Receiver<u8>, ModelTask, Reserving) {
    let (tx, rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let task = ModelTask::new();
    let mut head = Box::pin(tx.clone().reserve_owned());
    assert!(task.poll(|cx| head.as_mut().poll(cx)).is_pending());
    (tx, rx, task, head)
}

/// Grant against lapse against claim: the room goes to the head or to the next, and is not lost.
#[test]
fn a_grant_is_claimed_or_goes_on() {
    model(|| {
        let (tx, mut rx, task, mut head) = with_head();
        let mut next = pin!(tx.send(1));
        assert!(poll_once(next.as_mut()).is_pending());
        let receiver = thread::spawn(move || {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        });
        task.poll(|_| ());
        let claimed = task.poll(|cx| head.as_mut().poll(cx));
        let mut rx = receiver.join().unwrap();
        let claimed = match claimed {
            Poll::Pending => task.poll(|cx| head.as_mut().poll(cx)),
            claimed => claimed,
        };
        match claimed {
            Poll::Ready(permit) => {
                assert!(poll_once(next.as_mut()).is_pending());
                drop(permit.unwrap());
                assert_eq!(poll_once(next.as_mut()), Poll::Ready(Ok(())));
                assert_eq!(rx.try_recv(), Ok(1));
            }
            Poll::Pending => {
                // It lapsed, and waits again behind a message that took its room.
                assert_eq!(poll_once(next.as_mut()), Poll::Ready(Ok(())));
                assert_eq!(rx.try_recv(), Ok(1));
                let permit = task.poll(|cx| head.as_mut().poll(cx));
                assert!(permit.is_ready());
            }
        }
        assert_eq!(tx.capacity(), 1);
    });
}

/// Grant against the polls that pass it by, no more of them than the task is woken for: the next one has the room then.
#[test]
fn a_grant_that_is_not_claimed_goes_on() {
    model(|| {
        let (tx, mut rx, task, mut head) = with_head();
        let mut next = pin!(tx.send(1));
        assert!(poll_once(next.as_mut()).is_pending());
        let receiver = thread::spawn(move || {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        });
        task.poll(|_| ());
        task.poll_while_woken();
        let mut rx = receiver.join().unwrap();
        task.poll_while_woken();
        assert_eq!(poll_once(next.as_mut()), Poll::Ready(Ok(())));
        assert!(task.poll(|cx| head.as_mut().poll(cx)).is_pending());
        assert_eq!(rx.try_recv(), Ok(1));
        assert!(task.poll(|cx| head.as_mut().poll(cx)).is_ready());
    });
}

/// Lapse against the drop of the future: the room reaches the next in line once.
#[test]
fn a_granted_future_that_goes_as_it_lapses_leaves_its_room_to_the_next() {
    model(|| {
        let (tx, mut rx, task, head) = with_head();
        let (wakes, waker) = count_wakes();
        let mut next = pin!(tx.reserve());
        assert!(
            next.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(rx.try_recv(), Ok(0));
        let goes = thread::spawn(move || drop(head));
        task.poll(|_| ());
        goes.join().unwrap();
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        let Poll::Ready(permit) = poll_once(next.as_mut()) else {
            panic!("the room is lost");
        };
        assert_eq!(tx.capacity(), 0);
        drop(permit.unwrap());
        assert_eq!(tx.capacity(), 1);
    });
}

/// A due grant that nobody waits for, against its claim and a sender that comes: one of them has it.
#[test]
fn a_due_grant_is_claimed_or_taken() {
    model(|| {
        let (tx, mut rx, task, mut head) = with_head();
        assert_eq!(rx.try_recv(), Ok(0));
        task.poll(|_| ());
        let other = tx.clone();
        let sender = thread::spawn(move || other.try_send(1).is_ok());
        let claimed = task.poll(|cx| head.as_mut().poll(cx));
        let sent = sender.join().unwrap();
        assert_ne!(claimed.is_ready(), sent);
        assert_eq!(rx.try_recv().is_ok(), sent);
        drop((claimed, head));
        assert_eq!(tx.capacity(), 1);
    });
}

/// Lapse against the close: the reservation ends with a permit or closed, and then the channel does.
#[test]
fn a_close_and_a_lapse_leave_nothing_behind() {
    model(|| {
        let (tx, mut rx, task, mut head) = with_head();
        let mut next = Box::pin(tx.send(1));
        assert!(poll_once(next.as_mut()).is_pending());
        assert_eq!(rx.try_recv(), Ok(0));
        let (wakes, waker) = count_wakes();
        let closer = thread::spawn(move || {
            rx.close();
            let got = rx.poll_recv(&mut Context::from_waker(&waker));
            (rx, got)
        });
        task.poll(|_| ());
        let claimed = task.poll(|cx| head.as_mut().poll(cx));
        drop(claimed);
        drop(head);
        let (mut rx, got) = closer.join().unwrap();
        let sent = match poll_once(next.as_mut()) {
            Poll::Ready(sent) => sent,
            Poll::Pending => panic!("a send waits for a closed channel"),
        };
        let got = match got {
            Poll::Ready(got) => got,
            Poll::Pending => {
                assert!(wakes.load(Ordering::Relaxed) > 0);
                rx.try_recv().ok()
            }
        };
        assert_eq!(got.ok_or(SendError(1)).map(|_| ()), sent);
        assert!(rx.try_recv().is_err());
    });
}

/// The end of a task against a grant to what it leaves behind.
#[test]
fn a_grant_to_a_task_that_ends_goes_on() {
    model(|| {
        let (tx, mut rx, task, mut head) = with_head();
        let mut next = pin!(tx.send(1));
        assert!(poll_once(next.as_mut()).is_pending());
        let receiver = thread::spawn(move || {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        });
        task.end();
        let mut rx = receiver.join().unwrap();
        assert_eq!(poll_once(next.as_mut()), Poll::Ready(Ok(())));
        assert!(poll_once(head.as_mut()).is_pending());
        assert_eq!(rx.try_recv(), Ok(1));
        assert!(poll_once(head.as_mut()).is_ready());
    });
}

/// A receiver's wake against the polls that pass it by, no more of them than the task is woken for: the next one has
/// it then.
#[test]
fn a_wake_that_is_not_used_goes_on() {
    model(|| {
        let (tx, rx) = mpmc::channel(1);
        let task = ModelTask::new();
        let mut head = pin!(rx.recv());
        assert!(task.poll(|cx| head.as_mut().poll(cx)).is_pending());
        let (wakes, waker) = count_wakes();
        let mut next = pin!(rx.recv());
        assert!(
            next.as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let sender = thread::spawn(move || {
            tx.try_send(1).unwrap();
            tx
        });
        task.poll(|_| ());
        task.poll_while_woken();
        let _tx = sender.join().unwrap();
        task.poll_while_woken();
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(poll_once(next.as_mut()), Poll::Ready(Some(1)));
        assert!(task.poll(|cx| head.as_mut().poll(cx)).is_pending());
    });
}
