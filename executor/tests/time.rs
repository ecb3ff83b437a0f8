//! Sleeps, ticks and limits: never early, not late, nothing left behind.
#![cfg(all(not(wakerun_loom), not(miri)))]

mod common;

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use common::{Event, Kind, counter, each_kind, poll_once, rounds, within};
use wakerun::task::{self, JoinSet, yield_now};
use wakerun::time::{
    self, Duration, Instant, MissedTickBehavior, Sleep, interval, interval_at, sleep, sleep_until,
    timeout, timeout_at,
};

const MS: Duration = Duration::from_millis(1);

/// The best of some lateness, for the machine may be busy with something else.
fn assert_prompt(mut late: Vec<Duration>, limit: Duration) {
    late.sort();
    let half = late[late.len() / 2];
    assert!(half < limit, "half of all are later than {half:?}");
}

#[test]
fn a_sleep_is_never_early_and_not_late() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut late = Vec::new();
            for micros in [1, 100, 999, 1000, 1001, 1999, 2500, 5000, 7777] {
                for _ in 0..3 {
                    let wanted = Duration::from_micros(micros);
                    let start = std::time::Instant::now();
                    sleep(wanted).await;
                    let took = start.elapsed();
                    assert!(took >= wanted, "{took:?} instead of {wanted:?}");
                    late.push(took - wanted);
                }
            }
            assert_prompt(late, Duration::from_millis(20));
        });
    });
}

#[test]
fn many_sleeps_in_tasks_are_never_early() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for n in 0..2000_u64 {
                set.spawn(async move {
                    let wanted = Duration::from_micros(n * 37 % 50_000);
                    let start = std::time::Instant::now();
                    sleep(wanted).await;
                    let took = start.elapsed();
                    assert!(took >= wanted, "{took:?} instead of {wanted:?}");
                    took - wanted
                });
            }
            assert_prompt(set.join_all().await, Duration::from_millis(100));
        });
    });
}

#[test]
fn what_is_over_is_over_at_the_first_poll() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let (wakes, waker) = counter();
        let mut zero = pin!(sleep(Duration::ZERO));
        assert!(poll_once(zero.as_mut(), &waker).is_ready());
        assert!(zero.is_elapsed());
        let mut past = pin!(sleep_until(Instant::now()));
        assert!(poll_once(past.as_mut(), &waker).is_ready());
        assert!(poll_once(past.as_mut(), &waker).is_ready(), "and stays so");
        assert_eq!(wakes.count(), 0);
    });
}

/// Durations at the edges of what is counted somewhere.
fn edges() -> Vec<Duration> {
    let mut all = vec![
        Duration::from_secs(u32::MAX.into()),
        Duration::from_secs(i64::MAX as u64),
        Duration::from_secs(u64::MAX / 10),
        Duration::from_secs(u64::MAX / 1000),
        Duration::from_secs(u64::MAX),
        Duration::from_millis(u32::MAX.into()),
        Duration::from_millis(i64::MAX as u64),
        Duration::from_millis(u64::MAX),
        Duration::from_nanos(u64::MAX),
        Duration::MAX / 10,
        Duration::MAX / 2,
        Duration::MAX,
    ];
    for bits in [30, 36, 42, 48] {
        let edge = 1_u64 << bits;
        all.extend([edge - 1, edge, edge + 1].map(Duration::from_millis));
    }
    all
}

