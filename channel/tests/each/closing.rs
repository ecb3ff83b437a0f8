//! The end of a channel: who learns of it, when, and that all forms of asking agree.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::full;
use crate::common::{Ledger, everywhere, noop, polled, settle};
use crate::flavor::error::{SendError, TryRecvError, TrySendError};
use crate::flavor::{Receiver, Sender, channel};
use futures_lite::Stream;

/// What the receiving side says once nothing can arrive any more, by every form of receive.
#[track_caller]
fn assert_ended<T: std::fmt::Debug + PartialEq>(rx: &mut Receiver<T>) {
    for _ in 0..2 {
        let mut cx = Context::from_waker(noop());
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(None));
        assert_eq!(Pin::new(&mut *rx).poll_next(&mut cx), Poll::Ready(None));
        assert_eq!(polled(rx.recv()).ready(), None);
        assert_eq!(polled(rx.recv_many(&mut Vec::new(), 4)).ready(), 0);
        assert!(rx.is_closed() && rx.is_empty());
    }
}

/// What the receiving side says while a message may still come.
#[track_caller]
fn assert_empty<T: std::fmt::Debug + PartialEq>(rx: &mut Receiver<T>) {
    let mut cx = Context::from_waker(noop());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    assert_eq!(Pin::new(&mut *rx).poll_next(&mut cx), Poll::Pending);
    polled(rx.recv()).pending();
    polled(rx.recv_many(&mut Vec::new(), 4)).pending();
    assert!(rx.is_empty());
}

/// What the sending side says of a closed channel, by every form of sending.
#[track_caller]
fn assert_closed_to_senders(tx: &Sender<usize>) {
    assert!(tx.is_closed());
    assert_eq!(tx.try_send(7), Err(TrySendError::Closed(7)));
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Closed(()))));
    assert_eq!(polled(tx.send(7)).ready(), Err(SendError(7)));
    assert!(matches!(polled(tx.reserve()).ready(), Err(SendError(()))));
    polled(tx.closed()).ready();
}

#[test]
fn every_query_in_the_open_state() {
    // B085
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<usize>(capacity);
        assert!(!tx.is_closed() && !rx.is_closed());
        assert!(tx.is_empty() && rx.is_empty());
        assert_eq!((tx.len(), rx.len()), (0, 0));
        assert_eq!((tx.capacity(), rx.capacity()), (capacity, capacity));
        assert_eq!((tx.max_capacity(), rx.max_capacity()), (capacity, capacity));
        assert_empty(&mut rx);
        polled(tx.closed()).pending();
        drop(polled(tx.reserve()).ready().unwrap());
        assert_eq!(polled(tx.send(1)).ready(), Ok(()));
        assert_eq!(rx.try_recv(), Ok(1));
    });
}

#[test]
fn every_query_when_closed_with_items() {
    // B085
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        rx.close();
        assert!(rx.is_closed());
        assert_eq!((rx.len(), tx.len()), (capacity, capacity));
        assert!(!rx.is_empty() && !tx.is_empty());
        assert_eq!((tx.capacity(), rx.capacity()), (0, 0));
        assert_closed_to_senders(&tx);
        for i in 0..capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert_ended(&mut rx);
        assert_closed_to_senders(&tx);
    });
}

#[test]
fn every_query_when_closed_and_empty() {
    // B085, B032
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        rx.close();
        assert_closed_to_senders(&tx);
        assert_ended(&mut rx);
        assert_eq!((tx.len(), rx.len()), (0, 0));
        assert_eq!(tx.max_capacity(), capacity);
        rx.close();
        assert_ended(&mut rx);
        drop(tx);
        assert_ended(&mut rx);
    });
}

#[test]
fn every_query_when_closed_with_a_permit_out() {
    // B085, B031
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let permit = polled(tx.reserve()).ready().unwrap();
        rx.close();
        assert!(rx.is_closed());
        assert_closed_to_senders(&tx);
        assert_empty(&mut rx);
        assert_eq!(permit.send(1), Ok(()));
        assert_eq!((rx.len(), tx.len()), (1, 1));
        assert_eq!(rx.try_recv(), Ok(1));
        assert_ended(&mut rx);
        assert_closed_to_senders(&tx);
    });
}

