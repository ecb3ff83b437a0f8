//! Many more workers than cores: unbalanced loads, long polls, theft. Each task runs as often as it was woken.
#![cfg(not(any(wakerun_loom, miri)))]

mod common;

use std::future::poll_fn;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use common::{Event, on_drop, rounds, within};
use wakerun::task::{self, yield_now};
use wakerun::wake::{self, Batch, Place};
use wakerun::{Builder, Runtime};

const WORKERS: usize = 32;

/// Runs the test with the rule that keeps talkers together, under which workers seldom steal, and without it.
fn each_rule(what: &'static str, test: impl Fn(&Runtime) + Send + 'static) {
    within(what, move || {
        for keep in [true, false] {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(WORKERS).keep_talkers_together(keep);
            test(&builder.build().unwrap());
        }
    });
}

/// Some microseconds of computation.
fn compute(steps: usize) {
    let mut x = 1_u64;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1));
    }
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (self.0 >> 33) as usize % bound
    }
}

/// A task that counts its runs, one for each time that it is called, and calls back.
#[derive(Default)]
struct Seat {
    calls: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Seat {
    /// Takes one call, or waits for it.
    async fn called(&self) {
        poll_fn(|cx| {
            // The waker first: a call that comes after the look finds it.
            *self.waker.lock().unwrap() = Some(wake::clone_waker(cx.waker()));
            let take = |calls: usize| calls.checked_sub(1);
            match self
                .calls
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
            {
                Ok(_) => Poll::Ready(()),
                Err(_) => Poll::Pending,
            }
        })
        .await;
    }

    fn call(&self, place: Place) {
        if let Some(waker) = self.call_later() {
            wake::wake_owned(waker, place);
        }
    }

    /// A call whose waker is yet to be woken.
    fn call_later(&self) -> Option<Waker> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.waker.lock().unwrap().take()
    }
}

#[test]
fn one_worker_spawns_for_all() {
    each_rule("one worker spawns", |runtime| {
        let tasks = rounds(20_000).min(40_000);
        let runs: Arc<Vec<AtomicUsize>> =
            Arc::new((0..tasks).map(|_| AtomicUsize::new(0)).collect());
        let (all, done) = (runs.clone(), Event::new());
        let (left, over) = (Arc::new(AtomicUsize::new(tasks)), done.clone());
        runtime.block_on(async move {
            task::spawn(async move {
                for n in 0..tasks {
                    let (runs, left, over) = (all.clone(), left.clone(), over.clone());
                    let body = async move {
                        compute(n % 50 * 20);
                        if n % 3 == 0 {
                            yield_now().await;
                        }
                        runs[n].fetch_add(1, Ordering::Relaxed);
                        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                            over.set();
                        }
                    };
                    if n % 7 == 0 {
                        task::spawn(body).await.unwrap();
                    } else {
                        drop(task::spawn(body));
                    }
                }
            })
            .await
            .unwrap();
            done.wait().await;
        });
        assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
        // A task is counted until its worker has settled it.
        while runtime.handle().num_alive_tasks() > 0 {
            std::thread::yield_now();
        }
    });
}

