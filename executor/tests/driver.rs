//! Who serves I/O and timers while tasks keep the workers: the bounds.
#![cfg(all(not(wakerun_loom), not(miri), unix))]

mod common;

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Event, Kind, LIMIT, each_kind, rounds, within};
use wakerun::io::Async;
use wakerun::task::{self, yield_now};
use wakerun::time::{Duration, Instant, interval, sleep};

const MS: Duration = Duration::from_millis(1);

fn busy(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn pair() -> (Async<UnixStream>, UnixStream) {
    let (one, other) = UnixStream::pair().unwrap();
    (Async::new(one).unwrap(), other)
}

/// The next byte, if the other side is open.
async fn next(io: &Async<UnixStream>) -> Option<u8> {
    let mut byte = [0];
    let n = io.read_with(|mut io| io.read(&mut byte)).await.unwrap();
    (n == 1).then_some(byte[0])
}

async fn read(io: &Async<UnixStream>) -> u8 {
    next(io).await.expect("the other side is open")
}

/// An echo in a task, and its other end for a thread.
fn echo() -> UnixStream {
    let (here, there) = pair();
    drop(task::spawn(async move {
        while let Some(byte) = next(&here).await {
            here.write_with(|mut io| io.write(&[byte])).await.unwrap();
        }
    }));
    there
}

/// How long each of some round trips takes, from a thread of no runtime, `pause` apart.
fn trips(mut io: &UnixStream, many: usize, pause: Duration) -> Vec<Duration> {
    (0..many)
        .map(|n| {
            thread::sleep(pause);
            let start = Instant::now();
            io.write_all(&[n as u8]).unwrap();
            io.read_exact(&mut [0]).unwrap();
            start.elapsed()
        })
        .collect()
}

/// The time that all but the worst tenth keep to: the machine may be busy with something else.
fn usual(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 9 / 10]
}

#[test]
fn a_poll_that_never_ends_does_not_freeze_io_and_timers() {
    // B020: a task is woken by its socket, on the worker that was in the driver, and does not return
    // for a second. Meanwhile another's socket and timer are served, within some milliseconds.
    within("a long poll", || {
        for workers in [2, 3, 4] {
            let runtime = Kind::Workers(workers).build();
            runtime.block_on(async {
                let (start, mut starter) = pair();
                let (in_poll, over) = (Event::new(), Event::new());
                let (set, end) = (in_poll.clone(), over.clone());
                let long = task::spawn(async move {
                    read(&start).await;
                    set.set();
                    end.wait_for(LIMIT / 2);
                });
                let late = Arc::new(Mutex::new(Vec::new()));
                let ticks = {
                    let late = Arc::clone(&late);
                    task::spawn(async move {
                        let mut ticks = interval(MS * 5);
                        loop {
                            let due = ticks.tick().await;
                            late.lock().unwrap().push(due.elapsed());
                        }
                    })
                };
                let echo = echo();
                task::spawn_blocking(move || {
                    // All sleep, one of them in the driver.
                    thread::sleep(MS * 30);
                    starter.write_all(b"x").unwrap();
                    in_poll.wait_blocking();
                    late.lock().unwrap().clear();
                    let begin = Instant::now();
                    let trips = trips(&echo, 60, MS * 5);
                    let took = begin.elapsed();
                    let late = std::mem::take(&mut *late.lock().unwrap());
                    over.set();
                    assert!(
                        late.len() as u128 > took.as_millis() / 100,
                        "{}",
                        late.len()
                    );
                    let worst = *trips.iter().max().unwrap();
                    assert!(worst < MS * 2000, "a round trip took {worst:?}");
                    let (io, time) = (usual(trips), usual(late));
                    println!("{workers} workers: 9 of 10 trips {io:?}, ticks {time:?} late");
                    assert!(io < MS * 100, "trips take {io:?}");
                    assert!(time < MS * 100, "ticks are {time:?} late");
                })
                .await
                .unwrap();
                long.await.unwrap();
                ticks.abort();
            });
        }
    });
}

#[test]
fn one_event_out_of_the_driver_and_a_long_poll_leave_a_watcher() {
    // The first event after a long sleep: no watch is kept then, and the poll pushes nothing.
    within("first event", || {
        for _ in 0..rounds(400) / 20 {
            let runtime = Kind::Workers(2).build();
            runtime.block_on(async {
                let (start, mut starter) = pair();
                let (in_poll, over) = (Event::new(), Event::new());
                let (set, end) = (in_poll.clone(), over.clone());
                let long = task::spawn(async move {
                    read(&start).await;
                    set.set();
                    assert!(end.wait_for(LIMIT / 2), "the other socket was not served");
                });
                let (other, mut waker) = pair();
                let other = task::spawn(async move {
                    read(&other).await;
                    over.set();
                });
                task::spawn_blocking(move || {
                    thread::sleep(MS * 12);
                    starter.write_all(b"x").unwrap();
                    in_poll.wait_blocking();
                    waker.write_all(b"x").unwrap();
                    // Open until it has been read.
                    waker
                })
                .await
                .unwrap();
                other.await.unwrap();
                long.await.unwrap();
            });
        }
    });
}

