//! Plain threads: the blocking forms, alone and mixed with tasks.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::full;
use crate::common::{
    CAPACITIES, LIMIT, Ledger, Watchdog, block_on, polled, rounds, runtimes, within,
};
use crate::flavor::error::SendError;
use crate::flavor::{Sender, channel};

fn per_thread() -> usize {
    rounds(20_000)
}

#[test]
fn blocking_threads_exchange_messages_in_order() {
    let _dog = Watchdog::new("blocking threads", LIMIT, String::new);
    for capacity in CAPACITIES {
        for producers in [1, 3] {
            let (tx, mut rx) = channel(capacity);
            let count = per_thread() / producers;
            thread::scope(|s| {
                for producer in 0..producers {
                    let tx = tx.clone();
                    s.spawn(move || {
                        for i in 0..count {
                            tx.blocking_send((producer, i)).unwrap();
                        }
                    });
                }
                drop(tx);
                let mut next = vec![0; producers];
                while let Some((producer, i)) = rx.blocking_recv() {
                    assert_eq!(i, next[producer]);
                    next[producer] += 1;
                    assert!(rx.len() <= capacity);
                }
                assert!(next.iter().all(|&n| n == count));
            });
        }
    }
}

#[test]
fn a_blocked_thread_gets_its_value_back_at_close() {
    // B025
    let _dog = Watchdog::new("blocked at close", LIMIT, String::new);
    for by_drop in [false, true] {
        for _ in 0..rounds(2_000) / 10 {
            let (tx, mut rx) = full(1);
            thread::scope(|s| {
                let blocked = s.spawn(|| tx.blocking_send(7));
                if by_drop {
                    drop(rx);
                } else {
                    rx.close();
                }
                assert_eq!(blocked.join().unwrap(), Err(SendError(7)));
            });
        }
    }
}

#[test]
fn a_blocked_receiver_learns_of_the_last_sender() {
    let _dog = Watchdog::new("blocked receiver", LIMIT, String::new);
    for _ in 0..rounds(2_000) / 10 {
        let (tx, mut rx) = channel::<u8>(1);
        thread::scope(|s| {
            let blocked = s.spawn(move || rx.blocking_recv());
            drop(tx);
            assert_eq!(blocked.join().unwrap(), None);
        });
    }
}

#[test]
fn threads_and_tasks_share_a_channel() {
    within("threads and tasks", || {
        for (place, runtime) in runtimes() {
            for capacity in [1, 2, 33] {
                let (tx, mut rx) = channel(capacity);
                let (back, mut answers) = channel(capacity);
                let count = per_thread() / 20;
                // A task doubles what threads send it; a thread collects.
                let doubler = runtime.spawn(async move {
                    while let Some(i) = rx.recv().await {
                        back.send(2 * i).await.unwrap();
                    }
                });
                let senders: Vec<_> = (0..2)
                    .map(|_| {
                        let tx = tx.clone();
                        thread::spawn(move || (0..count).for_each(|i| tx.blocking_send(i).unwrap()))
                    })
                    .collect();
                drop(tx);
                let collector = thread::spawn(move || {
                    let mut sum = 0;
                    while let Some(i) = answers.blocking_recv() {
                        sum += i;
                    }
                    sum
                });
                runtime.block_on(doubler).unwrap();
                for sender in senders {
                    sender.join().unwrap();
                }
                assert_eq!(
                    collector.join().unwrap(),
                    2 * count * (count - 1),
                    "{place:?}"
                );
            }
        }
    });
}

#[test]
fn blocking_in_a_task_is_refused() {
    within("blocking in a task", || {
        for (place, runtime) in runtimes() {
            let outcome = runtime.block_on(runtime.spawn(async {
                let (tx, mut rx) = channel(1);
                let send = catch_unwind(AssertUnwindSafe(|| tx.blocking_send(1))).is_err();
                let recv = catch_unwind(AssertUnwindSafe(|| rx.blocking_recv())).is_err();
                // Nothing happened, and the channel works on.
                tx.send(2).await.unwrap();
                (send, recv, rx.recv().await)
            }));
            assert_eq!(outcome.unwrap(), (true, true, Some(2)), "{place:?}");
        }
    });
}

