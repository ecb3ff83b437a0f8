//! Sources: readiness, those who wait for it, registration.
#![cfg(all(not(wakerun_loom), not(miri), unix))]

mod common;

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Kind, counter, each_kind, poll_once, rounds, within};
use wakerun::io::{Async, AsyncRead, AsyncWrite};
use wakerun::task::{self, JoinSet, yield_now};
use wakerun::time::{sleep, timeout};

const MS: Duration = Duration::from_millis(1);

fn pair() -> (Async<UnixStream>, Async<UnixStream>) {
    let (one, other) = UnixStream::pair().unwrap();
    (Async::new(one).unwrap(), Async::new(other).unwrap())
}

async fn read(io: &Async<UnixStream>) -> u8 {
    let mut byte = [0];
    let n = io.read_with(|mut io| io.read(&mut byte)).await.unwrap();
    assert_eq!(n, 1);
    byte[0]
}

async fn write(io: &Async<UnixStream>, byte: u8) {
    io.write_with(|mut io| io.write(&[byte])).await.unwrap();
}

#[test]
fn bytes_go_to_and_fro_between_tasks() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = pair();
            let echo = task::spawn(async move {
                for _ in 0..1000 {
                    let byte = read(&other).await;
                    write(&other, byte).await;
                }
            });
            for round in 0..1000_u32 {
                let byte = round as u8;
                write(&one, byte).await;
                assert_eq!(read(&one).await, byte);
            }
            echo.await.unwrap();
        });
    });
}

#[test]
fn the_traits_read_and_write_through_a_full_pipe() {
    // More than fits: both sides wait, again and again.
    const LENGTH: usize = 1_000_000;
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, two) = pair();
            let (one, two) = (Arc::new(one), Arc::new(two));
            let writer = {
                let one = Arc::clone(&one);
                task::spawn(async move {
                    let data: Vec<u8> = (0..LENGTH).map(|n| (n % 251) as u8).collect();
                    let mut sent = 0;
                    while sent < LENGTH {
                        let (head, tail) = data[sent..].split_at((LENGTH - sent) / 2);
                        let slices = [IoSlice::new(head), IoSlice::new(tail)];
                        sent += poll_fn(|cx| Pin::new(&mut &*one).poll_write_vectored(cx, &slices))
                            .await
                            .unwrap();
                    }
                    poll_fn(|cx| Pin::new(&mut &*one).poll_flush(cx))
                        .await
                        .unwrap();
                })
            };
            let mut got = 0;
            let (mut a, mut b) = ([0; 1000], [0; 5000]);
            while got < LENGTH {
                let n = poll_fn(|cx| {
                    let mut slices = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)];
                    Pin::new(&mut &*two).poll_read_vectored(cx, &mut slices)
                })
                .await
                .unwrap();
                let all = a.iter().chain(&b).take(n);
                assert!(
                    all.enumerate()
                        .all(|(at, byte)| *byte == ((got + at) % 251) as u8)
                );
                got += n;
            }
            writer.await.unwrap();
            // Owned, and the end of it.
            let mut one = Arc::into_inner(one).unwrap();
            let mut two = Arc::into_inner(two).unwrap();
            let n = poll_fn(|cx| Pin::new(&mut one).poll_write(cx, b"end"))
                .await
                .unwrap();
            assert_eq!(n, 3);
            poll_fn(|cx| Pin::new(&mut one).poll_close(cx))
                .await
                .unwrap();
            drop(one);
            let mut rest = [0; 8];
            let n = poll_fn(|cx| Pin::new(&mut two).poll_read(cx, &mut rest))
                .await
                .unwrap();
            assert_eq!(&rest[..n], b"end");
            let n = poll_fn(|cx| Pin::new(&mut two).poll_read(cx, &mut rest))
                .await
                .unwrap();
            assert_eq!(n, 0);
        });
    });
}

