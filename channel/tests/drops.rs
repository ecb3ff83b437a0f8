//! Each message is dropped once, and as soon as nobody can receive it.
#![cfg(not(wakerun_loom))]

mod common;

use std::sync::{Arc, Mutex};

use common::{CAPACITIES, Ledger, Tracked, everywhere, polled, settle, within};
use wakerun_channel::mpsc::{Sender, channel};

#[test]
fn a_dropped_receiver_drops_the_queue_at_once() {
    // Every length of queue at every position in the ring.
    for capacity in [1, 2, 3, 5] {
        for offset in 0..2 * capacity + 2 {
            for queued in 0..=capacity {
                let ledger = Ledger::new();
                let (tx, mut rx) = channel(capacity);
                for _ in 0..offset {
                    tx.try_send(ledger.make()).unwrap();
                    drop(rx.try_recv().unwrap());
                }
                for _ in 0..queued {
                    tx.try_send(ledger.make()).unwrap();
                }
                assert_eq!(ledger.alive(), queued);
                drop(rx);
                // The sender is still there; the messages are not.
                ledger.assert_all_dropped_once();
                drop(tx);
                ledger.assert_all_dropped_once();
            }
        }
    }
}

#[test]
fn messages_wait_for_the_receiver_when_the_senders_are_gone() {
    for capacity in CAPACITIES {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        drop(tx);
        assert_eq!(ledger.alive(), capacity);
        drop(rx.try_recv());
        assert_eq!(ledger.alive(), capacity - 1);
        drop(rx);
        ledger.assert_all_dropped_once();
    }
}

#[test]
fn refused_messages_come_back() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let full = tx.try_send(ledger.make()).unwrap_err().into_inner();
        rx.close();
        let closed = tx.try_send(ledger.make()).unwrap_err().into_inner();
        let sent = tx.send(ledger.make()).await.unwrap_err().into_inner();
        assert_eq!(
            [full.id, closed.id, sent.id],
            [capacity, capacity + 1, capacity + 2]
        );
        assert_eq!(ledger.alive(), capacity + 3);
        drop((full, closed, sent));
        assert_eq!(ledger.alive(), capacity);
        drop(rx);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn messages_in_futures_go_with_them() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        drop(tx.send(ledger.make()));
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut sends: Vec<_> = (0..6).map(|_| polled(tx.send(ledger.make()))).collect();
        for send in &mut sends {
            send.pending();
        }
        drop(rx.try_recv());
        settle().await;
        // The first is deposited, the others wait; the last three give up.
        sends.truncate(3);
        for id in capacity + 4..capacity + 7 {
            assert_eq!(ledger.drops_of(id), 1);
        }
        assert_eq!(ledger.alive(), capacity - 1 + 3);
        drop(rx);
        drop(sends);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn withdrawn_messages_are_dropped_though_nobody_receives() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        drop(rx.try_recv());
        settle().await;
        drop(send);
        drop(rx);
        ledger.assert_all_dropped_once();
        drop(tx);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_message_may_use_the_channel_as_it_is_dropped() {
    // B009: no lock is held while a message is dropped.
    struct Reaches(Arc<Mutex<Option<Sender<Reaches>>>>);

    impl Drop for Reaches {
        fn drop(&mut self) {
            let tx = self.0.lock().unwrap().take();
            if let Some(tx) = tx {
                let _ = (tx.len(), tx.capacity(), tx.is_closed());
                let nothing = Arc::new(Mutex::new(None));
                // May be accepted and wait in the queue, or come back.
                let _ = tx.try_send(Reaches(Arc::clone(&nothing)));
                drop(tx.try_reserve());
                _ = polled(tx.send(Reaches(nothing))).poll();
                _ = polled(tx.closed()).poll();
            }
        }
    }

    within("drop of a message", || {
        for withdrawn in [false, true] {
            let (tx, mut rx) = channel(2);
            let reach = || Reaches(Arc::new(Mutex::new(Some(tx.clone()))));
            assert!(tx.try_send(reach()).is_ok());
            assert!(tx.try_send(reach()).is_ok());
            let mut send = polled(tx.send(reach()));
            send.pending();
            if withdrawn {
                drop(rx.try_recv());
                drop(send);
                while rx.try_recv().is_ok() {}
                assert!(tx.try_send(reach()).is_ok());
                drop(rx);
            } else {
                drop(rx);
                drop(send);
            }
            assert!(tx.is_closed());
        }
    });
}

#[test]
fn both_ends_may_travel_in_the_channel() {
    // The receiver of a message that owns the last sender, and the like: no cycle is left behind
    // once the receiver has gone.
    within("ends in the channel", || {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel::<(Tracked, Option<Sender<Tracked>>)>(2);
        let (inner, mut inner_rx) = channel(1);
        assert!(tx.try_send((ledger.make(), Some(inner))).is_ok());
        drop(tx);
        let (message, inner) = rx.try_recv().unwrap();
        inner.unwrap().try_send(message).unwrap();
        assert!(inner_rx.try_recv().is_ok());
        assert!(inner_rx.try_recv().is_err());
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_receiver_dropped_with_its_own_last_sender_in_the_queue_drops_everything() {
    struct Own {
        _tracked: Tracked,
        _tx: Option<Sender<Own>>,
    }
    within("own sender", || {
        let ledger = Ledger::new();
        let (tx, rx) = channel(3);
        for _ in 0..2 {
            let own = Own {
                _tracked: ledger.make(),
                _tx: Some(tx.clone()),
            };
            assert!(tx.try_send(own).is_ok());
        }
        let own = Own {
            _tracked: ledger.make(),
            _tx: None,
        };
        assert!(tx.try_send(own).is_ok());
        drop(tx);
        drop(rx);
        ledger.assert_all_dropped_once();
    });
}
