//! Many receivers: how they come and go, and what the last one leaves behind.

use std::sync::Arc;
use std::task::Context;

use crate::common::{CAPACITIES, Ledger, everywhere, noop, polled, settle};
use crate::each::auto_traits::{IsSend, IsSync, IsUnpin, No, assert_trait};
use crate::flavor::error::{SendError, TryRecvError, TrySendError};
use crate::flavor::future::{Recv, RecvMany};
use crate::flavor::{Receiver, WeakReceiver, channel};

#[test]
fn each_message_goes_to_one_receiver() {
    everywhere(|capacity| async move {
        let (tx, a) = channel(capacity);
        let b = a.clone();
        let mut next = 0;
        for i in 0..10 * capacity {
            tx.try_send(i).unwrap();
            if tx.len() == capacity {
                while !tx.is_empty() {
                    let rx = if next % 3 == 0 { &a } else { &b };
                    assert_eq!(rx.try_recv(), Ok(next));
                    next += 1;
                    settle().await;
                }
            }
        }
        assert_eq!(
            (a.try_recv(), b.try_recv()),
            (Err(TryRecvError::Empty), Err(TryRecvError::Empty))
        );
    });
}

#[test]
fn receivers_are_counted() {
    let (tx, rx) = channel::<u8>(1);
    let weak = rx.downgrade();
    let other = rx.clone();
    assert!(rx.same_channel(&other) && !rx.same_channel(&channel::<u8>(1).1));
    assert_eq!((rx.strong_count(), rx.weak_count()), (2, 1));
    assert_eq!((weak.strong_count(), weak.weak_count()), (2, 1));
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (1, 0));
    let up = weak.upgrade().unwrap();
    assert_eq!((rx.strong_count(), rx.weak_count()), (3, 1));
    let second = weak.clone();
    drop((weak, up, other));
    assert_eq!((rx.strong_count(), rx.weak_count()), (1, 1));
    drop((rx, second));
    assert!(tx.is_closed());
}

#[test]
fn a_weak_receiver_neither_holds_open_nor_reopens() {
    // B084, on the other side
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        let weak = rx.downgrade();
        let up = weak.upgrade().unwrap();
        drop(rx);
        tx.try_send(ledger.make()).unwrap();
        assert!(!tx.is_closed());
        drop(up);
        assert!(weak.upgrade().is_none() && tx.is_closed());
        ledger.assert_all_dropped_once();
        assert!(matches!(
            tx.try_send(ledger.make()),
            Err(TrySendError::Closed(_))
        ));
        assert!(weak.upgrade().is_none());
        drop(tx);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn the_queue_goes_with_the_last_receiver_and_not_before() {
    // B130, in its sequential form
    for capacity in CAPACITIES {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let others: Vec<_> = (0..3).map(|_| rx.clone()).collect();
        let weak = rx.downgrade();
        drop(rx);
        for other in others {
            assert_eq!(ledger.alive(), capacity);
            assert!(!tx.is_closed());
            drop(other);
        }
        // The senders and the weak receiver are still there; the messages are not.
        ledger.assert_all_dropped_once();
        assert!(tx.is_closed() && tx.is_empty());
        drop((tx, weak));
    }
}

#[test]
fn the_last_receiver_ends_the_senders_that_wait() {
    // B025
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let other = rx.clone();
        for i in 0..capacity {
            tx.try_send(i).unwrap();
        }
        let mut send = polled(tx.send(100));
        let mut reserve = polled(tx.reserve());
        let mut closed = polled(tx.closed());
        send.pending();
        reserve.pending();
        closed.pending();
        drop(rx);
        send.pending();
        drop(other);
        assert_eq!(send.woken(), Err(SendError(100)));
        assert!(reserve.woken().is_err());
        closed.woken();
    });
}

#[test]
fn a_receive_in_a_receivers_own_place_ends_with_it() {
    // The place of the poll forms is taken out of the line, and its wake goes on.
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let other = rx.clone();
        assert!(rx.poll_recv(&mut Context::from_waker(noop())).is_pending());
        let mut recv = polled(other.recv());
        recv.pending();
        tx.try_send(1).unwrap();
        assert!(!recv.wakes.fired(), "the first in line is woken first");
        drop(rx);
        assert_eq!(recv.woken(), Some(1));
    });
}

#[test]
fn receivers_and_their_futures_may_cross_threads() {
    // B157
    assert_trait! { IsSend is true for
        Receiver<std::cell::Cell<u8>>, WeakReceiver<std::cell::Cell<u8>>,
    }
    assert_trait! { IsSync is true for
        Receiver<std::cell::Cell<u8>>, WeakReceiver<std::cell::Cell<u8>>, Recv<'static, u8>,
    }
    assert_trait! { IsSend is false for Receiver<std::rc::Rc<u8>>, WeakReceiver<std::rc::Rc<u8>> }
    assert_trait! { IsSync is false for Receiver<std::rc::Rc<u8>>, WeakReceiver<std::rc::Rc<u8>> }
    // They sit in the line of receivers by their address.
    assert_trait! { IsUnpin is false for Recv<'static, u8>, RecvMany<'static, u8> }
    assert_trait! { IsUnpin is true for WeakReceiver<std::marker::PhantomPinned> }
}

#[test]
fn close_by_any_receiver_is_for_all() {
    everywhere(|capacity| async move {
        let (tx, a) = channel(capacity);
        let b = a.clone();
        tx.try_send(1).unwrap();
        b.close();
        assert!(a.is_closed() && b.is_closed() && tx.is_closed());
        assert_eq!(a.try_recv(), Ok(1));
        for rx in [&a, &b, &b.clone()] {
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(polled(rx.recv()).ready(), None);
        }
    });
}

#[test]
fn a_receiver_may_be_shared() {
    let (tx, rx) = channel(8);
    let rx = Arc::new(rx);
    std::thread::scope(|s| {
        for _ in 0..3 {
            let rx = Arc::clone(&rx);
            s.spawn(move || while rx.blocking_recv().is_some() {});
        }
        for i in 0..1000 {
            tx.blocking_send(i).unwrap();
        }
        drop(tx);
    });
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn debug_output_of_receivers() {
    let (_tx, rx) = channel::<u8>(1);
    let text = format!("{rx:?} {:?} {:?}", rx.downgrade(), rx.recv());
    assert!(text.contains("Receiver") && text.contains("WeakReceiver") && text.contains("Recv"));
}