#[test]
fn many_tasks_wait_for_one_socket_and_each_gets_its_message() {
    // B079: four readers, messages with gaps; now and then one of them gives up.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = UnixDatagram::pair().unwrap();
            let reader = Arc::new(Async::new(one).unwrap());
            for round in 0..rounds(10_000) / 10 {
                let got = Arc::new(AtomicUsize::new(0));
                let mut readers = JoinSet::new();
                for _ in 0..4 {
                    let (reader, got) = (Arc::clone(&reader), Arc::clone(&got));
                    readers.spawn(async move {
                        let mut buffer = [0; 8];
                        reader.read_with(|io| io.recv(&mut buffer)).await.unwrap();
                        got.fetch_add(1, Ordering::Relaxed);
                    });
                }
                // Others that wait a while and are dropped.
                for _ in 0..round % 4 {
                    let waker = Waker::noop();
                    let mut ready = pin!(reader.readable());
                    let _ = poll_once(ready.as_mut(), waker);
                    yield_now().await;
                }
                for _ in 0..4 {
                    if round % 2 == 0 {
                        yield_now().await;
                    }
                    other.send(b"x").unwrap();
                }
                readers.join_all().await;
                assert_eq!(got.load(Ordering::Relaxed), 4);
            }
        });
    });
}

#[test]
fn poll_methods_of_many_tasks_are_all_woken() {
    // More than there is room for: the oldest ask again.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = UnixDatagram::pair().unwrap();
            let reader = Arc::new(Async::new(one).unwrap());
            let mut set = JoinSet::new();
            for _ in 0..80 {
                let reader = Arc::clone(&reader);
                set.spawn(poll_fn(move |cx| {
                    reader.poll_read_with(cx, |io| io.recv(&mut [0; 8]))
                }));
            }
            sleep(MS * 2).await;
            for _ in 0..80 {
                other.send(b"x").unwrap();
                yield_now().await;
            }
            for result in set.join_all().await {
                assert_eq!(result.unwrap(), 1);
            }
        });
    });
}

#[test]
fn both_directions_have_waiters_of_their_own() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let (one, mut other) = UnixStream::pair().unwrap();
        let one = Async::new(one).unwrap();
        other.set_nonblocking(true).unwrap();
        // Full to the brim.
        while one.get_ref().write(&[0; 4096]).is_ok() {}
        let (reads, read_waker) = counter();
        let (writes, write_waker) = counter();
        let mut reading = pin!(one.read_with(|mut io| io.read(&mut [0; 8])));
        let mut writing = pin!(one.write_with(|mut io| io.write(&[1; 8])));
        runtime.block_on(async {
            // What the registration itself has told is over.
            sleep(MS * 2).await;
        });
        assert!(poll_once(reading.as_mut(), &read_waker).is_pending());
        assert!(poll_once(writing.as_mut(), &write_waker).is_pending());
        other.write_all(b"x").unwrap();
        runtime.block_on(async {
            while reads.count() == 0 {
                sleep(MS).await;
            }
        });
        assert_eq!(writes.count(), 0);
        assert!(poll_once(reading.as_mut(), &read_waker).is_ready());
        while other.read(&mut [0; 65536]).is_ok() {}
        runtime.block_on(async {
            while writes.count() == 0 {
                sleep(MS).await;
            }
        });
        assert!(poll_once(writing.as_mut(), &write_waker).is_ready());
    });
}

#[test]
fn a_dropped_wait_leaves_no_waker_behind() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let (one, other) = pair();
        let (wakes, waker) = counter();
        for _ in 0..100 {
            let mut reading = Box::pin(read(&one));
            assert!(poll_once(reading.as_mut(), &waker).is_pending());
            let mut ready = Box::pin(one.readable());
            assert!(poll_once(ready.as_mut(), &waker).is_pending());
            // Polled again, with another waker.
            assert!(poll_once(ready.as_mut(), Waker::noop()).is_pending());
        }
        drop(waker);
        assert_eq!(Arc::strong_count(&wakes), 1);
        drop(other);
        runtime.block_on(one.readable()).unwrap();
        assert_eq!(wakes.count(), 0);
    });
}

#[test]
fn a_wake_that_was_not_used_is_not_the_last() {
    // The one who was woken is dropped; the next one to come sees the readiness.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = pair();
            let (wakes, waker) = counter();
            let mut first = Box::pin(one.readable());
            assert!(poll_once(first.as_mut(), &waker).is_pending());
            write(&other, 7).await;
            while wakes.count() == 0 {
                yield_now().await;
            }
            drop(first);
            one.readable().await.unwrap();
            assert_eq!(read(&one).await, 7);
        });
    });
}