#[test]
fn any_duration_will_do() {
    // B026
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (wakes, waker) = counter();
            let mut sleeps: Vec<Pin<Box<Sleep>>> = Vec::new();
            for duration in edges() {
                let mut far = Box::pin(sleep(duration));
                assert!(poll_once(far.as_mut(), &waker).is_pending(), "{duration:?}");
                let mut limited = pin!(timeout(duration, pending::<()>()));
                assert!(poll_once(limited.as_mut(), &waker).is_pending());
                let mut ticks = interval(duration);
                ticks.tick().await;
                let mut next = pin!(ticks.tick());
                assert!(poll_once(next.as_mut(), &waker).is_pending());
                // To and fro between near and far.
                far.as_mut().reset(Instant::now() + MS);
                assert!(!far.is_elapsed());
                let farther = far.deadline() + Duration::from_secs(86_400);
                far.as_mut().reset(farther);
                assert!(poll_once(far.as_mut(), &waker).is_pending());
                sleeps.push(far);
            }
            for tiny in [0, 1, 999_999] {
                sleep(Duration::from_nanos(tiny)).await;
            }
            sleep(Duration::from_millis(50)).await;
            assert_eq!(wakes.count(), 0, "none fires early");
            for far in &mut sleeps {
                assert!(!far.is_elapsed());
                assert!(poll_once(far.as_mut(), &waker).is_pending());
            }
        });
    });
}

#[test]
fn an_earlier_timer_shortens_a_sleep_under_way() {
    // B021: whoever waits in the driver has a far timer; a thread of no runtime brings a near one.
    each_kind(|kind, runtime| {
        let far = runtime.spawn(async { sleep(Duration::from_secs(30)).await });
        let mut late = Vec::new();
        if kind == Kind::Current {
            // Nobody waits there but inside `block_on`.
            let handle = runtime.handle().clone();
            let (stop, stopped) = (Event::new(), Event::new());
            let (set, wait) = (stop.clone(), stopped.clone());
            let other = std::thread::spawn(move || {
                let late = near_timers_from_outside(&handle);
                set.set();
                late
            });
            runtime.block_on(async move {
                stop.wait().await;
                stopped.set();
            });
            wait.wait_blocking();
            late.extend(other.join().unwrap());
        } else {
            late.extend(near_timers_from_outside(runtime.handle()));
        }
        assert_prompt(late, Duration::from_millis(50));
        far.abort();
    });
}

/// The lateness of timers that are polled on this thread.
fn near_timers_from_outside(handle: &wakerun::Handle) -> Vec<Duration> {
    let _guard = handle.enter();
    (0..20)
        .map(|round| {
            // So long that whoever runs goes to sleep first.
            std::thread::sleep(if round % 2 == 0 { MS * 8 } else { MS / 2 });
            let wanted = Duration::from_micros(1500);
            let start = Instant::now();
            common::block_on(sleep(wanted));
            let took = start.elapsed();
            assert!(took >= wanted);
            took - wanted
        })
        .collect()
}

#[test]
fn short_sleeps_beside_a_long_one_are_not_late() {
    // B021
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let long = task::spawn(async {
                loop {
                    sleep(Duration::from_secs(10)).await;
                }
            });
            let short = task::spawn(async {
                let mut late = Vec::new();
                for _ in 0..rounds(4000) {
                    let start = Instant::now();
                    sleep(MS).await;
                    late.push(start.elapsed() - MS);
                }
                late
            });
            assert_prompt(short.await.unwrap(), Duration::from_millis(20));
            long.abort();
        });
    });
}

#[test]
fn timers_of_many_threads_are_not_lost_while_the_driver_parks() {
    // B087
    each_kind(|kind, runtime| {
        if kind == Kind::Current {
            return;
        }
        let threads: Vec<_> = (0..8_u64)
            .map(|seed| {
                let handle = runtime.handle().clone();
                std::thread::spawn(move || {
                    let _guard = handle.enter();
                    let mut late = Vec::new();
                    for round in 0..rounds(4000) as u64 / 8 {
                        let micros = 500 + (seed * 7919 + round * 104_729) % 2500;
                        let wanted = Duration::from_micros(micros);
                        let start = Instant::now();
                        common::block_on(sleep(wanted));
                        late.push(start.elapsed().saturating_sub(wanted));
                    }
                    late
                })
            })
            .collect();
        for thread in threads {
            let late = thread.join().unwrap();
            let worst = late.iter().max().unwrap();
            assert!(*worst < Duration::from_secs(2), "a timer {worst:?} late");
            assert_prompt(late, Duration::from_millis(100));
        }
    });
}

