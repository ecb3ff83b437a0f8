//! Join handles: results, panics, aborts in every state of a task, and what becomes of futures,
//! outputs and wakers.
#![cfg(not(wakerun_loom))]

mod common;

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use common::{
    DropFlag, Event, Kind, block_on, counter, each_kind, each_pool, on_drop, on_wake, poll_once,
    rounds, within,
};
use wakerun::JoinHandle;
use wakerun::task::{self, yield_now};

/// A task that holds a drop flag and waits for ever.
fn parked(runtime: &wakerun::Runtime) -> (JoinHandle<()>, Event, Event) {
    let (flag, dropped, _) = DropFlag::new();
    let started = Event::new();
    let event = started.clone();
    let task = runtime.spawn(async move {
        let _flag = flag;
        event.set();
        std::future::pending().await
    });
    (task, started, dropped)
}

#[test]
fn a_panic_reaches_the_handle_with_its_payload() {
    // B112
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let error = task::spawn(async { panic!("a text") }).await.unwrap_err();
            assert!(error.is_panic() && !error.is_cancelled());
            assert!(error.to_string().contains("a text"));
            assert!(format!("{error:?}").contains("a text"));
            assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "a text");

            let number = std::hint::black_box(2);
            let error = task::spawn(async move { panic!("{number} arguments") })
                .await
                .unwrap_err();
            let payload = error.try_into_panic().unwrap();
            assert_eq!(*payload.downcast::<String>().unwrap(), "2 arguments");

            let error = task::spawn(async {
                yield_now().await;
                panic_any(42_u8)
            })
            .await
            .unwrap_err();
            assert!(!error.to_string().is_empty());
            assert_eq!(*error.into_panic().downcast::<u8>().unwrap(), 42);

            // The workers live on.
            for i in 0..100 {
                assert_eq!(task::spawn(async move { i }).await.unwrap(), i);
            }
        });
    });
}

#[test]
fn a_cancelled_error_says_so() {
    each_kind(|_, runtime| {
        let task = runtime.spawn(std::future::pending::<()>());
        let id = task.id();
        task.abort();
        let error = runtime.block_on(task).unwrap_err();
        assert!(error.is_cancelled() && !error.is_panic());
        assert_eq!(error.id(), id);
        assert!(error.to_string().contains("cancelled"));
        let error = error.try_into_panic().unwrap_err();
        assert!(catch_unwind(AssertUnwindSafe(|| error.into_panic())).is_err());
    });
}

#[test]
fn is_finished_means_that_awaiting_returns_at_once() {
    each_pool(|_, runtime| {
        let go = Event::new();
        let event = go.clone();
        let mut task = runtime.spawn(async move {
            event.wait().await;
            5
        });
        let abort = task.abort_handle();
        assert!(!task.is_finished() && !abort.is_finished());
        go.set();
        while !task.is_finished() {
            thread::yield_now();
        }
        assert!(abort.is_finished());
        let (_, waker) = counter();
        let output = poll_once(pin!(&mut task), &waker);
        assert!(matches!(output, Poll::Ready(Ok(5))));
        assert!(task.is_finished());
    });
}

#[test]
fn abort_ends_a_parked_task_without_more_ado() {
    // B071: nobody awaits, the handle is gone.
    each_pool(|_, runtime| {
        for twice in [false, true] {
            let (task, started, dropped) = parked(&runtime);
            started.wait_blocking();
            task.abort();
            if twice {
                task.abort();
            }
            drop(task);
            dropped.wait_blocking();
        }
    });
}

#[test]
fn abort_ends_a_task_that_was_never_polled() {
    // B071
    within("never polled", || {
        let runtime = Kind::Current.build();
        let (task, started, dropped) = parked(&runtime);
        task.abort();
        drop(task);
        runtime.block_on(dropped.wait());
        assert!(!started.is_set());
        // The same behind the back of a busy worker.
        let runtime = Kind::Workers(1).build();
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        drop(runtime.spawn(async move {
            set.set();
            wait.wait_blocking();
        }));
        in_poll.wait_blocking();
        let (task, started, dropped) = parked(&runtime);
        task.abort();
        go_on.set();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        dropped.wait_blocking();
        assert!(!started.is_set());
    });
}

