//! Wakers whose destructors act while a send that came too late for the line has claimed its room.
//!
//! A waker is cloned before the line is locked, and the clone is dropped when there is room after all.
//! Nothing may be half done then.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

use super::full;
use crate::common::{poll_once, within};
use crate::flavor::error::TryRecvError;
use wakerun_channel::mpmc;

type Action = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// What to do at the first clone of a waker, and at the first drop.
struct Actions {
    at_clone: Action,
    at_drop: Action,
}

fn act(action: &Action) {
    let action = action.lock().unwrap().take();
    if let Some(action) = action {
        action();
    }
}

/// A waker that runs `at_clone` when it is cloned first, and `at_drop` when it or its clone is dropped
/// first.
pub(crate) fn acting(
    at_clone: impl FnOnce() + Send + 'static,
    at_drop: impl FnOnce() + Send + 'static,
) -> Waker {
    fn clone(actions: *const ()) -> RawWaker {
        // SAFETY: the pointer is that of an `Arc`, and the waker that is cloned holds a reference.
        unsafe { Arc::increment_strong_count(actions.cast::<Actions>()) };
        // Counted first: the clone exists, and is dropped should the action panic.
        // SAFETY: the reference that was counted just now.
        let own = unsafe { Arc::from_raw(actions.cast::<Actions>()) };
        act(&own.at_clone);
        RawWaker::new(Arc::into_raw(own).cast(), &VTABLE)
    }
    fn wake(actions: *const ()) {
        drop(actions);
    }
    fn wake_by_ref(_: *const ()) {}
    fn drop(actions: *const ()) {
        // SAFETY: the waker that is dropped gives its reference away.
        let own = unsafe { Arc::from_raw(actions.cast::<Actions>()) };
        act(&own.at_drop);
    }
    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);
    let actions = Arc::new(Actions {
        at_clone: Mutex::new(Some(Box::new(at_clone))),
        at_drop: Mutex::new(Some(Box::new(at_drop))),
    });
    let raw = RawWaker::new(Arc::into_raw(actions).cast(), &VTABLE);
    // SAFETY: each waker holds a reference of an `Arc`, and what is in it is thread-safe.
    unsafe { Waker::from_raw(raw) }
}

#[test]
fn a_waker_that_panics_as_it_is_dropped_does_not_keep_a_send_from_its_claim() {
    within("send, panic", || {
        let (tx, rx) = full(1);
        let rx = Arc::new(Mutex::new(rx));
        let makes_room = Arc::clone(&rx);
        let waker = acting(
            move || assert_eq!(makes_room.lock().unwrap().try_recv(), Ok(0)),
            || panic!("the drop of a waker panics"),
        );
        let mut send = Box::pin(tx.send(1));
        let polled = catch_unwind(AssertUnwindSafe(|| poll_once(send.as_mut(), &waker)));
        assert!(polled.is_err(), "the panic is the caller's to see");
        let mut rx = rx.lock().unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        drop(send);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(tx.capacity(), 1);
        tx.try_send(2).unwrap();
        assert_eq!(rx.try_recv(), Ok(2));
    });
}

#[test]
fn a_waker_that_receives_as_it_is_dropped_finds_the_message_of_a_late_send() {
    within("send, receive", || {
        let (tx, rx) = full(1);
        let rx = Arc::new(Mutex::new(rx));
        let got = Arc::new(Mutex::new(None));
        let (makes_room, receives, sees) = (Arc::clone(&rx), Arc::clone(&rx), Arc::clone(&got));
        let waker = acting(
            move || assert_eq!(makes_room.lock().unwrap().try_recv(), Ok(0)),
            move || *sees.lock().unwrap() = Some(receives.lock().unwrap().try_recv()),
        );
        let mut send = Box::pin(tx.send(1));
        assert_eq!(poll_once(send.as_mut(), &waker), Poll::Ready(Ok(())));
        assert_eq!(*got.lock().unwrap(), Some(Ok(1)));
        drop(send);
        assert_eq!(tx.capacity(), 1);
        assert_eq!(rx.lock().unwrap().try_recv(), Err(TryRecvError::Empty));
    });
}

#[test]
fn a_waker_that_panics_as_it_is_dropped_does_not_cost_a_permit() {
    within("reserve, panic", || {
        let (tx, rx) = full(1);
        let rx = Arc::new(Mutex::new(rx));
        let makes_room = Arc::clone(&rx);
        let waker = acting(
            move || assert_eq!(makes_room.lock().unwrap().try_recv(), Ok(0)),
            || panic!("the drop of a waker panics"),
        );
        let mut reserve = Box::pin(tx.reserve());
        let polled = catch_unwind(AssertUnwindSafe(|| {
            poll_once(reserve.as_mut(), &waker).is_ready()
        }));
        assert!(polled.is_err(), "the panic is the caller's to see");
        drop(reserve);
        assert_eq!(tx.capacity(), 1, "the room has come back");
        tx.try_send(1).unwrap();
        assert_eq!(rx.lock().unwrap().try_recv(), Ok(1));
    });
}

#[test]
fn a_waker_that_panics_as_it_is_dropped_leaves_no_refused_waiter_in_line() {
    within("closed, panic", || {
        for reserves in [false, true] {
            let (tx, rx) = full(1);
            let rx = Arc::new(Mutex::new(rx));
            let closes = Arc::clone(&rx);
            let waker = acting(
                move || closes.lock().unwrap().close(),
                || panic!("the drop of a waker panics"),
            );
            let mut send = Box::pin(tx.send(1));
            let mut reserve = Box::pin(tx.reserve());
            let polled = catch_unwind(AssertUnwindSafe(|| {
                if reserves {
                    let _ = poll_once(reserve.as_mut(), &waker);
                } else {
                    let _ = poll_once(send.as_mut(), &waker);
                }
            }));
            assert!(polled.is_err(), "the panic is the caller's to see");
            // Its message comes back, or goes with it.
            if reserves {
                assert!(matches!(
                    poll_once(reserve.as_mut(), Waker::noop()),
                    Poll::Ready(Err(_))
                ));
            } else {
                let back = poll_once(send.as_mut(), Waker::noop());
                assert!(matches!(back, Poll::Ready(Err(error)) if error.0 == 1));
            }
            drop((send, reserve));
            let mut rx = rx.lock().unwrap();
            assert_eq!(rx.try_recv(), Ok(0));
            assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        }
    });
}

#[test]
fn two_wakers_that_panic_as_they_are_dropped_lose_no_message_and_are_one_panic() {
    within("receive, two panics", || {
        let (tx, rx) = mpmc::channel(2);
        let tx = Arc::new(tx);
        let mut ahead = Box::pin(rx.recv());
        assert!(poll_once(ahead.as_mut(), Waker::noop()).is_pending());
        let mut recv = Box::pin(rx.recv());
        // Its clone waits in line.
        let first = ManuallyDrop::new(acting(|| (), || panic!("the drop of a waker panics")));
        assert!(poll_once(recv.as_mut(), &first).is_pending());
        // A message comes between the looks, and wakes the one ahead: the receive has the first waker, and
        // the clone of the second, to drop.
        let sender = Arc::clone(&tx);
        let second = ManuallyDrop::new(acting(
            move || sender.try_send(1).unwrap(),
            || panic!("the drop of another waker panics"),
        ));
        let polled = catch_unwind(AssertUnwindSafe(|| poll_once(recv.as_mut(), &second)));
        assert!(polled.is_err(), "the panic is the caller's to see");
        assert_eq!(rx.try_recv(), Ok(1));
    });
}
