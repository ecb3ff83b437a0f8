//! Sets of tasks: joined in the order in which they end, aborted with the set.
#![cfg(not(wakerun_loom))]

mod common;

use std::collections::HashSet;
use std::pin::pin;
use std::task::{Context, Poll};

use common::{DropFlag, Event, Kind, counter, each_kind, poll_once, rounds, within};
use wakerun::task::{JoinSet, yield_now};

#[test]
fn an_empty_set_has_nothing_to_wait_for() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::<()>::new();
            assert_eq!((set.is_empty(), set.len()), (true, 0));
            assert!(set.join_next().await.is_none());
            assert!(set.try_join_next().is_none());
            set.shutdown().await;
        });
    });
}

#[test]
fn tasks_are_joined_in_the_order_in_which_they_end() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let events: Vec<_> = (0..5).map(|_| Event::new()).collect();
            for (i, event) in events.iter().enumerate() {
                let event = event.clone();
                set.spawn(async move {
                    event.wait().await;
                    i
                });
            }
            assert_eq!(set.len(), 5);
            for i in [3, 0, 4, 1, 2] {
                assert!(set.try_join_next().is_none());
                events[i].set();
                assert_eq!(set.join_next().await.unwrap().unwrap(), i);
            }
            assert!(set.is_empty());
        });
    });
}

#[test]
fn dropping_the_set_aborts_its_tasks() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let mut dropped = Vec::new();
            for _ in 0..10 {
                let (flag, event, _) = DropFlag::new();
                dropped.push(event);
                set.spawn(async move {
                    let _flag = flag;
                    std::future::pending::<()>().await;
                });
            }
            yield_now().await;
            drop(set);
            for event in dropped {
                event.wait().await;
            }
        });
    });
}

#[test]
fn a_detached_task_goes_on() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let (go, done) = (Event::new(), Event::new());
            let (wait, set_done) = (go.clone(), done.clone());
            set.spawn(async move {
                wait.wait().await;
                set_done.set();
            });
            set.detach_all();
            assert!(set.is_empty());
            assert!(set.join_next().await.is_none());
            drop(set);
            go.set();
            done.wait().await;
        });
    });
}

#[test]
fn aborted_tasks_stay_to_be_joined() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let one = set.spawn(std::future::pending::<()>());
            set.spawn(std::future::pending());
            one.abort();
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
            assert!(one.is_finished());
            set.abort_all();
            assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
            set.spawn(std::future::pending());
            set.shutdown().await;
            assert!(set.is_empty());
        });
    });
}

#[test]
fn a_panic_is_joined_as_an_error() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn(async { panic!("on purpose") });
            set.spawn(async {});
            let mut panics = 0;
            while let Some(result) = set.join_next().await {
                panics += usize::from(result.is_err_and(|error| error.is_panic()));
            }
            assert_eq!(panics, 1);
        });
    });
}

#[test]
fn a_dropped_join_loses_no_output() {
    // B145, for a set
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let go = Event::new();
            for i in 0..20 {
                let go = go.clone();
                set.spawn(async move {
                    go.wait().await;
                    i
                });
            }
            let (_, waker) = counter();
            for _ in 0..5 {
                assert!(poll_once(pin!(set.join_next()), &waker).is_pending());
            }
            go.set();
            let mut got = HashSet::new();
            while !set.is_empty() {
                // Half of the joins are given up after one poll.
                if let Poll::Ready(Some(result)) = poll_once(pin!(set.join_next()), &waker) {
                    assert!(got.insert(result.unwrap()));
                }
                yield_now().await;
                if let Some(result) = set.join_next().await {
                    assert!(got.insert(result.unwrap()));
                }
            }
            assert_eq!(got.len(), 20);
        });
    });
}

#[test]
fn the_last_waker_of_a_join_fires() {
    // B008
    each_kind(|_, runtime| {
        let mut set = JoinSet::new();
        let go = Event::new();
        let wait = go.clone();
        set.spawn_on(async move { wait.wait().await }, runtime.handle());
        let (first, waker1) = counter();
        let (second, waker2) = counter();
        assert!(poll_once(pin!(set.join_next()), &waker1).is_pending());
        assert!(poll_once(pin!(set.join_next()), &waker2).is_pending());
        go.set();
        runtime.block_on(async {
            while second.count() == 0 {
                yield_now().await;
            }
        });
        assert!(poll_once(pin!(set.join_next()), &waker2).is_ready());
        assert_eq!(first.count(), 0);
    });
}