#[test]
fn abort_ends_a_task_after_the_poll_it_is_in() {
    // B071
    each_pool(|_, runtime| {
        for drop_handle in [false, true] {
            let (in_poll, go_on) = (Event::new(), Event::new());
            let (set, wait) = (in_poll.clone(), go_on.clone());
            let (flag, dropped, _) = DropFlag::new();
            let task = runtime.spawn(async move {
                let _flag = flag;
                set.set();
                wait.wait_blocking();
                std::future::pending::<()>().await;
            });
            in_poll.wait_blocking();
            task.abort();
            assert!(!dropped.is_set());
            go_on.set();
            if drop_handle {
                drop(task);
            } else {
                assert!(runtime.block_on(task).unwrap_err().is_cancelled());
            }
            dropped.wait_blocking();
        }
    });
}

#[test]
fn abort_leaves_the_output_of_a_poll_that_ends_the_task() {
    // B071
    each_pool(|_, runtime| {
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        let task = runtime.spawn(async move {
            set.set();
            wait.wait_blocking();
            "kept"
        });
        in_poll.wait_blocking();
        task.abort();
        go_on.set();
        assert_eq!(runtime.block_on(task).unwrap(), "kept");
    });
}

#[test]
fn abort_ends_a_task_that_has_been_woken_already() {
    // B071
    within("woken", || {
        let runtime = Kind::Current.build();
        let go = Event::new();
        let (flag, dropped, _) = DropFlag::new();
        let event = go.clone();
        let task = runtime.spawn(async move {
            let _flag = flag;
            event.wait().await;
        });
        runtime.block_on(async {
            while go.waiting() == 0 {
                yield_now().await;
            }
            go.set();
            // Queued, not polled yet.
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            assert!(dropped.is_set());
        });
    });
}

#[test]
fn abort_does_nothing_to_a_task_that_has_ended() {
    // B071
    each_kind(|_, runtime| {
        let end = Event::new();
        let event = end.clone();
        let task = runtime.spawn(async move {
            event.set();
            6
        });
        runtime.block_on(async {
            end.wait().await;
            while !task.is_finished() {
                yield_now().await;
            }
            task.abort();
            let abort = task.abort_handle();
            assert_eq!(task.await.unwrap(), 6);
            abort.abort();
            abort.abort();
        });
    });
}

#[test]
fn a_task_may_abort_itself() {
    // B071
    each_kind(|_, runtime| {
        let slot = Arc::new(Mutex::new(None));
        let mine = Arc::clone(&slot);
        let ready = Event::new();
        let event = ready.clone();
        let (flag, dropped, _) = DropFlag::new();
        let task = runtime.spawn(async move {
            let _flag = flag;
            event.wait().await;
            let abort: task::AbortHandle = mine.lock().unwrap().take().unwrap();
            abort.abort();
            yield_now().await;
            unreachable!("it was aborted at its own wish");
        });
        *slot.lock().unwrap() = Some(task.abort_handle());
        ready.set();
        assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        assert!(dropped.is_set());
    });
}

#[test]
fn the_future_is_never_dropped_on_the_aborters_stack() {
    // B113
    each_kind(|kind, runtime| {
        let (flag, dropped, on) = DropFlag::new();
        let started = Event::new();
        let event = started.clone();
        let task = runtime.spawn(async move {
            let _flag = flag;
            event.set();
            std::future::pending::<()>().await;
        });
        let runs_here = thread::current().id();
        let aborter = runtime.block_on(async {
            started.wait().await;
            let aborter = thread::spawn(move || {
                task.abort();
                drop(task);
            });
            let id = aborter.thread().id();
            aborter.join().unwrap();
            dropped.wait().await;
            id
        });
        let on = on.lock().unwrap();
        assert_eq!(on.len(), 1);
        assert_ne!(on[0], aborter);
        assert_eq!(on[0] == runs_here, kind == Kind::Current);
    });
}