#[test]
fn readiness_that_somebody_else_has_used_up_is_waited_for_again() {
    // B122: the data is stolen between readiness and read, by another descriptor of the same socket.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = pair();
            let mut thief = one.get_ref().try_clone().unwrap();
            for round in 0..50_u8 {
                let mut reading = Box::pin(read(&one));
                let (wakes, waker) = counter();
                assert!(poll_once(reading.as_mut(), &waker).is_pending());
                write(&other, round).await;
                while wakes.count() == 0 {
                    yield_now().await;
                }
                assert_eq!(thief.read(&mut [0; 8]).unwrap(), 1);
                assert!(
                    poll_once(reading.as_mut(), &waker).is_pending(),
                    "not an error"
                );
                // Readiness alone is not believed either.
                assert!(timeout(MS, one.readable()).await.is_err());
                write(&other, round).await;
                assert_eq!(reading.await, round);
            }
        });
    });
}

#[test]
fn whoever_waits_for_readiness_and_reads_by_hand_does_not_spin() {
    // No operation of ours tells that the socket would block.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = pair();
            let polls = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&polls);
            let reader = task::spawn(async move {
                let mut got = 0;
                while got < 5 {
                    let mut ready = pin!(one.readable());
                    poll_fn(|cx| {
                        count.fetch_add(1, Ordering::Relaxed);
                        ready.as_mut().poll(cx)
                    })
                    .await
                    .unwrap();
                    match one.get_ref().read(&mut [0; 1]) {
                        Ok(n) => got += n,
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                    }
                }
            });
            for _ in 0..5 {
                sleep(MS * 3).await;
                write(&other, 1).await;
            }
            reader.await.unwrap();
            let polls = polls.load(Ordering::Relaxed);
            assert!(polls <= 20, "{polls} polls for 5 bytes");
        });
    });
}

#[test]
fn hundreds_of_sources_ready_at_once_are_all_served() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            // More than a turn of the driver takes.
            const MANY: usize = 1500;
            let mut others = Vec::new();
            let mut set = JoinSet::new();
            for _ in 0..MANY {
                let (one, other) = UnixStream::pair().unwrap();
                let one = Async::new(one).unwrap();
                set.spawn(async move { read(&one).await });
                others.push(other);
            }
            sleep(MS * 5).await;
            for other in &mut others {
                other.write_all(b"x").unwrap();
            }
            assert_eq!(set.join_all().await.len(), MANY);
        });
    });
}

#[test]
fn events_of_a_closed_source_do_not_reach_its_successor() {
    // B081: connections are closed and opened in the same turn; descriptors and places are used
    // again. Each one hears its own number only.
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            for id in 0..50_u8 {
                set.spawn(async move {
                    for round in 0..rounds(4000) / 20 {
                        let (one, other) = pair();
                        write(&one, id).await;
                        write(&other, id).await;
                        match round % 3 {
                            // Closed with an event under way.
                            0 => {}
                            1 => assert_eq!(read(&one).await, id),
                            _ => {
                                assert_eq!(read(&one).await, id);
                                assert_eq!(read(&other).await, id);
                                // A fresh pair in the same places: nothing to be read there.
                                drop((one, other));
                                let (one, _other) = pair();
                                let nothing = poll_once(pin!(one.readable()), Waker::noop());
                                assert!(nothing.is_pending());
                            }
                        }
                    }
                });
            }
            set.join_all().await;
        });
    });
}

/// A descriptor that others can close behind its back.
struct Stolen(std::cell::Cell<Option<OwnedFd>>, i32);

impl AsFd for Stolen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the tests use it only as long as the descriptor is there.
        unsafe { BorrowedFd::borrow_raw(self.1) }
    }
}

#[test]
fn a_descriptor_that_is_closed_first_leaves_nothing_behind() {
    // B123
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        for round in 0..rounds(100_000) / 10 {
            let (one, other) = UnixStream::pair().unwrap();
            one.set_nonblocking(true).unwrap();
            let number = one.as_raw_fd();
            let stolen = Stolen(std::cell::Cell::new(Some(one.into())), number);
            let io = Async::new_nonblocking(stolen).unwrap();
            drop(io.get_ref().0.take());
            if round % 2 == 0 {
                drop(io);
            } else {
                assert!(
                    io.into_inner().is_err(),
                    "the system says what it thinks of it"
                );
            }
            drop(other);
        }
        // The same numbers can be registered again.
        let (one, other) = pair();
        runtime.block_on(async {
            write(&other, 9).await;
            assert_eq!(read(&one).await, 9);
        });
    });
}

