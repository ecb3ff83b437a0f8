//! One strict line: who waits first is served first, and nobody overtakes.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use super::full;
use crate::common::{Place, everywhere, noop, polled, settle, within};
use crate::flavor::channel;
use crate::flavor::error::{SendError, TrySendError};

/// Sends that park now, numbered from `$from`.
macro_rules! park {
    ($tx:expr, $numbers:expr) => {{
        let mut line: Vec<_> = $numbers.map(|i| polled($tx.send(i))).collect();
        for send in &mut line {
            send.pending();
        }
        line
    }};
}

#[test]
fn blocked_sends_are_served_in_the_order_of_their_first_poll() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut line = park!(tx, capacity..capacity + 5);
        for (served, i) in (0..capacity + 5).enumerate() {
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
            for (place, send) in line.iter().enumerate() {
                assert_eq!(send.wakes.count(), usize::from(place <= served));
            }
        }
        for send in &mut line {
            assert_eq!(send.woken(), Ok(()));
        }
    });
}

#[test]
fn the_first_poll_counts_and_not_the_creation() {
    // B086
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut late = polled(tx.send(901));
        let mut early = polled(tx.send(900));
        early.pending();
        late.pending();
        let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        assert_eq!(got[capacity..], [900, 901]);
    });
}

#[test]
fn polling_again_keeps_the_place() {
    // B008, B035
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut line = park!(tx, capacity..capacity + 3);
        for _ in 0..10 {
            line[0].pending();
            line[2].pending();
        }
        for i in 0..capacity + 3 {
            assert_eq!(rx.try_recv(), Ok(i));
        }
    });
}

#[test]
fn nobody_overtakes_the_line() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut first = polled(tx.reserve());
        first.pending();
        let mut second = polled(tx.send(capacity));
        second.pending();
        rx.try_recv().unwrap();
        settle().await;
        // The slot is the reservation's, though nobody has claimed it yet.
        assert_eq!(tx.try_send(99), Err(TrySendError::Full(99)));
        assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
        let mut third = polled(tx.send(capacity + 1));
        third.pending();
        second.pending();
        drop(first.woken().unwrap());
        assert_eq!(second.woken(), Ok(()));
        assert_eq!(tx.try_send(99), Err(TrySendError::Full(99)));
        third.pending();
        for i in 1..capacity + 2 {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        settle().await;
        assert_eq!(third.woken(), Ok(()));
    });
}

#[test]
fn sends_and_reservations_share_one_line() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut a = polled(tx.send(1000));
        a.pending();
        let mut b = polled(tx.reserve());
        b.pending();
        let mut c = polled(tx.send(1001));
        c.pending();
        let mut d = polled(tx.reserve());
        d.pending();
        let fired = [&a.wakes, &b.wakes, &c.wakes, &d.wakes].map(Arc::clone);
        // Each receive frees one slot, and each slot serves the next in line.
        for served in 1..=4 {
            rx.try_recv().unwrap();
            settle().await;
            for (place, wakes) in fired.iter().enumerate() {
                assert_eq!(wakes.count(), usize::from(place < served));
            }
            match served {
                2 => b.ready().unwrap().send(1002).unwrap(),
                4 => d.ready().unwrap().send(1003).unwrap(),
                _ => {}
            }
        }
        assert_eq!((a.ready(), c.ready()), (Ok(()), Ok(())));
        assert_eq!(tx.len(), capacity);
    });
}

#[test]
fn one_receive_of_many_serves_as_many_in_order() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut line = park!(tx, capacity..2 * capacity + 2);
        let mut got = Vec::new();
        let n = polled(rx.recv_many(&mut got, capacity)).ready();
        settle().await;
        assert_eq!((n, got.len()), (capacity, capacity));
        for send in &mut line[..capacity] {
            assert_eq!(send.woken(), Ok(()));
        }
        for send in &mut line[capacity..] {
            send.pending();
        }
        while let Ok(i) = rx.try_recv() {
            got.push(i);
        }
        assert_eq!(got, (0..2 * capacity + 2).collect::<Vec<_>>());
    });
}

#[test]
fn a_slot_and_a_close_each_reach_their_addressee() {
    // B103
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let mut line = park!(tx, capacity..capacity + 2);
        rx.try_recv().unwrap();
        settle().await;
        rx.close();
        assert_eq!(line[0].woken(), Ok(()));
        assert_eq!(line[1].woken(), Err(SendError(capacity + 1)));
        for i in 1..=capacity {
            assert_eq!(rx.try_recv(), Ok(i));
        }
        assert!(rx.try_recv().is_err());
    });
}

#[test]
fn values_of_one_sender_arrive_in_order_across_all_paths() {
    // B066: producer and consumer in one task, so that each send may park, be deposited or pass.
    everywhere(|capacity| async move {
        let count = if cfg!(miri) { 100 } else { 5_000 };
        let (tx, mut rx) = channel(capacity);
        let mut producer = pin!(async {
            for i in 0..count {
                tx.send(i).await.unwrap();
            }
        });
        let mut produced = false;
        let mut next = 0;
        poll_fn(|cx: &mut Context<'_>| {
            if !produced {
                produced = producer.as_mut().poll(cx).is_ready();
            }
            while next < count {
                match rx.poll_recv(cx) {
                    Poll::Ready(i) => {
                        assert_eq!(i, Some(next));
                        next += 1;
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        })
        .await;
    });
}

#[test]
fn a_task_out_of_budget_keeps_its_place_in_line() {
    // B044
    for place in [Place::Current, Place::Workers(1), Place::Workers(2)] {
        within("out of budget", move || {
            place.run(async {
                let (tx, mut rx) = full(1);
                let (work, mut queue) = full(1000);
                poll_fn(move |_| {
                    // Messages are there, so Pending can only mean that the budget is spent.
                    let mut left = 1000;
                    while left > 0 && polled(queue.recv()).poll().is_ready() {
                        left -= 1;
                    }
                    let mut a = polled(tx.send(1));
                    a.pending();
                    // Another sender, on a thread that has no budget to spend.
                    let other = tx.clone();
                    let mut b = Box::pin(async move { other.send(2).await });
                    let b = thread::spawn(move || {
                        let mut cx = Context::from_waker(noop());
                        assert!(b.as_mut().poll(&mut cx).is_pending());
                        b
                    })
                    .join()
                    .unwrap();
                    thread::scope(|s| {
                        s.spawn(|| {
                            assert_eq!(rx.try_recv(), Ok(0));
                            assert_eq!(rx.try_recv(), Ok(1));
                            assert_eq!(rx.try_recv(), Ok(2));
                        });
                    });
                    drop(b);
                    let _ = &work;
                    Poll::Ready(())
                })
                .await;
            });
        });
    }
}
