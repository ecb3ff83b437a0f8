//! Spawned tasks run: from wherever they are spawned, whoever awaits them.
#![cfg(not(wakerun_loom))]

mod common;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{DropFlag, Event, Kind, each_kind, each_pool, rounds, within};
use wakerun::Handle;
use wakerun::task::{self, yield_now};

#[test]
fn a_task_gives_its_output() {
    each_kind(|_, runtime| {
        let task = runtime.spawn(async { "output" });
        assert_eq!(runtime.block_on(task).unwrap(), "output");
    });
}

#[test]
fn a_task_starts_though_nobody_awaits_it() {
    each_pool(|_, runtime| {
        let ran = Event::new();
        let event = ran.clone();
        drop(runtime.spawn(async move { event.set() }));
        ran.wait_blocking();
    });
}

#[test]
fn tasks_spawn_from_every_place() {
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        let main = runtime.block_on(async {
            let inner = wakerun::spawn(async {
                // Task in a task in a task.
                wakerun::spawn(async { task::spawn(async { 1 }).await.unwrap() })
                    .await
                    .unwrap()
            });
            inner.await.unwrap()
        });
        assert_eq!(main, 1);
        let from_thread = thread::spawn(move || handle.spawn(async { 2 }))
            .join()
            .unwrap();
        assert_eq!(runtime.block_on(from_thread).unwrap(), 2);
        let entered = {
            let _guard = runtime.enter();
            wakerun::spawn(async { 3 })
        };
        assert_eq!(runtime.block_on(entered).unwrap(), 3);
        let built =
            runtime.block_on(async { task::Builder::new().name("n").spawn(async { 4 }).await });
        assert_eq!(built.unwrap(), 4);
    });
}

#[test]
fn a_future_of_any_size_can_be_spawned() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            task::spawn(async {}).await.unwrap();
            let large = [7_u8; 16 * 1024];
            let sum = task::spawn(async move {
                yield_now().await;
                large.iter().map(|&b| u64::from(b)).sum::<u64>()
            });
            assert_eq!(sum.await.unwrap(), 7 * 16 * 1024);
            #[repr(align(256))]
            struct Aligned(u8);
            let aligned = Aligned(1);
            let task = task::spawn(async move {
                yield_now().await;
                assert_eq!(std::ptr::from_ref(&aligned).addr() % 256, 0);
                aligned
            });
            let output = task.await.unwrap();
            assert_eq!(std::ptr::from_ref(&output).addr() % 256, 0);
            assert_eq!(output.0, 1);
        });
    });
}

