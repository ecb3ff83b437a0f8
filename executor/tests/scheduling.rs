//! Every runnable task runs soon: wherever it is queued, whatever the others do.
#![cfg(not(wakerun_loom))]

mod common;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{Event, Kind, LIMIT, each_kind, rounds, within};
use wakerun::task::{self, yield_now};
use wakerun::wake::{self, Place};
use wakerun::{Builder, Runtime};

/// Keeps a thread at work without sleeping.
fn busy(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Runtimes with at least two workers, with the thrifty rule of waking and without it.
fn each_wide(test: impl Fn(usize, Runtime) + Send + 'static) {
    within("each wide", move || {
        for workers in [2, 4] {
            for keep in [true, false] {
                let mut builder = Builder::new_multi_thread();
                builder.worker_threads(workers).keep_talkers_together(keep);
                test(workers, builder.build().unwrap());
            }
        }
    });
}

/// A phase of many tiny polls, after which a worker knows its polls as short.
async fn tiny_polls() {
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            task::spawn(async {
                for _ in 0..100 {
                    yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// A parked task whose waker can be had, and which sets an event when it runs again.
async fn sleeper() -> (Waker, Event) {
    let (slot, ran) = (Arc::new(Mutex::new(None)), Event::new());
    let (mine, set) = (Arc::clone(&slot), ran.clone());
    drop(task::spawn(async move {
        let mut first = true;
        poll_fn(|cx| {
            if std::mem::replace(&mut first, false) {
                *mine.lock().unwrap() = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        set.set();
    }));
    loop {
        let waker = slot.lock().unwrap().take();
        if let Some(waker) = waker {
            return (waker, ran);
        }
        yield_now().await;
    }
}

#[test]
fn what_a_long_poll_has_woken_runs_elsewhere_meanwhile() {
    // B019, B046: by the next slot, by the tail, by an ordinary wake.
    each_wide(|_, runtime| {
        let how: [fn(Waker); 3] = [
            |waker| wake::wake_owned(waker, Place::Next),
            |waker| wake::wake_owned(waker, Place::Tail),
            Waker::wake,
        ];
        for wake in how {
            let mut times = Vec::new();
            for round in 0..6 {
                let time = runtime.block_on(async {
                    task::spawn(async move {
                        if round % 2 == 0 {
                            tiny_polls().await;
                        }
                        let (waker, ran) = sleeper().await;
                        let start = Instant::now();
                        wake(waker);
                        // This worker does nothing else before the other task has run.
                        ran.wait_blocking();
                        start.elapsed()
                    })
                    .await
                });
                times.push(time.unwrap());
            }
            // The best of some, for the machine may be busy with something else.
            let best = times.iter().min().unwrap();
            assert!(*best < Duration::from_millis(50), "{times:?}");
        }
    });
}

#[test]
fn what_a_long_poll_has_spawned_runs_elsewhere_meanwhile() {
    // B019
    each_wide(|_, runtime| {
        for round in 0..4 {
            let all = runtime.block_on(async {
                task::spawn(async move {
                    if round % 2 == 0 {
                        tiny_polls().await;
                    }
                    let events: Vec<_> = (0..50).map(|_| Event::new()).collect();
                    for event in &events {
                        let event = event.clone();
                        drop(task::spawn(async move { event.set() }));
                    }
                    events.iter().all(|event| event.wait_for(LIMIT / 2))
                })
                .await
            });
            assert!(all.unwrap());
        }
    });
}

#[test]
fn as_many_tasks_as_workers_run_side_by_side() {
    // Spawned, and woken in one batch; at the start, and after a phase of tiny polls.
    each_wide(|workers, runtime| {
        for tiny in [false, true] {
            runtime.block_on(async {
                task::spawn(async move {
                    if tiny {
                        tiny_polls().await;
                    }
                    let barrier = Arc::new(Barrier::new(workers));
                    let tasks: Vec<_> = (0..workers)
                        .map(|_| {
                            let barrier = Arc::clone(&barrier);
                            task::spawn(async move { barrier.wait() })
                        })
                        .collect();
                    for task in tasks {
                        task.await.unwrap();
                    }
                    let go = Event::new();
                    let tasks: Vec<_> = (0..workers)
                        .map(|_| {
                            let (barrier, go) = (Arc::clone(&barrier), go.clone());
                            task::spawn(async move {
                                go.wait().await;
                                barrier.wait();
                            })
                        })
                        .collect();
                    while go.waiting() < workers {
                        yield_now().await;
                    }
                    if tiny {
                        tiny_polls().await;
                    }
                    go.set();
                    for task in tasks {
                        task.await.unwrap();
                    }
                })
                .await
                .unwrap();
            });
        }
    });
}

#[test]
fn bursts_of_two_from_outside_need_both_workers() {
    // B050: the first of two tasks blocks its worker until the second has run.
    each_wide(|workers, runtime| {
        let bursts = rounds(100_000) / workers;
        for _ in 0..bursts {
            let (second, first) = (Event::new(), Event::new());
            let (wait, set_first) = (second.clone(), first.clone());
            drop(runtime.spawn(async move {
                wait.wait_blocking();
                set_first.set();
            }));
            drop(runtime.spawn(async move { second.set() }));
            first.wait_blocking();
        }
    });
}

/// One of two tasks leaves its waker, and wakes the other one into the next slot, if that has been polled.
fn wake_other(wakers: &Mutex<[Option<Waker>; 2]>, me: usize, waker: &Waker) {
    let other = {
        let mut wakers = wakers.lock().unwrap();
        wakers[me] = Some(waker.clone());
        wakers[1 - me].clone()
    };
    if let Some(other) = other {
        wake::wake_owned(other, Place::Next);
    }
}

#[test]
fn two_tasks_that_wake_each_other_leave_room_for_others() {
    // Starvation by the next slot: the two could pass it back and forth for ever.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            task::spawn(async {
                let stop = Arc::new(AtomicBool::new(false));
                let wakers = Arc::new(Mutex::new([None::<Waker>, None]));
                let players: Vec<_> = (0..2)
                    .map(|me| {
                        let (stop, wakers) = (Arc::clone(&stop), Arc::clone(&wakers));
                        task::spawn(poll_fn(move |cx| {
                            // Before the wake: the other one may run elsewhere meanwhile, and wait for a wake
                            // that comes after the stop.
                            let stop = stop.load(Ordering::Relaxed);
                            wake_other(&wakers, me, cx.waker());
                            if stop {
                                return Poll::Ready(());
                            }
                            Poll::Pending
                        }))
                    })
                    .collect();
                // A fellow on the same worker, and one from outside.
                for _ in 0..20 {
                    task::spawn(async {}).await.unwrap();
                    yield_now().await;
                }
                let handle = wakerun::Handle::current();
                let outside = Event::new();
                let set = outside.clone();
                thread::spawn(move || drop(handle.spawn(async move { set.set() })));
                outside.wait().await;
                stop.store(true, Ordering::Relaxed);
                for player in players {
                    player.await.unwrap();
                }
            })
            .await
            .unwrap();
        });
    });
}

/// Two tasks of the only worker that wake each other again and again, each poll as long as `poll`, beside a third one
/// that yields. Returns how many polls of theirs there were between two of its polls, after some for getting settled.
fn polls_between_turns(poll: Duration, turns: usize) -> Vec<usize> {
    const SETTLING: usize = 20;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let wakers = Arc::new(Mutex::new([None::<Waker>, None]));
    let between = runtime.block_on(runtime.spawn(async move {
        for me in 0..2 {
            let (polls, stop, wakers) = (polls.clone(), stop.clone(), wakers.clone());
            drop(task::spawn(poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                busy(poll);
                wake_other(&wakers, me, cx.waker());
                if stop.load(Ordering::Relaxed) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })));
        }
        let mut between = Vec::new();
        for _ in 0..SETTLING + turns {
            let before = polls.load(Ordering::Relaxed);
            yield_now().await;
            between.push(polls.load(Ordering::Relaxed) - before);
        }
        stop.store(true, Ordering::Relaxed);
        between
    }));
    between.unwrap().split_off(SETTLING)
}

