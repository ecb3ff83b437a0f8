//! Messages that are received where they are.

use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use crate::common::{Ledger, everywhere, noop, on_wake, poll_once, polled};
use crate::each::auto_traits::{IsSend, IsSync, No, assert_trait};
use crate::each::full;
use crate::flavor::error::TryRecvError;
use crate::flavor::{RecvRef, Sender, channel};

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[test]
fn a_message_is_looked_at_and_its_room_comes_back() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let task = from_a_thread(tx, 100);
        let mut next = 0;
        while let Some(mut message) = rx.recv_ref().await {
            assert_eq!(message[999], next);
            message[0] += 1;
            assert_eq!(message[0], next + 1);
            next += 1;
        }
        assert_eq!(next, 100);
        task.join().unwrap();
    });
}

/// A thread that sends so many messages.
fn from_a_thread(tx: Sender<[usize; 1000]>, count: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for n in 0..count {
            futures_lite::future::block_on(tx.send([n; 1000])).unwrap();
        }
    })
}

#[test]
fn the_room_is_taken_until_the_reference_goes() {
    let (tx, mut rx) = full(1);
    let mut send = polled(tx.send(1));
    send.pending();
    let message = rx.try_recv_ref().unwrap();
    assert_eq!(*message, 0);
    send.pending();
    assert_eq!(tx.len(), 1);
    drop(message);
    assert_eq!(send.woken(), Ok(()));
    assert_eq!(rx.try_recv_ref().unwrap().into_inner(), 1);
    assert!(matches!(rx.try_recv_ref(), Err(TryRecvError::Empty)));
    drop(send);
    drop(tx);
    assert!(matches!(rx.try_recv_ref(), Err(TryRecvError::Disconnected)));
}

#[test]
fn a_reference_that_is_leaked_has_not_received() {
    let ledger = Ledger::new();
    let (tx, mut rx) = channel(2);
    tx.try_send(ledger.make()).unwrap();
    tx.try_send(ledger.make()).unwrap();
    for _ in 0..3 {
        let message = rx.try_recv_ref().unwrap();
        assert_eq!(message.id, 0);
        mem::forget(message);
    }
    assert_eq!(tx.capacity(), 0);
    for id in 0..2 {
        assert_eq!(rx.try_recv().unwrap().id, id);
    }
    assert_eq!(tx.capacity(), 2);
    ledger.assert_all_dropped_once();
}

#[test]
fn a_message_that_panics_when_it_is_dropped_gives_its_room() {
    let ledger = Ledger::new();
    let (tx, mut rx) = channel(1);
    tx.try_send(ledger.make_panicking()).unwrap();
    let mut send = polled(tx.send(ledger.make()));
    send.pending();
    let message = rx.try_recv_ref().unwrap();
    assert!(panics(move || drop(message)));
    assert!(send.woken().is_ok());
    drop(send);
    assert_eq!(rx.try_recv_ref().unwrap().id, 1);
    assert_eq!(tx.capacity(), 1);
    ledger.assert_all_dropped_once();
}

/// Sends from its destructor.
struct Again(Option<Sender<Self>>);

impl Drop for Again {
    fn drop(&mut self) {
        if let Some(tx) = self.0.take() {
            // Its own room is still taken.
            assert_eq!(tx.capacity(), 1);
            assert!(tx.try_send(Self(None)).is_ok());
        }
    }
}

#[test]
fn a_message_may_use_the_channel_when_it_is_dropped() {
    let (tx, mut rx) = channel(2);
    tx.try_send(Again(Some(tx.clone()))).ok().unwrap();
    drop(rx.try_recv_ref().unwrap());
    assert_eq!(tx.len(), 1);
    assert!(rx.try_recv_ref().unwrap().0.is_none());
    assert_eq!(tx.len(), 0);
}

#[test]
fn a_message_is_received_out_of_the_line() {
    // Permits hold the capacity, and the queue is empty.
    for leak in [false, true] {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(1);
        let permit = tx.try_reserve().unwrap();
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        let message = rx.try_recv_ref().unwrap();
        assert_eq!(message.id, 0);
        assert!(send.woken().is_ok());
        if leak {
            mem::forget(message);
            assert_eq!(rx.try_recv_ref().unwrap().into_inner().id, 0);
        } else {
            drop(message);
        }
        permit.send(ledger.make()).unwrap();
        assert_eq!(rx.try_recv().unwrap().id, 1);
        drop(send);
        assert_eq!(tx.capacity(), 1);
        ledger.assert_all_dropped_once();
    }
}

#[test]
fn a_message_that_is_withdrawn_while_it_is_looked_at() {
    for way in 0..3 {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(1);
        tx.try_send(ledger.make()).unwrap();
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        drop(rx.try_recv().unwrap());
        let message = rx.try_recv_ref().unwrap();
        assert_eq!(message.id, 1);
        drop(send);
        assert_eq!(message.id, 1);
        match way {
            0 => drop(message),
            1 => assert_eq!(message.into_inner().id, 1),
            _ => mem::forget(message),
        }
        assert!(matches!(rx.try_recv(), Err(TryRecvError::Empty)));
        assert_eq!(tx.capacity(), 1);
        ledger.assert_all_dropped_once();
    }
}

#[test]
fn what_was_taken_when_a_waker_panicked_is_looked_at_next() {
    let (tx, mut rx) = full(1);
    let bad = on_wake(|| panic!("a wake panics"));
    let mut send = Box::pin(tx.send(1));
    assert!(poll_once(send.as_mut(), &bad).is_pending());
    assert!(panics(|| _ = rx.try_recv()));
    let first = rx.try_recv_ref().unwrap();
    assert_eq!(*first, 0);
    drop(first);
    assert_eq!(rx.try_recv_ref().map(|message| *message), Ok(1));
    drop(send);
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn a_receive_that_is_dropped_or_polled_loses_nothing() {
    let (tx, mut rx) = channel(1);
    let mut recv = polled(rx.recv_ref());
    assert!(recv.poll().is_pending());
    tx.try_send(1).unwrap();
    drop(recv);
    let mut cx = std::task::Context::from_waker(noop());
    match rx.poll_recv_ref(&mut cx) {
        Poll::Ready(Some(message)) => assert_eq!(*message, 1),
        other => panic!("{other:?}"),
    }
    assert!(rx.poll_recv_ref(&mut cx).is_pending());
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn blocks_are_left_by_references_too() {
    let (tx, mut rx) = channel(5000);
    let shared = Arc::new(());
    for n in 0..20_000_usize {
        tx.try_send((n, shared.clone())).unwrap();
        if n >= 3000 {
            let message = rx.try_recv_ref().unwrap();
            assert_eq!(message.0, n - 3000);
        }
    }
    drop(rx);
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn a_reference_is_as_shareable_as_its_message() {
    assert_trait! { IsSend is true for RecvRef<'static, Cell<u8>> }
    assert_trait! { IsSync is false for RecvRef<'static, Cell<u8>> }
    assert_trait! { IsSync is true for RecvRef<'static, u8> }
}
