//! Owned permits: as borrowed ones, and the sender travels with them.

use std::sync::Arc;

use crate::common::{Ledger, Place, everywhere, polled, settle, within};
use crate::flavor::channel;
use crate::flavor::error::{SendError, TryRecvError, TrySendError};

use super::full;

#[test]
fn an_owned_permit_takes_a_slot_and_gives_its_sender_back() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let other = tx.clone();
        let permit = polled(tx.reserve_owned()).ready().unwrap();
        assert_eq!((other.capacity(), other.len()), (capacity - 1, 0));
        assert_eq!(other.strong_count(), 2);
        assert!(permit.same_channel_as_sender(&other));
        let tx = permit.send(1).unwrap();
        assert!(tx.same_channel(&other));
        assert_eq!((tx.strong_count(), tx.len()), (2, 1));
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        let tx = tx.try_reserve_owned().unwrap().release();
        assert_eq!((tx.capacity(), tx.strong_count()), (capacity, 2));
    });
}

#[test]
fn an_owned_permit_that_is_dropped_takes_its_sender_along() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<usize>(capacity);
        let permit = tx.try_reserve_owned().unwrap();
        let mut recv = polled(rx.recv());
        recv.pending();
        // The last sender: its end is that of the channel.
        drop(permit);
        assert_eq!(recv.woken(), None);
        drop(recv);
        assert_eq!(rx.capacity(), capacity);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn the_last_sender_inside_a_permit_sends_before_the_end() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permit = tx.try_reserve_owned().unwrap();
        let mut recv = polled(rx.recv());
        recv.pending();
        drop(permit.send(7).unwrap());
        assert_eq!(recv.woken(), Some(7));
        drop(recv);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn a_refused_owned_reservation_gives_the_sender_back() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let error = tx.try_reserve_owned().unwrap_err();
        assert!(error.is_full());
        let tx = error.into_inner();
        rx.close();
        let error = tx.try_reserve_owned().unwrap_err();
        assert!(error.is_closed());
        let tx = error.into_inner();
        assert_eq!(tx.strong_count(), 1);
        assert!(matches!(
            polled(tx.reserve_owned()).ready(),
            Err(SendError(()))
        ));
        assert_eq!(rx.sender_strong_count(), 0);
    });
}

#[test]
fn an_owned_permit_gives_the_value_back_when_the_receivers_are_gone() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        let (permit, weak) = (tx.clone().try_reserve_owned().unwrap(), tx.downgrade());
        drop((rx, tx));
        let SendError(back) = permit.send(ledger.make()).unwrap_err();
        assert_eq!(ledger.alive(), 1);
        drop(back);
        ledger.assert_all_dropped_once();
        assert_eq!(weak.strong_count(), 0, "the permit's sender is gone");
    });
}

#[test]
fn owned_reservations_stand_in_the_one_line() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut a = polled(tx.clone().reserve_owned());
        let mut b = polled(tx.send(capacity));
        let mut c = polled(tx.clone().reserve_owned());
        a.pending();
        b.pending();
        c.pending();
        rx.try_recv().unwrap();
        settle().await;
        let permit = a.woken().unwrap();
        assert!(!b.wakes.fired());
        drop(permit.release());
        assert_eq!(b.woken(), Ok(()));
        assert!(!c.wakes.fired());
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        rx.try_recv().unwrap();
        settle().await;
        drop(c.woken().unwrap().send(capacity + 1).unwrap());
        let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        assert_eq!(got, (2..capacity + 2).collect::<Vec<_>>());
    });
}

#[test]
fn an_owned_reservation_that_is_dropped_passes_on_its_slot_and_ends_its_sender() {
    // B004, B017
    everywhere(|capacity| async move {
        for granted in [false, true] {
            let (tx, mut rx) = full(capacity);
            let mut first = polled(tx.clone().reserve_owned());
            let mut next = polled(tx.reserve());
            first.pending();
            next.pending();
            if granted {
                rx.try_recv().unwrap();
                settle().await;
                assert!(first.wakes.fired());
            }
            assert_eq!(rx.sender_strong_count(), 2);
            drop(first);
            assert_eq!(rx.sender_strong_count(), 1);
            if !granted {
                rx.try_recv().unwrap();
                settle().await;
            }
            drop(next.woken().unwrap());
            assert_eq!(tx.capacity(), 1);
        }
    });
}

#[test]
fn a_closed_channel_ends_when_the_last_owned_permit_goes() {
    // B007
    everywhere(|capacity| async move {
        for released in [false, true] {
            let (tx, mut rx) = channel::<usize>(capacity);
            let permit = tx.clone().try_reserve_owned().unwrap();
            rx.close();
            let mut recv = polled(rx.recv());
            recv.pending();
            if released {
                drop(permit.release());
            } else {
                drop(permit);
            }
            assert_eq!(recv.woken(), None);
        }
    });
}

#[test]
fn same_channel_of_owned_permits() {
    let (a, _a) = channel::<u8>(2);
    let (b, _b) = channel::<u8>(2);
    let first = a.clone().try_reserve_owned().unwrap();
    let second = a.clone().try_reserve_owned().unwrap();
    let other = b.clone().try_reserve_owned().unwrap();
    assert!(first.same_channel(&second) && !first.same_channel(&other));
    assert!(!first.same_channel_as_sender(&b));
    let (first, second) = (first.release(), second.release());
    let borrowed = (first.try_reserve().unwrap(), second.try_reserve().unwrap());
    let foreign = b.try_reserve().unwrap();
    assert!(borrowed.0.same_channel(&borrowed.1) && !borrowed.0.same_channel(&foreign));
    assert!(format!("{other:?}").contains("OwnedPermit"));
}

#[test]
fn owned_permits_cross_tasks_and_threads() {
    within("owned permits", || {
        for place in Place::ALL {
            place.run(async move {
                let (tx, mut rx) = channel(1);
                let mut tx = Some(tx);
                for i in 0..20 {
                    let permit = tx.take().unwrap().reserve_owned().await.unwrap();
                    settle().await;
                    let thread = std::thread::spawn(move || permit.send(i).unwrap());
                    assert_eq!(rx.recv().await, Some(i));
                    tx = Some(thread.join().unwrap());
                }
            });
        }
    });
}

#[test]
#[should_panic = "polled after it was ready"]
fn an_owned_reservation_polled_after_its_end_says_so() {
    let (tx, _rx) = channel::<u8>(1);
    let mut reserve = polled(tx.reserve_owned());
    drop(reserve.ready().unwrap());
    _ = reserve.poll();
}

#[test]
fn an_owned_permit_keeps_the_channel_open() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<Arc<()>>(capacity);
        let weak = tx.downgrade();
        let permit = tx.try_reserve_owned().unwrap();
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert!(!rx.is_closed());
        drop(weak.upgrade().unwrap());
        drop(permit);
        assert!(weak.upgrade().is_none());
    });
}
