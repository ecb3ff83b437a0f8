//! Two threads meet at the channel's narrow places, many times. Each round is judged after both
//! sides have come to rest, by hand-polling, so that a lost wake-up is seen and not waited for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use super::full;
use crate::common::{
    Counter, LIMIT, Ledger, Tracked, Watchdog, block_on, counter, duel, duel_in_polls, noop,
    poll_once, polled, rounds, yield_once,
};
use crate::flavor::error::{SendError, TryRecvError};
use crate::flavor::{Receiver, Sender, channel};

/// A send that owns its sender, so that it can be handed to a thread.
type Sending = Pin<Box<dyn Future<Output = Result<(), SendError<Tracked>>> + Send>>;

fn sending(tx: &Sender<Tracked>, message: Tracked) -> Sending {
    let tx = tx.clone();
    Box::pin(async move { tx.send(message).await })
}

/// A reservation that is given back as soon as it is claimed; true if it was granted.
type Reserving = Pin<Box<dyn Future<Output = bool> + Send>>;

fn reserving<T: Send + 'static>(tx: &Sender<T>) -> Reserving {
    let tx = tx.clone();
    Box::pin(async move { tx.reserve().await.is_ok() })
}

/// One poll of `recv` with a waker to look at later.
fn poll_recv<T>(rx: &mut Receiver<T>) -> (Poll<Option<T>>, Arc<Counter>) {
    let (count, waker) = counter();
    (rx.poll_recv(&mut Context::from_waker(&waker)), count)
}

#[test]
fn the_last_message_comes_before_the_end() {
    // B013
    type Form = fn(&mut Receiver<u32>) -> Option<u32>;
    let forms: [Form; 3] = [
        |rx| rx.blocking_recv(),
        |rx| block_on(rx.recv()),
        |rx| {
            loop {
                match rx.try_recv() {
                    Ok(i) => return Some(i),
                    Err(TryRecvError::Disconnected) => return None,
                    Err(TryRecvError::Empty) => std::hint::spin_loop(),
                }
            }
        },
    ];
    for form in forms {
        duel(
            "last message",
            rounds(40_000),
            |rng| channel(1 + rng.below(2)),
            |tx| {
                tx.try_send(1).unwrap();
                drop(tx);
            },
            |mut rx| (form(&mut rx), form(&mut rx)),
            |(), got| assert_eq!(got, (Some(1), None)),
        );
    }
}

#[test]
fn a_message_wakes_a_receiver_that_is_about_to_park() {
    duel(
        "send and park",
        rounds(60_000),
        |rng| channel(1 + rng.below(2)),
        |tx: Sender<u32>| {
            tx.try_send(1).unwrap();
            tx
        },
        |mut rx| {
            let (got, woken) = poll_recv(&mut rx);
            (rx, got, woken)
        },
        |_tx, (mut rx, got, woken)| match got {
            Poll::Ready(i) => assert_eq!(i, Some(1)),
            Poll::Pending => {
                assert!(woken.fired(), "the receiver sleeps on a message");
                assert_eq!(rx.try_recv(), Ok(1));
            }
        },
    );
}

#[test]
fn the_last_sender_wakes_a_receiver_that_is_about_to_park() {
    duel(
        "last sender and park",
        rounds(40_000),
        |_| channel::<u32>(1),
        drop,
        |mut rx| {
            let (got, woken) = poll_recv(&mut rx);
            (rx, got, woken)
        },
        |(), (mut rx, got, woken)| {
            assert!(got == Poll::Ready(None) || woken.fired());
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        },
    );
}

#[test]
fn a_free_slot_reaches_a_sender_that_is_about_to_park() {
    duel(
        "receive and park",
        rounds(60_000),
        |rng| full(1 + rng.below(2)),
        |tx| {
            let (woken, waker) = counter();
            let mut send = Box::pin(async move { tx.send(9).await });
            let got = poll_once(send.as_mut(), &waker);
            (send, got, woken)
        },
        |mut rx| {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        },
        |(mut send, got, woken), mut rx| {
            if got.is_pending() {
                assert!(woken.fired(), "the sender sleeps beside a free slot");
                assert_eq!(poll_once(send.as_mut(), noop()), Poll::Ready(Ok(())));
            }
            let last = std::iter::from_fn(|| rx.try_recv().ok()).last();
            assert_eq!(last, Some(9));
        },
    );
}

#[test]
fn a_slot_freed_in_a_poll_reaches_a_sender_that_parks_meanwhile() {
    // The receiver goes neither on nor to sleep after this one receive, so that only what is done
    // at the end of its poll can find the sender.
    duel_in_polls(
        "receive in a poll and park",
        rounds(200_000),
        |rng| full(1 + rng.below(2)),
        |tx| {
            let (woken, waker) = counter();
            let mut send = Box::pin(async move { tx.send(9).await });
            let got = poll_once(send.as_mut(), &waker);
            (send, got, woken)
        },
        |mut rx| {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        },
        |(_send, got, woken), _rx| {
            assert!(
                got.is_ready() || woken.fired(),
                "the sender sleeps beside a free slot"
            );
        },
    );
}

