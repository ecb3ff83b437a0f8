//! The runtime without threads: all tasks run on the thread that is in `block_on`.
#![cfg(not(wakerun_loom))]

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{DropFlag, Event, Kind, rounds, within};
use wakerun::task::{self, yield_now};

#[test]
fn tasks_run_on_the_callers_thread() {
    within("callers thread", || {
        let runtime = Kind::Current.build();
        let here = thread::current().id();
        runtime.block_on(async {
            for _ in 0..50 {
                let task = task::spawn(async {
                    yield_now().await;
                    thread::current().id()
                });
                assert_eq!(task.await.unwrap(), here);
            }
        });
    });
}

#[test]
fn tasks_run_only_inside_block_on() {
    within("only inside", || {
        let runtime = Kind::Current.build();
        let ran = Event::new();
        let set = ran.clone();
        let task = runtime.spawn(async move { set.set() });
        assert!(!ran.is_set() && !task.is_finished());
        runtime.block_on(task).unwrap();
        assert!(ran.is_set());
    });
}

#[test]
fn tasks_go_on_in_the_next_block_on() {
    within("next block_on", || {
        let runtime = Kind::Current.build();
        let steps = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&steps);
        let task = runtime.spawn(async move {
            for _ in 0..500 {
                count.fetch_add(1, Ordering::SeqCst);
                yield_now().await;
            }
        });
        runtime.block_on(yield_now());
        let after_one = steps.load(Ordering::SeqCst);
        assert!(after_one > 0 && after_one < 500, "{after_one}");
        runtime.block_on(task).unwrap();
        assert_eq!(steps.load(Ordering::SeqCst), 500);
    });
}

#[test]
fn the_main_future_need_not_be_send() {
    within("not send", || {
        let local = Rc::new(Cell::new(0));
        let mine = Rc::clone(&local);
        Kind::Current.build().block_on(async move {
            for i in 0..10 {
                let task = task::spawn(async move { i });
                mine.set(mine.get() + task.await.unwrap());
            }
        });
        assert_eq!(local.get(), 45);
    });
}

#[test]
fn tasks_start_in_the_order_in_which_they_were_spawned() {
    within("order", || {
        let runtime = Kind::Current.build();
        let (tx, rx) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let task = |i| {
                let tx = tx.clone();
                task::spawn(async move { tx.send(i).unwrap() })
            };
            let tasks: Vec<_> = (0..100).map(task).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let order: Vec<_> = rx.try_iter().collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn two_threads_may_block_on_one_runtime() {
    // B053, B140: one of them runs the tasks; when it is done the other takes over.
    within("two threads", || {
        for _ in 0..rounds(4_000) {
            let runtime = Kind::Current.build();
            let (a, b) = (Event::new(), Event::new());
            thread::scope(|s| {
                let threads = [(a.clone(), b.clone()), (b, a)].map(|(mine, other)| {
                    let handle = runtime.handle().clone();
                    s.spawn(move || {
                        handle.block_on(async move {
                            let task = task::spawn(async move {
                                yield_now().await;
                                mine.set();
                            });
                            task.await.unwrap();
                            other.wait().await;
                        });
                    })
                });
                for thread in threads {
                    thread.join().unwrap();
                }
            });
        }
    });
}

#[test]
fn whoever_is_left_runs_the_tasks_of_the_others() {
    within("left over", || {
        let runtime = Kind::Current.build();
        let (go, done) = (Event::new(), Event::new());
        let (wait, set) = (go.clone(), done.clone());
        drop(runtime.spawn(async move {
            wait.wait().await;
            for _ in 0..100 {
                yield_now().await;
            }
            set.set();
        }));
        thread::scope(|s| {
            let first = s.spawn(|| runtime.block_on(go.wait()));
            let second = s.spawn(|| runtime.block_on(done.wait()));
            go.set();
            first.join().unwrap();
            second.join().unwrap();
        });
    });
}

#[test]
fn a_panic_in_one_block_on_leaves_the_tasks_to_the_other() {
    within("panic", || {
        let runtime = Kind::Current.build();
        let done = Event::new();
        let set = done.clone();
        drop(runtime.spawn(async move {
            for _ in 0..1000 {
                yield_now().await;
            }
            set.set();
        }));
        thread::scope(|s| {
            let panics = s.spawn(|| {
                runtime.block_on(async {
                    yield_now().await;
                    panic!("leaves");
                });
            });
            let waits = s.spawn(|| runtime.block_on(done.wait()));
            assert!(panics.join().is_err());
            waits.join().unwrap();
        });
    });
}

#[test]
fn a_wake_from_another_thread_ends_the_sleep() {
    within("wake", || {
        let runtime = Kind::Current.build();
        for _ in 0..rounds(20_000) {
            let event = Event::new();
            let set = event.clone();
            let handle = runtime.handle().clone();
            thread::scope(|s| {
                // By way of a task, spawned or woken while the caller sleeps.
                s.spawn(move || drop(handle.spawn(async move { set.set() })));
                runtime.block_on(event.wait());
            });
        }
    });
}

#[test]
fn dropping_the_runtime_drops_the_tasks_here() {
    within("drop", || {
        let runtime = Kind::Current.build();
        let (polled, polled_dropped, polled_on) = DropFlag::new();
        let (fresh, fresh_dropped, fresh_on) = DropFlag::new();
        drop(runtime.spawn(async move {
            let _flag = polled;
            std::future::pending::<()>().await;
        }));
        runtime.block_on(yield_now());
        drop(runtime.spawn(async move { drop(fresh) }));
        drop(runtime);
        assert!(polled_dropped.is_set() && fresh_dropped.is_set());
        let here = [thread::current().id()];
        assert_eq!(*polled_on.lock().unwrap(), here);
        assert_eq!(*fresh_on.lock().unwrap(), here);
    });
}
