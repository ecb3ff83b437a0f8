//! Each message is dropped once, and as soon as nobody can receive it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::full;
use crate::common::{
    CAPACITIES, Ledger, Tracked, everywhere, polled, runtimes, settle, within, yield_once,
};
use crate::flavor::{Sender, channel};

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

#[test]
fn messages_may_borrow_what_ends_before_the_runtime() {
    // A runtime may keep something of a channel beyond the poll that used it, but no message.
    struct Borrows<'a>(&'a AtomicUsize);

    impl Drop for Borrows<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    within("borrowed messages", || {
        for (_, runtime) in runtimes() {
            for leftover in [false, true] {
                let drops = Box::new(AtomicUsize::new(0));
                let (tx, mut rx) = channel(3);
                runtime.block_on(async {
                    for _ in 0..3 {
                        tx.send(Borrows(&drops)).await.ok().unwrap();
                    }
                    for _ in 0..3 - usize::from(leftover) {
                        assert!(rx.recv().await.is_some());
                    }
                    drop(polled(tx.send(Borrows(&drops))).poll());
                });
                drop((tx, rx));
                assert_eq!(drops.load(Ordering::SeqCst), 4);
                drop(drops);
                // Whatever was kept goes now at the latest.
                runtime.block_on(yield_once());
            }
        }
    });
}

#[test]
fn a_receiver_may_go_in_the_poll_it_has_received_in() {
    // The release of the slot may be left to the end of that poll: by then the receiver may be
    // dropped, at work on another thread, or in another task, and the channel may be gone.
    within("gone in the same poll", || {
        for (place, runtime) in runtimes() {
            for capacity in CAPACITIES {
                let ledger = Ledger::new();
                let book = ledger.clone();
                let task = runtime.spawn(async move {
                    for way in 0..40 {
                        let (tx, mut rx) = channel(capacity);
                        for _ in 0..capacity {
                            tx.try_send(book.make()).unwrap();
                        }
                        drop(rx.try_recv().unwrap());
                        match way % 4 {
                            0 => drop(rx),
                            1 => {
                                drop(tx);
                                drop(rx);
                            }
                            2 => {
                                let left = std::thread::spawn(move || {
                                    let mut left = 0;
                                    while rx.try_recv().is_ok() {
                                        left += 1;
                                    }
                                    left
                                });
                                assert_eq!(left.join().unwrap(), capacity - 1);
                            }
                            _ => {
                                let left = wakerun::spawn(async move {
                                    let mut left = 0;
                                    while rx.recv().await.is_some() {
                                        left += 1;
                                    }
                                    left
                                });
                                drop(tx);
                                if way % 8 == 3 {
                                    assert_eq!(left.await.unwrap(), capacity - 1, "{place:?}");
                                }
                            }
                        }
                    }
                });
                runtime.block_on(task).unwrap();
                while runtime.handle().num_alive_tasks() > 0 {
                    runtime.block_on(yield_once());
                }
                ledger.assert_all_dropped_once();
            }
        }
    });
}

#[test]
fn many_channels_in_one_poll_are_all_served() {
    // More than a worker may keep in mind until the end of the poll.
    everywhere(|capacity| async move {
        let mut channels: Vec<_> = (0..50).map(|_| full(capacity)).collect();
        for (_, rx) in &mut channels {
            assert_eq!(rx.try_recv(), Ok(0));
        }
        let mut sends: Vec<_> = channels
            .iter()
            .flat_map(|(tx, _)| [polled(tx.send(100)), polled(tx.send(101))])
            .collect();
        for (i, send) in sends.iter_mut().enumerate() {
            assert_eq!(send.poll().is_ready(), i % 2 == 0);
        }
        drop(sends);
        for (_, rx) in &mut channels {
            let mut last = None;
            while let Ok(i) = rx.try_recv() {
                last = Some(i);
            }
            assert_eq!(last, Some(100));
        }
        settle().await;
        for (tx, _) in &channels {
            assert_eq!(tx.capacity(), capacity);
        }
    });
}
