//! Timers against the driver's sleep, and against their own future.

use std::pin::Pin;
use std::task::Waker;

use loom::thread;

use super::super::timers::{Brought, Entry, State, Timers};
use super::{Poller, count};
use crate::sync::Arc;

/// Time stands at 10; what is due by then fires, and a sleep until then is over at once.
const NOW: u64 = 10;

/// The driver's loop until `done`.
fn drive(timers: &Timers, poller: &Poller, done: impl Fn() -> bool) {
    loop {
        match timers.plan(None) {
            Some(until) if until <= NOW => {}
            _ => {
                poller.wait();
            }
        }
        timers.awake();
        timers.fire(NOW);
        if done() {
            return;
        }
    }
}

/// Sets a timer as `Sleep::poll` does; one that is due counts as woken.
fn insert(timers: &Timers, poller: &Poller, entry: &Pin<Box<Entry>>, when: u64, waker: Waker) {
    // SAFETY: pinned, IDLE, and waited for or removed by each test.
    match unsafe { timers.insert(entry, when, waker.clone()) } {
        Brought::Waits => {}
        Brought::Interrupt => poller.interrupt(),
        Brought::Due => {
            entry.finish();
            waker.wake();
            // The driver's loop is to see that all is done.
            poller.interrupt();
        }
        Brought::Closed => unreachable!("nobody closes"),
    }
}

#[test]
fn a_timer_that_comes_while_the_driver_goes_to_sleep_is_not_slept_through() {
    loom::model(|| {
        let shared = Arc::new((Timers::new(), Poller::new()));
        let (timers, poller) = &*shared;
        let far = Box::pin(Entry::new());
        insert(timers, poller, &far, 1000, Waker::noop().clone());
        let (count, waker) = count();
        let driver = {
            let (shared, count) = (shared.clone(), count.clone());
            thread::spawn(move || drive(&shared.0, &shared.1, || count.get() > 0))
        };
        let near = Box::pin(Entry::new());
        insert(timers, poller, &near, 5, waker);
        driver.join().unwrap();
        assert_eq!(near.state(), State::Fired);
        assert_eq!(far.state(), State::Waiting);
        // SAFETY: inserted here.
        unsafe { timers.remove(&far) };
    });
}

#[test]
fn the_second_of_two_timers_need_not_interrupt_and_fires_all_the_same() {
    loom::model(|| {
        let shared = Arc::new((Timers::new(), Poller::new()));
        let (timers, poller) = &*shared;
        let (count, waker) = count();
        let driver = {
            let (shared, count) = (shared.clone(), count.clone());
            thread::spawn(move || drive(&shared.0, &shared.1, || count.get() == 2))
        };
        let entries = [6, 7].map(|when| {
            let entry = Box::pin(Entry::new());
            insert(timers, poller, &entry, when, waker.clone());
            entry
        });
        driver.join().unwrap();
        for entry in &entries {
            assert_eq!(entry.state(), State::Fired);
        }
    });
}

#[test]
fn a_timer_that_is_taken_back_while_it_fires_is_freed_in_time() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; removed below.
        assert_eq!(unsafe { timers.insert(&entry, 5, waker) }, Brought::Waits);
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // As `Sleep::drop`: without the lock if it is not WAITING. The model's cell tells if the
        // driver still touches the node when it is freed.
        if entry.state() == State::Waiting {
            // SAFETY: inserted here.
            unsafe { timers.remove(&entry) };
        }
        let fired = entry.state() == State::Fired;
        drop(entry);
        driver.join().unwrap();
        assert_eq!(count.get(), usize::from(fired));
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
    });
}

#[test]
fn a_waker_that_is_replaced_while_the_timer_fires_is_woken_or_sees_it() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let ((first, first_waker), (second, second_waker)) = (count(), count());
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; it fires.
        assert_eq!(
            unsafe { timers.insert(&entry, 5, first_waker) },
            Brought::Waits
        );
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // SAFETY: inserted here.
        let replaced = unsafe { timers.replace_waker(&entry, second_waker) };
        if !replaced {
            assert_eq!(entry.state(), State::Fired);
        }
        driver.join().unwrap();
        assert_eq!(second.get(), usize::from(replaced));
        assert_eq!(first.get(), usize::from(!replaced));
    });
}

#[test]
fn a_timer_that_is_moved_while_it_fires_fires_at_one_of_its_times() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; removed below.
        assert_eq!(unsafe { timers.insert(&entry, 5, waker) }, Brought::Waits);
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // SAFETY: inserted here.
        let moved = unsafe { timers.move_to(&entry, 1000) };
        driver.join().unwrap();
        match moved {
            Some((brought, _)) => {
                assert_eq!(brought, Brought::Waits);
                assert_eq!((entry.state(), count.get()), (State::Waiting, 0));
                timers.fire(1000);
            }
            None => assert_eq!(entry.state(), State::Fired),
        }
        assert_eq!((entry.state(), count.get()), (State::Fired, 1));
    });
}

#[test]
fn a_timer_that_is_set_when_the_runtime_ends_is_told() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let end = {
            let timers = timers.clone();
            thread::spawn(move || timers.close())
        };
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; the end takes it out.
        let brought = unsafe { timers.insert(&entry, 5, waker) };
        end.join().unwrap();
        match brought {
            Brought::Waits => assert_eq!((entry.state(), count.get()), (State::Closed, 1)),
            other => assert_eq!((other, count.get()), (Brought::Closed, 0)),
        }
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
    });
}
