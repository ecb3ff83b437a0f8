//! Models of the state word: the transitions that meet each other on different threads.

use loom::thread;

use super::Id;
use super::cell;
use super::header::Task;
use super::owned::OwnedTasks;
use super::state::{Completed, End, HandleDropped, Released, Start, State, Wake};
use crate::runtime::Hooks;
use crate::scheduler::Shared;
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
fn a_wake_that_meets_a_start_is_seen_by_that_poll_or_the_next() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(|| {
        let state = started();
        assert_eq!(state.end_pending(), End::Idle);
        // The queue, with at most one entry; what the wakers wrote before they woke; and the future, which knows how
        // much of that its last poll saw.
        let queue = Arc::new(AtomicUsize::new(0));
        let news = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let future = Arc::new(UnsafeCell::new(0));
        // As a worker does: whoever takes the entry polls, and queues the task again if the end says so.
        let work = {
            let (state, queue, news) = (state.clone(), queue.clone(), news.clone());
            let future = future.clone();
            move || {
                while queue.swap(0, Ordering::Acquire) == 1 {
                    assert_eq!(state.start(), Start::Poll);
                    let seen = news.iter().map(|news| news.load(Ordering::Relaxed));
                    // SAFETY: what the model checks.
                    future.with_mut(|future| unsafe { *future = seen.sum() });
                    if state.end_pending() == End::Requeue {
                        assert_eq!(queue.swap(1, Ordering::Release), 0);
                    }
                }
            }
        };
        let wakers: Vec<_> = (0..2)
            .map(|n| {
                let (state, queue, news) = (state.clone(), queue.clone(), news.clone());
                let work = work.clone();
                thread::spawn(move || {
                    news[n].store(1, Ordering::Relaxed);
                    if state.wake_by_ref() == Wake::Submit {
                        assert_eq!(queue.swap(1, Ordering::Release), 0);
                    }
                    if n == 0 {
                        work();
                    }
                })
            })
            .collect();
        work();
        for waker in wakers {
            waker.join().unwrap();
        }
        work();
        // SAFETY: the other threads have ended.
        assert_eq!(future.with(|future| unsafe { *future }), 2);
    });
}