#[test]
fn talkers_with_long_polls_make_way_after_a_few() {
    within("long polls", || {
        for between in polls_between_turns(Duration::from_micros(100), 50) {
            // Three out of the next slot, and one out of the ring.
            assert!(between <= 4, "{between} polls between two turns");
        }
    });
}

#[test]
fn talkers_with_short_polls_make_way_after_some_hundred() {
    within("short polls", || {
        for between in polls_between_turns(Duration::ZERO, 1000) {
            assert!(between <= 257, "{between} polls between two turns");
        }
    });
}

#[test]
fn a_task_that_waits_by_yielding_lets_others_run() {
    // B049
    each_kind(|_, runtime| {
        runtime.block_on(async {
            for outside in [false, true] {
                let flag = Arc::new(AtomicBool::new(false));
                let set = Arc::clone(&flag);
                let waiters: Vec<_> = (0..3)
                    .map(|_| {
                        let flag = Arc::clone(&flag);
                        task::spawn(async move {
                            while !flag.load(Ordering::Relaxed) {
                                yield_now().await;
                            }
                        })
                    })
                    .collect();
                yield_now().await;
                let handle = wakerun::Handle::current();
                let setter = async move { set.store(true, Ordering::Relaxed) };
                if outside {
                    thread::spawn(move || drop(handle.spawn(setter)))
                        .join()
                        .unwrap();
                } else {
                    drop(task::spawn(setter));
                }
                for waiter in waiters {
                    waiter.await.unwrap();
                }
            }
        });
    });
}