#[test]
fn a_sender_in_a_thread_local_ends_the_channel_at_thread_exit() {
    // B072: whatever thread-locals the runtime uses may be gone by then.
    thread_local! {
        static EARLY: RefCell<Option<Sender<u32>>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Sender<u32>>> = const { RefCell::new(None) };
    }

    struct SendsLast(Sender<u32>);

    impl Drop for SendsLast {
        fn drop(&mut self) {
            self.0.try_send(9).unwrap();
        }
    }

    thread_local! {
        static SENDS: RefCell<Option<SendsLast>> = const { RefCell::new(None) };
    }

    within("sender in a thread-local", || {
        for (_, runtime) in runtimes() {
            for touch_first in [false, true] {
                let (tx, mut rx) = channel(4);
                let task = runtime.spawn(async move {
                    let mut sum = 0;
                    while let Some(i) = rx.recv().await {
                        sum += i;
                    }
                    sum
                });
                let sends = SendsLast(tx.clone());
                thread::spawn(move || {
                    // Registered before or after the first use of the channel on this thread.
                    if touch_first {
                        LATE.set(Some(tx.clone()));
                        SENDS.set(Some(sends));
                        tx.blocking_send(1).unwrap();
                    } else {
                        tx.blocking_send(1).unwrap();
                        SENDS.set(Some(sends));
                        EARLY.set(Some(tx.clone()));
                    }
                })
                .join()
                .unwrap();
                assert_eq!(runtime.block_on(task).unwrap(), 10);
            }
        }
    });
}

#[test]
fn a_completed_send_can_be_received_by_whoever_learns_of_it() {
    // B033, in a small form: what a send has returned from is there for `try_recv`.
    let _dog = Watchdog::new("publish", LIMIT, String::new);
    for capacity in CAPACITIES {
        let (tx, rx) = channel(capacity);
        let told = AtomicUsize::new(0);
        let count = per_thread();
        thread::scope(|s| {
            s.spawn(|| {
                for i in 1..=count {
                    if tx.blocking_send(i).is_err() {
                        break;
                    }
                    told.store(i, Ordering::Release);
                }
            });
            // Goes with a failure here, so that the sender ends.
            let mut rx = rx;
            let mut got = 0;
            while got < count {
                let sent = told.load(Ordering::Acquire);
                while got < sent {
                    got += 1;
                    assert_eq!(rx.try_recv(), Ok(got));
                }
                if let Ok(i) = rx.try_recv() {
                    got += 1;
                    assert_eq!(i, got);
                }
                thread::yield_now();
            }
        });
    }
}

#[test]
fn more_threads_than_cores_get_on() {
    // B107: nobody spins for a thread that cannot run.
    let _dog = Watchdog::new("many threads", LIMIT, String::new);
    let threads = 4 * thread::available_parallelism().map_or(4, usize::from);
    let (tx, mut rx) = channel(2);
    let count = rounds(20_000) / threads + 1;
    thread::scope(|s| {
        for _ in 0..threads {
            let tx = tx.clone();
            s.spawn(move || (0..count).for_each(|i| tx.blocking_send(i).unwrap()));
        }
        drop(tx);
        let mut got = 0;
        while rx.blocking_recv().is_some() {
            got += 1;
        }
        assert_eq!(got, threads * count);
    });
}

#[test]
fn a_parked_future_may_move_to_another_thread() {
    // B008, B139
    within("moved future", || {
        let (tx, mut rx) = channel::<usize>(1);
        tx.try_send(0).unwrap();
        let ledger = Ledger::new();
        let tx = Arc::new(tx);
        let sends: Vec<_> = (1..5)
            .map(|i| {
                let tx = Arc::clone(&tx);
                let message = ledger.make();
                let mut send = polled(async move {
                    tx.send(i).await.unwrap();
                    drop(message);
                });
                send.pending();
                thread::spawn(move || block_on(send.future))
            })
            .collect();
        for i in 0..5 {
            assert_eq!(rx.blocking_recv(), Some(i));
        }
        for send in sends {
            send.join().unwrap();
        }
        ledger.assert_all_dropped_once();
    });
}
