//! The end of a runtime: it comes, whatever the tasks do, and every future is dropped once.
#![cfg(not(wakerun_loom))]

mod common;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{DropFlag, Event, Kind, block_on, each_kind, each_pool, rounds, within};
use wakerun::Runtime;
use wakerun::task::{self, yield_now};

/// Sets its event when it is dropped: the sending end of the simplest channel there is.
struct Sets(Event);

impl Drop for Sets {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Counts drops.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn guard(&self) -> Counted {
        Counted(self.clone())
    }
}

struct Counted(Count);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A runtime whose threads are at work on something, and tasks are parked on something.
fn waker_of_a_parked_task(runtime: &Runtime, guard: Counted) -> Waker {
    let slot = Arc::new(Mutex::new(None));
    let mine = Arc::clone(&slot);
    let known = Event::new();
    let set = known.clone();
    drop(runtime.spawn(async move {
        let _guard = guard;
        poll_fn(|cx| {
            *mine.lock().unwrap() = Some(cx.waker().clone());
            set.set();
            Poll::<()>::Pending
        })
        .await;
    }));
    runtime.block_on(known.wait());
    slot.lock().unwrap().take().unwrap()
}

#[test]
fn tasks_that_wake_each_other_as_they_are_dropped() {
    // B024: a ring of tasks, each owning what the next one waits for.
    each_kind(|_, runtime| {
        let drops = Count::default();
        let events: Vec<_> = (0..100).map(|_| Event::new()).collect();
        let started = Arc::new(AtomicUsize::new(0));
        for i in 0..100 {
            let (mine, next) = (events[i].clone(), Sets(events[(i + 1) % 100].clone()));
            let (guard, started) = (drops.guard(), Arc::clone(&started));
            drop(runtime.spawn(async move {
                let _own = (guard, next);
                started.fetch_add(1, Ordering::SeqCst);
                mine.wait().await;
            }));
        }
        runtime.block_on(async {
            while started.load(Ordering::SeqCst) < 100 {
                yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(drops.get(), 100);
    });
}

#[test]
fn every_future_is_dropped_wherever_it_stands() {
    each_kind(|kind, runtime| {
        let drops = Count::default();
        let count = if cfg!(miri) { 20 } else { 2000 };
        for i in 0..count {
            let guard = drops.guard();
            drop(runtime.spawn(async move {
                let _guard = guard;
                match i % 4 {
                    0 => {}
                    1 => std::future::pending().await,
                    2 => loop {
                        yield_now().await;
                    },
                    _ => drop(task::spawn(std::future::pending::<()>())),
                }
            }));
        }
        if kind == Kind::Current {
            runtime.block_on(yield_now());
        }
        drop(runtime);
        assert_eq!(drops.get(), count);
    });
}

#[test]
fn wakers_outlive_the_runtime() {
    // B088
    each_kind(|_, runtime| {
        let drops = Count::default();
        let waker = waker_of_a_parked_task(&runtime, drops.guard());
        drop(runtime);
        assert_eq!(drops.get(), 1);
        let clone = waker.clone();
        waker.wake_by_ref();
        clone.wake();
        thread::spawn(move || {
            waker.wake_by_ref();
            wakerun::wake::wake(&waker, wakerun::wake::Place::Next);
            drop(waker);
        })
        .join()
        .unwrap();
        assert_eq!(drops.get(), 1);
    });
}

#[test]
fn wakes_during_the_shutdown_are_harmless() {
    // B055
    within("wakes during the shutdown", || {
        for kind in Kind::ALL {
            for _ in 0..rounds(2_000) / 10 {
                let runtime = kind.build();
                let drops = Count::default();
                let wakers: Vec<_> = (0..4)
                    .map(|_| waker_of_a_parked_task(&runtime, drops.guard()))
                    .collect();
                let stop = Arc::new(AtomicBool::new(false));
                let (go, stopped) = (Event::new(), Arc::clone(&stop));
                let set = go.clone();
                let thread = thread::spawn(move || {
                    set.set();
                    while !stopped.load(Ordering::Relaxed) {
                        wakers.iter().for_each(Waker::wake_by_ref);
                    }
                });
                go.wait_blocking();
                drop(runtime);
                assert_eq!(drops.get(), 4);
                stop.store(true, Ordering::Relaxed);
                thread.join().unwrap();
            }
        }
    });
}

#[test]
fn spawns_during_the_shutdown_run_or_are_cancelled() {
    // B055
    within("spawns during the shutdown", || {
        for kind in Kind::ALL {
            for _ in 0..rounds(2_000) / 10 {
                let runtime = kind.build();
                let handle = runtime.handle().clone();
                let drops = Count::default();
                let (guards, go) = (drops.clone(), Event::new());
                let set = go.clone();
                let thread = thread::spawn(move || {
                    set.set();
                    (0..50)
                        .map(|_| {
                            let guard = guards.guard();
                            handle.spawn(async move {
                                let _guard = guard;
                                yield_now().await;
                            })
                        })
                        .collect::<Vec<_>>()
                });
                go.wait_blocking();
                drop(runtime);
                for task in thread.join().unwrap() {
                    assert!(task.is_finished());
                    if let Err(error) = block_on(task) {
                        assert!(error.is_cancelled());
                    }
                }
                assert_eq!(drops.get(), 50);
            }
        }
    });
}

#[test]
fn a_shared_future_that_wakes_under_its_lock_is_not_reentered() {
    // B088: a wake after the end must not drop the task on the waker's stack.
    struct Shared(Mutex<Vec<Waker>>);

    struct Leaves(Arc<Shared>);

    impl Drop for Leaves {
        fn drop(&mut self) {
            self.0.0.lock().unwrap().clear();
        }
    }

    each_kind(|_, runtime| {
        for aborted in [false, true] {
            let shared = Arc::new(Shared(Mutex::new(Vec::new())));
            let leaves = Leaves(Arc::clone(&shared));
            let (parked, go) = (Event::new(), Event::new());
            let (set, wait) = (parked.clone(), go.clone());
            let task = runtime.spawn(async move {
                let leaves = leaves;
                poll_fn(|cx| {
                    leaves.0.0.lock().unwrap().push(cx.waker().clone());
                    set.set();
                    if wait.is_set() {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            });
            runtime.block_on(parked.wait());
            if aborted {
                task.abort();
            }
            // Wakes under its own lock, as shared futures do.
            let complete = |shared: &Shared| {
                let wakers = shared.0.lock().unwrap();
                wakers.iter().for_each(Waker::wake_by_ref);
                wakers.iter().cloned().for_each(Waker::wake);
            };
            complete(&shared);
            go.set();
            complete(&shared);
            let _ = runtime.block_on(task);
        }
        let shared = Arc::new(Shared(Mutex::new(Vec::new())));
        let leaves = Leaves(Arc::clone(&shared));
        let parked = Event::new();
        let set = parked.clone();
        drop(runtime.spawn(async move {
            let leaves = leaves;
            poll_fn(|cx| {
                leaves.0.0.lock().unwrap().push(cx.waker().clone());
                set.set();
                Poll::<()>::Pending
            })
            .await;
        }));
        runtime.block_on(parked.wait());
        let wakers = shared.0.lock().unwrap().clone();
        drop(runtime);
        let _held = shared.0.lock().unwrap();
        wakers.iter().for_each(Waker::wake_by_ref);
        wakers.into_iter().for_each(Waker::wake);
    });
}

#[test]
fn destructors_may_use_the_runtime_that_ends() {
    // B024
    struct Busy(wakerun::Handle, Count, Option<task::JoinHandle<()>>);

    impl Drop for Busy {
        fn drop(&mut self) {
            // Outside a task there may be no current runtime any more; the handle always works.
            let guard = self.1.guard();
            drop(self.0.spawn(async move { drop(guard) }));
            let _ = self.0.num_workers();
            let other = self.2.take();
            if let Some(other) = &other {
                other.abort();
                let _ = other.is_finished();
            }
            drop(other);
            drop(self.0.enter());
        }
    }

    each_kind(|_, runtime| {
        let drops = Count::default();
        let mut previous = None;
        for _ in 0..50 {
            let busy = Busy(runtime.handle().clone(), drops.clone(), previous.take());
            previous = Some(runtime.spawn(async move {
                let _busy = busy;
                std::future::pending().await
            }));
        }
        drop(runtime);
        drop(previous);
        assert_eq!(drops.get(), 50);
    });
}

#[test]
fn a_panicking_destructor_does_not_spare_the_others() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor panics");
        }
    }

    each_kind(|_, runtime| {
        let drops = Count::default();
        for i in 0..20 {
            let guard = drops.guard();
            drop(runtime.spawn(async move {
                let _guard = guard;
                let _bomb = (i == 7).then_some(Bomb);
                std::future::pending::<()>().await;
            }));
        }
        // Polled once, so that the guards are the future's locals.
        runtime.block_on(async {
            for _ in 0..100 {
                yield_now().await;
            }
        });
        let _ = catch_unwind(AssertUnwindSafe(|| drop(runtime)));
        assert_eq!(drops.get(), 20);
    });
}

#[test]
fn handles_learn_of_the_end() {
    each_kind(|_, runtime| {
        let task = runtime.spawn(std::future::pending::<()>());
        let waiting = runtime.spawn(std::future::pending::<()>());
        let thread = thread::spawn(move || block_on(waiting));
        drop(runtime);
        assert!(task.is_finished());
        assert!(block_on(task).unwrap_err().is_cancelled());
        assert!(thread.join().unwrap().unwrap_err().is_cancelled());
    });
}

#[test]
fn tasks_that_await_each_other_are_freed() {
    // B099
    each_kind(|_, runtime| {
        let drops = Count::default();
        let exchange = Arc::new(Mutex::new([None, None]));
        let ready = Event::new();
        let tasks: Vec<_> = (0..2)
            .map(|me| {
                let (exchange, ready, guard) =
                    (Arc::clone(&exchange), ready.clone(), drops.guard());
                runtime.spawn(async move {
                    let _guard = guard;
                    ready.wait().await;
                    let other: Option<task::JoinHandle<()>> = exchange.lock().unwrap()[me].take();
                    let _ = other.unwrap().await;
                })
            })
            .collect();
        for (me, task) in tasks.into_iter().enumerate() {
            exchange.lock().unwrap()[1 - me] = Some(task);
        }
        ready.set();
        runtime.block_on(async {
            while Arc::strong_count(&exchange) > 1
                && exchange.lock().unwrap().iter().any(Option::is_some)
            {
                yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(drops.get(), 2);
        assert_eq!(Arc::strong_count(&exchange), 1);
    });
}

#[test]
fn the_memory_of_tasks_is_freed_with_the_runtime() {
    // B099, B100: what a task owned is gone when the runtime is, not when its last waker is.
    each_kind(|_, runtime| {
        let drops = Count::default();
        let wakers: Vec<_> = (0..10)
            .map(|_| waker_of_a_parked_task(&runtime, drops.guard()))
            .collect();
        drop(runtime);
        assert_eq!(drops.get(), 10);
        drop(wakers);
    });
}

#[test]
fn a_runtime_dropped_inside_a_task_ends_in_the_background() {
    within("dropped inside a task", || {
        for outer in Kind::ALL {
            for inner in Kind::ALL {
                let outer = outer.build();
                let inner = inner.build();
                let (flag, dropped, _) = DropFlag::new();
                drop(inner.spawn(async move {
                    let _flag = flag;
                    std::future::pending::<()>().await;
                }));
                outer
                    .block_on(outer.spawn(async move { drop(inner) }))
                    .unwrap();
                dropped.wait_blocking();
            }
        }
    });
}

#[test]
fn a_runtime_dropped_by_its_own_task_ends() {
    within("dropped by its own task", || {
        for workers in [1, 2, 4] {
            let runtime = Arc::new(Kind::Workers(workers).build());
            let (flag, dropped, _) = DropFlag::new();
            drop(runtime.spawn(async move {
                let _flag = flag;
                std::future::pending::<()>().await;
            }));
            let (mine, go) = (Arc::clone(&runtime), Event::new());
            let wait = go.clone();
            let task = runtime.spawn(async move {
                wait.wait().await;
                drop(mine);
            });
            drop(runtime);
            go.set();
            dropped.wait_blocking();
            let _ = block_on(task);
        }
        // And as something that a task owns when it is dropped.
        let outer = Kind::Workers(2).build();
        let inner = Kind::Workers(2).build();
        let (flag, dropped, _) = DropFlag::new();
        drop(inner.spawn(async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        }));
        drop(outer.spawn(async move {
            let _inner = inner;
            std::future::pending::<()>().await;
        }));
        drop(outer);
        dropped.wait_blocking();
    });
}

#[test]
fn a_runtime_dropped_while_unwinding_ends() {
    // B115
    within("unwinding", || {
        for kind in Kind::ALL {
            let drops = Count::default();
            let guard = drops.guard();
            let result = catch_unwind(|| {
                let runtime = kind.build();
                drop(runtime.spawn(async move {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                }));
                runtime.block_on(async { panic!("leaves block_on") });
            });
            assert!(result.is_err());
            assert_eq!(drops.get(), 1);
        }
    });
}

#[test]
fn a_runtime_works_on_after_a_panic_in_block_on() {
    each_kind(|_, runtime| {
        for _ in 0..3 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async {
                    yield_now().await;
                    panic!("leaves block_on");
                });
            }));
            assert!(result.is_err());
            let task = runtime.spawn(async { 1 });
            assert_eq!(runtime.block_on(task).unwrap(), 1);
        }
    });
}

