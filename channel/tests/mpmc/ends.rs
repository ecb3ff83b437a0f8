//! The end of a channel with many receivers that wait: all of them learn of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::common::{
    CAPACITIES, Counter, block_on, counter, everywhere, polled, runtimes, settle, within,
};
use crate::flavor::error::TryRecvError;
use crate::flavor::{Receiver, channel};

/// More than a batch of wakes holds.
const WAITERS: usize = 70;

/// Receivers that wait in their own place, as a `Stream` does.
fn waiting(rx: &Receiver<usize>) -> Vec<(Receiver<usize>, Arc<Counter>)> {
    (0..WAITERS)
        .map(|_| {
            let mut rx = rx.clone();
            let (count, waker) = counter();
            assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
            (rx, count)
        })
        .collect()
}

/// All have been woken, and find the end.
#[track_caller]
fn assert_all_ended(waiting: &mut [(Receiver<usize>, Arc<Counter>)]) {
    for (rx, count) in waiting {
        assert!(count.fired(), "a receiver sleeps on the end");
        let mut cx = Context::from_waker(crate::common::noop());
        assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(None));
    }
}

#[test]
fn the_last_sender_ends_all_that_wait() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let other = tx.clone();
        let mut waiting = waiting(&rx);
        drop(tx);
        assert!(waiting.iter().all(|(_, count)| !count.fired()));
        drop(other);
        assert_all_ended(&mut waiting);
    });
}

#[test]
fn a_close_ends_all_that_wait() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut waiting = waiting(&rx);
        rx.close();
        assert_all_ended(&mut waiting);
        drop(tx);
    });
}

#[test]
fn the_last_permit_of_a_closed_channel_ends_all_that_wait() {
    // B007
    everywhere(|capacity| async move {
        for way in 0..3 {
            // A new poll has a new budget.
            settle().await;
            let (tx, rx) = channel(capacity);
            let mut permits = tx.try_reserve_many(capacity).unwrap();
            rx.close();
            // They come after the close: nothing but the permits can end their wait.
            let mut waiting = waiting(&rx);
            match way {
                0 => drop(permits),
                1 => permits.by_ref().for_each(drop),
                _ => {
                    // The last one sends: one receives it, and all the others end.
                    let mut left = permits.len();
                    for permit in permits {
                        left -= 1;
                        if left == 0 {
                            permit.send(7).unwrap();
                        }
                    }
                    assert!(waiting.iter().all(|(_, count)| count.fired()));
                    assert_eq!(rx.try_recv(), Ok(7));
                }
            }
            assert_all_ended(&mut waiting);
        }
    });
}

#[test]
fn messages_of_a_closed_channel_end_those_that_get_none() {
    // Each message may be the last one, so whoever waits has to look at it.
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        rx.close();
        let mut waiting = waiting(&rx);
        let mut messages = (0..capacity).collect();
        assert_eq!(permits.send_many(&mut messages), Ok(capacity));
        let mut got = Vec::new();
        for (rx, count) in &mut waiting {
            assert!(count.fired(), "a receiver sleeps on the end");
            let mut cx = Context::from_waker(crate::common::noop());
            match rx.poll_recv(&mut cx) {
                Poll::Ready(Some(i)) => got.push(i),
                Poll::Ready(None) => {}
                Poll::Pending => panic!("neither a message nor the end"),
            }
        }
        assert_eq!(got, (0..capacity).collect::<Vec<_>>());
    });
}

#[test]
fn a_grant_that_goes_with_its_future_ends_all_that_wait() {
    // B007
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        let mut many = polled(tx.reserve_many(capacity));
        many.pending();
        drop(permits);
        assert!(many.wakes.fired());
        rx.close();
        let mut waiting = waiting(&rx);
        drop(many);
        assert_all_ended(&mut waiting);
    });
}

#[test]
fn a_receive_that_was_woken_for_the_end_and_dropped_leaves_it_to_the_others() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel::<usize>(capacity);
        let mut line: Vec<_> = (0..3).map(|_| polled(rx.recv())).collect();
        for recv in &mut line {
            recv.pending();
        }
        drop(tx);
        drop(line.remove(0));
        for recv in &mut line {
            assert_eq!(recv.woken(), None);
        }
        drop(line);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    });
}

#[test]
fn messages_left_in_the_queue_come_before_the_end_for_whoever_comes() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line: Vec<_> = (0..capacity + 3).map(|_| polled(rx.recv())).collect();
        for recv in &mut line {
            recv.pending();
        }
        for i in 0..capacity {
            tx.try_send(i).unwrap();
        }
        drop(tx);
        let got: Vec<_> = line.iter_mut().map(|recv| recv.woken()).collect();
        let messages = (0..capacity).map(Some);
        let ends = std::iter::repeat_n(None, 3);
        assert_eq!(got, messages.chain(ends).collect::<Vec<_>>());
    });
}

#[test]
fn tasks_and_threads_that_receive_all_end() {
    within("all end", || {
        for (place, runtime) in runtimes() {
            for capacity in CAPACITIES {
                for by_permit in [false, true] {
                    let (tx, rx) = channel(capacity);
                    let ended = Arc::new(AtomicUsize::new(0));
                    let receive = || {
                        let (rx, ended) = (rx.clone(), Arc::clone(&ended));
                        async move {
                            let mut sum = 0;
                            while let Some(i) = rx.recv().await {
                                sum += i;
                            }
                            ended.fetch_add(1, Ordering::SeqCst);
                            sum
                        }
                    };
                    let tasks: Vec<_> = (0..20).map(|_| runtime.spawn(receive())).collect();
                    let threads: Vec<_> = (0..2)
                        .map(|_| {
                            let receive = receive();
                            std::thread::spawn(move || block_on(receive))
                        })
                        .collect();
                    runtime.block_on(async {
                        for i in 0..100 {
                            tx.send(i).await.unwrap();
                        }
                        if by_permit {
                            let permit = tx.reserve().await.unwrap();
                            rx.close();
                            drop(permit);
                        }
                        drop(tx);
                        let mut sum = 0;
                        for task in tasks {
                            sum += task.await.unwrap();
                        }
                        for thread in threads {
                            sum += thread.join().unwrap();
                        }
                        assert_eq!(sum, 99 * 100 / 2, "{place:?}");
                    });
                    assert_eq!(ended.load(Ordering::SeqCst), 22);
                }
            }
        }
    });
}
