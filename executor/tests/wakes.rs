//! Wakes from anywhere, at any moment: none is lost, none blocks, none is run twice.
#![cfg(not(wakerun_loom))]

mod common;

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;

use common::{Event, Kind, each_kind, each_pool, rounds, within};
use wakerun::task::{JoinHandle, yield_now};
use wakerun::wake::{self, Batch, Place};
use wakerun::{Handle, Runtime};

/// Gives a waker away, as most primitives do.
fn wake_by_value(waker: &Waker) {
    let own = waker.clone();
    own.wake();
}

/// A task that parks at each poll until it is told to end, and counts its polls.
struct Parker {
    waker: Waker,
    polls: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Parker {
    fn new(runtime: &Runtime, mut at_poll: impl FnMut() + Send + 'static) -> Self {
        let (slot, polls, stop) = (
            Arc::new(Mutex::new(None)),
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let known = Event::new();
        let (mine, count, end, set) = (
            Arc::clone(&slot),
            Arc::clone(&polls),
            Arc::clone(&stop),
            known.clone(),
        );
        let task = runtime.spawn(poll_fn(move |cx| {
            // Read before the maker learns of the first poll, which so never is the last.
            let ended = end.load(Ordering::SeqCst);
            mine.lock()
                .unwrap()
                .get_or_insert_with(|| cx.waker().clone());
            at_poll();
            count.fetch_add(1, Ordering::SeqCst);
            set.set();
            if ended {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        runtime.block_on(known.wait());
        let waker = slot.lock().unwrap().clone().unwrap();
        Self {
            waker,
            polls,
            stop,
            task,
        }
    }

    fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }

    fn end(self, runtime: &Runtime) {
        self.stop.store(true, Ordering::SeqCst);
        self.waker.wake_by_ref();
        runtime.block_on(self.task).unwrap();
    }
}

#[test]
fn foreign_threads_wake_one_task_and_no_wake_is_lost() {
    // B059
    each_pool(|_, runtime| {
        let parker = Parker::new(&runtime, || {});
        let wakes = rounds(400_000);
        thread::scope(|s| {
            for me in 0..2 {
                let waker = parker.waker.clone();
                s.spawn(move || {
                    for i in 0..wakes {
                        if (i + me) % 3 == 0 {
                            wake_by_value(&waker);
                        } else {
                            waker.wake_by_ref();
                        }
                        if i % 64 == 0 {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
        // At rest; then each single wake leads to a poll.
        for _ in 0..100 {
            let before = parker.polls();
            parker.waker.wake_by_ref();
            while parker.polls() == before {
                thread::yield_now();
            }
        }
        assert!(parker.polls() <= 2 * wakes + 102);
        parker.end(&runtime);
    });
}

#[test]
fn each_wake_of_a_parked_task_is_one_poll() {
    each_kind(|_, runtime| {
        let parker = Parker::new(&runtime, || {});
        runtime.block_on(async {
            for polls in 2..100 {
                // Several wakes before the poll are one.
                parker.waker.wake_by_ref();
                wake::wake(&parker.waker, Place::Next);
                wake_by_value(&parker.waker);
                while parker.polls() < polls {
                    yield_now().await;
                }
                for _ in 0..3 {
                    yield_now().await;
                }
                // A wake may fall behind the start of the poll on another worker, and cause one more.
                assert!(parker.polls() <= 3 * polls);
            }
        });
        parker.end(&runtime);
    });
}

#[test]
fn a_wake_during_the_poll_leads_to_another_poll() {
    // B059
    each_pool(|_, runtime| {
        // Woken from outside while it is inside its poll.
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        let mut poll = 0;
        let parker = Parker::new(&runtime, move || {
            poll += 1;
            if poll == 2 {
                set.set();
                wait.wait_blocking();
            }
        });
        parker.waker.wake_by_ref();
        in_poll.wait_blocking();
        parker.waker.wake_by_ref();
        assert_eq!(parker.polls(), 1);
        go_on.set();
        while parker.polls() < 3 {
            thread::yield_now();
        }
        parker.end(&runtime);
    });
}

#[test]
fn a_task_that_wakes_itself_is_polled_again() {
    each_kind(|_, runtime| {
        let mut left = 1000;
        let task = runtime.spawn(poll_fn(move |cx| {
            left -= 1;
            match left % 4 {
                0 => cx.waker().wake_by_ref(),
                1 => wake_by_value(cx.waker()),
                2 => wake::wake(cx.waker(), Place::Next),
                _ => wake::wake_owned(wake::clone_waker(cx.waker()), Place::Tail),
            }
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        runtime.block_on(task).unwrap();
    });
}

#[test]
fn a_wake_after_the_end_does_nothing() {
    each_kind(|_, runtime| {
        let parker = Parker::new(&runtime, || {});
        let (waker, polls) = (parker.waker.clone(), Arc::clone(&parker.polls));
        parker.end(&runtime);
        let before = polls.load(Ordering::SeqCst);
        waker.wake_by_ref();
        wake::wake(&waker, Place::Next);
        thread::spawn(move || {
            wake_by_value(&waker);
            waker.wake();
        })
        .join()
        .unwrap();
        runtime.block_on(yield_now());
        assert_eq!(polls.load(Ordering::SeqCst), before);
    });
}

#[test]
fn waking_any_number_of_tasks_under_a_lock_they_need_does_not_block() {
    // B060
    each_pool(|_, runtime| {
        let count = if cfg!(miri) { 100 } else { 10_000 };
        let lock = Arc::new(Mutex::new(0));
        let parkers: Vec<_> = (0..count)
            .map(|_| {
                let lock = Arc::clone(&lock);
                Parker::new(&runtime, move || *lock.lock().unwrap() += 1)
            })
            .collect();
        for parker in &parkers {
            parker.stop.store(true, Ordering::SeqCst);
        }
        thread::scope(|s| {
            s.spawn(|| {
                let _held = lock.lock().unwrap();
                for parker in &parkers {
                    parker.waker.wake_by_ref();
                }
            });
        });
        runtime.block_on(async {
            for parker in parkers {
                parker.task.await.unwrap();
            }
        });
        assert_eq!(*lock.lock().unwrap(), 2 * count);
    });
}

#[test]
fn a_batch_wakes_all_from_inside_and_from_outside() {
    each_kind(|_, runtime| {
        for place in [Place::Next, Place::Tail] {
            for inside in [false, true] {
                // More than a batch holds inline.
                let parkers: Vec<_> = (0..100).map(|_| Parker::new(&runtime, || {})).collect();
                for parker in &parkers {
                    parker.stop.store(true, Ordering::SeqCst);
                }
                let wakers: Vec<_> = parkers.iter().map(|p| p.waker.clone()).collect();
                let wake_all = move || {
                    let mut batch = Batch::new(place);
                    for waker in wakers {
                        if batch.is_full() {
                            batch.wake_all();
                        }
                        batch.push(waker);
                    }
                    batch.wake_all();
                };
                if inside {
                    runtime
                        .block_on(runtime.spawn(async move { wake_all() }))
                        .unwrap();
                } else {
                    wake_all();
                }
                runtime.block_on(async {
                    for parker in parkers {
                        parker.task.await.unwrap();
                    }
                });
            }
        }
    });
}

#[test]
fn a_task_of_one_runtime_wakes_a_task_of_another() {
    within("two runtimes", || {
        for a in Kind::ALL {
            for b in [Kind::Workers(1), Kind::Workers(2)] {
                let (a, b) = (a.build(), b.build());
                let parker = Parker::new(&b, || {});
                for place in [Place::Next, Place::Tail] {
                    let (waker, before) = (parker.waker.clone(), parker.polls());
                    a.block_on(a.spawn(async move { wake::wake(&waker, place) }))
                        .unwrap();
                    while parker.polls() == before {
                        thread::yield_now();
                    }
                }
                parker.end(&b);
            }
        }
    });
}

#[test]
fn a_thread_local_destructor_may_wake_and_drop() {
    // B072: whatever thread-locals the runtime uses may be gone by then.
    struct WakesLast(Waker);

    impl Drop for WakesLast {
        fn drop(&mut self) {
            self.0.wake_by_ref();
            wake::wake(&self.0, Place::Next);
            let mut batch = Batch::new(Place::Tail);
            batch.push(self.0.clone());
            batch.wake_all();
        }
    }

    thread_local! {
        static EARLY: RefCell<Option<WakesLast>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<WakesLast>> = const { RefCell::new(None) };
    }

    each_pool(|_, runtime| {
        let parker = Parker::new(&runtime, || {});
        for late in [false, true] {
            let before = parker.polls();
            let (waker, handle) = (parker.waker.clone(), runtime.handle().clone());
            thread::spawn(move || {
                if late {
                    drop(handle.enter());
                    wakerun::task::try_id();
                    LATE.set(Some(WakesLast(waker)));
                } else {
                    EARLY.set(Some(WakesLast(waker)));
                    drop(handle.enter());
                    handle.block_on(async {});
                }
            })
            .join()
            .unwrap();
            while parker.polls() == before {
                thread::yield_now();
            }
        }
        parker.end(&runtime);
    });
}

#[test]
fn a_thread_local_of_a_worker_may_hold_a_handle_and_wake() {
    // B072, on the worker's own thread as it leaves.
    struct Leaves(Waker, Handle, Event);

    impl Drop for Leaves {
        fn drop(&mut self) {
            self.0.wake_by_ref();
            drop(self.1.spawn(async {}));
            self.2.set();
        }
    }

    thread_local! {
        static OWN: RefCell<Option<Leaves>> = const { RefCell::new(None) };
    }

    each_pool(|_, runtime| {
        let left = Event::new();
        let (set, handle) = (left.clone(), runtime.handle().clone());
        let task = runtime.spawn(async move {
            poll_fn(|cx| {
                let leaves = Leaves(cx.waker().clone(), handle.clone(), set.clone());
                OWN.set(Some(leaves));
                Poll::Ready(())
            })
            .await;
        });
        runtime.block_on(task).unwrap();
        drop(runtime);
        left.wait_blocking();
    });
}

#[test]
fn what_was_written_before_a_wake_is_seen_by_the_poll() {
    // The wake happens before the poll it causes: plain data handed over without further locks.
    each_pool(|_, runtime| {
        let data = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&data);
        let mut last = 0;
        let parker = Parker::new(&runtime, move || {
            let now = seen.load(Ordering::Relaxed);
            assert!(now >= last);
            last = now;
        });
        for i in 1..rounds(20_000) {
            let before = parker.polls();
            data.store(i, Ordering::Relaxed);
            parker.waker.wake_by_ref();
            while parker.polls() == before {
                std::hint::spin_loop();
                thread::yield_now();
            }
        }
        parker.end(&runtime);
    });
}

#[test]
fn a_main_future_is_woken_from_any_thread() {
    // B059, for `block_on`
    each_kind(|_, runtime| {
        for _ in 0..rounds(20_000) {
            let event = Event::new();
            let set = event.clone();
            thread::scope(|s| {
                s.spawn(move || set.set());
                runtime.block_on(event.wait());
            });
        }
    });
}