#[test]
fn a_timeout_bounds_the_wait_for_a_poll_without_end() {
    // B115
    each_pool(|_, runtime| {
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        let (flag, dropped, _) = DropFlag::new();
        drop(runtime.spawn(async move {
            let _flag = flag;
            set.set();
            wait.wait_blocking();
        }));
        in_poll.wait_blocking();
        let start = Instant::now();
        runtime.shutdown_timeout(Duration::from_millis(50));
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert!(!dropped.is_set());
        go_on.set();
        dropped.wait_blocking();
    });
}

#[test]
fn any_timeout_is_good() {
    // B026, for the one duration there is so far
    each_kind(|kind, runtime| {
        drop(runtime);
        for timeout in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(u64::MAX),
            Duration::MAX,
        ] {
            let runtime = kind.build();
            let (flag, dropped, _) = DropFlag::new();
            drop(runtime.spawn(async move {
                let _flag = flag;
                std::future::pending::<()>().await;
            }));
            runtime.shutdown_timeout(timeout);
            dropped.wait_blocking();
        }
    });
}

#[test]
fn a_shutdown_in_the_background_does_not_wait() {
    each_pool(|_, runtime| {
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        let drops = Count::default();
        let guard = drops.guard();
        drop(runtime.spawn(async move {
            let _guard = guard;
            set.set();
            wait.wait_blocking();
        }));
        in_poll.wait_blocking();
        let (flag, dropped, _) = DropFlag::new();
        drop(runtime.spawn(async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        }));
        // Would never return if it waited: the poll goes on until we say so.
        runtime.shutdown_background();
        assert_eq!(drops.get(), 0);
        go_on.set();
        dropped.wait_blocking();
        while drops.get() == 0 {
            thread::yield_now();
        }
    });
}

