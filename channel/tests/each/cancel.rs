//! Dropping a future at each of its states: what it waited for goes to the next in line, what it
//! carried is withdrawn or was delivered, and a cancelled receive loses nothing.

use super::full;
use crate::common::{Ledger, Rng, everywhere, polled, runtimes, settle, within};
use crate::flavor::channel;
use crate::flavor::error::{TryRecvError, TrySendError};

#[test]
fn futures_do_nothing_before_their_first_poll() {
    // B086
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        let send = tx.send(ledger.make());
        let reserve = tx.reserve();
        let closed = tx.closed();
        assert_eq!((tx.capacity(), tx.len()), (capacity, 0));
        assert!(rx.try_recv().is_err());
        drop((send, reserve, closed));
        ledger.assert_all_dropped_once();
        assert_eq!((tx.capacity(), tx.len()), (capacity, 0));
        let mut out = Vec::new();
        _ = Box::pin(rx.recv());
        _ = Box::pin(rx.recv_many(&mut out, 3));
        tx.try_send(ledger.make()).unwrap();
        _ = Box::pin(rx.recv());
        _ = Box::pin(rx.recv_many(&mut out, 3));
        assert_eq!((rx.len(), out.len()), (1, 0));
    });
}

#[test]
fn an_unpolled_future_takes_no_place_in_the_line() {
    // B086
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let unpolled = (polled(tx.send(900)), polled(tx.reserve()));
        let mut send = polled(tx.send(capacity));
        send.pending();
        rx.try_recv().unwrap();
        settle().await;
        assert_eq!(send.woken(), Ok(()));
        drop(unpolled);
        assert_eq!(tx.len(), capacity);
    });
}

#[test]
fn a_waiting_send_leaves_the_line() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut line: Vec<_> = (0..5).map(|_| polled(tx.send(ledger.make()))).collect();
        for send in &mut line {
            send.pending();
        }
        // The head, one in the middle and the tail go.
        for place in [4, 2, 0] {
            drop(line.remove(place));
            assert_eq!(ledger.drops_of(capacity + place), 1);
        }
        let mut ids = Vec::new();
        while let Ok(message) = rx.try_recv() {
            ids.push(message.id);
            settle().await;
        }
        assert_eq!(ids[capacity..], [capacity + 1, capacity + 3]);
        for send in &mut line {
            assert!(send.woken().is_ok());
        }
        drop(line);
        ledger.assert_all_dropped_once();
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_deposited_message_is_withdrawn_with_its_future() {
    // B004, B145
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let (a_id, b_id) = (capacity, capacity + 1);
        let mut a = polled(tx.send(ledger.make()));
        let mut b = polled(tx.send(ledger.make()));
        a.pending();
        b.pending();
        rx.try_recv().unwrap();
        settle().await;
        assert!(a.wakes.fired());
        drop(a);
        // The receiver passes over it, and the slot goes to the next in line.
        let mut ids = Vec::new();
        while let Ok(message) = rx.try_recv() {
            ids.push(message.id);
            settle().await;
        }
        assert!(!ids.contains(&a_id));
        assert_eq!(ids.last(), Some(&b_id));
        assert!(b.woken().is_ok());
        drop(b);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_received_message_is_not_withdrawn() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        let mut got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        settle().await;
        assert_eq!(got.pop().map(|m| m.id), Some(capacity));
        got.clear();
        // A later message sits where the deposited one was.
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        drop(send);
        assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), capacity);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_send_that_saw_ready_withdraws_nothing() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut send = polled(tx.send(capacity));
        send.pending();
        rx.try_recv().unwrap();
        settle().await;
        assert_eq!(send.ready(), Ok(()));
        drop(send);
        for i in 1..=capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
    });
}

#[test]
fn a_withdrawn_message_wakes_the_receiver_for_nothing_at_most() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let mut recv = polled(rx.recv());
        recv.pending();
        let mut send = polled(tx.send(1));
        send.pending();
        drop(permits);
        // Deposited, and the receiver told; then withdrawn.
        assert!(recv.wakes.take() > 0);
        drop(send);
        recv.pending();
        tx.try_send(2).unwrap();
        assert!(recv.wakes.fired());
        assert_eq!(recv.ready(), Some(2));
    });
}

