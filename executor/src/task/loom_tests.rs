//! Models of the state word: the transitions that meet each other on different threads.

use loom::thread;

use super::state::{Completed, End, Start, State, Wake};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, UnsafeCell};

/// A task that has been started once, so that the models begin in the middle of its life.
fn started() -> Arc<State> {
    let state = Arc::new(State::new());
    assert_eq!(state.start(), Start::Poll);
    state
}

#[test]
fn a_wake_during_the_end_of_a_poll_queues_once() {
    loom::model(|| {
        let state = started();
        let queued = Arc::new(AtomicUsize::new(0));
        // What the waker wrote before it woke.
        let news = Arc::new(AtomicUsize::new(0));
        let waker = {
            let (state, queued, news) = (state.clone(), queued.clone(), news.clone());
            thread::spawn(move || {
                news.store(1, Ordering::Relaxed);
                if state.wake_by_ref() == Wake::Submit {
                    queued.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        if state.end_pending() == End::Requeue {
            queued.fetch_add(1, Ordering::AcqRel);
        }
        waker.join().unwrap();
        assert_eq!(queued.load(Ordering::Acquire), 1);
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(news.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn two_wakers_of_an_idle_task_queue_it_once_and_both_are_seen() {
    loom::model(|| {
        let state = started();
        assert_eq!(state.end_pending(), End::Idle);
        let queued = Arc::new(AtomicUsize::new(0));
        let news = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let wakers: Vec<_> = (0..2)
            .map(|n| {
                let (state, queued, news) = (state.clone(), queued.clone(), news.clone());
                thread::spawn(move || {
                    news[n].store(1, Ordering::Relaxed);
                    if state.wake_by_ref() == Wake::Submit {
                        queued.fetch_add(1, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        for waker in wakers {
            waker.join().unwrap();
        }
        assert_eq!(queued.load(Ordering::Acquire), 1);
        assert_eq!(state.start(), Start::Poll);
        assert_eq!(news[0].load(Ordering::Relaxed), 1);
        assert_eq!(news[1].load(Ordering::Relaxed), 1);
    });
}

#[test]
fn the_join_waker_has_one_owner_at_a_time() {
    loom::model(|| {
        let state = started();
        // The waker cell: whoever touches it without owning it is caught by loom.
        let cell = Arc::new(UnsafeCell::new(0_u32));
        let woken = Arc::new(AtomicUsize::new(0));
        let runner = {
            let (state, cell, woken) = (state.clone(), cell.clone(), woken.clone());
            thread::spawn(move || {
                if state.complete() == Completed::WakeJoin {
                    // SAFETY: what the model checks.
                    let waker = cell.with(|waker| unsafe { *waker });
                    woken.store(waker as usize, Ordering::Release);
                    if state.waker_used() {
                        // SAFETY: what the model checks.
                        cell.with_mut(|waker| unsafe { *waker = 0 });
                    }
                }
            })
        };
        // The handle registers, registers another waker, and is dropped.
        // SAFETY: what the model checks, here and below.
        cell.with_mut(|waker| unsafe { *waker = 1 });
        let mut registered = state.set_join_waker();
        if registered && state.unset_join_waker() {
            // SAFETY: as above.
            cell.with_mut(|waker| unsafe { *waker = 2 });
            registered = state.set_join_waker();
        }
        let _ = registered;
        let dropped = state.drop_handle();
        if dropped.drop_waker {
            // SAFETY: as above.
            cell.with_mut(|waker| unsafe { *waker = 0 });
        }
        runner.join().unwrap();
    });
}

#[test]
fn a_registered_handle_is_woken_or_sees_the_end() {
    loom::model(|| {
        let state = started();
        let woken = Arc::new(AtomicUsize::new(0));
        let runner = {
            let (state, woken) = (state.clone(), woken.clone());
            thread::spawn(move || {
                if state.complete() == Completed::WakeJoin {
                    woken.store(1, Ordering::Release);
                    let _ = state.waker_used();
                }
            })
        };
        let registered = state.set_join_waker();
        runner.join().unwrap();
        assert!(state.is_complete());
        assert_eq!(registered, woken.load(Ordering::Acquire) == 1);
    });
}

#[test]
fn the_memory_is_freed_once() {
    loom::model(|| {
        let state = started();
        assert!(state.retain_from_stock(), "a waker for the other thread");
        let freed = Arc::new(AtomicUsize::new(0));
        let waker = {
            let (state, freed) = (state.clone(), freed.clone());
            thread::spawn(move || {
                if state.wake_owned() == Wake::Free {
                    freed.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        let handle = {
            let (state, freed) = (state.clone(), freed.clone());
            thread::spawn(move || {
                let _ = state.drop_handle();
                if state.release(1) {
                    freed.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        let _ = state.complete();
        // The poll's reference and the list's.
        if state.release_completed(2) {
            freed.fetch_add(1, Ordering::AcqRel);
        }
        waker.join().unwrap();
        handle.join().unwrap();
        assert_eq!(freed.load(Ordering::Acquire), 1);
    });
}

#[test]
fn shutdown_and_a_queue_entry_do_not_both_get_the_future() {
    loom::model(|| {
        let state = Arc::new(State::new());
        let future = Arc::new(UnsafeCell::new(1_u32));
        let worker = {
            let (state, future) = (state.clone(), future.clone());
            thread::spawn(move || {
                if state.start() == Start::Poll {
                    // SAFETY: what the model checks.
                    future.with_mut(|future| unsafe { *future += 1 });
                    let _ = state.end_pending();
                }
            })
        };
        if state.take_for_shutdown() {
            // SAFETY: what the model checks.
            future.with_mut(|future| unsafe { *future += 1 });
            let _ = state.complete();
        }
        worker.join().unwrap();
    });
}
