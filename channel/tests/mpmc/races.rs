//! Two threads meet where there are many receivers, many times; see the shared `races.rs`.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use crate::common::{
    CAPACITIES, Counter, LIMIT, Ledger, Watchdog, block_on, counter, duel, rounds,
};
use crate::flavor::error::TryRecvError;
use crate::flavor::{Receiver, Sender, channel};

/// A receiver that waits in its own place.
fn waits<T>(rx: &Receiver<T>) -> (Receiver<T>, Arc<Counter>) {
    let mut rx = rx.clone();
    let (count, waker) = counter();
    assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    (rx, count)
}

/// One poll with a waker to look at later.
fn poll<T>(mut rx: Receiver<T>) -> (Receiver<T>, Poll<Option<T>>, Arc<Counter>) {
    let (count, waker) = counter();
    let got = rx.poll_recv(&mut Context::from_waker(&waker));
    (rx, got, count)
}

#[test]
fn a_woken_receiver_that_goes_leaves_its_wake_to_the_next() {
    // B004
    duel(
        "woken and dropped",
        rounds(60_000),
        |rng| {
            let (tx, rx) = channel(1 + rng.below(2));
            let (first, _) = waits(&rx);
            let (second, woken) = waits(&rx);
            (first, (tx, second, woken))
        },
        drop,
        |(tx, second, woken)| {
            tx.try_send(1).unwrap();
            (tx, second, woken)
        },
        |(), (_tx, second, woken)| {
            assert!(woken.fired(), "the wake was lost with the first in line");
            assert_eq!(second.try_recv(), Ok(1));
        },
    );
}

#[test]
fn a_receiver_that_comes_too_late_is_woken_for_the_next_message() {
    duel(
        "too late",
        rounds(60_000),
        |rng| {
            let (tx, rx) = channel(1 + rng.below(2));
            let (loser, _) = waits(&rx);
            tx.try_send(1).unwrap();
            assert_eq!(rx.try_recv(), Ok(1));
            (tx, (loser, rx))
        },
        |tx: Sender<i32>| {
            tx.try_send(2).unwrap();
            tx
        },
        |(loser, rx)| (poll(loser), rx),
        |_tx, ((_loser, got, woken), rx)| match got {
            Poll::Ready(got) => assert_eq!(got, Some(2)),
            Poll::Pending => {
                assert!(woken.fired(), "a receiver sleeps on a message");
                assert_eq!(rx.try_recv(), Ok(2));
            }
        },
    );
}

#[test]
fn the_end_reaches_receivers_that_wait_and_that_are_about_to() {
    type End = fn(Sender<u32>, Receiver<u32>) -> Option<Sender<u32>>;
    let ends: [End; 2] = [
        |tx, _| {
            drop(tx);
            None
        },
        |tx, rx| {
            rx.close();
            Some(tx)
        },
    ];
    for end in ends {
        duel(
            "end and park",
            rounds(40_000),
            |_| {
                let (tx, rx) = channel::<u32>(1);
                let waiting = waits(&rx);
                ((tx, rx.clone()), (rx, waiting))
            },
            |(tx, rx)| end(tx, rx),
            |(rx, waiting)| (poll(rx), waiting),
            |_tx, ((_rx, got, late), (waiting, woken))| {
                assert!(woken.fired(), "a receiver sleeps on the end");
                assert!(got == Poll::Ready(None) || late.fired());
                assert_eq!(waiting.try_recv(), Err(TryRecvError::Disconnected));
            },
        );
    }
}

#[test]
fn the_last_permit_ends_receivers_that_wait_and_that_are_about_to() {
    // B007
    duel(
        "last permit and two receivers",
        rounds(40_000),
        |rng| {
            let (tx, rx) = channel(1);
            let permit = tx.clone().try_reserve_owned().unwrap();
            rx.close();
            let waiting = waits(&rx);
            ((permit, rng.one_in(2), tx), (rx, waiting))
        },
        |(permit, sends, tx)| {
            if sends {
                drop(permit.send(5).unwrap());
            } else {
                drop(permit);
            }
            (sends, tx)
        },
        |(rx, waiting)| (poll(rx), waiting),
        |(sends, _tx), ((rx, got, late), (waiting, woken))| {
            assert!(woken.fired(), "a receiver sleeps on the end");
            assert!(got.is_ready() || late.fired());
            let mut all: Vec<u32> = Vec::new();
            if let Poll::Ready(got) = got {
                all.extend(got);
            }
            all.extend(rx.try_recv());
            assert_eq!(all, if sends { vec![5] } else { vec![] });
            assert_eq!(waiting.try_recv(), Err(TryRecvError::Disconnected));
        },
    );
}

