//! The end of a runtime with sources and timers: nothing hangs, nothing is left.
#![cfg(all(not(wakerun_loom), not(miri), target_os = "linux"))]

mod common;

use std::fs;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread;

use common::{DropFlag, Event, Kind, counter, each_kind, on_drop, on_wake, poll_once, rounds};
use wakerun::Handle;
use wakerun::io::Async;
use wakerun::task;
use wakerun::time::{Duration, Instant, interval, sleep, timeout};

const MS: Duration = Duration::from_millis(1);

/// The counts are the process's; one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn pair() -> (Async<UnixStream>, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    (Async::new(one).unwrap(), other)
}

async fn read(io: &Async<UnixStream>) -> io::Result<u8> {
    let mut byte = [0];
    io.read_with(|mut io| io.read_exact(&mut byte)).await?;
    Ok(byte[0])
}

#[test]
fn parked_reads_and_timers_are_dropped_with_their_tasks() {
    // B100: the circle of driver, waker, task, socket, driver.
    let _alone = alone();
    each_kind(|_, runtime| {
        // The first rounds open what stays open: the pool's and the test harness's.
        let mut runtime = Some(runtime);
        let mut before = 0;
        for round in 0..rounds(1000) / 25 {
            let runtime = runtime.take().unwrap_or_else(|| Kind::Workers(2).build());
            let mut others = Vec::new();
            let mut dropped = Vec::new();
            for n in 0..100 {
                let _guard = runtime.enter();
                let (one, other) = pair();
                others.push(other);
                let (flag, event, _) = DropFlag::new();
                dropped.push(event);
                drop(runtime.spawn(async move {
                    let _flag = flag;
                    let limit = Duration::from_secs(1000 + n);
                    let _ = timeout(limit, read(&one)).await;
                }));
            }
            // All have been polled, and wait.
            runtime.block_on(async { sleep(MS).await });
            drop(runtime);
            assert!(dropped.iter().all(Event::is_set));
            for other in &mut others {
                assert_eq!(other.read(&mut [0; 8]).unwrap(), 0, "closed");
            }
            drop(others);
            match round {
                0 => before = descriptors(),
                _ => assert_eq!(descriptors(), before, "in round {round}"),
            }
        }
    });
}

#[test]
fn wakers_that_hold_the_runtime_are_let_go() {
    let _alone = alone();
    each_kind(|_, runtime| {
        let gone = Event::new();
        let set = gone.clone();
        let handle = runtime.handle().clone();
        let waker = on_drop(move || {
            // Foreign code, in a destructor: it may use the runtime, which is ending.
            drop(handle.spawn(async {}));
            set.set();
        });
        let (one, _other) = {
            let _guard = runtime.enter();
            pair()
        };
        let mut cx = Context::from_waker(&waker);
        assert!(one.poll_readable(&mut cx).is_pending());
        let mut timer = {
            let _guard = runtime.enter();
            Box::pin(sleep(Duration::from_secs(99)))
        };
        assert!(poll_once(timer.as_mut(), &waker).is_pending());
        drop(waker);
        assert!(!gone.is_set());
        drop(runtime);
        assert!(gone.is_set());
        drop(one);
    });
}

#[test]
fn those_who_wait_elsewhere_are_told() {
    let _alone = alone();
    each_kind(|_, runtime| {
        let (one, mut other) = {
            let _guard = runtime.enter();
            pair()
        };
        let timer = {
            let _guard = runtime.enter();
            sleep(Duration::from_secs(99))
        };
        let ready = Event::new();
        let set = ready.clone();
        let reader = thread::spawn(move || {
            common::block_on(async {
                let mut reading = pin!(read(&one));
                poll_fn(|cx| {
                    let poll = reading.as_mut().poll(cx);
                    set.set();
                    poll
                })
                .await
            })
            .unwrap_err()
        });
        let sleeper = thread::spawn(move || {
            catch_unwind(AssertUnwindSafe(|| common::block_on(timer))).unwrap_err()
        });
        ready.wait_blocking();
        drop(runtime);
        let error = reader.join().unwrap();
        assert!(error.to_string().contains("has been shut down"), "{error}");
        let panic = sleeper.join().unwrap();
        let text = panic.downcast_ref::<&str>().unwrap();
        assert!(text.contains("has been shut down"), "{text}");
        assert!(other.write_all(b"x").is_err(), "the socket is closed");
    });
}

#[test]
fn after_the_end_what_need_not_wait_works_and_the_rest_fails() {
    let _alone = alone();
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        let (one, mut other) = {
            let _guard = runtime.enter();
            pair()
        };
        other.write_all(b"x").unwrap();
        drop(runtime);
        let mut cx = Context::from_waker(Waker::noop());
        let mut poll_read = || Box::pin(read(&one)).as_mut().poll(&mut cx);
        assert!(matches!(poll_read(), Poll::Ready(Ok(_))));
        assert!(matches!(poll_read(), Poll::Ready(Err(_))));
        // By what has been told before the end, or by the end.
        assert!(one.poll_writable(&mut cx).is_ready());
        let _guard = handle.enter();
        let error = Async::new(UnixStream::pair().unwrap().0).unwrap_err();
        assert!(error.to_string().contains("has been shut down"), "{error}");
        let mut timer = Box::pin(sleep(MS));
        let polled = catch_unwind(AssertUnwindSafe(|| {
            timer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        }));
        assert!(polled.is_err());
        one.into_inner().unwrap();
    });
}

