//! Several permits at a time: all or nothing, in line like everybody, and given back to the last one.

use std::collections::VecDeque;

use crate::common::{Ledger, everywhere, polled, settle};
use crate::flavor::channel;
use crate::flavor::error::{ReserveError, SendError, TryRecvError, TryReserveError, TrySendError};

use super::full;

#[test]
fn many_permits_take_as_many_slots() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for count in 0..=capacity {
            let mut permits = tx.try_reserve_many(count).unwrap();
            assert_eq!(permits.len(), count);
            assert_eq!((tx.capacity(), tx.len()), (capacity - count, 0));
            for i in 0..count / 2 {
                permits.next().unwrap().send(i).unwrap();
            }
            assert_eq!(permits.len(), count - count / 2);
            // Some taken out and not used, the rest never taken out.
            drop(permits.next());
            drop(permits);
            assert_eq!(tx.capacity(), capacity - count / 2);
            for i in 0..count / 2 {
                assert_eq!(rx.try_recv(), Ok(i));
            }
            settle().await;
            assert_eq!(tx.capacity(), capacity);
        }
    });
}

#[test]
fn a_permit_outlives_the_iterator_that_it_came_from() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut permits = tx.try_reserve_many(capacity).unwrap();
        let one = permits.next().unwrap();
        drop(permits);
        assert_eq!(tx.capacity(), capacity - 1);
        one.send(5).unwrap();
        assert_eq!(rx.try_recv(), Ok(5));
    });
}

#[test]
fn more_than_the_capacity_is_an_error_at_once() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        for count in [capacity + 1, usize::MAX / 2, usize::MAX] {
            assert!(matches!(
                polled(tx.reserve_many(count)).ready(),
                Err(ReserveError::TooMany)
            ));
            assert!(matches!(
                tx.try_reserve_many(count),
                Err(TryReserveError::TooMany)
            ));
        }
        // The line has not been touched.
        rx.try_recv().unwrap();
        settle().await;
        assert_eq!(tx.capacity(), 1);
    });
}

#[test]
fn none_are_had_at_once_from_a_full_channel_and_not_from_a_closed_one() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut waits = polled(tx.send(capacity));
        waits.pending();
        assert_eq!(tx.try_reserve_many(0).unwrap().count(), 0);
        let mut none = polled(tx.reserve_many(0)).ready().unwrap();
        assert!(none.next().is_none());
        let mut messages = VecDeque::from([9]);
        assert_eq!(none.send_many(&mut messages), Ok(0));
        assert_eq!(messages, [9]);
        rx.close();
        assert!(matches!(
            tx.try_reserve_many(0),
            Err(TryReserveError::Closed)
        ));
        assert!(matches!(
            polled(tx.reserve_many(0)).ready(),
            Err(ReserveError::Closed)
        ));
    });
}

#[test]
fn a_closed_channel_grants_none() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<u8>(capacity);
        rx.close();
        assert!(matches!(
            tx.try_reserve_many(1),
            Err(TryReserveError::Closed)
        ));
        assert!(matches!(
            polled(tx.reserve_many(1)).ready(),
            Err(ReserveError::Closed)
        ));
    });
}

#[test]
fn many_wait_until_all_are_there_and_nobody_overtakes() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut many = polled(tx.reserve_many(capacity));
        many.pending();
        let mut behind = polled(tx.send(100));
        behind.pending();
        for i in 0..capacity {
            assert!(!many.wakes.fired());
            assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
            assert!(matches!(tx.try_reserve_many(1), Err(TryReserveError::Full)));
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        assert!(!behind.wakes.fired());
        let permits = many.woken().unwrap();
        assert_eq!((permits.len(), tx.capacity()), (capacity, 0));
        let mut messages: VecDeque<_> = (0..capacity).collect();
        assert_eq!(permits.send_many(&mut messages), Ok(capacity));
        assert!(!behind.wakes.fired());
        assert_eq!(rx.try_recv(), Ok(0));
        settle().await;
        assert_eq!(behind.woken(), Ok(()));
    });
}

#[test]
fn who_wants_less_goes_on_when_the_head_gives_up() {
    // B016
    everywhere(|capacity| async move {
        if capacity == 1 {
            return;
        }
        let (tx, mut rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity - 1).unwrap();
        let mut many = polled(tx.reserve_many(capacity));
        let mut one = polled(tx.reserve());
        let mut send = polled(tx.send(1));
        many.pending();
        one.pending();
        send.pending();
        drop(many);
        let permit = one.woken().unwrap();
        assert!(!send.wakes.fired());
        permit.send(0).unwrap();
        assert_eq!(rx.try_recv(), Ok(0));
        settle().await;
        assert_eq!(send.woken(), Ok(()));
        drop(permits);
    });
}

#[test]
fn many_that_were_granted_and_dropped_serve_all_behind() {
    // B004, B017
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut many = polled(tx.reserve_many(capacity));
        many.pending();
        let mut sends: Vec<_> = (0..capacity).map(|i| polled(tx.send(100 + i))).collect();
        for send in &mut sends {
            send.pending();
        }
        let mut last = polled(tx.reserve());
        last.pending();
        // No more: with the queue empty, a message would be taken out of the line.
        for i in 0..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        assert!(many.wakes.fired() && !sends[0].wakes.fired());
        drop(many);
        for send in &mut sends {
            assert_eq!(send.woken(), Ok(()));
        }
        assert!(!last.wakes.fired());
        assert_eq!(rx.try_recv(), Ok(100));
        settle().await;
        drop(last.woken().unwrap());
    });
}