#[test]
fn calls_that_wander_over_the_workers_are_all_answered() {
    const SEATS: usize = 200;
    each_rule("wandering calls", |runtime| {
        let calls = rounds(20_000);
        let seats: Arc<Vec<Seat>> = Arc::new((0..SEATS).map(|_| Seat::default()).collect());
        let (left, done) = (Arc::new(AtomicUsize::new(calls)), Event::new());
        let tasks: Vec<_> = (0..SEATS)
            .map(|me| {
                let (seats, left, done) = (seats.clone(), left.clone(), done.clone());
                runtime.spawn(async move {
                    let mut dice = Dice(me as u64);
                    loop {
                        seats[me].called().await;
                        // A poll now and then is long enough for thieves to be called.
                        compute([10, 10, 10, 100, 20_000][dice.below(5)]);
                        let next = dice.below(SEATS);
                        let less = |left: usize| left.checked_sub(1);
                        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
                            Ok(1) => done.set(),
                            Ok(_) => {}
                            Err(_) => continue,
                        }
                        let place = if dice.below(2) == 0 {
                            Place::Next
                        } else {
                            Place::Tail
                        };
                        seats[next].call(place);
                    }
                })
            })
            .collect();
        for seat in seats.iter().take(20) {
            seat.call(Place::Tail);
        }
        runtime.block_on(done.wait());
        for task in tasks {
            task.abort();
            assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_batch_of_a_thousand_is_spread_and_each_runs_once() {
    each_rule("a thousand", |runtime| {
        let seats: Arc<Vec<Seat>> = Arc::new((0..1000).map(|_| Seat::default()).collect());
        let (left, boss) = (Arc::new(AtomicUsize::new(0)), Arc::new(Seat::default()));
        for me in 0..seats.len() {
            let (seats, left, boss) = (seats.clone(), left.clone(), boss.clone());
            drop(runtime.spawn(async move {
                loop {
                    seats[me].called().await;
                    compute(me % 10 * 100);
                    if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                        boss.call(Place::Next);
                    }
                }
            }));
        }
        let rounds = rounds(200).min(400);
        let caller = runtime.spawn(async move {
            for _ in 0..rounds {
                left.store(seats.len(), Ordering::SeqCst);
                let mut batch = Batch::new(Place::Tail);
                for seat in seats.iter() {
                    if batch.is_full() {
                        batch.wake_all();
                    }
                    seat.call_later()
                        .into_iter()
                        .for_each(|waker| batch.push(waker));
                }
                batch.wake_all();
                boss.called().await;
                assert_eq!(left.load(Ordering::SeqCst), 0);
            }
        });
        runtime.block_on(caller).unwrap();
    });
}

#[test]
fn long_polls_wait_for_tasks_that_only_thieves_can_run() {
    each_rule("long polls", |runtime| {
        for _ in 0..rounds(20).min(20) / 5 {
            // Each of these blocks its worker until what it has spawned and woken has run elsewhere.
            let blockers: Vec<_> = (0..WORKERS / 4)
                .map(|n| {
                    runtime.spawn(async move {
                        let events: Vec<_> = (0..40).map(|_| Event::new()).collect();
                        let seat = Arc::new(Seat::default());
                        let (called, ran) = (seat.clone(), Event::new());
                        let set = ran.clone();
                        drop(task::spawn(async move {
                            called.called().await;
                            set.set();
                        }));
                        for _ in 0..n {
                            yield_now().await;
                        }
                        for event in &events {
                            let event = event.clone();
                            drop(task::spawn(async move { event.set() }));
                        }
                        seat.call(Place::Next);
                        events.iter().chain([&ran]).for_each(Event::wait_blocking);
                    })
                })
                .collect();
            for blocker in blockers {
                runtime.block_on(blocker).unwrap();
            }
        }
    });
}

#[test]
fn aborts_meet_tasks_that_run_elsewhere() {
    each_rule("aborts", |runtime| {
        let drops = Arc::new(AtomicUsize::new(0));
        let tasks = rounds(4_000);
        let count = drops.clone();
        runtime.block_on(async move {
            let mut dice = Dice(7);
            for n in 0..tasks {
                let flag = on_drop({
                    let count = count.clone();
                    move || {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                });
                let polls = dice.below(4);
                let task = task::spawn(async move {
                    let _flag = flag;
                    for _ in 0..polls {
                        yield_now().await;
                    }
                });
                let abort = task.abort_handle();
                match n % 3 {
                    0 => drop(task),
                    1 => drop(task::spawn(async move { task.await.is_ok() })),
                    _ => {
                        let _ = task.await;
                    }
                }
                if dice.below(2) == 0 {
                    abort.abort();
                }
            }
            while wakerun::Handle::current().num_alive_tasks() > 0 {
                yield_now().await;
            }
        });
        assert_eq!(drops.load(Ordering::SeqCst), tasks);
    });
}