#[test]
fn messages_sent_while_the_last_receivers_go_are_dropped_once() {
    // B130
    duel(
        "drop of the last receivers",
        rounds(60_000),
        |rng| {
            let ledger = Ledger::new();
            let (tx, rx) = channel(1 + rng.below(3));
            let other = rx.clone();
            if rng.one_in(2) {
                tx.try_send(ledger.make()).unwrap();
            }
            let messages = (ledger.make(), ledger.make());
            ((tx, other, messages), (rx, ledger))
        },
        |(tx, other, (first, second))| {
            _ = tx.try_send(first);
            drop(other);
            _ = tx.force_send(second);
            assert!(tx.capacity() <= tx.max_capacity());
        },
        |(rx, ledger)| {
            drop(rx);
            ledger
        },
        |(), ledger| ledger.assert_all_dropped_once(),
    );
}

#[test]
fn an_upgrade_and_the_last_receiver_agree() {
    // B084
    duel(
        "upgrade of a receiver",
        rounds(40_000),
        |_| {
            let (tx, rx) = channel(1);
            let weak = rx.downgrade();
            (rx, (tx, weak))
        },
        drop,
        |(tx, weak)| {
            let up = weak.upgrade();
            let sent = up.as_ref().map(|_| tx.try_send(1).is_ok());
            (tx, weak, up, sent)
        },
        |(), (tx, weak, up, sent)| {
            assert_ne!(sent, Some(false), "closed though there is a receiver");
            assert_eq!(tx.is_closed(), up.is_none());
            drop(up);
            assert!(tx.is_closed() && weak.upgrade().is_none());
        },
    );
}

#[test]
fn a_forced_message_and_a_receive_share_the_oldest() {
    duel(
        "force and receive",
        rounds(60_000),
        |rng| {
            let capacity = 1 + rng.below(2);
            let (tx, rx) = channel(capacity);
            for i in 0..capacity {
                tx.try_send(i).unwrap();
            }
            (tx, rx)
        },
        |tx| (tx.force_send(9).unwrap(), tx),
        |rx| {
            let got = rx.try_recv().unwrap();
            (rx, got)
        },
        |(evicted, tx), (rx, got)| {
            let mut all: Vec<_> = evicted.into_iter().chain([got]).collect();
            all.extend(std::iter::from_fn(|| rx.try_recv().ok()));
            all.sort_unstable();
            assert_eq!(all, (0..tx.max_capacity()).chain([9]).collect::<Vec<_>>());
        },
    );
}

#[test]
fn a_pool_of_many_takers_is_never_empty() {
    // B033: as many tickets as objects; who holds a ticket must find an object, without a lock around
    // the receiver.
    let _dog = Watchdog::new("pool", LIMIT, String::new);
    for objects in [1, 2, 3] {
        let (tx, rx) = channel(objects);
        for i in 0..objects {
            tx.try_send(i).unwrap();
        }
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
                        let object = rx.try_recv().expect("a ticket, and no object");
                        tx.try_send(object).expect("there is room for each object");
                        tickets.fetch_add(1, Ordering::AcqRel);
                    }
                });
            }
        });
    }
}

#[test]
fn messages_of_one_sender_reach_each_receiver_in_order() {
    // B066, with many receivers
    let _dog = Watchdog::new("order", LIMIT, String::new);
    for capacity in CAPACITIES {
        let (tx, rx) = channel(capacity);
        let count = rounds(40_000);
        let all = Mutex::new(vec![0_u8; 2 * count]);
        thread::scope(|s| {
            for _ in 0..3 {
                let rx = rx.clone();
                s.spawn(|| {
                    let rx = rx;
                    let mut last = [None; 2];
                    let mut mine = Vec::new();
                    while let Some((from, i)) = block_on(rx.recv()) {
                        assert!(last[from] < Some(i), "out of order");
                        last[from] = Some(i);
                        mine.push(from * count + i);
                    }
                    let mut all = all.lock().unwrap();
                    mine.into_iter().for_each(|i| all[i] += 1);
                });
            }
            for from in 0..2 {
                let tx = tx.clone();
                s.spawn(move || {
                    for i in 0..count {
                        match i % 3 {
                            0 => tx.blocking_send((from, i)).unwrap(),
                            1 => block_on(tx.reserve()).unwrap().send((from, i)).unwrap(),
                            _ => block_on(tx.send((from, i))).unwrap(),
                        }
                    }
                });
            }
            drop(tx);
        });
        assert!(all.into_inner().unwrap().iter().all(|&n| n == 1));
    }
}