#[test]
fn aborts_at_any_moment_drop_the_future_once() {
    // B071
    each_pool(|_, runtime| {
        for round in 0..rounds(20_000) {
            let (flag, dropped, on) = DropFlag::new();
            let task = runtime.spawn(async move {
                let _flag = flag;
                for _ in 0..3 {
                    yield_now().await;
                }
                round
            });
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            task.abort();
            match block_on(task) {
                Ok(output) => assert_eq!(output, round),
                Err(error) => assert!(error.is_cancelled()),
            }
            dropped.wait_blocking();
            assert_eq!(on.lock().unwrap().len(), 1);
        }
    });
}

#[test]
fn a_dropped_handle_detaches_the_task() {
    each_kind(|_, runtime| {
        let (go, done) = (Event::new(), Event::new());
        let (wait, set) = (go.clone(), done.clone());
        drop(runtime.spawn(async move {
            wait.wait().await;
            set.set();
        }));
        go.set();
        runtime.block_on(done.wait());
    });
}

#[test]
fn an_output_nobody_takes_is_dropped_once() {
    each_kind(|_, runtime| {
        // The handle goes before the end, or after it.
        for early in [true, false] {
            let go = Event::new();
            let wait = go.clone();
            let (flag, dropped, on) = DropFlag::new();
            let task = runtime.spawn(async move {
                wait.wait().await;
                flag
            });
            let mut task = Some(task);
            if early {
                task = None;
            }
            go.set();
            runtime.block_on(async {
                while task.as_ref().is_some_and(|task| !task.is_finished()) {
                    yield_now().await;
                }
                if let Some(task) = task {
                    assert!(!dropped.is_set(), "the output waits for its handle");
                    drop(task);
                    assert!(dropped.is_set());
                }
                dropped.wait().await;
            });
            assert_eq!(on.lock().unwrap().len(), 1);
        }
    });
}

#[test]
fn the_future_is_dropped_before_the_handle_is_told() {
    each_kind(|_, runtime| {
        let (flag, dropped, _) = DropFlag::new();
        let task = runtime.spawn(async move {
            let _flag = flag;
            yield_now().await;
        });
        runtime.block_on(task).unwrap();
        assert!(dropped.is_set());
    });
}

#[test]
fn the_last_waker_of_a_handle_fires() {
    // B008
    each_pool(|_, runtime| {
        let go = Event::new();
        let wait = go.clone();
        let mut task = runtime.spawn(async move { wait.wait().await });
        let (first, waker1) = counter();
        let (second, waker2) = counter();
        assert!(poll_once(pin!(&mut task), &waker1).is_pending());
        for _ in 0..10 {
            assert!(poll_once(pin!(&mut task), &waker2).is_pending());
        }
        drop(waker1);
        assert_eq!(Arc::strong_count(&first), 1, "the replaced waker is kept");
        assert!(
            Arc::strong_count(&second) <= 3,
            "more than one clone is kept"
        );
        go.set();
        while second.count() == 0 {
            thread::yield_now();
        }
        assert!(poll_once(pin!(&mut task), &waker2).is_ready());
        assert_eq!((first.count(), second.count()), (0, 1));
    });
}

#[test]
fn a_handle_keeps_no_waker_beyond_its_life() {
    // B063, B099
    each_kind(|_, runtime| {
        let (count, waker) = counter();
        let mut pending = runtime.spawn(std::future::pending::<()>());
        assert!(poll_once(pin!(&mut pending), &waker).is_pending());
        drop(pending);
        assert_eq!(Arc::strong_count(&count), 2);

        let go = Event::new();
        let wait = go.clone();
        let mut task = runtime.spawn(async move { wait.wait().await });
        assert!(poll_once(pin!(&mut task), &waker).is_pending());
        go.set();
        runtime.block_on(async {
            while count.count() == 0 {
                yield_now().await;
            }
            // It may stay until the handle is done with, and no longer.
            assert!(poll_once(pin!(&mut task), &waker).is_ready());
            drop(task);
            while Arc::strong_count(&count) > 2 {
                yield_now().await;
            }
        });
    });
}

#[test]
fn a_handle_may_be_awaited_anywhere() {
    each_pool(|_, runtime| {
        let other = Kind::Workers(2).build();
        let task = runtime.spawn(async { 1 });
        let task = other.spawn(async move { task.await.unwrap() + 1 });
        let task = runtime.spawn(async move { task.await.unwrap() + 1 });
        assert_eq!(block_on(task).unwrap(), 3);
    });
}