#[test]
fn the_last_waker_is_woken_and_the_others_are_not() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let (first, first_waker) = counter();
        let (second, second_waker) = counter();
        let mut timer = Box::pin(sleep(MS * 50));
        assert!(poll_once(timer.as_mut(), &first_waker).is_pending());
        assert!(poll_once(timer.as_mut(), &first_waker).is_pending());
        assert!(poll_once(timer.as_mut(), &second_waker).is_pending());
        runtime.block_on(async {
            while second.count() == 0 {
                sleep(MS).await;
            }
        });
        assert_eq!((first.count(), second.count()), (0, 1));
        assert!(poll_once(timer.as_mut(), &first_waker).is_ready());
        drop((first_waker, second_waker));
        assert_eq!(Arc::strong_count(&first), 1);
        assert_eq!(Arc::strong_count(&second), 1);
    });
}

#[test]
fn a_dropped_timer_wakes_nobody() {
    // B120, B086
    each_kind(|_, runtime| {
        let polls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&polls);
        let task = runtime.spawn(poll_fn(move |cx| {
            count.fetch_add(1, Ordering::Relaxed);
            // Not polled: nothing happens. Polled and dropped: the same.
            drop(sleep(MS));
            let mut timer = pin!(sleep(MS * 30));
            assert!(timer.as_mut().poll(cx).is_pending());
            Poll::<()>::Pending
        }));
        runtime.block_on(async { sleep(MS * 80).await });
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        task.abort();
    });
}

#[test]
fn a_million_timers_live_at_a_time() {
    each_kind(|kind, runtime| {
        let many = rounds(1_000_000);
        let (wakes, waker) = counter();
        let _guard = runtime.enter();
        let mut timers: Vec<Pin<Box<Sleep>>> = (0..many)
            .map(|n| {
                Box::pin(sleep(Duration::from_millis(
                    20_000 + (n as u64 * 7919) % 1_000_000,
                )))
            })
            .collect();
        let start = Instant::now();
        for timer in &mut timers {
            assert!(poll_once(timer.as_mut(), &waker).is_pending());
        }
        let inserted = start.elapsed();
        // The near ones among them are not late for all that.
        runtime.block_on(async {
            let start = Instant::now();
            sleep(MS * 2).await;
            assert!(start.elapsed() < Duration::from_secs(2));
        });
        let start = Instant::now();
        drop(timers);
        let dropped = start.elapsed();
        println!("{kind:?}, {many} timers: set in {inserted:?}, taken back in {dropped:?}");
        assert_eq!(wakes.count(), 0);
        drop(waker);
        assert_eq!(Arc::strong_count(&wakes), 1, "no waker is left behind");
    });
}

#[test]
fn many_timers_that_are_due_at_once_all_fire() {
    each_kind(|_, runtime| {
        let many = rounds(100_000);
        let (wakes, waker) = counter();
        let deadline = {
            let _guard = runtime.enter();
            // Far enough that all can be set before, on a slow machine, too.
            let deadline = Instant::now() + MS * 1000;
            let mut timers: Vec<_> = (0..many).map(|_| Box::pin(sleep_until(deadline))).collect();
            for timer in &mut timers {
                assert!(poll_once(timer.as_mut(), &waker).is_pending());
            }
            runtime.block_on(async {
                while wakes.count() < many {
                    sleep(MS).await;
                }
            });
            for timer in &mut timers {
                assert!(poll_once(timer.as_mut(), &waker).is_ready());
            }
            deadline
        };
        assert!(Instant::now() >= deadline);
        assert_eq!(wakes.count(), many);
    });
}