#[test]
fn io_and_timers_are_served_while_all_workers_run() {
    // B076: more tasks that are always runnable than workers; polls of some microseconds to some
    // milliseconds.
    each_kind(|kind, runtime| {
        let workers = match kind {
            Kind::Current => 1,
            Kind::Workers(n) => n,
        };
        for poll in [Duration::ZERO, MS / 100, MS / 5, MS * 2] {
            runtime.block_on(async {
                let stop = Arc::new(AtomicBool::new(false));
                let tasks: Vec<_> = (0..workers * 2)
                    .map(|_| {
                        let stop = Arc::clone(&stop);
                        task::spawn(async move {
                            while !stop.load(Ordering::Relaxed) {
                                busy(poll);
                                yield_now().await;
                            }
                        })
                    })
                    .collect();
                let echo = echo();
                let trips = task::spawn_blocking(move || trips(&echo, 20, MS));
                let mut late = Vec::new();
                for _ in 0..20 {
                    let start = Instant::now();
                    sleep(MS * 2).await;
                    late.push(start.elapsed() - MS * 2);
                }
                let trips = trips.await.unwrap();
                stop.store(true, Ordering::Relaxed);
                for task in tasks {
                    task.await.unwrap();
                }
                let (io, time) = (usual(trips), usual(late));
                println!("{kind:?}, polls of {poll:?}: trips {io:?}, timers {time:?} late");
                // What is not served at all takes for ever; on fewer cores than workers, or beside other
                // programs, each waits for a slice of its core, too.
                let limit = MS * 500;
                assert!(io < limit, "polls of {poll:?}: trips take {io:?}");
                assert!(time < limit, "polls of {poll:?}: timers are {time:?} late");
            });
        }
    });
}

#[test]
fn a_task_that_loops_on_yield_now_sees_events_and_timers() {
    // B049: also as the main future, which is no task.
    each_kind(|_, runtime| {
        for as_task in [true, false] {
            for timer in [true, false] {
                let flag = Arc::new(AtomicBool::new(false));
                let (io, other) = {
                    let _guard = runtime.enter();
                    pair()
                };
                let set = Arc::clone(&flag);
                let setter = runtime.spawn(async move {
                    if timer {
                        sleep(MS * 3).await;
                    } else {
                        read(&io).await;
                    }
                    set.store(true, Ordering::Relaxed);
                });
                let thread = thread::spawn(move || {
                    thread::sleep(MS * 3);
                    // Gone already, if it was the timer's turn.
                    let _ = (&other).write_all(b"x");
                    other
                });
                let spin = async move {
                    while !flag.load(Ordering::Relaxed) {
                        yield_now().await;
                    }
                };
                if as_task {
                    runtime.block_on(runtime.spawn(spin)).unwrap();
                } else {
                    runtime.block_on(spin);
                }
                runtime.block_on(setter).unwrap();
                thread.join().unwrap();
            }
        }
    });
}

#[test]
fn two_block_ons_with_sockets_to_each_other_share_a_current_thread_runtime() {
    // B140: the one that runs the driver gives it up when its own future is done.
    within("two block_ons", || {
        let runtime = Kind::Current.build();
        let (one, other) = {
            let _guard = runtime.enter();
            let (one, other) = UnixStream::pair().unwrap();
            (Async::new(one).unwrap(), Async::new(other).unwrap())
        };
        let play = |io: Async<UnixStream>, first: bool| {
            let handle = runtime.handle().clone();
            thread::spawn(move || {
                for round in 0..200_u8 {
                    // Each in a call of its own, so that the runner changes.
                    handle.block_on(async {
                        if first {
                            io.write_with(|mut io| io.write(&[round])).await.unwrap();
                            assert_eq!(read(&io).await, round);
                        } else {
                            assert_eq!(read(&io).await, round);
                            io.write_with(|mut io| io.write(&[round])).await.unwrap();
                        }
                    });
                }
            })
        };
        let start = Instant::now();
        let threads = [play(one, true), play(other, false)];
        for thread in threads {
            thread.join().unwrap();
        }
        println!("200 round trips in {:?}", start.elapsed());
    });
}

#[test]
fn the_main_future_is_polled_only_when_it_was_woken() {
    // B090
    each_kind(|_, runtime| {
        let polls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&polls);
        runtime.block_on(async {
            let mut steps = Box::pin(task::spawn(async {
                for _ in 0..100 {
                    sleep(MS / 10).await;
                }
            }));
            std::future::poll_fn(move |cx| {
                count.fetch_add(1, Ordering::Relaxed);
                steps.as_mut().poll(cx)
            })
            .await
            .unwrap();
        });
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls <= 3, "{polls} polls");
    });
}

#[test]
fn a_runtime_whose_first_timer_comes_from_outside_serves_it() {
    // The driver is made while all workers sleep elsewhere.
    within("first timer", || {
        for round in 0..rounds(2000) / 10 {
            let runtime = Kind::Workers(1 + round % 4).build();
            if round % 2 == 0 {
                thread::sleep(MS);
            }
            let _guard = runtime.enter();
            if round % 3 == 0 {
                common::block_on(sleep(MS));
            } else {
                let (io, mut other) = pair();
                let thread = thread::spawn(move || {
                    other.write_all(b"x").unwrap();
                    other
                });
                common::block_on(read(&io));
                thread.join().unwrap();
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn signals_that_interrupt_the_drivers_wait_do_no_harm() {
    within("signals", || {
        for kind in [Kind::Current, Kind::Workers(2)] {
            let runtime = kind.build();
            runtime.block_on(async {
                let mut signals = wakerun::signal::unix::signal(
                    wakerun::signal::unix::SignalKind::user_defined1(),
                )
                .unwrap();
                let kill = task::spawn_blocking(|| {
                    for _ in 0..40 {
                        let number = std::process::id().to_string();
                        let sent = std::process::Command::new("kill")
                            .args(["-USR1", &number])
                            .status();
                        assert!(sent.unwrap().success());
                    }
                });
                let echo = echo();
                let trips = task::spawn_blocking(move || trips(&echo, 100, MS));
                for _ in 0..50 {
                    let start = Instant::now();
                    sleep(MS * 2).await;
                    assert!(start.elapsed() >= MS * 2, "never early");
                }
                trips.await.unwrap();
                kill.await.unwrap();
                signals.recv().await;
            });
        }
    });
}