#[test]
fn a_task_added_while_somebody_waits_is_seen() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let idle = Event::new();
            let wait = idle.clone();
            set.spawn(async move { wait.wait().await });
            let (_, waker) = counter();
            assert!(poll_once(pin!(set.join_next()), &waker).is_pending());
            set.spawn(async {});
            set.join_next().await.unwrap().unwrap();
            assert_eq!(set.len(), 1);
            idle.set();
            set.join_next().await.unwrap().unwrap();
        });
    });
}

#[test]
fn try_join_next_finds_all_that_have_ended_in_one_poll() {
    // Many more than a poll has budget. One thread, so that a task that has ended has told the set.
    within("all in one poll", || {
        for kind in [Kind::Current, Kind::Workers(1)] {
            let runtime = kind.build();
            let task = runtime.spawn(async {
                let mut set = JoinSet::new();
                let ends: Vec<_> = (0..5000).map(|i| set.spawn(async move { i })).collect();
                for end in ends {
                    while !end.is_finished() {
                        yield_now().await;
                    }
                }
                // No await from here on: one poll.
                let mut got = HashSet::new();
                while let Some(result) = set.try_join_next() {
                    assert!(got.insert(result.unwrap()));
                }
                assert!(set.is_empty());
                got.len()
            });
            assert_eq!(runtime.block_on(task).unwrap(), 5000);
        }
    });
}

#[test]
fn try_join_next_keeps_the_waker_of_poll_join_next() {
    each_kind(|_, runtime| {
        let mut set = JoinSet::new();
        let go = Event::new();
        let wait = go.clone();
        set.spawn_on(async move { wait.wait().await }, runtime.handle());
        let (count, waker) = counter();
        let mut cx = Context::from_waker(&waker);
        assert!(set.poll_join_next(&mut cx).is_pending());
        assert!(set.try_join_next().is_none());
        go.set();
        runtime.block_on(async {
            while count.count() == 0 {
                yield_now().await;
            }
        });
        assert!(set.try_join_next().is_some());
        assert_eq!(count.count(), 1);
    });
}

#[test]
fn a_set_goes_on_after_its_tasks_were_detached() {
    // Those that are detached are new, wait, or have ended and were not joined.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let go = Event::new();
            for i in 0..200 {
                let wait = go.clone();
                let waits = set.spawn(async move {
                    wait.wait().await;
                    usize::MAX
                });
                let ended = set.spawn(async { usize::MAX });
                if i % 2 == 0 {
                    while !ended.is_finished() {
                        yield_now().await;
                    }
                    let (_, waker) = counter();
                    let _ = set.poll_join_next(&mut Context::from_waker(&waker));
                }
                set.detach_all();
                assert!(set.try_join_next().is_none());
                assert!(set.join_next().await.is_none());
                set.spawn(async move { i });
                assert_eq!(set.join_next().await.unwrap().unwrap(), i);
                assert!(set.is_empty());
                assert!(!waits.is_finished());
            }
            go.set();
            while wakerun::Handle::current().num_alive_tasks() > 0 {
                yield_now().await;
            }
            // Their ends are nothing to the set.
            assert!(set.join_next().await.is_none());
        });
    });
}

#[test]
fn a_large_set_is_joined_task_by_task() {
    each_kind(|_, runtime| {
        let count = rounds(40_000);
        let sum = runtime.block_on(async move {
            let mut set = JoinSet::new();
            for i in 0..count {
                set.spawn(async move {
                    yield_now().await;
                    i
                });
            }
            let mut sum = 0;
            while let Some(result) = set.join_next().await {
                sum += result.unwrap();
            }
            sum
        });
        assert_eq!(sum, count * (count - 1) / 2);
    });
}

#[test]
fn join_all_gives_every_output() {
    each_kind(|_, runtime| {
        let mut all = runtime.block_on(async {
            let mut set = JoinSet::new();
            for i in 0..100 {
                set.spawn(async move { i });
            }
            set.join_all().await
        });
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    });
}