#[test]
fn permits_given_back_one_by_one_serve_the_line() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut permits = tx.try_reserve_many(capacity).unwrap();
        let mut sends: Vec<_> = (0..capacity).map(|i| polled(tx.send(i))).collect();
        for send in &mut sends {
            send.pending();
        }
        for served in 0..capacity {
            permits.next().unwrap().release();
            for (place, send) in sends.iter().enumerate() {
                assert_eq!(send.wakes.fired(), place <= served);
            }
        }
        assert_eq!(rx.len(), capacity);
    });
}

#[test]
fn messages_sent_together_arrive_together_and_wake_once() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for short in 0..=capacity {
            let permits = tx.try_reserve_many(capacity).unwrap();
            let mut recv = polled(rx.recv());
            recv.pending();
            let mut messages: VecDeque<_> = (0..capacity - short).collect();
            assert_eq!(permits.send_many(&mut messages), Ok(capacity - short));
            assert!(messages.is_empty());
            assert_eq!(tx.capacity(), short, "what is left comes back");
            assert_eq!(recv.wakes.count(), usize::from(short < capacity));
            drop(recv);
            let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
            assert_eq!(got, (0..capacity - short).collect::<Vec<_>>());
            settle().await;
        }
    });
}

#[test]
fn messages_beyond_the_permits_stay_where_they_are() {
    // B098
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut messages: VecDeque<_> = (0..3 * capacity).collect();
        for lap in 0..3 {
            let permits = tx.reserve_many(capacity).await.unwrap();
            assert_eq!(permits.send_many(&mut messages), Ok(capacity));
            assert_eq!(
                messages.front().copied(),
                (lap < 2).then_some((lap + 1) * capacity)
            );
            for i in 0..capacity {
                assert_eq!(rx.try_recv(), Ok(lap * capacity + i));
            }
            settle().await;
        }
    });
}

#[test]
fn room_left_over_by_many_goes_to_the_line() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        let mut send = polled(tx.send(100));
        send.pending();
        let mut messages: VecDeque<_> = (1..capacity).collect();
        assert_eq!(permits.send_many(&mut messages), Ok(capacity - 1));
        assert_eq!(send.woken(), Ok(()));
        for i in 1..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert_eq!(rx.try_recv(), Ok(100));
    });
}

#[test]
fn messages_for_receivers_that_are_gone_stay_where_they_are() {
    // B098
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        let mut messages: VecDeque<_> = (0..capacity + 1).map(|_| ledger.make()).collect();
        drop(rx);
        assert_eq!(permits.send_many(&mut messages), Err(SendError(())));
        assert_eq!(messages.len(), capacity + 1);
        assert_eq!(ledger.alive(), capacity + 1);
        drop(messages);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn many_may_still_send_into_a_closed_channel() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        rx.close();
        let mut recv = polled(rx.recv());
        recv.pending();
        let mut messages: VecDeque<_> = (0..capacity).collect();
        assert_eq!(permits.send_many(&mut messages), Ok(capacity));
        assert_eq!(recv.woken(), Some(0));
        drop(recv);
        for i in 1..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn the_last_of_many_ends_a_closed_channel() {
    // B007: given back one by one, all at once, and left over by a batch that sends nothing.
    everywhere(|capacity| async move {
        for way in 0..3 {
            let (tx, mut rx) = channel::<usize>(capacity);
            let mut permits = tx.try_reserve_many(capacity).unwrap();
            rx.close();
            let mut recv = polled(rx.recv());
            recv.pending();
            match way {
                0 => drop(permits),
                1 => {
                    for _ in 1..capacity {
                        permits.next().unwrap().release();
                        recv.pending();
                    }
                    drop(permits.next());
                }
                _ => assert_eq!(permits.send_many(&mut VecDeque::new()), Ok(0)),
            }
            assert_eq!(recv.woken(), None);
            drop(recv);
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}

#[test]
fn a_close_ends_many_that_wait_and_the_receiver_is_told_of_the_last_permit() {
    // B007, as it was reported: the batch waits for what others hold.
    everywhere(|capacity| async move {
        for dropped in [false, true] {
            let (tx, mut rx) = channel::<usize>(capacity);
            let permits = tx.try_reserve_many(capacity).unwrap();
            let mut many = polled(tx.reserve_many(capacity));
            many.pending();
            rx.close();
            let mut recv = polled(rx.recv());
            recv.pending();
            drop(permits);
            if dropped {
                drop(many);
            } else {
                assert!(matches!(many.woken(), Err(ReserveError::Closed)));
            }
            assert_eq!(recv.woken(), None);
        }
    });
}

#[test]
fn many_granted_and_left_alone_end_with_the_closed_channel() {
    // B007
    everywhere(|capacity| async move {
        for claim in [true, false] {
            let (tx, mut rx) = full(capacity);
            let mut many = polled(tx.reserve_many(capacity));
            many.pending();
            while rx.try_recv().is_ok() {
                settle().await;
            }
            assert!(many.wakes.fired());
            rx.close();
            let mut recv = polled(rx.recv());
            recv.pending();
            if claim {
                // The grant stays good, like permits.
                let permits = many.ready().unwrap();
                recv.pending();
                drop(permits);
            } else {
                drop(many);
            }
            assert_eq!(recv.woken(), None);
        }
    });
}

#[test]
fn many_and_full_and_closed_say_different_things() {
    let texts = [
        ReserveError::TooMany.to_string(),
        ReserveError::Closed.to_string(),
        TryReserveError::Full.to_string(),
    ];
    assert_ne!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
    assert_eq!(TryReserveError::TooMany.to_string(), texts[0]);
    assert_eq!(TryReserveError::Closed.to_string(), texts[1]);
    assert!(TryReserveError::Full.is_full() && TryReserveError::Closed.is_closed());
    assert!(!TryReserveError::TooMany.is_full() && !TryReserveError::TooMany.is_closed());
}
