//! Blocks of slots that come and go. In models a block has two slots, and a channel of capacity 3 is a large one.

use loom::thread;

use super::{model, poll_once};
use crate::error::TryRecvError;
use crate::{mpmc, mpsc};

/// Two claimants need the same block, and the receiver looks for it: one is put there.
#[test]
fn two_senders_put_one_block() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(3);
        let other = tx.clone();
        let sender = thread::spawn(move || other.try_send(1).unwrap());
        tx.try_send(2).unwrap();
        let mut sum = rx.try_recv().unwrap();
        sender.join().unwrap();
        sum += rx.try_recv().unwrap();
        assert_eq!(sum, 3);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    });
}

/// The receiver leaves a block while a sender comes to the next one, and puts what was left to use again.
#[test]
fn a_block_that_is_left_serves_again() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(3);
        for n in 0..2 {
            tx.try_send(n).unwrap();
        }
        let sender = thread::spawn(move || {
            for n in 2..5 {
                if tx.try_send(n).is_err() {
                    return n;
                }
            }
            5
        });
        let mut next = 0;
        while next < 3 && rx.try_recv() == Ok(next) {
            next += 1;
        }
        let sent = sender.join().unwrap();
        while next < sent {
            assert_eq!(rx.try_recv(), Ok(next));
            next += 1;
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// All laps round: who claims a position of the next lap finds the old block gone.
#[test]
fn a_full_directory_goes_round() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(3);
        // The directory has four blocks of two; the tail is at the last position of them, the queue full.
        for n in 0..7 {
            if n >= 3 {
                assert_eq!(rx.try_recv(), Ok(n - 3));
            }
            tx.try_send(n).unwrap();
        }
        let sender = thread::spawn(move || {
            let mut sent = 7;
            while sent < 9 && tx.try_send(sent).is_ok() {
                sent += 1;
            }
            sent
        });
        for n in 4..6 {
            assert_eq!(rx.try_recv(), Ok(n));
        }
        let sent = sender.join().unwrap();
        for n in 6..sent {
            assert_eq!(rx.try_recv(), Ok(n));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

/// A message is withdrawn while the receiver takes it and leaves its block.
#[test]
fn a_withdrawal_finds_the_block_or_the_head_beyond_it() {
    model(|| {
        let (tx, mut rx) = mpsc::channel(3);
        for n in 0..3 {
            tx.try_send(n).unwrap();
        }
        let mut send = Box::pin(tx.send(3));
        assert!(poll_once(send.as_mut()).is_pending());
        for n in 0..3 {
            assert_eq!(rx.try_recv(), Ok(n));
        }
        // The last of its block.
        let receiver = thread::spawn(move || {
            let got = rx.try_recv();
            (got, rx)
        });
        drop(send);
        let (got, mut rx) = receiver.join().unwrap();
        assert!(matches!(got, Ok(3) | Err(TryRecvError::Empty)));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(tx.capacity(), 3);
    });
}

/// Of many receivers, one leaves the block that another one looks for a message in.
#[test]
fn receivers_leave_blocks_under_their_lock() {
    model(|| {
        let (tx, rx) = mpmc::channel(3);
        tx.try_send(0).unwrap();
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        let other = rx.clone();
        let receiver = thread::spawn(move || other.try_recv().unwrap());
        let mut sum = rx.try_recv().unwrap();
        sum += receiver.join().unwrap();
        assert_eq!(sum, 1);
        assert_eq!(rx.try_recv(), Ok(2));
        drop(tx);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}
