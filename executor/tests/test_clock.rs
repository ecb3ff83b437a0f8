//! The clock in a test's hands.
#![cfg(all(not(wakerun_loom), not(miri), unix))]

mod common;

use std::future::pending;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Kind, counter, on_wake, poll_once, within};
use wakerun::io::Async;
use wakerun::task::{self, yield_now};
use wakerun::time::{self, Duration, Instant, advance, interval, sleep, sleep_until, timeout};
use wakerun::{Builder, Runtime};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn paused() -> Runtime {
    Builder::new_current_thread()
        .start_paused(true)
        .build()
        .unwrap()
}

/// Runs the test with a paused clock, and sees that it takes no real time.
#[track_caller]
fn in_no_time(test: impl Future<Output = ()> + Send + 'static) {
    within("in no time", || {
        let start = std::time::Instant::now();
        paused().block_on(test);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
    });
}

#[test]
fn an_idle_runtime_runs_ahead_to_its_next_timer() {
    in_no_time(async {
        let start = Instant::now();
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
        sleep_until(start + HOUR * 24 * 365 * 20).await;
        assert_eq!(start.elapsed(), HOUR * 24 * 365 * 20);
        assert!(timeout(HOUR, pending::<()>()).await.is_err());
        assert_eq!(timeout(HOUR * 2, sleep(HOUR)).await, Ok(()));
    });
}

#[test]
fn a_paused_clock_comes_to_the_end_of_the_world_at_once() {
    within("end of the world", || {
        let start = std::time::Instant::now();
        paused().block_on(async {
            const YEARS: Duration = Duration::from_secs(100_000_000 * 365 * 86_400);
            let from = Instant::now();
            sleep(YEARS).await;
            let far = task::spawn(sleep(YEARS * 2));
            advance(YEARS).await;
            assert!(!far.is_finished());
            advance(YEARS).await;
            far.await.unwrap();
            assert_eq!(from.elapsed(), YEARS * 3);
        });
        let took = start.elapsed();
        assert!(took < Duration::from_millis(500), "{took:?}");
    });
}