#[test]
fn a_permit_given_back_reaches_a_sender_that_is_about_to_park() {
    duel(
        "give back and park",
        rounds(40_000),
        |_| {
            let (tx, rx) = channel(1);
            let tx = Arc::new(tx);
            let holder = Arc::clone(&tx);
            let mut hold = Box::pin(async move {
                let _permit = holder.reserve().await.unwrap();
                std::future::pending::<()>().await;
            });
            assert!(poll_once(hold.as_mut(), noop()).is_pending());
            (hold, (tx, rx))
        },
        drop,
        |(tx, rx)| {
            let (woken, waker) = counter();
            let mut send = Box::pin(async move { tx.send(9).await });
            let got = poll_once(send.as_mut(), &waker);
            (rx, send, got, woken)
        },
        |(), (mut rx, _send, got, woken)| {
            assert!(got.is_ready() || woken.fired());
            assert_eq!(rx.try_recv(), Ok(9));
        },
    );
}

#[test]
fn a_close_reaches_a_sender_that_is_about_to_park() {
    // B025
    type Close = fn(Receiver<Tracked>) -> Option<Receiver<Tracked>>;
    let closers: [Close; 2] = [
        |mut rx| {
            rx.close();
            Some(rx)
        },
        |rx| {
            drop(rx);
            None
        },
    ];
    for close in closers {
        duel(
            "close and park",
            rounds(40_000),
            |rng| {
                let ledger = Ledger::new();
                let (tx, rx) = channel(1);
                if rng.one_in(4) {
                    drop(tx.try_reserve());
                } else {
                    tx.try_send(ledger.make()).unwrap();
                }
                (
                    rx,
                    (ledger.clone(), sending(&tx, ledger.make()), reserving(&tx)),
                )
            },
            close,
            |(ledger, mut send, mut reserve)| {
                let (woken, waker) = counter();
                let sent = poll_once(send.as_mut(), &waker);
                let reserved = poll_once(reserve.as_mut(), &waker);
                (ledger, send, reserve, sent, reserved, woken)
            },
            |rx, (ledger, mut send, mut reserve, sent, reserved, woken)| {
                let parked = usize::from(sent.is_pending()) + usize::from(reserved.is_pending());
                assert_eq!(woken.count(), parked, "a waiter sleeps on a closed channel");
                if sent.is_pending() {
                    assert!(matches!(
                        poll_once(send.as_mut(), noop()),
                        Poll::Ready(Err(_))
                    ));
                }
                if reserved.is_pending() {
                    assert_eq!(poll_once(reserve.as_mut(), noop()), Poll::Ready(false));
                }
                drop((sent, rx));
                ledger.assert_all_dropped_once();
            },
        );
    }
}

#[test]
fn a_close_reaches_whoever_is_about_to_wait_for_it() {
    // B025
    duel(
        "close and closed()",
        rounds(40_000),
        |_| channel::<u32>(1),
        |tx| {
            let (woken, waker) = counter();
            let mut closed = Box::pin(async move { tx.closed().await });
            let got = poll_once(closed.as_mut(), &waker);
            (closed, got, woken)
        },
        drop,
        |(_closed, got, woken), ()| assert!(got.is_ready() || woken.fired()),
    );
}