#[test]
fn a_task_that_waits_for_any_number_of_handles_is_polled_once() {
    // More handles than a poll has budget: none of them has anything to charge for.
    each_kind(|_, runtime| {
        let polls = Arc::new(AtomicUsize::new(0));
        let (first_poll, go) = (Event::new(), Event::new());
        let (count, set, wait) = (Arc::clone(&polls), first_poll.clone(), go.clone());
        let waiter = runtime.spawn(async move {
            let mut first = task::spawn(async move { wait.wait().await });
            let mut others: Vec<_> = (0..1000)
                .map(|_| task::spawn(std::future::pending::<()>()))
                .collect();
            poll_fn(|cx| {
                count.fetch_add(1, Ordering::SeqCst);
                let ended = Pin::new(&mut first).poll(cx);
                for other in &mut others {
                    assert!(Pin::new(other).poll(cx).is_pending());
                }
                set.set();
                ended
            })
            .await
        });
        runtime.block_on(async {
            first_poll.wait().await;
            // Enough turns for a task that wakes itself to be polled again.
            let turns = task::spawn(async {
                for _ in 0..100 {
                    yield_now().await;
                }
            });
            turns.await.unwrap();
            assert_eq!(polls.load(Ordering::SeqCst), 1);
            go.set();
            waiter.await.unwrap().unwrap();
            assert_eq!(polls.load(Ordering::SeqCst), 2);
        });
    });
}

#[test]
fn a_join_waker_may_use_the_runtime() {
    // B009, B010: by its wake and by its drop.
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        let woken = Event::new();
        let set = woken.clone();
        let on_handle = handle.clone();
        let waker = on_wake(move || {
            drop(on_handle.spawn(async {}));
            set.set();
        });
        let go = Event::new();
        let wait = go.clone();
        let mut task = runtime.spawn(async move { wait.wait().await });
        assert!(poll_once(pin!(&mut task), &waker).is_pending());
        let abort = task.abort_handle();
        let dropped = Event::new();
        let set = dropped.clone();
        let dropping = on_drop(move || {
            abort.abort();
            drop(handle.spawn(async {}));
            set.set();
        });
        assert!(poll_once(pin!(&mut task), &dropping).is_pending());
        drop(dropping);
        // The waker that is replaced aborts the task, whose end this poll may see already.
        let polled = poll_once(pin!(&mut task), &waker);
        runtime.block_on(dropped.wait());
        if polled.is_pending() {
            runtime.block_on(woken.wait());
            assert!(runtime.block_on(task).unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn a_handle_that_has_given_its_output_refuses_to_be_polled() {
    each_kind(|_, runtime| {
        let mut task = runtime.spawn(async { 1 });
        runtime.block_on(async { (&mut task).await.unwrap() });
        let (_, waker) = counter();
        let again = catch_unwind(AssertUnwindSafe(|| poll_once(pin!(&mut task), &waker)));
        assert!(again.is_err());
    });
}

#[test]
fn a_panicking_destructor_harms_only_its_task() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor panics");
        }
    }

    each_kind(|_, runtime| {
        runtime.block_on(async {
            // The future's destructor, at an abort.
            let started = Event::new();
            let event = started.clone();
            let task = task::spawn(async move {
                let _bomb = Bomb;
                event.set();
                std::future::pending::<()>().await;
            });
            started.wait().await;
            task.abort();
            assert!(task.await.is_err());
            // The output's destructor, with nobody to give it to.
            drop(task::spawn(async { Bomb }));
            yield_now().await;
            // A destructor inside the poll.
            let task = task::spawn(async {
                let _bomb = Bomb;
            });
            assert!(task.await.unwrap_err().is_panic());
            for i in 0..50 {
                assert_eq!(task::spawn(async move { i }).await.unwrap(), i);
            }
        });
    });
}

#[test]
fn an_error_can_be_passed_on() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>(
        error: E,
    ) -> Box<dyn std::error::Error> {
        Box::new(error)
    }
    within("error", || {
        let runtime = Kind::Current.build();
        let error = runtime
            .block_on(runtime.spawn(async { panic!("x") }))
            .unwrap_err();
        assert!(is_error(error).to_string().contains('x'));
    });
}