#[test]
fn a_descriptor_can_be_taken_out_and_registered_again() {
    each_kind(|_, runtime| {
        let _guard = runtime.enter();
        let (mut one, other) = pair();
        for round in 0..100 {
            runtime.block_on(write(&other, round));
            one = Async::new(one.into_inner().unwrap()).unwrap();
            assert_eq!(runtime.block_on(read(&one)), round, "what was there before");
        }
        // Twice at the same time is refused by the system, and harms nobody.
        let again = Async::new(one.as_fd());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        runtime.block_on(write(&other, 1));
        assert_eq!(runtime.block_on(read(&one)), 1);
    });
}

#[test]
fn what_cannot_be_polled_is_refused() {
    within("refused", || {
        let runtime = Kind::Current.build();
        let _guard = runtime.enter();
        let file = File::open("Cargo.toml").unwrap();
        let error = Async::new(file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    });
}

#[test]
fn a_source_without_a_runtime_is_refused() {
    let (one, _other) = UnixStream::pair().unwrap();
    let error = Async::new(one).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there is no wakerun runtime here"),
        "{error}"
    );
}

#[test]
fn a_source_is_polled_by_another_executor() {
    within("another executor", || {
        for kind in [Kind::Workers(1), Kind::Workers(4)] {
            let runtime = kind.build();
            let (one, other) = {
                let _guard = runtime.enter();
                pair()
            };
            let thread = std::thread::spawn(move || {
                common::block_on(async {
                    for round in 0..200 {
                        assert_eq!(read(&other).await, round);
                        write(&other, round).await;
                    }
                });
            });
            Kind::Current.build().block_on(async {
                for round in 0..200 {
                    write(&one, round).await;
                    assert_eq!(read(&one).await, round);
                }
            });
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_task_that_always_finds_data_lets_others_run() {
    within("fair", || {
        let runtime = Kind::Current.build();
        runtime.block_on(async {
            let (one, _other) = pair();
            let turns = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&turns);
            let busy = task::spawn(async move {
                // Always ready, never done.
                while count.load(Ordering::Relaxed) < 10 {
                    one.write_with(|_| Ok(())).await.unwrap();
                }
            });
            for _ in 0..10 {
                yield_now().await;
                turns.fetch_add(1, Ordering::Relaxed);
            }
            busy.await.unwrap();
        });
    });
}

#[test]
fn interrupted_operations_are_repeated_and_errors_are_told() {
    within("errors", || {
        let runtime = Kind::Current.build();
        runtime.block_on(async {
            let (one, _other) = pair();
            let mut calls = 0;
            let value = one
                .read_with(|_| {
                    calls += 1;
                    if calls < 3 {
                        Err(io::Error::from(io::ErrorKind::Interrupted))
                    } else {
                        Ok(calls)
                    }
                })
                .await
                .unwrap();
            assert_eq!(value, 3);
            let error = one
                .write_with(|_| Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        });
    });
}

#[test]
fn a_foreign_waker_that_uses_the_source_again_does_not_hang() {
    // Under no lock of ours.
    within("waker", || {
        let runtime = Kind::Workers(2).build();
        let _guard = runtime.enter();
        let (one, other) = pair();
        let one = Arc::new(one);
        let (done, set) = (common::Event::new(), common::Event::new());
        let (again, flag) = (Arc::clone(&one), done.clone());
        let waker = common::on_wake(move || {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = again.poll_readable(&mut cx);
            let _ = Async::new(UnixStream::pair().unwrap().0);
            flag.set();
        });
        let mut cx = Context::from_waker(&waker);
        assert!(one.poll_readable(&mut cx).is_pending());
        runtime.block_on(write(&other, 1));
        done.wait_blocking();
        set.set();
        assert!(matches!(one.poll_readable(&mut cx), Poll::Ready(Ok(()))));
    });
}