#[test]
fn destructors_of_tasks_may_use_sources_and_timers() {
    struct Last(Option<Async<UnixStream>>, Handle);

    impl Drop for Last {
        fn drop(&mut self) {
            let mut cx = Context::from_waker(Waker::noop());
            let io = self.0.take().unwrap();
            let _ = io.poll_readable(&mut cx);
            let _guard = self.1.enter();
            let mut timer = Box::pin(sleep(MS * 50));
            let _ = poll_once(timer.as_mut(), Waker::noop());
            std::mem::forget(interval(MS));
            drop(pair());
        }
    }

    let _alone = alone();
    each_kind(|_, runtime| {
        for _ in 0..10 {
            let (io, _other) = {
                let _guard = runtime.enter();
                pair()
            };
            let last = Last(Some(io), runtime.handle().clone());
            drop(runtime.spawn(async move {
                let _last = last;
                std::future::pending::<()>().await;
            }));
        }
        runtime.block_on(async { sleep(MS).await });
        drop(runtime);
    });
}

#[test]
fn traffic_that_goes_on_does_not_hold_the_end_up() {
    // B055
    let _alone = alone();
    each_kind(|kind, runtime| {
        let mut runtime = Some(runtime);
        for round in 0..rounds(1000) as u64 / 10 {
            let runtime = runtime.take().unwrap_or_else(|| kind.build());
            let (one, other) = {
                let _guard = runtime.enter();
                pair()
            };
            drop(runtime.spawn(async move {
                loop {
                    let byte = read(&one).await.unwrap();
                    one.write_with(|mut io| io.write(&[byte])).await.unwrap();
                }
            }));
            let mut client = other;
            let traffic = thread::spawn(move || {
                // Until the other side closes.
                while client.write_all(b"x").is_ok() {
                    if !matches!(client.read(&mut [0; 8]), Ok(1..)) {
                        break;
                    }
                }
            });
            // Ended in the middle of it.
            let handle = runtime.handle().clone();
            let length = Duration::from_micros(round * 97 % 2000);
            handle.block_on(async { sleep(length).await });
            let start = Instant::now();
            drop(runtime);
            assert!(start.elapsed() < Duration::from_secs(5));
            traffic.join().unwrap();
        }
    });
}

#[test]
fn a_waker_that_panics_does_no_harm() {
    let _alone = alone();
    each_kind(|_, runtime| {
        let waker = on_wake(|| panic!("a waker that panics on purpose"));
        let (wakes, good) = counter();
        let _guard = runtime.enter();
        let (one, mut other) = pair();
        let mut cx = Context::from_waker(&waker);
        assert!(one.poll_readable(&mut cx).is_pending());
        let mut ready = Box::pin(one.readable());
        assert!(poll_once(ready.as_mut(), &good).is_pending());
        let mut timers: Vec<_> = [&waker, &good, &waker, &good]
            .map(|waker| {
                let mut timer = Box::pin(sleep(MS * 2));
                assert!(poll_once(timer.as_mut(), waker).is_pending());
                timer
            })
            .into();
        other.write_all(b"x").unwrap();
        runtime.block_on(async {
            while wakes.count() < 3 {
                sleep(MS).await;
            }
        });
        for timer in &mut timers {
            assert!(poll_once(timer.as_mut(), &good).is_ready());
        }
        // The driver goes on; and at the end the rest are woken.
        let mut last = Box::pin(sleep(Duration::from_secs(9)));
        assert!(poll_once(last.as_mut(), &waker).is_pending());
        let (one, _other) = pair();
        assert!(one.poll_readable(&mut cx).is_pending());
        drop(_guard);
        drop(runtime);
    });
}

#[test]
fn a_task_that_holds_its_own_runtimes_socket_and_handle_is_dropped() {
    let _alone = alone();
    each_kind(|_, runtime| {
        let (flag, dropped, _) = DropFlag::new();
        let flag = Arc::new(flag);
        let task = runtime.spawn(async move {
            let handle = Handle::current();
            let (one, other) = pair();
            let mut ticks = interval(Duration::from_secs(50));
            ticks.tick().await;
            let inner = task::spawn({
                let flag = Arc::clone(&flag);
                async move {
                    let _flag = flag;
                    let _ = read(&one).await;
                }
            });
            ticks.tick().await;
            drop((handle, other, inner, flag));
        });
        runtime.block_on(async { sleep(MS).await });
        drop(runtime);
        assert!(dropped.is_set());
        assert!(task.is_finished());
    });
}
