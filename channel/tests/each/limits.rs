//! Capacities and message types at the edges.

use std::panic::catch_unwind;

use crate::common::{Ledger, everywhere, settle};
use crate::flavor::error::TryRecvError;
use crate::flavor::{MAX_CAPACITY, channel};

/// The message of the panic that `channel(capacity)` ends in.
fn refusal(capacity: usize) -> String {
    let payload = catch_unwind(|| channel::<u8>(capacity)).expect_err("must be refused");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast_ref::<&str>().unwrap()).to_string(),
    }
}

#[test]
fn capacity_zero_is_refused_with_a_word_on_it() {
    // B136, B159
    let text = refusal(0);
    assert!(text.contains("capacity"), "{text:?}");
}

#[test]
fn absurd_capacities_are_refused_and_not_allocated() {
    // B136
    for capacity in [
        MAX_CAPACITY + 1,
        1 << 31,
        isize::MAX as usize,
        isize::MAX as usize + 1,
        usize::MAX - 1,
        usize::MAX,
    ] {
        let text = refusal(capacity);
        assert!(text.contains("capacity"), "{text:?}");
    }
}

#[test]
fn the_stated_maximum_is_accepted() {
    // B136
    let (tx, mut rx) = channel::<()>(MAX_CAPACITY);
    assert_eq!(
        (tx.max_capacity(), tx.capacity()),
        (MAX_CAPACITY, MAX_CAPACITY)
    );
    let permit = tx.try_reserve().unwrap();
    assert_eq!(tx.capacity(), MAX_CAPACITY - 1);
    tx.try_send(()).unwrap();
    assert_eq!((tx.capacity(), tx.len()), (MAX_CAPACITY - 2, 1));
    rx.try_recv().unwrap();
    drop(permit);
    assert_eq!(tx.capacity(), MAX_CAPACITY);
    rx.close();
    assert!(tx.is_closed());
}

#[test]
fn permit_arithmetic_holds_at_the_maximum() {
    // B096, B136
    if cfg!(miri) {
        return;
    }
    let (tx, mut rx) = channel::<()>(MAX_CAPACITY);
    let mut permits = Vec::with_capacity(MAX_CAPACITY);
    let held = if cfg!(debug_assertions) {
        1 << 16
    } else {
        MAX_CAPACITY
    };
    permits.extend((0..held).map(|_| tx.try_reserve().unwrap()));
    assert_eq!(tx.capacity(), MAX_CAPACITY - held);
    assert_eq!(tx.try_reserve().is_ok(), held < MAX_CAPACITY);
    rx.close();
    assert!(tx.is_closed());
    assert!(rx.try_recv() == Err(TryRecvError::Empty));
    drop(permits);
    assert!(rx.try_recv() == Err(TryRecvError::Disconnected));
}

#[test]
fn all_permits_of_the_largest_channel_can_be_held_at_once() {
    // B096
    let (tx, mut rx) = channel::<()>(MAX_CAPACITY);
    let permits = tx.try_reserve_many(MAX_CAPACITY).unwrap();
    assert_eq!((permits.len(), tx.capacity()), (MAX_CAPACITY, 0));
    assert!(tx.try_send(()).unwrap_err().is_full());
    assert!(tx.try_reserve_many(1).unwrap_err().is_full());
    rx.close();
    assert!(tx.try_reserve_many(1).unwrap_err().is_closed());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    drop(permits);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(tx.capacity(), MAX_CAPACITY);
}

#[test]
fn capacities_around_powers_of_two_hold_what_they_say() {
    // B136
    for capacity in [1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 1000, 1 << 16] {
        let (tx, mut rx) = channel(capacity);
        for lap in 0..3 {
            for i in 0..capacity {
                tx.try_send(i + lap).unwrap();
            }
            assert!(tx.try_send(0).is_err());
            assert_eq!(rx.len(), capacity);
            for i in 0..capacity {
                assert_eq!(rx.try_recv(), Ok(i + lap));
            }
            assert!(rx.try_recv().is_err());
        }
    }
}

#[test]
fn zero_sized_messages_are_counted() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.send(()).await.unwrap();
        }
        assert!(tx.try_send(()).is_err());
        for _ in 0..capacity {
            assert_eq!(rx.recv().await, Some(()));
        }
        settle().await;
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn large_and_aligned_messages_arrive_whole() {
    #[repr(align(128))]
    #[derive(Clone, PartialEq, Debug)]
    struct Wide([u8; 4096]);

    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for lap in 0..8_u8 {
            for _ in 0..capacity {
                tx.send(Wide([lap; 4096])).await.unwrap();
            }
            for _ in 0..capacity {
                let got = rx.recv().await.unwrap();
                assert_eq!(std::ptr::from_ref(&got).addr() % 128, 0);
                assert_eq!(got, Wide([lap; 4096]));
            }
            settle().await;
        }
    });
}

#[test]
fn a_receive_of_no_messages_is_ready_and_takes_none() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut out = vec![7];
        assert_eq!(rx.recv_many(&mut out, 0).await, 0);
        tx.try_send(1).unwrap();
        assert_eq!(rx.recv_many(&mut out, 0).await, 0);
        assert_eq!(out, [7]);
        assert_eq!(rx.recv_many(&mut out, usize::MAX).await, 1);
        assert_eq!(out, [7, 1]);
        drop(tx);
        assert_eq!(rx.recv_many(&mut out, 0).await, 0);
        assert_eq!(rx.recv_many(&mut out, 1).await, 0);
    });
}

#[test]
fn a_channel_of_channels_drops_what_it_holds() {
    let ledger = Ledger::new();
    let (outer_tx, outer_rx) = channel(4);
    for _ in 0..4 {
        let (tx, rx) = channel(2);
        tx.try_send(ledger.make()).unwrap();
        outer_tx.try_send((tx, rx)).unwrap();
    }
    drop(outer_rx);
    ledger.assert_all_dropped_once();
    drop(outer_tx);
}
