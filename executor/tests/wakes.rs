//! Wakes from anywhere, at any moment: none is lost, none blocks, none is run twice.
#![cfg(not(wakerun_loom))]

mod common;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
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

/// What a future is found to do that is woken, aborted and ended from all sides.
#[derive(Default)]
struct Seen {
    inside: AtomicBool,
    polls: AtomicUsize,
    drops: AtomicUsize,
    /// Written before each wake, and read by the polls, without an order of their own.
    written: AtomicUsize,
    read: AtomicUsize,
}

/// Touched by one thread at a time, or the test fails.
struct Touch<'a>(&'a Seen);

impl<'a> Touch<'a> {
    fn new(seen: &'a Seen) -> Self {
        assert!(!seen.inside.swap(true, Ordering::Relaxed), "two at once");
        assert_eq!(
            seen.drops.load(Ordering::Relaxed),
            0,
            "touched when it was gone"
        );
        Self(seen)
    }
}

impl Drop for Touch<'_> {
    fn drop(&mut self) {
        self.0.inside.store(false, Ordering::Relaxed);
    }
}

/// Ready when it has seen so much written; now and then it asks for another poll.
struct Watched {
    seen: Arc<Seen>,
    last: usize,
    kept: Vec<Waker>,
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let seen = Arc::clone(&self.seen);
        let touch = Touch::new(&seen);
        let polls = seen.polls.fetch_add(1, Ordering::Relaxed);
        let read = seen.written.load(Ordering::Relaxed);
        seen.read.store(read, Ordering::Relaxed);
        // More than the task has in stock, and back, and away.
        match polls % 7 {
            0 => (0..polls % 41).for_each(|_| self.kept.push(wake::clone_waker(cx.waker()))),
            1 => self.kept.drain(..).for_each(wake::recycle),
            2 => self.kept.clear(),
            3 => self
                .kept
                .drain(..)
                .for_each(|waker| wake::wake_owned(waker, Place::Tail)),
            4 => wake::force_yield(cx),
            _ => {}
        }
        drop(touch);
        if read == self.last {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let seen = Arc::clone(&self.seen);
        let _touch = Touch::new(&seen);
        seen.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Spawns watched futures; with the waker of each.
fn watched(
    runtime: &Runtime,
    count: usize,
    last: usize,
) -> Vec<(Arc<Seen>, Waker, JoinHandle<()>)> {
    let spawned = (0..count).map(|_| {
        let seen = Arc::new(Seen::default());
        let mut future = Watched {
            seen: Arc::clone(&seen),
            last,
            kept: Vec::new(),
        };
        let (slot, known) = (Arc::new(Mutex::new(None)), Event::new());
        let (mine, set) = (Arc::clone(&slot), known.clone());
        let task = runtime.spawn(poll_fn(move |cx| {
            if !set.is_set() {
                *mine.lock().unwrap() = Some(cx.waker().clone());
                set.set();
            }
            Pin::new(&mut future).poll(cx)
        }));
        runtime.block_on(known.wait());
        let waker = slot.lock().unwrap().take().unwrap();
        (seen, waker, task)
    });
    spawned.collect()
}

/// What [`write_and_wake`] needs of them.
fn wakers_of(tasks: &[(Arc<Seen>, Waker, JoinHandle<()>)]) -> Vec<(Arc<Seen>, Waker)> {
    let wakers = tasks.iter();
    let wakers = wakers.map(|(seen, waker, _)| (Arc::clone(seen), waker.clone()));
    wakers.collect()
}

/// Writes and wakes, `times` at most, until it is told to stop.
fn write_and_wake(tasks: &[(Arc<Seen>, Waker)], me: usize, times: usize, stop: &AtomicBool) {
    for i in 0..times {
        for (seen, waker) in tasks {
            seen.written.fetch_add(1, Ordering::Relaxed);
            match (i + me) % 3 {
                0 => wake_by_value(waker),
                1 => waker.wake_by_ref(),
                _ => wake::wake(waker, Place::Tail),
            }
        }
        if i % 16 == 0 {
            thread::yield_now();
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
}

#[test]
fn polls_come_one_at_a_time_and_the_last_sees_what_was_written_before_any_wake() {
    each_kind(|kind, runtime| {
        let times = rounds(20_000);
        let tasks = watched(&runtime, 3, 2 * times);
        let wakers = wakers_of(&tasks);
        thread::scope(|s| {
            for me in 0..2 {
                let wakers = &wakers;
                s.spawn(move || write_and_wake(wakers, me, times, &AtomicBool::new(false)));
            }
            for (seen, _, task) in tasks {
                runtime.block_on(task).unwrap();
                assert_eq!(seen.read.load(Ordering::Relaxed), 2 * times, "{kind:?}");
                assert_eq!(seen.drops.load(Ordering::Relaxed), 1);
            }
        });
    });
}

#[test]
fn a_task_that_is_woken_and_aborted_from_all_sides_is_dropped_once_and_polled_no_more() {
    within("woken and aborted", || {
        for kind in Kind::ALL {
            let runtime = kind.build();
            for round in 0..rounds(2_000) / 20 {
                let mut tasks = watched(&runtime, 3, usize::MAX);
                let wakers = wakers_of(&tasks);
                let stop = AtomicBool::new(false);
                thread::scope(|s| {
                    for me in 0..2 {
                        let (wakers, stop) = (&wakers, &stop);
                        s.spawn(move || write_and_wake(wakers, me, usize::MAX, stop));
                    }
                    for _ in 0..round % 10 {
                        thread::yield_now();
                    }
                    for (seen, _, task) in tasks.drain(..) {
                        task.abort();
                        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
                        assert_eq!(seen.drops.load(Ordering::Relaxed), 1, "{kind:?}");
                    }
                    stop.store(true, Ordering::Relaxed);
                });
            }
        }
    });
}

#[test]
fn a_runtime_that_ends_amid_wakes_and_aborts_drops_each_future_once() {
    within("ended amid wakes", || {
        for kind in Kind::ALL {
            for round in 0..rounds(2_000) / 20 {
                let runtime = kind.build();
                let tasks = watched(&runtime, 4, usize::MAX);
                let wakers = wakers_of(&tasks);
                let stop = AtomicBool::new(false);
                thread::scope(|s| {
                    for me in 0..2 {
                        let (wakers, stop) = (&wakers, &stop);
                        s.spawn(move || write_and_wake(wakers, me, usize::MAX, stop));
                    }
                    let aborts: Vec<_> =
                        tasks.iter().map(|(.., task)| task.abort_handle()).collect();
                    s.spawn(move || aborts[..2].iter().for_each(|abort| abort.abort()));
                    for _ in 0..round % 10 {
                        thread::yield_now();
                    }
                    drop(runtime);
                    for (seen, _, task) in tasks {
                        assert_eq!(seen.drops.load(Ordering::Relaxed), 1, "{kind:?}");
                        assert!(common::block_on(task).unwrap_err().is_cancelled());
                    }
                    stop.store(true, Ordering::Relaxed);
                });
            }
        }
    });
}
