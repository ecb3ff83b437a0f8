//! Futures that parked and are never polled again, or leaked, block nobody.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::full;
use crate::common::{
    Ledger, everywhere, noop, poll_once, polled, runtimes, settle, within, yield_once,
};
use crate::flavor::channel;
use crate::flavor::error::TrySendError;

#[test]
fn a_forgotten_send_is_delivered_and_blocks_nobody() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut forgotten = polled(tx.send(capacity));
        forgotten.pending();
        let mut next = polled(tx.send(capacity + 1));
        next.pending();
        for i in 0..capacity + 2 {
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        assert_eq!(next.woken(), Ok(()));
        for i in 0..200 {
            tx.try_send(i).unwrap();
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        assert_eq!(tx.capacity(), capacity);
        // Late, but still with the right answer.
        assert_eq!(forgotten.ready(), Ok(()));
    });
}

#[test]
fn many_forgotten_sends_are_delivered_in_order() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut forgotten: Vec<_> = (0..20).map(|i| polled(tx.send(capacity + i))).collect();
        for send in &mut forgotten {
            send.pending();
        }
        for i in 0..capacity + 20 {
            let got = if i % 2 == 0 {
                rx.try_recv().ok()
            } else {
                polled(rx.recv()).ready()
            };
            assert_eq!(got, Some(i));
        }
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_leaked_send_outlives_its_sender() {
    // B082
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut other = tx.clone();
        let mut leaked = Box::pin(other.send(capacity));
        assert!(poll_once(leaked.as_mut(), noop()).is_pending());
        mem::forget(leaked);
        // Once overwritten, once dropped; the line still holds the leaked entry.
        other = tx.clone();
        drop(other);
        assert_eq!(rx.try_recv(), Ok(0));
        settle().await;
        let mut next = polled(tx.send(capacity + 1));
        next.pending();
        for i in 1..=capacity + 1 {
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        assert_eq!(next.woken(), Ok(()));
        drop(next);
        drop(tx);
        assert_eq!(polled(rx.recv()).ready(), None);
    });
}

#[test]
fn leaked_waiters_do_not_disturb_the_end() {
    // B082
    everywhere(|capacity| async move {
        for by_close in [true, false] {
            let (tx, mut rx) = full(capacity);
            let mut send = Box::pin(tx.send(capacity));
            assert!(poll_once(send.as_mut(), noop()).is_pending());
            mem::forget(send);
            let mut reserve = Box::pin(tx.reserve());
            assert!(poll_once(reserve.as_mut(), noop()).is_pending());
            mem::forget(reserve);
            let mut closed = Box::pin(tx.closed());
            assert!(poll_once(closed.as_mut(), noop()).is_pending());
            mem::forget(closed);
            if by_close {
                rx.close();
                for i in 0..capacity {
                    assert_eq!(rx.try_recv(), Ok(i));
                }
                assert!(rx.try_recv().is_err());
            }
            drop(tx);
            drop(rx);
        }
    });
}

#[test]
fn a_parked_send_held_across_another_await_does_not_lock_up() {
    // The select-in-a-loop hang: the first send is parked and held, and not polled, while the same
    // task waits for the second one.
    within("held across an await", || {
        for capacity in [1, 2, 3] {
            for (_, runtime) in runtimes() {
                let (tx, mut rx) = full(capacity);
                let parked = Arc::new(AtomicBool::new(false));
                let is_parked = Arc::clone(&parked);
                let task = runtime.spawn(async move {
                    let mut first = pin!(tx.send(capacity));
                    assert!(poll_once(first.as_mut(), noop()).is_pending());
                    is_parked.store(true, Ordering::SeqCst);
                    tx.send(capacity + 1).await.unwrap();
                    first.await.unwrap();
                });
                runtime.block_on(async {
                    while !parked.load(Ordering::SeqCst) {
                        yield_once().await;
                    }
                    for i in 0..capacity + 2 {
                        assert_eq!(rx.recv().await, Some(i));
                    }
                    task.await.unwrap();
                });
            }
        }
    });
}

#[test]
fn a_forgotten_grant_holds_one_slot_and_no_more() {
    // With a waker that is not the task's own nothing lapses (lapse.rs).
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut forgotten = polled(tx.reserve());
        forgotten.pending();
        while rx.try_recv().is_ok() {
            settle().await;
        }
        settle().await;
        assert_eq!(tx.capacity(), capacity - 1);
        for i in 0..capacity - 1 {
            tx.try_send(i).unwrap();
        }
        assert_eq!(tx.try_send(99), Err(TrySendError::Full(99)));
        for i in 0..capacity - 1 {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        settle().await;
        drop(forgotten);
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_leaked_permit_holds_one_slot_and_no_more() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity + 1);
        mem::forget(tx.try_reserve().unwrap());
        for lap in 0..10 {
            for i in 0..capacity {
                tx.try_send(lap * 100 + i).unwrap();
            }
            assert!(matches!(tx.try_send(0), Err(TrySendError::Full(_))));
            for i in 0..capacity {
                assert_eq!(rx.try_recv(), Ok(lap * 100 + i));
            }
            settle().await;
        }
        drop(rx);
        assert!(matches!(tx.try_send(0), Err(TrySendError::Closed(0))));
    });
}

#[test]
fn forgotten_messages_are_dropped_once() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut forgotten: Vec<_> = (0..4).map(|_| polled(tx.send(ledger.make()))).collect();
        for send in &mut forgotten {
            send.pending();
        }
        drop(rx.try_recv());
        drop(rx.try_recv());
        settle().await;
        drop(rx);
        // Two at least still wait with their value; the queued ones went with the receiver.
        drop(forgotten);
        drop(tx);
        ledger.assert_all_dropped_once();
    });
}
