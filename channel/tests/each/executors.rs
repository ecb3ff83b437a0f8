//! The channel on other executors, alone and mixed with the runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::common::{CAPACITIES, LIMIT, Ledger, block_on, rounds, runtimes, within};
use crate::flavor::{Receiver, Sender, channel};
use async_executor::Executor;
use futures_lite::StreamExt;
use futures_lite::future::{or, race, yield_now, zip};

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts a job somewhere; what runs it ends when the guard is dropped.
type Start<'a> = &'a dyn Fn(Job);

const SENDERS: usize = 4;

async fn produce(tx: Sender<(usize, usize)>, me: usize, count: usize) {
    for i in 0..count {
        match i % 3 {
            0 => tx.send((me, i)).await.unwrap(),
            1 => tx.reserve().await.unwrap().send((me, i)).unwrap(),
            _ => {
                while tx.try_send((me, i)).is_err() {
                    yield_now().await;
                }
            }
        }
    }
}

async fn consume(mut rx: Receiver<(usize, usize)>, count: usize) {
    let mut next = [0; SENDERS];
    let mut many = Vec::new();
    let mut check = |(from, i): (usize, usize)| {
        assert_eq!(next[from], i, "out of order");
        next[from] += 1;
    };
    while let Some(message) = rx.recv().await {
        check(message);
        if let Ok(message) = rx.try_recv() {
            check(message);
        }
        if let Some(message) = rx.next().await {
            check(message);
        }
        rx.recv_many(&mut many, 3).await;
        many.drain(..).for_each(&mut check);
    }
    assert_eq!(next, [count; SENDERS]);
}

/// Four senders on `a`, the receiver on `b`, at each capacity.
fn funnel(a: Start<'_>, b: Start<'_>) {
    let count = rounds(4_000);
    for capacity in CAPACITIES {
        let (tx, rx) = channel(capacity);
        let (done, wait) = std::sync::mpsc::channel();
        b(Box::pin(async move {
            consume(rx, count).await;
            done.send(()).unwrap();
        }));
        for me in 0..SENDERS {
            a(Box::pin(produce(tx.clone(), me, count)));
        }
        drop(tx);
        wait.recv_timeout(LIMIT).expect("the receiver ended");
    }
}

/// An `async-executor` with some threads, for the time of the call.
fn with_async_executor<R>(threads: usize, f: impl FnOnce(Start<'_>) -> R) -> R {
    let executor = Arc::new(Executor::new());
    let (stop, stopped) = async_stop();
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (executor, stopped) = (Arc::clone(&executor), stopped.clone());
            std::thread::spawn(move || {
                block_on(or(executor.run(std::future::pending()), async {
                    stopped.closed().await;
                }));
            })
        })
        .collect();
    let result = f(&|job| executor.spawn(job).detach());
    drop(stop);
    for worker in workers {
        worker.join().unwrap();
    }
    result
}

/// A stop signal out of the channel itself: `closed()` ends when the receiver goes.
fn async_stop() -> (Receiver<()>, Sender<()>) {
    let (tx, rx) = channel(1);
    (rx, tx)
}

fn tokio(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .build()
        .unwrap()
}

#[test]
fn under_tokio() {
    if cfg!(miri) {
        return;
    }
    within("tokio", || {
        for workers in [1, 2, 4] {
            let runtime = tokio(workers);
            let start = |job| drop(runtime.spawn(job));
            funnel(&start, &start);
        }
    });
}

#[test]
fn under_tokio_on_one_thread() {
    within("tokio, current thread", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let count = rounds(4_000);
        for capacity in CAPACITIES {
            runtime.block_on(async {
                let (tx, rx) = channel(capacity);
                let senders: Vec<_> = (0..SENDERS)
                    .map(|me| tokio::spawn(produce(tx.clone(), me, count)))
                    .collect();
                drop(tx);
                consume(rx, count).await;
                for sender in senders {
                    sender.await.unwrap();
                }
            });
        }
    });
}