#[test]
fn timers_move_between_workers_and_are_reset_and_dropped_while_they_fire() {
    // B118: whatever the order, a timer that was awaited to its end was not early, and none hangs.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for seed in 0..8_u64 {
                set.spawn(async move {
                    for round in 0..rounds(20_000) as u64 / 8 {
                        let pick = (seed + 1) * 7919 + round * 104_729;
                        let mut timer = Box::pin(sleep(Duration::from_micros(300 + pick % 1500)));
                        poll_fn(|cx| {
                            assert!(timer.as_mut().poll(cx).is_pending() || timer.is_elapsed());
                            Poll::Ready(())
                        })
                        .await;
                        match pick % 5 {
                            0 => drop(timer),
                            1 => {
                                std::thread::sleep(Duration::from_micros(pick % 900));
                                drop(timer);
                            }
                            2 => {
                                // To another worker.
                                task::spawn(async move {
                                    timer.as_mut().await;
                                    assert!(Instant::now() >= timer.deadline());
                                })
                                .await
                                .unwrap();
                            }
                            3 => {
                                std::thread::sleep(Duration::from_micros(pick % 2000));
                                let deadline = Instant::now() + MS;
                                timer.as_mut().reset(deadline);
                                timer.await;
                                assert!(Instant::now() >= deadline);
                            }
                            _ => timer.await,
                        }
                    }
                });
            }
            set.join_all().await;
        });
    });
}

#[test]
fn a_reset_timer_wakes_at_its_new_time_without_another_poll() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (wakes, waker) = counter();
            let mut timer = Box::pin(sleep(Duration::from_secs(3600)));
            assert!(poll_once(timer.as_mut(), &waker).is_pending());
            // Nearer, by so much that the driver's sleep must be shortened.
            sleep(MS * 10).await;
            timer.as_mut().reset(Instant::now() + MS * 2);
            while wakes.count() == 0 {
                yield_now().await;
            }
            assert!(Instant::now() >= timer.deadline());
            // Again from the start.
            timer.as_mut().reset(Instant::now() + MS * 50);
            assert!(poll_once(timer.as_mut(), &waker).is_pending());
            // Farther: the old time passes.
            timer
                .as_mut()
                .reset(Instant::now() + Duration::from_secs(3600));
            sleep(MS * 60).await;
            assert_eq!(wakes.count(), 1);
            // To the past.
            timer.as_mut().reset(Instant::now());
            sleep(MS * 2).await;
            assert_eq!(wakes.count(), 2);
            assert!(poll_once(timer.as_mut(), &waker).is_ready());
        });
    });
}

#[test]
fn a_timeout_ends_what_takes_too_long_and_nothing_else() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let start = Instant::now();
            let over = timeout(MS * 4, pending::<()>()).await;
            assert!(over.is_err() && start.elapsed() >= MS * 4);
            let error = std::io::Error::from(over.unwrap_err());
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
            assert_eq!(
                timeout(Duration::ZERO, async { 1 }).await,
                Ok(1),
                "ready wins"
            );
            assert_eq!(timeout_at(start, async { 2 }).await, Ok(2));
            assert_eq!(timeout(Duration::MAX, sleep(MS)).await, Ok(()));
            let mut inner = timeout(MS, async { 3 });
            let _ = inner.get_ref();
            let _ = inner.get_mut();
            assert_eq!(inner.into_inner().await, 3);
        });
    });
}

#[test]
fn a_timeout_ends_a_future_that_uses_up_the_budget() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            task::spawn(async {
                let greedy = poll_fn(|cx| {
                    while wakerun::wake::poll_budget(cx).is_ready() {}
                    Poll::<()>::Pending
                });
                assert!(timeout(MS * 3, greedy).await.is_err());
            })
            .await
            .unwrap();
        });
    });
}

