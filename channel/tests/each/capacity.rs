//! The bound is exact: queued messages, permits and unclaimed grants never exceed the capacity, and
//! what was taken comes back.

use super::full;
use crate::common::{Rng, everywhere, polled, settle};
use crate::flavor::channel;
use crate::flavor::error::TrySendError;

#[test]
fn accepts_exactly_the_capacity() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for i in 0..capacity {
            assert_eq!(tx.capacity(), capacity - i);
            assert_eq!(tx.len(), i);
            tx.try_send(i).unwrap();
        }
        assert_eq!(tx.try_send(99), Err(TrySendError::Full(99)));
        assert_eq!((tx.capacity(), rx.len()), (0, capacity));
        assert_eq!(rx.try_recv(), Ok(0));
        settle().await;
        assert_eq!(tx.capacity(), 1);
        tx.try_send(99).unwrap();
        assert_eq!(tx.try_send(100), Err(TrySendError::Full(100)));
    });
}

#[test]
fn clones_add_no_room() {
    // B147
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let accepted = (0..1000)
            .filter(|&i| tx.clone().try_send(i).is_ok())
            .count();
        assert_eq!(accepted, capacity);
        assert_eq!(rx.len(), capacity);
    });
}

#[test]
fn futures_polled_once_and_dropped_add_no_room() {
    // B147
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for i in 0..1000 {
            _ = polled(tx.send(i)).poll();
            assert!(tx.len() <= capacity);
        }
        // The first ones were accepted at once; all others left the line again.
        let mut got = Vec::new();
        while let Ok(i) = rx.try_recv() {
            got.push(i);
        }
        assert_eq!(got, (0..capacity).collect::<Vec<_>>());
    });
}

#[test]
fn a_permit_takes_a_slot() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permit = tx.try_reserve().unwrap();
        assert_eq!((tx.capacity(), tx.len()), (capacity - 1, 0));
        for i in 1..capacity {
            tx.try_send(i).unwrap();
        }
        assert_eq!(tx.try_send(0), Err(TrySendError::Full(0)));
        assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
        permit.send(0).unwrap();
        assert_eq!((tx.capacity(), tx.len()), (0, capacity));
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        for _ in 0..capacity {
            rx.try_recv().unwrap();
        }
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn permits_alone_can_fill_the_channel() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel::<()>(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
        assert_eq!((tx.capacity(), rx.len()), (0, 0));
        drop(permits);
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn an_unclaimed_grant_takes_a_slot() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut reserve = polled(tx.reserve());
        reserve.pending();
        rx.try_recv().unwrap();
        settle().await;
        // Granted, not claimed.
        assert!(reserve.wakes.fired());
        assert_eq!((tx.capacity(), tx.len()), (0, capacity - 1));
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        let permit = reserve.ready().unwrap();
        assert_eq!((tx.capacity(), tx.len()), (0, capacity - 1));
        drop(permit);
        assert_eq!(tx.capacity(), 1);
    });
}

#[test]
fn a_withdrawn_message_keeps_its_slot_until_the_receiver_passes_it() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut send = polled(tx.send(capacity));
        send.pending();
        assert_eq!(rx.try_recv(), Ok(0));
        settle().await;
        // Deposited. Dropping the future withdraws the message, not the slot.
        assert!(send.wakes.fired());
        drop(send);
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        for i in 1..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert!(rx.try_recv().is_err());
        settle().await;
        assert_eq!((tx.capacity(), tx.len()), (capacity, 0));
    });
}

#[test]
fn nothing_is_lost_over_many_laps() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut rng = Rng::new(capacity as u64);
        for lap in 0..50 {
            let mut permits = Vec::new();
            let mut parked = Vec::new();
            for _ in 0..2 * capacity {
                match rng.below(4) {
                    0 => _ = tx.try_send(lap),
                    1 => permits.extend(tx.try_reserve()),
                    2 => {
                        let mut send = polled(tx.send(lap));
                        if send.poll().is_pending() {
                            parked.push(send);
                        }
                    }
                    _ => {
                        let _ = rx.try_recv();
                        settle().await;
                    }
                }
                let held = permits.len();
                assert!(rx.len() + held <= capacity);
                assert_eq!(tx.capacity(), capacity - held - rx.len());
                settle().await;
            }
            drop(parked);
            for permit in permits {
                if rng.one_in(2) {
                    permit.send(lap).unwrap();
                }
            }
            while rx.try_recv().is_ok() {
                settle().await;
            }
            settle().await;
            assert_eq!((tx.capacity(), tx.len()), (capacity, 0));
        }
    });
}