#[test]
fn under_async_executor() {
    within("async-executor", || {
        for threads in [1, 2, 4] {
            with_async_executor(threads, |start| funnel(start, start));
        }
    });
}

#[test]
fn under_the_runtime() {
    within("wakerun", || {
        for workers in [1, 2, 4] {
            let runtime = wakerun::Builder::new_multi_thread()
                .worker_threads(workers)
                .build()
                .unwrap();
            let start = |job| drop(runtime.spawn(job));
            funnel(&start, &start);
        }
    });
}

#[test]
fn across_executors() {
    if cfg!(miri) {
        return;
    }
    within("mixed", || {
        let ours = wakerun::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let tokio = tokio(2);
        let on_ours = |job| drop(ours.spawn(job));
        let on_tokio = |job| drop(tokio.spawn(job));
        let on_thread = |job: Job| drop(std::thread::spawn(|| block_on(job)));
        funnel(&on_ours, &on_tokio);
        funnel(&on_tokio, &on_ours);
        funnel(&on_thread, &on_ours);
        funnel(&on_ours, &on_thread);
        with_async_executor(2, |on_async| {
            funnel(on_async, &on_ours);
            funnel(&on_ours, on_async);
            funnel(&on_thread, on_async);
        });
    });
}

#[test]
fn inside_combinators_of_one_task() {
    // Wakers that are not the task's own, branches that are dropped, futures that are moved.
    within("combinators", || {
        for (_, runtime) in runtimes() {
            for capacity in CAPACITIES {
                let count = rounds(4_000);
                let task = runtime.spawn(async move {
                    let ledger = Ledger::new();
                    let (tx, mut rx) = channel(capacity);
                    let producer = async {
                        for i in 0..count {
                            // The loser of a race is dropped: its message is withdrawn or arrives.
                            let send = async {
                                tx.send(ledger.make()).await.unwrap();
                            };
                            if i % 5 == 0 {
                                race(send, yield_now()).await;
                            } else {
                                send.await;
                            }
                        }
                        drop(tx);
                    };
                    let consumer = async {
                        let mut last = None;
                        loop {
                            let message = or(async { Some(rx.recv().await) }, async {
                                yield_now().await;
                                None
                            })
                            .await;
                            match message {
                                Some(Some(message)) => {
                                    assert!(last < Some(message.id));
                                    last = Some(message.id);
                                }
                                Some(None) => break,
                                None => {}
                            }
                        }
                    };
                    zip(producer, consumer).await;
                    drop(rx);
                    ledger.assert_all_dropped_once();
                });
                runtime.block_on(task).unwrap();
            }
        }
    });
}

#[test]
fn the_main_future_of_block_on_may_use_the_channel() {
    within("block_on", || {
        for (_, runtime) in runtimes() {
            for capacity in CAPACITIES {
                let count = rounds(4_000);
                let (tx, rx) = channel(capacity);
                for me in 0..SENDERS {
                    drop(runtime.spawn(produce(tx.clone(), me, count)));
                }
                drop(tx);
                runtime.block_on(consume(rx, count));
                let (tx, rx) = channel(capacity);
                let consumer = runtime.spawn(consume(rx, count));
                runtime.block_on(async {
                    let all = (0..SENDERS).map(|me| Box::pin(produce(tx.clone(), me, count)));
                    let mut all: Vec<_> = all.map(Some).collect();
                    drop(tx);
                    std::future::poll_fn(|cx| {
                        for one in &mut all {
                            if let Some(future) = one
                                && future.as_mut().poll(cx).is_ready()
                            {
                                *one = None;
                            }
                        }
                        if all.iter().all(Option::is_none) {
                            std::task::Poll::Ready(())
                        } else {
                            std::task::Poll::Pending
                        }
                    })
                    .await;
                    consumer.await.unwrap();
                });
            }
        }
    });
}
