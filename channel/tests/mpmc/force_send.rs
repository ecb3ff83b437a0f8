//! Sending where there is no room: the oldest message makes way.

use crate::common::{Ledger, Rng, everywhere, polled, settle};
use crate::each::full;
use crate::flavor::channel;
use crate::flavor::error::{TryRecvError, TrySendError};

#[test]
fn the_oldest_message_makes_way_and_comes_back() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        for i in 0..capacity {
            assert_eq!(tx.force_send(i), Ok(None));
        }
        for i in capacity..4 * capacity {
            assert_eq!(tx.force_send(i), Ok(Some(i - capacity)));
            assert_eq!((tx.len(), tx.capacity()), (capacity, 0));
        }
        for i in 3 * capacity..4 * capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_forced_message_wakes_a_receiver() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut recv = polled(rx.recv());
        recv.pending();
        assert_eq!(tx.force_send(1), Ok(None));
        assert_eq!(recv.woken(), Some(1));
    });
}

#[test]
fn a_woken_receiver_gets_what_was_forced_in_place_of_its_message() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut recv = polled(rx.recv());
        recv.pending();
        for i in 0..3 * capacity {
            tx.force_send(i).unwrap();
        }
        assert_eq!(recv.woken(), Some(2 * capacity));
    });
}

#[test]
fn permits_do_not_make_way() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut permits = tx.try_reserve_many(capacity).unwrap();
        assert_eq!(tx.force_send(9), Err(TrySendError::Full(9)));
        // Nor do grants.
        let mut granted = polled(tx.reserve());
        granted.pending();
        permits.next().unwrap().release();
        assert!(granted.wakes.fired());
        assert_eq!(tx.force_send(9), Err(TrySendError::Full(9)));
        drop(granted);
        assert_eq!(tx.force_send(1), Ok(None));
        assert_eq!(tx.force_send(2), Ok(Some(1)));
        // Each permit is still worth a message.
        let rest = permits.len();
        for permit in permits {
            permit.send(3).unwrap();
        }
        assert_eq!(rx.len(), rest + 1);
        assert_eq!(rx.try_recv(), Ok(2));
    });
}

#[test]
fn senders_that_wait_keep_their_places() {
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        let mut send = polled(tx.send(100));
        let mut reserve = polled(tx.reserve());
        send.pending();
        reserve.pending();
        assert_eq!(tx.force_send(101), Ok(Some(0)));
        assert!(!send.wakes.fired() && !reserve.wakes.fired());
        let mut got = vec![rx.try_recv().unwrap()];
        settle().await;
        assert_eq!(send.woken(), Ok(()));
        assert!(!reserve.wakes.fired());
        got.push(rx.try_recv().unwrap());
        settle().await;
        drop(reserve.woken().unwrap());
        got.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        let expect = (1..capacity).chain([101, 100]);
        assert_eq!(got, expect.collect::<Vec<_>>());
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_withdrawn_message_makes_way_and_does_not_come_back() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        drop(rx.try_recv().unwrap());
        settle().await;
        // Deposited at the end of the queue; its future goes.
        drop(send);
        for i in 1..capacity {
            let evicted = tx.force_send(ledger.make()).unwrap();
            assert_eq!(evicted.map(|message| message.id), Some(i));
        }
        let evicted = tx.force_send(ledger.make()).unwrap();
        assert!(
            evicted.is_none(),
            "nobody is given a message that was withdrawn"
        );
        assert_eq!(rx.len(), capacity);
        drop((tx, rx));
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_deposited_message_that_was_evicted_cannot_be_withdrawn_any_more() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut send = polled(tx.send(ledger.make()));
        send.pending();
        drop(rx.try_recv().unwrap());
        settle().await;
        for _ in 1..capacity {
            drop(tx.force_send(ledger.make()).unwrap());
        }
        let evicted = tx.force_send(ledger.make()).unwrap().unwrap();
        assert_eq!(evicted.id, capacity);
        // Its slot holds another message now, which stays.
        drop(send);
        assert_eq!(ledger.drops_of(capacity), 0);
        drop(evicted);
        assert_eq!(std::iter::from_fn(|| rx.try_recv().ok()).count(), capacity);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_closed_channel_takes_no_forced_message() {
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        rx.close();
        assert_eq!(tx.force_send(9), Err(TrySendError::Closed(9)));
        assert_eq!(rx.try_recv(), Ok(0));
        drop(rx);
        assert_eq!(tx.force_send(9), Err(TrySendError::Closed(9)));
    });
}

#[test]
fn forced_messages_add_no_room_and_none_is_lost() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        let mut rng = Rng::new(3);
        let (mut evicted, mut got, mut refused) = (0, 0, 0);
        let mut last = None;
        let mut permits = Vec::new();
        for _ in 0..2_000 {
            match rng.below(6) {
                0..3 => match tx.force_send(ledger.make()) {
                    Ok(None) => {}
                    Ok(Some(_)) => evicted += 1,
                    Err(_) => refused += 1,
                },
                3 => permits.extend(tx.try_reserve()),
                4 => permits.truncate(permits.len() / 2),
                _ => {
                    if let Ok(message) = rx.try_recv() {
                        assert!(last < Some(message.id));
                        last = Some(message.id);
                        got += 1;
                    }
                }
            }
            assert!(rx.len() + permits.len() <= capacity);
            settle().await;
        }
        assert_eq!(ledger.made(), got + evicted + refused + rx.len());
        drop(permits);
        drop((tx, rx));
        ledger.assert_all_dropped_once();
    });
}