#[test]
fn every_query_without_senders() {
    // B085
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        drop(tx);
        assert!(rx.is_closed() && !rx.is_empty());
        assert_eq!(rx.len(), capacity);
        assert_eq!(rx.sender_strong_count(), 0);
        let mut got = Vec::new();
        assert_eq!(polled(rx.recv_many(&mut got, 100)).ready(), capacity);
        assert_ended(&mut rx);
        rx.close();
        assert_ended(&mut rx);
    });
}

#[test]
fn every_query_without_receiver() {
    // B085, B096
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        drop(rx);
        assert_closed_to_senders(&tx);
        assert_eq!(tx.len(), 0);
        assert!(tx.is_empty());
        assert_eq!(tx.max_capacity(), capacity);
        assert_closed_to_senders(&tx.clone());
    });
}

#[test]
fn a_full_channel_without_receiver_is_closed_and_not_full() {
    // B096, with permits out as well
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        drop(rx);
        assert_closed_to_senders(&tx);
        for permit in permits {
            assert_eq!(permit.send(3), Err(SendError(3)));
        }
        assert_closed_to_senders(&tx);
    });
}

#[test]
fn nothing_reopens_a_closed_channel() {
    // B095
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity + 1);
        let permit = tx.try_reserve().unwrap();
        let held = tx.try_reserve().unwrap();
        rx.close();
        drop(permit);
        assert_closed_to_senders(&tx);
        held.send(1).unwrap();
        assert_closed_to_senders(&tx);
        let clone = tx.clone();
        assert_closed_to_senders(&clone);
        drop(clone);
        let weak = tx.downgrade();
        assert_closed_to_senders(&weak.upgrade().unwrap());
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        assert_closed_to_senders(&tx);
        rx.close();
        assert_closed_to_senders(&tx);
        drop(rx);
        assert_closed_to_senders(&tx);
    });
}

#[test]
fn close_gives_waiting_senders_their_value_back() {
    // B025
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut sends: Vec<_> = (0..4).map(|i| polled(tx.send(100 + i))).collect();
        let mut reserves: Vec<_> = (0..4).map(|_| polled(tx.reserve())).collect();
        for (send, reserve) in sends.iter_mut().zip(&mut reserves) {
            send.pending();
            reserve.pending();
        }
        rx.close();
        for (i, send) in sends.iter_mut().enumerate() {
            assert_eq!(send.woken(), Err(SendError(100 + i)));
        }
        for reserve in &mut reserves {
            assert!(matches!(reserve.woken(), Err(SendError(()))));
        }
        assert_eq!(rx.len(), capacity);
    });
}

#[test]
fn dropping_the_receiver_gives_waiting_senders_their_value_back() {
    // B025
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        let mut sends: Vec<_> = (0..4).map(|i| polled(tx.send(100 + i))).collect();
        for send in &mut sends {
            send.pending();
        }
        let mut reserve = polled(tx.reserve());
        reserve.pending();
        drop(rx);
        for (i, send) in sends.iter_mut().enumerate() {
            assert_eq!(send.woken(), Err(SendError(100 + i)));
        }
        assert!(reserve.woken().is_err());
    });
}

#[test]
fn a_waiter_dropped_after_the_close_drops_its_value_once() {
    everywhere(|capacity| async move {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..capacity {
            tx.try_send(ledger.make()).unwrap();
        }
        let mut send = polled(tx.send(ledger.make()));
        let mut reserve = polled(tx.reserve());
        send.pending();
        reserve.pending();
        rx.close();
        drop((send, reserve));
        assert_eq!(ledger.drops_of(capacity), 1);
        drop(rx);
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_deposited_send_is_accepted_though_the_channel_closes() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut send = polled(tx.send(capacity));
        send.pending();
        rx.try_recv().unwrap();
        settle().await;
        rx.close();
        assert_eq!(send.woken(), Ok(()));
        for i in 1..=capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert_ended(&mut rx);
    });
}

#[test]
fn close_wakes_whoever_waits_for_it() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<usize>(capacity);
        let other = tx.clone();
        let mut waits = [
            polled(tx.closed()),
            polled(tx.closed()),
            polled(other.closed()),
        ];
        for wait in &mut waits {
            wait.pending();
        }
        let [a, b, mut c] = waits;
        let mut a = a;
        drop(b);
        tx.try_send(1).unwrap();
        rx.try_recv().unwrap();
        assert!(!a.wakes.fired());
        rx.close();
        a.woken();
        c.woken();
        polled(tx.closed()).ready();
    });
}