#[test]
fn tasks_without_end_do_not_hold_up_the_shutdown() {
    each_kind(|_, runtime| {
        let drops = Count::default();
        for _ in 0..50 {
            let guard = drops.guard();
            drop(runtime.spawn(async move {
                let _guard = guard;
                loop {
                    yield_now().await;
                }
            }));
        }
        runtime.block_on(yield_now());
        drop(runtime);
        assert_eq!(drops.get(), 50);
    });
}

#[test]
fn runtimes_come_and_go() {
    within("many runtimes", || {
        for kind in Kind::ALL {
            for _ in 0..rounds(2_000) / 4 {
                let runtime = kind.build();
                let task = runtime.spawn(async { 1 });
                assert_eq!(runtime.block_on(task).unwrap(), 1);
            }
        }
    });
}

#[test]
fn a_handle_may_outlive_its_runtime() {
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        drop(runtime);
        // A main future that needs no task still runs; a spawned one is cancelled.
        assert_eq!(handle.block_on(async { 5 }), 5);
        let task = handle.block_on(async { wakerun::spawn(async {}).await });
        assert!(task.unwrap_err().is_cancelled());
        assert_eq!(handle.num_alive_tasks(), 0);
    });
}

#[test]
fn a_block_on_that_is_under_way_goes_on() {
    each_kind(|_, runtime| {
        let (started, go) = (Event::new(), Event::new());
        let (set, wait) = (started.clone(), go.clone());
        let handle = runtime.handle().clone();
        let thread = thread::spawn(move || {
            handle.block_on(async move {
                set.set();
                wait.wait().await;
                7
            })
        });
        started.wait_blocking();
        drop(runtime);
        go.set();
        assert_eq!(thread.join().unwrap(), 7);
    });
}