#[test]
fn yielding_tasks_take_turns() {
    within("turns", || {
        let runtime = Kind::Current.build();
        let log = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..3)
            .map(|me| {
                let log = Arc::clone(&log);
                runtime.spawn(async move {
                    for _ in 0..50 {
                        log.lock().unwrap().push(me);
                        yield_now().await;
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        let log = log.lock().unwrap();
        // No task is ever more than a turn or two ahead of another.
        let mut turns = [0_i32; 3];
        for &me in log.iter() {
            turns[me] += 1;
            let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
            assert!(most - least <= 2 || *most == 50, "{log:?}");
        }
    });
}

#[test]
fn a_task_without_end_leaves_the_main_future_its_turn() {
    within("main future", || {
        let runtime = Kind::Current.build();
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..3 {
            let stop = Arc::clone(&stop);
            drop(runtime.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                }
            }));
        }
        runtime.block_on(async {
            for _ in 0..100 {
                yield_now().await;
            }
            let answer = Event::new();
            let set = answer.clone();
            thread::spawn(move || set.set());
            answer.wait().await;
        });
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_main_future_is_polled_only_when_it_is_woken() {
    // B090
    each_kind(|_, runtime| {
        let done = Event::new();
        let set = done.clone();
        let task = runtime.spawn(async move {
            for _ in 0..1000 {
                yield_now().await;
            }
            set.set();
        });
        let mut polls = 0;
        let mut wait = Box::pin(done.wait());
        runtime.block_on(poll_fn(|cx| {
            polls += 1;
            wait.as_mut().poll(cx)
        }));
        assert!(polls <= 3, "{polls} polls");
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn a_task_is_polled_only_when_it_is_woken() {
    each_kind(|_, runtime| {
        let polls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&polls);
        let go = Event::new();
        let wait = go.clone();
        let task = runtime.spawn(async move {
            let mut wait = Box::pin(wait.wait());
            poll_fn(|cx| {
                count.fetch_add(1, Ordering::Relaxed);
                wait.as_mut().poll(cx)
            })
            .await;
        });
        runtime.block_on(async {
            for _ in 0..200 {
                yield_now().await;
            }
            go.set();
            task.await.unwrap();
        });
        assert!(polls.load(Ordering::Relaxed) <= 2);
    });
}

/// How long spawns from outside wait while `tasks` tasks with polls of 100 µs keep the workers busy.
fn delays_beside(runtime: &Runtime, tasks: usize) -> Vec<Duration> {
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let stop = Arc::clone(&stop);
            runtime.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    busy(Duration::from_micros(100));
                    yield_now().await;
                }
            })
        })
        .collect();
    // Once round, so that all is under way.
    thread::sleep(Duration::from_micros(100) * tasks.len() as u32);
    let mut delays = Vec::new();
    for _ in 0..10 {
        let (ran, start) = (Event::new(), Instant::now());
        let set = ran.clone();
        drop(runtime.spawn(async move { set.set() }));
        ran.wait_blocking();
        delays.push(start.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    delays.sort_unstable();
    delays
}

#[test]
fn work_from_outside_is_not_starved_by_work_inside() {
    // B061: by as much as a worker's own queue holds, and by more.
    if cfg!(miri) {
        return;
    }
    within("outside work", || {
        for workers in [1, 2] {
            for tasks in [200, 1000] {
                let delays = delays_beside(&Kind::Workers(workers).build(), tasks);
                // Behind all others it would wait for 20 and 100 ms on one worker, each time.
                assert!(
                    delays[delays.len() / 2] < Duration::from_millis(15),
                    "{tasks} tasks, {workers} workers: {delays:?}"
                );
            }
        }
    });
}

#[test]
fn a_task_that_is_always_ready_yields_after_its_budget() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            task::spawn(async {
                let stop = Arc::new(AtomicBool::new(false));
                let seen = Arc::clone(&stop);
                // Always finds what it wants; only the budget makes it give way.
                let greedy = task::spawn(async move {
                    let mut operations = 0_u64;
                    while !seen.load(Ordering::Relaxed) {
                        poll_fn(wake::poll_budget).await;
                        operations += 1;
                    }
                    operations
                });
                yield_now().await;
                drop(task::spawn(
                    async move { stop.store(true, Ordering::Relaxed) },
                ));
                greedy.await.unwrap();
            })
            .await
            .unwrap();
        });
    });
}

#[test]
fn joining_what_is_done_yields_after_the_budget() {
    within("joining", || {
        let runtime = Kind::Current.build();
        let others = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&others);
        runtime.block_on(async move {
            let done: Vec<_> = (0..2000).map(|i| task::spawn(async move { i })).collect();
            while !done.iter().all(|task| task.is_finished()) {
                yield_now().await;
            }
            let seen = Arc::clone(&count);
            let joiner = task::spawn(async move {
                for task in done {
                    task.await.unwrap();
                }
                seen.load(Ordering::Relaxed)
            });
            drop(task::spawn(async move {
                count.fetch_add(1, Ordering::Relaxed);
            }));
            assert_eq!(joiner.await.unwrap(), 1, "2000 joins in one go");
        });
    });
}