#[test]
fn a_loop_of_timers_that_are_over_lets_others_run() {
    within("loop", || {
        for limits in [false, true] {
            let runtime = Kind::Current.build();
            let stop = Event::new();
            let set = stop.clone();
            runtime.block_on(async move {
                let busy = task::spawn(async move {
                    while !stop.is_set() {
                        if limits {
                            let over = timeout(Duration::ZERO, pending::<()>()).await;
                            assert!(over.is_err());
                        } else {
                            sleep(Duration::ZERO).await;
                        }
                    }
                });
                task::spawn(async move { set.set() }).await.unwrap();
                busy.await.unwrap();
            });
        }
    });
}

#[test]
fn an_interval_ticks_at_once_and_at_equal_distances() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let start = Instant::now();
            let mut ticks = interval(MS * 2);
            assert_eq!(ticks.period(), MS * 2);
            let first = ticks.tick().await;
            assert!(first >= start && first <= Instant::now());
            for n in 1..10 {
                let due = ticks.tick().await;
                assert_eq!(due, first + MS * 2 * n);
                assert!(Instant::now() >= due);
            }
            let later = Instant::now() + MS * 30;
            let mut ticks = interval_at(later, MS);
            // Dropped before its time: the tick is not lost.
            assert!(poll_once(pin!(ticks.tick()), Waker::noop()).is_pending());
            assert_eq!(ticks.tick().await, later);
            ticks.reset_after(MS * 3);
            let before = Instant::now();
            ticks.tick().await;
            assert!(before.elapsed() >= MS * 2);
            ticks.reset_immediately();
            assert!(ticks.tick().await <= Instant::now());
            ticks.reset_at(later + MS * 20);
            assert_eq!(ticks.tick().await, later + MS * 20);
        });
    });
}

#[test]
fn missed_ticks_come_in_a_burst_or_later_or_never() {
    within("missed ticks", || {
        let runtime = wakerun::Builder::new_current_thread()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            use MissedTickBehavior::{Burst, Delay, Skip};
            for (behavior, expected) in [
                (Burst, [0, 10, 20, 30, 40, 50]),
                (Delay, [0, 10, 20, 45, 55, 65]),
                (Skip, [0, 10, 20, 40, 50, 60]),
            ] {
                let start = Instant::now();
                let mut ticks = interval(MS * 10);
                ticks.set_missed_tick_behavior(behavior);
                assert_eq!(ticks.missed_tick_behavior(), behavior);
                for (n, at) in expected.into_iter().enumerate() {
                    assert_eq!(
                        ticks.tick().await - start,
                        MS * at,
                        "{behavior:?}, tick {n}"
                    );
                    if n == 1 {
                        time::advance(MS * 25).await;
                    }
                }
            }
            // A little late is not missed.
            let start = Instant::now();
            let mut ticks = interval(MS * 10);
            ticks.set_missed_tick_behavior(Delay);
            ticks.tick().await;
            time::advance(MS * 14).await;
            assert_eq!(ticks.tick().await - start, MS * 10);
            assert_eq!(ticks.tick().await - start, MS * 20);
        });
    });
}

#[test]
#[should_panic(expected = "must not be zero")]
fn an_interval_of_no_time_is_refused() {
    Kind::Current.build().block_on(async {
        let _ = interval(Duration::ZERO);
    });
}

#[test]
#[should_panic(expected = "there is no wakerun runtime here")]
fn a_timer_without_a_runtime_is_refused() {
    drop(sleep(MS));
}

#[test]
fn a_timer_is_polled_by_another_runtime() {
    within("another runtime", || {
        for (here, there) in [
            (Kind::Workers(2), Kind::Current),
            (Kind::Workers(1), Kind::Workers(1)),
        ] {
            let (here, there) = (here.build(), there.build());
            let timer = {
                let _guard = here.enter();
                sleep(MS * 3)
            };
            let deadline = timer.deadline();
            there.block_on(timer);
            assert!(Instant::now() >= deadline);
        }
    });
}
