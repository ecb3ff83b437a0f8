//! Permits: capacity without order, given back when not used, and counted until then.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::full;
use crate::common::{Ledger, Place, everywhere, polled, runtimes, settle, within, yield_once};
use crate::flavor::channel;
use crate::flavor::error::{SendError, TryRecvError, TrySendError};

#[test]
fn the_order_is_decided_by_the_send_and_not_by_the_permit() {
    // B105
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity + 1);
        let first = tx.try_reserve().unwrap();
        tx.try_send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        let second = (capacity > 1).then(|| tx.try_reserve().unwrap());
        if let Some(second) = second {
            second.send(2).unwrap();
        }
        first.send(3).unwrap();
        let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        assert_eq!(got, if capacity > 1 { vec![2, 3] } else { vec![3] });
    });
}

#[test]
fn a_permit_given_back_wakes_the_next_sender() {
    // B041
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let mut send = polled(tx.send(1));
        let mut reserve = polled(tx.reserve());
        send.pending();
        reserve.pending();
        drop(permits.pop());
        assert!(!reserve.wakes.fired());
        assert_eq!(send.woken(), Ok(()));
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        reserve.woken().unwrap().send(2).unwrap();
        assert_eq!(rx.try_recv(), Ok(2));
        settle().await;
        assert_eq!(tx.capacity(), 1);
        drop(permits);
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_permit_given_back_deposits_a_waiting_message_and_wakes_the_receiver() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let mut recv = polled(rx.recv());
        recv.pending();
        let mut send = polled(tx.send(1));
        send.pending();
        drop(permits);
        // Not polled again: its message is in the channel all the same.
        assert_eq!(recv.woken(), Some(1));
        assert_eq!(send.woken(), Ok(()));
    });
}

#[test]
fn a_permit_sends_without_waiting_and_wakes_the_receiver() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permit = polled(tx.reserve()).ready().unwrap();
        for i in 1..capacity {
            tx.try_send(i).unwrap();
        }
        for i in 1..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        let mut recv = polled(rx.recv());
        recv.pending();
        permit.send(99).unwrap();
        assert_eq!(recv.woken(), Some(99));
    });
}

#[test]
fn the_last_permit_ends_a_closed_channel() {
    // B007, with single reservations
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<usize>(capacity);
        let mut permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        rx.close();
        let mut recv = polled(rx.recv());
        recv.pending();
        while permits.len() > 1 {
            drop(permits.pop());
            recv.pending();
        }
        recv.wakes.take();
        drop(permits);
        assert_eq!(recv.woken(), None);
        drop(recv);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn the_last_permit_may_still_send_into_a_closed_channel() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permit = tx.try_reserve().unwrap();
        let mut recv = polled(rx.recv());
        recv.pending();
        drop(recv);
        rx.close();
        let mut recv = polled(rx.recv());
        recv.pending();
        permit.send(1).unwrap();
        assert_eq!(recv.woken(), Some(1));
        drop(recv);
        assert_eq!(polled(rx.recv()).ready(), None);
    });
}

#[test]
fn a_grant_left_unclaimed_ends_with_the_closed_channel() {
    // B007: whether the grant can still be claimed or not, its end lets the receiver end.
    everywhere(|capacity| async move {
        for claim in [true, false] {
            let (tx, mut rx) = full(capacity);
            let mut reserve = polled(tx.reserve());
            reserve.pending();
            rx.try_recv().unwrap();
            settle().await;
            rx.close();
            while rx.try_recv().is_ok() {}
            let mut recv = polled(rx.recv());
            let ended = recv.poll();
            if claim {
                drop(reserve.ready());
            }
            drop(reserve);
            if ended.is_pending() {
                assert_eq!(recv.woken(), None);
            }
            drop(recv);
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}

#[test]
fn a_permit_gives_the_value_back_when_the_receiver_is_gone() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        let permit = tx.try_reserve().unwrap();
        drop(rx);
        let SendError(back) = permit.send(ledger.make()).unwrap_err();
        assert_eq!(ledger.alive(), 1);
        drop(back);
        ledger.assert_all_dropped_once();
        assert!(matches!(tx.try_reserve(), Err(TrySendError::Closed(()))));
    });
}

#[test]
fn permits_cross_threads_and_awaits() {
    within("permits", || {
        for place in Place::ALL {
            place.run(async {
                let (tx, mut rx) = channel(2);
                let permit = tx.reserve().await.unwrap();
                settle().await;
                std::thread::scope(|s| {
                    s.spawn(move || permit.send(1).unwrap());
                });
                assert_eq!(rx.recv().await, Some(1));
            });
        }
    });
}

#[test]
fn a_closed_receiver_with_a_permit_out_sleeps_though_the_budget_is_used_up() {
    within("no budget", || {
        for (place, runtime) in runtimes() {
            let (tx, mut rx) = channel::<u8>(1);
            let permit = tx.try_reserve().unwrap();
            rx.close();
            let polls = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&polls);
            let task = runtime.spawn(poll_fn(move |cx| {
                count.fetch_add(1, Ordering::SeqCst);
                while wakerun::wake::spend_budget() {}
                rx.poll_recv(cx)
            }));
            runtime.block_on(async {
                while polls.load(Ordering::SeqCst) == 0 {
                    yield_once().await;
                }
                // Enough turns for a task that wakes itself to be polled again.
                let turns = runtime.spawn(async {
                    for _ in 0..100 {
                        yield_once().await;
                    }
                });
                turns.await.unwrap();
                assert_eq!(polls.load(Ordering::SeqCst), 1, "in {place:?}");
                drop(permit);
                // The end needs budget, too, which no poll leaves: the task goes on, and is ended.
                while polls.load(Ordering::SeqCst) < 3 {
                    yield_once().await;
                }
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());
            });
        }
    });
}