#[test]
fn timers_end_in_the_order_of_their_deadlines() {
    in_no_time(async {
        let start = Instant::now();
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = [500, 20, 70_000, 1, 300, 21, 5_000_000, 2]
            .into_iter()
            .map(|seconds| {
                let order = Arc::clone(&order);
                task::spawn(async move {
                    sleep(Duration::from_secs(seconds)).await;
                    order.lock().unwrap().push(start.elapsed().as_secs());
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(
            *order.lock().unwrap(),
            [1, 2, 20, 21, 300, 500, 70_000, 5_000_000]
        );
    });
}

#[test]
fn ten_thousand_timers_fire_once_each_after_a_jump() {
    // B160: an hour at a stroke; once each, and in order.
    in_no_time(async {
        let fired = Arc::new(Mutex::new(Vec::new()));
        let timers: Vec<_> = (0..10_000_u64)
            .map(|n| {
                let after = MS * (1 + (n * 7919 % 3_600_000) as u32);
                let (fired, mut timer) = (Arc::clone(&fired), Box::pin(sleep(after)));
                let waker = on_wake(move || fired.lock().unwrap().push(after));
                assert!(poll_once(timer.as_mut(), &waker).is_pending());
                timer
            })
            .collect();
        let start = Instant::now();
        advance(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
        for timer in timers {
            timer.await;
        }
        assert_eq!(start.elapsed(), HOUR, "all were over by then");
        let fired = fired.lock().unwrap();
        assert_eq!(fired.len(), 10_000);
        assert!(fired.is_sorted());
    });
}

#[test]
fn advance_wakes_what_is_over_and_nothing_else() {
    in_no_time(async {
        let start = Instant::now();
        let (wakes, waker) = counter();
        let mut timer = Box::pin(sleep(MS * 10));
        assert!(poll_once(timer.as_mut(), &waker).is_pending());
        advance(MS * 9).await;
        assert_eq!(start.elapsed(), MS * 9);
        assert_eq!(wakes.count(), 0);
        advance(MS).await;
        assert_eq!(wakes.count(), 1);
        assert!(poll_once(timer.as_mut(), &waker).is_ready());
        // Part of a tick.
        let mut timer = Box::pin(sleep(Duration::from_micros(1500)));
        assert!(poll_once(timer.as_mut(), &waker).is_pending());
        advance(Duration::from_micros(1400)).await;
        assert_eq!(wakes.count(), 1);
        advance(Duration::from_micros(600)).await;
        assert_eq!(wakes.count(), 2);
        advance(Duration::ZERO).await;
        assert_eq!(start.elapsed(), MS * 12);
    });
}

#[test]
fn an_interval_ticks_by_the_paused_clock() {
    in_no_time(async {
        let start = Instant::now();
        let mut ticks = interval(HOUR);
        for n in 0..100 {
            assert_eq!(ticks.tick().await, start + HOUR * n);
            assert_eq!(Instant::now(), start + HOUR * n);
        }
    });
}

#[test]
fn a_task_that_is_runnable_keeps_the_clock_where_it_is() {
    in_no_time(async {
        let start = Instant::now();
        let far = task::spawn(sleep(HOUR));
        for _ in 0..1000 {
            yield_now().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        far.await.unwrap();
    });
}

#[test]
fn blocking_work_keeps_the_clock_where_it_is() {
    in_no_time(async {
        let start = Instant::now();
        let job = task::spawn_blocking(|| thread::sleep(MS * 30));
        let before = timeout(HOUR, job).await;
        assert!(before.is_ok(), "the job takes no time by this clock");
        assert_eq!(start.elapsed(), Duration::ZERO);
        // Nobody waits for this one, but for its end the clock does.
        let flag = Arc::new(Mutex::new(false));
        let set = Arc::clone(&flag);
        drop(task::spawn_blocking(move || {
            thread::sleep(MS * 30);
            *set.lock().unwrap() = true;
        }));
        sleep(HOUR).await;
        assert!(*flag.lock().unwrap());
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn io_that_is_ready_comes_before_the_next_timer() {
    in_no_time(async {
        let (one, mut other) = UnixStream::pair().unwrap();
        let one = Async::new(one).unwrap();
        for _ in 0..100 {
            other.write_all(b"x").unwrap();
            let read = one.read_with(|mut io| io.read(&mut [0; 8]));
            assert_eq!(timeout(MS, read).await.unwrap().unwrap(), 1);
        }
    });
}

#[test]
fn the_clock_goes_on_after_resume() {
    within("resume", || {
        let runtime = Kind::Current.build();
        runtime.block_on(async {
            time::pause();
            let start = Instant::now();
            sleep(HOUR).await;
            time::resume();
            let real = std::time::Instant::now();
            sleep(MS * 5).await;
            assert!(real.elapsed() >= MS * 5);
            assert!(start.elapsed() >= HOUR + MS * 5);
            time::pause();
            let stands = Instant::now();
            thread::sleep(MS * 2);
            assert_eq!(Instant::now(), stands);
        });
        // Outside, the system's time is shown.
        let before = std::time::Instant::now();
        assert!(Instant::now().into_std() >= before);
        assert!(Instant::now().into_std() < before + HOUR);
    });
}

#[test]
fn one_runtimes_clock_is_not_anothers() {
    within("two clocks", || {
        let (here, there) = (paused(), paused());
        let at = |runtime: &Runtime| runtime.block_on(async { Instant::now() });
        let (first, second) = (at(&here), at(&there));
        here.block_on(sleep_in(&here, HOUR));
        assert_eq!(at(&here) - first, HOUR);
        assert_eq!(at(&there), second);
        let real = std::time::Instant::now();
        Kind::Workers(1)
            .build()
            .block_on(async { sleep(MS * 3).await });
        assert!(real.elapsed() >= MS * 3);
    });
}

fn sleep_in(runtime: &Runtime, time: Duration) -> time::Sleep {
    let _guard = runtime.enter();
    sleep(time)
}

#[test]
fn a_standstill_without_timers_waits_for_the_outside() {
    within("standstill", || {
        paused().block_on(async {
            let event = common::Event::new();
            let set = event.clone();
            let thread = thread::spawn(move || {
                thread::sleep(MS * 5);
                set.set();
            });
            event.wait().await;
            thread.join().unwrap();
        });
    });
}

#[test]
#[should_panic(expected = "paused already")]
fn a_clock_is_not_paused_twice() {
    paused().block_on(async { time::pause() });
}

#[test]
#[should_panic(expected = "the clock is not paused")]
fn a_clock_that_goes_is_not_resumed() {
    Kind::Current.build().block_on(async { time::resume() });
}

#[test]
#[should_panic(expected = "can be advanced only while it is paused")]
fn a_clock_that_goes_is_not_advanced() {
    Kind::Current.build().block_on(async { advance(MS).await });
}

#[test]
#[should_panic(expected = "only on a current-thread runtime")]
fn the_clock_of_many_workers_is_not_paused() {
    Kind::Workers(1).build().block_on(async { time::pause() });
}

#[test]
#[should_panic(expected = "only on a current-thread runtime")]
fn a_multi_thread_runtime_is_not_started_paused() {
    let _ = Builder::new_multi_thread().start_paused(true).build();
}