#[test]
fn the_join_waker_has_one_owner_at_a_time() {
    loom::model(|| {
        let state = started();
        // The waker cell, with the number of the waker that is in it, and how many were moved out and dropped:
        // whoever touches the cell without owning it is caught by loom.
        let cell = Arc::new(UnsafeCell::new(0_u32));
        let gone = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let take = |cell: &UnsafeCell<u32>, gone: &[AtomicUsize; 2]| {
            // Moving out leaves the bytes as they are.
            // SAFETY: what the model checks.
            let waker = cell.with(|waker| unsafe { *waker });
            gone[waker as usize - 1].fetch_add(1, Ordering::Relaxed);
        };
        let runner = {
            let (state, cell, gone) = (state.clone(), cell.clone(), gone.clone());
            thread::spawn(move || {
                if state.complete() == Completed::WakeJoin {
                    take(&cell, &gone);
                }
            })
        };
        // The handle registers, compares, registers another waker, and is dropped.
        let put = |number| {
            // SAFETY: what the model checks.
            cell.with_mut(|waker| unsafe { *waker = number });
            let registered = state.set_join_waker();
            if !registered {
                take(&cell, &gone);
            }
            registered
        };
        let mut put_so_far = 1;
        if put(1) {
            // SAFETY: what the model checks.
            let compared = cell.with(|waker| unsafe { *waker });
            assert_eq!(compared, 1);
            if state.unset_join_waker() {
                take(&cell, &gone);
                put(2);
                put_so_far = 2;
            }
        }
        if state.drop_handle() == HandleDropped::Waker {
            take(&cell, &gone);
        }
        runner.join().unwrap();
        for (number, gone) in gone.iter().enumerate() {
            let put = usize::from(number < put_so_far);
            assert_eq!(gone.load(Ordering::Relaxed), put, "waker {number}");
        }
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
                let free = match state.drop_handle() {
                    HandleDropped::Gone => false,
                    HandleDropped::Free => true,
                    HandleDropped::Waker => state.release(1),
                    HandleDropped::Output => state.release_perhaps_last(1) != Released::Kept,
                };
                if free {
                    freed.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        let _ = state.complete_on_worker();
        // The poll's reference and the list's.
        if state.release_completed(2) != Released::Kept {
            freed.fetch_add(1, Ordering::AcqRel);
        }
        waker.join().unwrap();
        handle.join().unwrap();
        assert_eq!(freed.load(Ordering::Acquire), 1);
    });
}

#[test]
fn shutdown_and_a_pool_do_not_both_get_a_job() {
    loom::model(|| {
        let state = Arc::new(State::new());
        let future = Arc::new(UnsafeCell::new(1_u32));
        let pool = {
            let (state, future) = (state.clone(), future.clone());
            thread::spawn(move || {
                if state.start_job() == Start::Poll {
                    // SAFETY: what the model checks.
                    future.with_mut(|future| unsafe { *future += 1 });
                    let _ = state.complete();
                }
            })
        };
        if state.take_for_shutdown() {
            // SAFETY: what the model checks.
            future.with_mut(|future| unsafe { *future += 1 });
            let _ = state.complete();
        }
        pool.join().unwrap();
    });
}

#[test]
fn a_worker_that_is_alone_with_a_task_sees_what_others_did() {
    loom::model(|| {
        let state = started();
        let _ = state.drop_handle();
        // What belongs to the poller, a waker that goes unused, and one that wakes.
        assert!(state.retain_from_stock());
        assert!(state.retain_from_stock());
        let future = Arc::new(UnsafeCell::new(1_u32));
        let news = Arc::new(UnsafeCell::new(0_u32));
        assert_eq!(state.end_pending(), End::Idle);
        let dropper = {
            let (state, news) = (state.clone(), news.clone());
            thread::spawn(move || {
                // SAFETY: what the model checks.
                news.with(|news| unsafe { *news });
                let _ = state.release(1);
            })
        };
        let waker = {
            let (state, future) = (state.clone(), future.clone());
            thread::spawn(move || {
                if state.wake_owned() != Wake::Submit {
                    return;
                }
                // In the queue's place: the waker runs it.
                assert_eq!(state.start(), Start::Poll);
                // SAFETY: what the model checks.
                future.with_mut(|future| unsafe { *future += 1 });
                match state.complete_on_worker() {
                    Completed::DropOutput => {}
                    other => panic!("{other:?}"),
                }
                if state.release_completed(2) != Released::Kept {
                    // SAFETY: alone at the end, so the other thread's accesses are over.
                    news.with_mut(|news| unsafe { *news = 1 });
                }
            })
        };
        dropper.join().unwrap();
        waker.join().unwrap();
    });
}

#[test]
fn a_slot_goes_from_task_to_task_over_threads() {
    loom::model(|| {
        let task = || {
            let (shared, _) = Shared::new(1, false, true, Hooks::default());
            let header = cell::allocate(std::future::pending::<()>(), shared, Id::next(), None);
            // SAFETY: a new task counts three references, one of them for a queue entry.
            unsafe { Task::from_raw(header) }
        };
        let end = |task: Task| {
            assert!(task.header().state.take_for_shutdown());
            task.shut_down();
            // Those of the handle, which there is not, and of the list.
            task.release_completed(2);
        };
        let (list, mut owners) = OwnedTasks::new(2);
        let other = owners.remove(1);
        let owner = owners.remove(0);
        // Two tasks that end elsewhere, at the same time as the owner looks for slots.
        let ends = [task(), task()];
        ends.iter().for_each(|task| owner.insert(task));
        let thief = thread::spawn(move || {
            for task in ends {
                other.remove(&task);
                end(task);
            }
        });
        let own = task();
        owner.insert(&own);
        owner.remove(&own);
        end(own);
        let left = task();
        owner.insert(&left);
        thief.join().unwrap();
        assert_eq!(list.len(), 1);
        list.close();
        let mut drained = Vec::new();
        list.drain(|task| drained.push(task.into_raw()));
        assert_eq!(drained, [left.as_ptr()]);
        end(left);
    });
}

#[test]
fn a_wake_that_meets_the_shutdown_neither_keeps_nor_frees_the_task() {
    loom::model(|| {
        let state = started();
        let _ = state.drop_handle();
        assert!(state.retain_from_stock(), "a waker for the other thread");
        assert_eq!(state.end_pending(), End::Idle);
        let freed = Arc::new(AtomicUsize::new(0));
        let waker = {
            let (state, freed) = (state.clone(), freed.clone());
            thread::spawn(move || {
                let last = match state.wake_owned() {
                    // The injector is closed, and the entry is dropped.
                    Wake::Submit => state.release(1),
                    Wake::Done => false,
                    Wake::Free => true,
                };
                if last {
                    freed.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        // The workers have left.
        assert!(state.take_for_shutdown());
        assert_eq!(state.complete(), Completed::DropOutput);
        assert!(state.is_complete());
        // The list's reference.
        if state.release_completed(1) != Released::Kept {
            freed.fetch_add(1, Ordering::AcqRel);
        }
        waker.join().unwrap();
        assert_eq!(freed.load(Ordering::Acquire), 1);
    });
}

#[test]
fn an_entry_that_is_taken_after_the_shutdown_is_stale() {
    loom::model(|| {
        let state = started();
        assert!(state.retain_from_stock(), "a waker for the other thread");
        assert_eq!(state.end_pending(), End::Idle);
        let queued = Arc::new(AtomicUsize::new(0));
        let waker = {
            let (state, queued) = (state.clone(), queued.clone());
            thread::spawn(move || {
                if state.wake_owned() == Wake::Submit {
                    queued.store(1, Ordering::Release);
                }
            })
        };
        assert!(state.take_for_shutdown());
        if queued.load(Ordering::Acquire) == 1 {
            assert_eq!(state.start(), Start::Stale);
        }
        assert_eq!(state.complete(), Completed::Leave);
        waker.join().unwrap();
        if queued.load(Ordering::Acquire) == 1 {
            assert_eq!(state.start(), Start::Stale);
        }
    });
}
