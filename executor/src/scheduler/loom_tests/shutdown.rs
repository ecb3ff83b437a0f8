//! Models of the shutdown against workers in their loops, and against wakers from outside.
//!
//! The workers are real ones, but no thread is told that it has one: to what a thread knows, all threads of a model
//! are one. So tasks that are woken come from outside, by the injector, whose steps are no part of a model: a push and
//! the step before it are one.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use loom::thread;

use super::super::phase::Turns;
use super::super::{Shared, Tools, Worker, spawn_on};
use super::Hooks;
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::header::Task;
use crate::task::{Id, JoinHandle, cell, waker};

/// What has become of a task's future. No part of the model: it is looked at when the threads have ended.
#[derive(Default)]
struct Life {
    polls: Count,
    drops: Count,
}

/// A future that is never ready. Whoever polls or drops it without being alone with it is caught by loom.
struct Watched {
    life: Arc<Life>,
    touched: UnsafeCell<u32>,
}

impl Watched {
    fn new(life: &Arc<Life>) -> Self {
        Self {
            life: life.clone(),
            touched: UnsafeCell::new(0),
        }
    }

    fn touch(&self, count: &Count) {
        // SAFETY: what the models check.
        self.touched.with_mut(|touched| unsafe { *touched += 1 });
        let dropped = self.life.drops.load(Ordering::Relaxed);
        assert_eq!(dropped, 0, "touched after it was dropped");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Future for Watched {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.touch(&self.life.polls);
        Poll::Pending
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.touch(&self.life.drops);
    }
}

/// A future that asks for another poll so many times, and counts those that begin after the shutdown has begun.
struct Restless {
    /// Too few for the worker to read the clock, by which a model would not be the same each time.
    left: u32,
    begun: Arc<AtomicBool>,
    late: Arc<Count>,
}

impl Future for Restless {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Acquire: what follows this poll comes after `begin_shutdown`.
        if self.begun.load(Ordering::Acquire) {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
        if self.left > 0 {
            self.left -= 1;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 10_000;
    builder.check(model);
}

/// The parts of a runtime that has so many workers.
fn runtime(workers: usize) -> (Arc<Shared>, Vec<Tools>) {
    Shared::new(workers, true, true, Hooks::default())
}

/// The life of a worker's thread: `run` is its loop.
fn work(shared: Arc<Shared>, index: usize, tools: Tools, run: impl FnOnce(&Worker)) {
    let worker = Worker::new(shared.clone(), index, tools);
    run(&worker);
    shared.worker_left(&worker);
}

/// The threads have ended: the future was dropped once, and nothing keeps the task's memory, which counts the runtime.
fn is_gone(life: &Life, shared: &Weak<Shared>) {
    assert_eq!(life.drops.load(Ordering::Relaxed), 1);
    assert!(shared.upgrade().is_none(), "a task has not been freed");
}

#[test]
fn an_owner_that_is_not_alone_for_the_shutdown_sees_that_it_has_begun() {
    check(3, || {
        let (shared, _tools) = runtime(2);
        let ender = {
            let shared = shared.clone();
            thread::spawn(move || shared.begin_shutdown())
        };
        let turns = Turns::new(false);
        let phase = &shared.remotes[0].phase;
        turns.begin(phase);
        turns.end_by(phase, || ());
        if !turns.alone(phase) {
            assert!(shared.is_shut_down());
        }
        ender.join().unwrap();
        assert!(!turns.alone(phase), "it stays");
    });
}

#[test]
fn a_worker_with_work_at_hand_leaves_after_the_poll_that_it_is_in() {
    check(3, || {
        let (shared, mut tools) = runtime(1);
        let (begun, late) = (Arc::new(AtomicBool::new(false)), Arc::new(Count::new(0)));
        let worker = {
            let (shared, tools) = (shared.clone(), tools.remove(0));
            let restless = Restless {
                left: 2,
                begun: begun.clone(),
                late: late.clone(),
            };
            thread::spawn(move || {
                work(shared, 0, tools, |worker| {
                    drop(spawn_on(worker, restless, None));
                    worker.run();
                });
            })
        };
        shared.begin_shutdown();
        begun.store(true, Ordering::Release);
        worker.join().unwrap();
        let late = late.load(Ordering::Relaxed);
        assert!(late <= 1, "{late} polls have begun since");
    });
}

#[test]
fn the_last_worker_drops_what_the_others_have_polled() {
    check(2, || {
        let (shared, tools) = runtime(2);
        let weak = Arc::downgrade(&shared);
        let lives = [(); 2].map(|()| Arc::new(Life::default()));
        let workers: Vec<_> = (tools.into_iter().enumerate().zip(&lives))
            .map(|((index, tools), life)| {
                let life = life.clone();
                // One turn of the loop.
                let run = move |worker: &Worker| {
                    drop(spawn_on(worker, Watched::new(&life), None));
                    if !worker.shared().is_shut_down() {
                        let _ = worker.run_some();
                    }
                };
                let shared = shared.clone();
                thread::spawn(move || work(shared, index, tools, run))
            })
            .collect();
        shared.begin_shutdown();
        drop(shared);
        for worker in workers {
            worker.join().unwrap();
        }
        lives.iter().for_each(|life| is_gone(life, &weak));
    });
}

/// A task from outside, with a waker of it, and what becomes of it.
fn task_from_outside(shared: &Arc<Shared>) -> (Arc<Life>, Waker) {
    let life = Arc::new(Life::default());
    let header = cell::allocate(Watched::new(&life), shared.clone(), Id::next(), None);
    let waker = waker::with_borrowed(header, Waker::clone);
    // SAFETY: a new task counts a reference for its handle, of type `()`...
    drop(unsafe { JoinHandle::<()>::new(header) });
    // SAFETY: ...and one for its queue entry.
    let task = unsafe { Task::from_raw(header) };
    assert!(shared.owned.insert(&task));
    shared.inject(task);
    (life, waker)
}

#[test]
fn a_task_that_is_woken_while_it_is_shut_down_is_dropped_once() {
    check(2, || {
        let (shared, mut tools) = runtime(1);
        let weak = Arc::downgrade(&shared);
        let (life, waker) = task_from_outside(&shared);
        let worker = {
            let (shared, tools) = (shared.clone(), tools.remove(0));
            thread::spawn(move || work(shared, 0, tools, Worker::run))
        };
        let outside = thread::spawn(move || {
            waker.wake_by_ref();
            waker
        });
        shared.begin_shutdown();
        drop(shared);
        worker.join().unwrap();
        let waker = outside.join().unwrap();
        // And when all is over.
        waker.wake_by_ref();
        waker.wake();
        is_gone(&life, &weak);
    });
}