#[test]
fn the_last_permit_and_a_parking_receiver_agree_on_the_end() {
    // B007
    duel(
        "last permit",
        rounds(40_000),
        |rng| {
            let (tx, rx) = channel(1);
            let send = rng.one_in(2);
            // A second sender, so that only the permit can be what ends the channel.
            let other = tx.clone();
            let mut hold = Box::pin(async move {
                let permit = tx.reserve().await.unwrap();
                yield_once().await;
                if send {
                    permit.send(5).unwrap();
                }
                send
            });
            assert!(poll_once(hold.as_mut(), noop()).is_pending());
            ((hold, other), rx)
        },
        |(mut hold, other)| (poll_once(hold.as_mut(), noop()), other),
        |mut rx| {
            rx.close();
            let (got, woken) = poll_recv(&mut rx);
            (rx, got, woken)
        },
        |(sent, _other), (mut rx, got, woken)| {
            let expect = (sent == Poll::Ready(true)).then_some(5);
            match got {
                Poll::Ready(i) => assert_eq!(i, expect),
                Poll::Pending => {
                    assert!(woken.fired(), "the receiver sleeps on the end");
                    assert_eq!(rx.try_recv().ok(), expect);
                }
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        },
    );
}

#[test]
fn no_upgrade_succeeds_after_the_end() {
    // B084
    duel(
        "upgrade",
        rounds(40_000),
        |_| {
            let (tx, rx) = channel(1);
            let weak = tx.downgrade();
            ((Some(tx), rx), weak)
        },
        |(mut tx, mut rx)| {
            drop(tx.take());
            // Whoever upgraded in time keeps the channel open.
            let end = rx.try_recv() == Err(TryRecvError::Disconnected);
            (rx, end)
        },
        |weak| {
            let up = weak.upgrade();
            let sent = up.as_ref().map(|tx| tx.try_send(1));
            (weak, up, sent)
        },
        |(mut rx, end), (weak, up, sent)| {
            assert_eq!(up.is_none(), sent.is_none());
            if end {
                assert!(weak.upgrade().is_none());
                assert!(!matches!(sent, Some(Ok(()))), "a message after the end");
            } else if sent.is_some() {
                drop(up);
                let _ = rx.try_recv();
                assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
            }
        },
    );
}

#[test]
fn a_closing_receiver_and_a_sender_share_no_value() {
    // B132
    duel(
        "close and send",
        rounds(60_000),
        |rng| {
            let (tx, rx) = channel(1 + rng.below(2));
            (tx, rx)
        },
        |tx| tx.try_send(String::from("a value on the heap")).is_ok(),
        |mut rx| {
            rx.close();
            rx.try_recv()
        },
        |sent, got| assert_eq!(sent, got.is_ok()),
    );
}

#[test]
fn messages_sent_while_the_receiver_goes_are_dropped_once() {
    // B130: the first send of a fresh channel, the drop of the receiver, the drop of the sender.
    duel(
        "drop of the receiver",
        rounds(60_000),
        |rng| {
            let ledger = Ledger::new();
            let (tx, rx) = channel(1 + rng.below(3));
            ((tx, ledger.make(), ledger.make()), (rx, ledger))
        },
        |(tx, first, second)| {
            _ = tx.try_send(first);
            _ = tx.try_send(second);
        },
        |(rx, ledger)| {
            drop(rx);
            ledger
        },
        |(), ledger| ledger.assert_all_dropped_once(),
    );
}

#[test]
fn a_withdrawn_message_is_received_or_dropped_and_never_both() {
    // B133
    duel(
        "withdraw",
        rounds(60_000),
        |rng| {
            let ledger = Ledger::new();
            let capacity = 1 + rng.below(2);
            let (tx, mut rx) = channel(capacity);
            for _ in 0..capacity {
                tx.try_send(ledger.make()).unwrap();
            }
            let mut send = sending(&tx, ledger.make());
            assert!(poll_once(send.as_mut(), noop()).is_pending());
            let mut next = sending(&tx, ledger.make());
            assert!(poll_once(next.as_mut(), noop()).is_pending());
            if rng.one_in(2) {
                // Deposited already.
                drop(rx.try_recv().unwrap());
            }
            (send, (rx, next, ledger))
        },
        drop,
        |(mut rx, next, ledger)| {
            let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
            (rx, next, ledger, got)
        },
        |(), (mut rx, mut next, ledger, mut got)| {
            // At rest: whatever was withdrawn, the next in line has been served.
            got.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            assert_eq!(got.last().unwrap().id, ledger.made() - 1);
            assert!(matches!(
                poll_once(next.as_mut(), noop()),
                Poll::Ready(Ok(()))
            ));
            for message in &got {
                assert_eq!(ledger.drops_of(message.id), 0);
            }
            drop(got);
            ledger.assert_all_dropped_once();
        },
    );
}

#[test]
fn a_grant_dropped_as_it_is_made_reaches_the_next() {
    // B004, B017
    duel(
        "grant and drop",
        rounds(60_000),
        |rng| {
            let (tx, rx) = full(1 + rng.below(2));
            let mut first = reserving(&tx);
            assert!(poll_once(first.as_mut(), noop()).is_pending());
            let (woken, waker) = counter();
            let mut second = reserving(&tx);
            assert!(poll_once(second.as_mut(), &waker).is_pending());
            (first, (rx, tx, second, woken))
        },
        drop,
        |(mut rx, tx, second, woken)| {
            assert_eq!(rx.try_recv(), Ok(0));
            (rx, tx, second, woken)
        },
        |(), (_rx, tx, mut second, woken)| {
            assert!(woken.fired(), "the slot was lost with the first in line");
            assert_eq!(poll_once(second.as_mut(), noop()), Poll::Ready(true));
            assert_eq!(tx.capacity(), 1);
        },
    );
}

#[test]
fn the_last_waker_fires_though_the_slot_comes_as_it_is_replaced() {
    // B008
    duel(
        "replace the waker",
        rounds(60_000),
        |rng| {
            let (tx, rx) = full(1 + rng.below(2));
            let mut send = Box::pin(async move { tx.send(9).await });
            assert!(poll_once(send.as_mut(), noop()).is_pending());
            (send, rx)
        },
        |mut send| {
            let (woken, waker) = counter();
            let got = poll_once(send.as_mut(), &waker);
            (send, got, woken)
        },
        |mut rx| {
            assert_eq!(rx.try_recv(), Ok(0));
            rx
        },
        |(mut send, got, woken), _rx| {
            if got.is_pending() {
                assert!(woken.fired());
                assert_eq!(poll_once(send.as_mut(), noop()), Poll::Ready(Ok(())));
            }
        },
    );
}

#[test]
fn two_senders_do_not_share_the_last_slot() {
    duel(
        "last slot",
        rounds(60_000),
        |rng| {
            let capacity = 1 + rng.below(3);
            let (tx, rx) = channel(capacity);
            for i in 1..capacity {
                tx.try_send(i).unwrap();
            }
            (tx.clone(), (tx, rx))
        },
        |tx| tx.try_send(8).is_ok(),
        |(tx, rx)| {
            let permit = tx.try_reserve().is_ok_and(|permit| permit.send(9).is_ok());
            (permit, rx)
        },
        |a, (b, rx)| {
            // A permit that was not sent would have been given back; one of the two got the slot.
            assert!(a != b, "{a} {b}");
            assert_eq!(rx.len(), rx.max_capacity());
        },
    );
}

#[test]
fn a_fresh_clone_and_a_receive_get_along() {
    // B161
    duel(
        "clone",
        rounds(40_000),
        |rng| channel(1 + rng.below(2)),
        |tx| {
            let other = tx.clone();
            other.blocking_send(1).unwrap();
            drop(other);
            tx.blocking_send(2).unwrap();
        },
        |mut rx| [rx.blocking_recv(), rx.blocking_recv(), rx.blocking_recv()],
        |(), got| assert_eq!(got, [Some(1), Some(2), None]),
    );
}

#[test]
fn the_length_stays_within_its_bounds() {
    // B062
    let _dog = Watchdog::new("length", LIMIT, String::new);
    for capacity in [1, 2, 3, 33] {
        let (tx, mut rx) = channel(capacity);
        let stop = AtomicBool::new(false);
        let count = rounds(40_000);
        thread::scope(|s| {
            s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(tx.len() <= capacity);
                    assert!(tx.capacity() <= capacity);
                    thread::yield_now();
                }
            });
            s.spawn(|| {
                for i in 0..count {
                    match i % 4 {
                        0 => tx.blocking_send(i).unwrap(),
                        1 => block_on(tx.reserve()).unwrap().send(i).unwrap(),
                        2 => drop(tx.try_reserve()),
                        _ => _ = tx.clone().try_send(i),
                    }
                }
                tx.blocking_send(usize::MAX).unwrap();
            });
            loop {
                assert!(rx.len() <= capacity && rx.capacity() <= capacity);
                if block_on(rx.recv()) == Some(usize::MAX) {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_guarded_pool_is_never_empty() {
    // B033: as many tickets as objects; who holds a ticket must find an object.
    let _dog = Watchdog::new("pool", LIMIT, String::new);
    for objects in [1, 2, 3] {
        let (tx, rx) = channel(objects);
        for i in 0..objects {
            tx.try_send(i).unwrap();
        }
        let rx = Mutex::new(rx);
        let tickets = AtomicUsize::new(objects);
        let count = rounds(40_000) / 4;
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..count {
                        let take = |n: usize| n.checked_sub(1);
                        while tickets
                            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
                            .is_err()
                        {
                            thread::yield_now();
                        }
                        let object = rx.lock().unwrap().try_recv();
                        let object = object.expect("a ticket, and no object");
                        tx.try_send(object).expect("there is room for each object");
                        tickets.fetch_add(1, Ordering::AcqRel);
                    }
                });
            }
        });
    }
}

#[test]
fn an_overtaken_claim_is_not_taken_for_an_empty_queue() {
    // B033: a send that has returned may lie behind a claimed, not yet written slot.
    duel(
        "publish gap",
        rounds(60_000),
        |_| {
            let (tx, rx) = channel(2);
            (tx.clone(), (tx, rx))
        },
        |tx| tx.try_send(1).unwrap(),
        |(tx, mut rx)| {
            tx.try_send(2).unwrap();
            let first = rx.try_recv();
            (rx, first)
        },
        |(), (mut rx, first)| {
            let first = first.expect("a completed send was not seen");
            assert_eq!(rx.try_recv(), Ok(3 - first));
            polled(rx.recv()).ready();
        },
    );
}