#[test]
fn every_task_of_many_runs_once() {
    // B052
    each_kind(|_, runtime| {
        let count = rounds(100_000);
        let ran = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = thread::scope(|s| {
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (handle, ran) = (runtime.handle().clone(), Arc::clone(&ran));
                    s.spawn(move || {
                        let task = |i: usize| {
                            let ran = Arc::clone(&ran);
                            handle.spawn(async move {
                                if i.is_multiple_of(2) {
                                    yield_now().await;
                                }
                                ran.fetch_add(1, Ordering::Relaxed);
                            })
                        };
                        (0..count / 3).map(task).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|t| t.join().unwrap())
                .collect()
        });
        let tasks = handles.len();
        runtime.block_on(async {
            for handle in handles {
                handle.await.unwrap();
            }
        });
        assert_eq!(ran.load(Ordering::Relaxed), tasks);
    });
}

#[test]
fn a_task_that_spawns_more_than_a_ring_holds_loses_none() {
    // B052: what overflows a worker's own queue is found by whoever looks.
    each_kind(|_, runtime| {
        let count = rounds(40_000);
        let sum = runtime.block_on(async move {
            task::spawn(async move {
                let tasks: Vec<_> = (0..count).map(|i| task::spawn(async move { i })).collect();
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                sum
            })
            .await
        });
        assert_eq!(sum.unwrap(), count * (count - 1) / 2);
    });
}

#[test]
fn sleeping_workers_are_woken_for_a_spawn_from_outside() {
    // B051, B104
    each_pool(|_, runtime| {
        for _ in 0..rounds(20_000) {
            // Nothing runs between the rounds, so that workers go to sleep more often than not.
            let ran = Event::new();
            let event = ran.clone();
            drop(runtime.spawn(async move { event.set() }));
            ran.wait_blocking();
        }
    });
}

#[test]
fn a_chain_of_tasks_ends() {
    each_kind(|_, runtime| {
        fn link(left: usize, end: Event) {
            if left == 0 {
                end.set();
            } else {
                drop(task::spawn(async move { link(left - 1, end) }));
            }
        }
        let end = Event::new();
        runtime.block_on(async {
            link(rounds(20_000), end.clone());
            end.wait().await;
        });
    });
}

#[test]
fn destructors_may_spawn() {
    struct Spawns(Event);

    impl Drop for Spawns {
        fn drop(&mut self) {
            let event = self.0.clone();
            drop(task::spawn(async move { event.set() }));
        }
    }

    each_kind(|_, runtime| {
        let (at_end, at_abort) = (Event::new(), Event::new());
        runtime.block_on(async {
            let guard = Spawns(at_end.clone());
            task::spawn(async move { drop(guard) }).await.unwrap();
            let guard = Spawns(at_abort.clone());
            let parked = task::spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
            parked.abort();
            assert!(parked.await.unwrap_err().is_cancelled());
            at_end.wait().await;
            at_abort.wait().await;
        });
    });
}

#[test]
fn a_thread_local_destructor_may_spawn() {
    // B072
    struct Spawns(Handle, Event);

    impl Drop for Spawns {
        fn drop(&mut self) {
            let event = self.1.clone();
            drop(self.0.spawn(async move { event.set() }));
        }
    }

    thread_local! {
        static EARLY: RefCell<Option<Spawns>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<Spawns>> = const { RefCell::new(None) };
    }

    each_pool(|_, runtime| {
        let (early, late) = (Event::new(), Event::new());
        let handle = runtime.handle().clone();
        let (e, l) = (early.clone(), late.clone());
        thread::spawn(move || {
            EARLY.set(Some(Spawns(handle.clone(), e)));
            drop(handle.spawn(async {}));
            drop(handle.enter());
            LATE.set(Some(Spawns(handle, l)));
        })
        .join()
        .unwrap();
        early.wait_blocking();
        late.wait_blocking();
    });
}

#[test]
fn a_spawn_after_the_end_is_cancelled() {
    // B055
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        drop(runtime);
        let (flag, dropped, _) = DropFlag::new();
        let task = handle.spawn(async move { drop(flag) });
        assert!(dropped.is_set());
        assert!(task.is_finished());
        assert!(common::block_on(task).unwrap_err().is_cancelled());
    });
}

#[test]
fn ids_tell_tasks_apart() {
    each_kind(|_, runtime| {
        let mut ids = std::collections::HashSet::new();
        runtime.block_on(async {
            assert!(task::try_id().is_none());
            for _ in 0..100 {
                let task = task::spawn(async { task::id() });
                let id = task.id();
                assert_eq!(task.abort_handle().id(), id);
                assert_eq!(task.await.unwrap(), id);
                assert!(ids.insert(id));
            }
        });
        assert!(task::try_id().is_none());
    });
}

#[test]
fn a_name_is_shown() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let task = task::Builder::new().name("parser").spawn(async {});
        assert!(format!("{task:?}").contains("parser"));
        assert!(format!("{:?}", task.abort_handle()).contains("parser"));
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn the_current_runtime_is_the_one_entered_last() {
    within("enter", || {
        let a = Kind::Workers(1).build();
        let b = Kind::Workers(2).build();
        assert!(Handle::try_current().is_err());
        {
            let _a = a.enter();
            assert_eq!(Handle::current().num_workers(), 1);
            {
                let _b = b.enter();
                assert_eq!(Handle::current().num_workers(), 2);
            }
            assert_eq!(Handle::current().num_workers(), 1);
            b.block_on(async { assert_eq!(Handle::current().num_workers(), 2) });
        }
        assert!(Handle::try_current().is_err());
        let inner = b.handle().clone();
        a.block_on(async {
            let _b = inner.enter();
            assert_eq!(Handle::current().num_workers(), 2);
        });
    });
}

#[test]
fn tasks_are_counted_while_they_live() {
    each_kind(|_, runtime| {
        let go = Event::new();
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let go = go.clone();
                runtime.spawn(async move { go.wait().await })
            })
            .collect();
        assert_eq!(runtime.handle().num_alive_tasks(), 10);
        go.set();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        // A task is let go a moment after its handle has been told.
        while runtime.handle().num_alive_tasks() > 0 {
            thread::yield_now();
        }
    });
}