#[test]
fn withdrawn_messages_do_not_keep_a_closed_channel_open() {
    everywhere(|capacity| async move {
        for by_close in [true, false] {
            let (tx, mut rx) = full(capacity);
            let mut send = polled(tx.send(capacity));
            send.pending();
            rx.try_recv().unwrap();
            settle().await;
            drop(send);
            for i in 1..capacity {
                assert_eq!(rx.try_recv(), Ok(i));
            }
            if by_close {
                rx.close();
            } else {
                drop(tx);
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
            assert_eq!(polled(rx.recv()).ready(), None);
        }
    });
}

#[test]
fn a_waiting_reservation_leaves_the_line() {
    // B016, B145
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut a = polled(tx.reserve());
        let mut b = polled(tx.reserve());
        a.pending();
        b.pending();
        drop(a);
        rx.try_recv().unwrap();
        settle().await;
        let permit = b.woken().unwrap();
        permit.send(capacity).unwrap();
        assert_eq!(tx.len(), capacity);
    });
}

#[test]
fn a_granted_reservation_passes_its_slot_on() {
    // B004, B017, B145
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut a = polled(tx.reserve());
        let mut b = polled(tx.reserve());
        let mut c = polled(tx.send(capacity));
        a.pending();
        b.pending();
        c.pending();
        rx.try_recv().unwrap();
        settle().await;
        assert!(a.wakes.fired() && !b.wakes.fired());
        drop(a);
        assert!(b.wakes.fired() && !c.wakes.fired());
        drop(b);
        assert_eq!(c.woken(), Ok(()));
        for i in 1..=capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_granted_reservation_without_a_next_frees_its_slot() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut a = polled(tx.reserve());
        a.pending();
        rx.try_recv().unwrap();
        settle().await;
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        drop(a);
        assert_eq!(tx.capacity(), 1);
        tx.try_send(9).unwrap();
    });
}

#[test]
fn a_cancelled_receive_loses_neither_message_nor_wake() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut recv = polled(rx.recv());
        recv.pending();
        tx.try_send(1).unwrap();
        assert!(recv.wakes.fired());
        drop(recv);
        let mut out = Vec::new();
        assert_eq!(polled(rx.recv_many(&mut out, 4)).ready(), 1);
        assert_eq!(out, [1]);

        let mut recv_many = polled(rx.recv_many(&mut out, 4));
        recv_many.pending();
        tx.try_send(2).unwrap();
        assert!(recv_many.wakes.fired());
        drop(recv_many);
        assert_eq!(out, [1]);
        assert_eq!(rx.try_recv(), Ok(2));

        // A parked and dropped receive leaves nothing behind that the next one could trip over.
        polled(rx.recv()).pending();
        let mut recv = polled(rx.recv());
        recv.pending();
        tx.try_send(3).unwrap();
        assert_eq!(recv.woken(), Some(3));
    });
}

#[test]
fn receives_dropped_at_random_lose_nothing() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut rng = Rng::new(7);
        let (mut sent, mut got) = (0, 0);
        while got < 500 {
            if rng.one_in(2) && tx.try_send(sent).is_ok() {
                sent += 1;
            }
            let mut recv = polled(rx.recv());
            for _ in 0..rng.below(3) {
                if let std::task::Poll::Ready(i) = recv.poll() {
                    assert_eq!(i, Some(got));
                    got += 1;
                    break;
                }
                if rng.one_in(2) && tx.try_send(sent).is_ok() {
                    sent += 1;
                    assert!(recv.wakes.fired());
                }
            }
            drop(recv);
            settle().await;
        }
    });
}

#[test]
fn aborted_tasks_leave_the_line() {
    within("aborted tasks", || {
        for (place, runtime) in runtimes() {
            let ledger = Ledger::new();
            let (tx, mut rx) = channel(1);
            tx.try_send(ledger.make()).unwrap();
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let (tx, message) = (tx.clone(), ledger.make());
                    runtime.spawn(async move { tx.send(message).await.is_ok() })
                })
                .collect();
            drop(tx);
            let (sent, received) = runtime.block_on(async move {
                for task in tasks.iter().step_by(2) {
                    task.abort();
                }
                let mut received = 0;
                while rx.recv().await.is_some() {
                    received += 1;
                }
                let mut sent = 0;
                for task in tasks {
                    sent += usize::from(task.await.unwrap_or(false));
                }
                (sent, received)
            });
            // An aborted task may have been served before its abort; whoever was told so was heard.
            assert!(
                sent >= 10 && received > sent,
                "{place:?}: {sent} {received}"
            );
            drop(runtime);
            ledger.assert_all_dropped_once();
        }
    });
}