#[test]
fn dropping_the_receiver_wakes_whoever_waits_for_the_close() {
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        let mut closed = polled(tx.closed());
        closed.pending();
        drop(rx);
        closed.woken();
    });
}

#[test]
fn a_parked_receive_learns_of_the_last_sender() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<usize>(capacity);
        let other = tx.clone();
        let weak = tx.downgrade();
        let mut recv = polled(rx.recv());
        recv.pending();
        drop(tx);
        recv.pending();
        drop(other);
        assert_eq!(recv.woken(), None);
        drop(recv);
        assert!(weak.upgrade().is_none());
        assert_ended(&mut rx);
    });
}

#[test]
fn the_last_message_comes_before_the_end() {
    // B013, in its sequential form; the race is in races.rs
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut recv = polled(rx.recv());
        recv.pending();
        tx.try_send(1).unwrap();
        drop(tx);
        assert_eq!(recv.woken(), Some(1));
        drop(recv);
        assert_ended(&mut rx);
    });
}

#[test]
fn a_weak_sender_neither_holds_open_nor_reopens() {
    // B084
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let weak = tx.downgrade();
        let second = weak.clone();
        assert_eq!((tx.strong_count(), tx.weak_count()), (1, 2));
        let up = weak.upgrade().unwrap();
        assert!(up.same_channel(&tx));
        assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (2, 2));
        drop(tx);
        up.try_send(1).unwrap();
        drop(second);
        assert_eq!(up.weak_count(), 1);
        drop(up);
        assert!(weak.upgrade().is_none());
        assert_eq!(rx.try_recv(), Ok(1));
        assert_ended(&mut rx);
        assert!(weak.upgrade().is_none());
        drop(rx);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn a_closed_channel_can_be_upgraded_and_stays_closed() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let weak = tx.downgrade();
        rx.close();
        let up = weak.upgrade().unwrap();
        assert_closed_to_senders(&up);
        drop((rx, tx));
        assert_closed_to_senders(&up);
    });
}

#[test]
fn same_channel_tells_channels_apart() {
    let (a, _a) = channel::<u8>(1);
    let (b, _b) = channel::<u8>(1);
    assert!(a.same_channel(&a.clone()));
    assert!(!a.same_channel(&b));
}

#[test]
fn errors_speak_lower_case_and_need_no_debug() {
    struct Opaque;
    let closed: Box<dyn std::error::Error> = Box::new(SendError(Opaque));
    let full: Box<dyn std::error::Error> = Box::new(TrySendError::Full(Opaque));
    let gone: Box<dyn std::error::Error> = Box::new(TrySendError::Closed(Opaque));
    let empty: Box<dyn std::error::Error> = Box::new(TryRecvError::Empty);
    let ended: Box<dyn std::error::Error> = Box::new(TryRecvError::Disconnected);
    let mut texts = Vec::new();
    for error in [closed, full, gone, empty, ended] {
        let text = error.to_string();
        assert!(
            !text.is_empty() && text.starts_with(char::is_lowercase),
            "{text:?}"
        );
        assert!(!text.ends_with('.'), "{text:?}");
        assert!(!format!("{error:?}").is_empty());
        texts.push(text);
    }
    assert_ne!(texts[1], texts[2]);
    assert_ne!(texts[3], texts[4]);
    assert_eq!(SendError(3).into_inner(), 3);
    assert_eq!(TrySendError::Full(4).into_inner(), 4);
    assert_eq!(TrySendError::Closed(5).into_inner(), 5);
}

#[test]
fn debug_output_blocks_nobody() {
    let (tx, mut rx) = full(2);
    let mut send = polled(tx.send(2));
    send.pending();
    let text = format!("{tx:?} {rx:?} {:?}", tx.downgrade());
    assert!(text.contains("Sender") && text.contains("Receiver"));
    rx.try_recv().unwrap();
    let permit = {
        rx.try_recv().unwrap();
        tx.try_reserve().unwrap()
    };
    assert!(format!("{permit:?}").contains("Permit"));
}
