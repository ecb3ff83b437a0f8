//! Panics of foreign code: message destructors, wakers. The channel stays whole, the rest of the
//! work is done, and the panic reaches its caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::thread;

use super::full;
use crate::common::{Ledger, counter, noop, on_drop, on_wake, poll_once, polled, within};
use crate::flavor::channel;
use crate::flavor::error::TrySendError;

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// A waker whose clone panics while the flag is set. It has no state of its own.
fn panicking_clone(armed: &'static AtomicBool) -> Waker {
    fn clone(armed: *const ()) -> RawWaker {
        // SAFETY: the pointer was made from a `&'static AtomicBool` below.
        let flag = unsafe { &*armed.cast::<AtomicBool>() };
        assert!(!flag.load(Ordering::SeqCst), "the clone of a waker panics");
        RawWaker::new(armed, &VTABLE)
    }
    fn nothing(_: *const ()) {}
    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, nothing, nothing, nothing);
    let raw = RawWaker::new(std::ptr::from_ref(armed).cast(), &VTABLE);
    // SAFETY: the functions need no more than the pointer to a static, and that is thread-safe.
    unsafe { Waker::from_raw(raw) }
}

#[test]
fn a_panicking_message_does_not_stop_the_drain() {
    // B069
    for capacity in [10, 16, 33] {
        for lap in [0, 7] {
            let ledger = Ledger::new();
            let (tx, mut rx) = channel(capacity);
            for _ in 0..lap {
                tx.try_send(ledger.make()).unwrap();
                drop(rx.try_recv().unwrap());
            }
            for i in 0..10 {
                let message = if i == 3 {
                    ledger.make_panicking()
                } else {
                    ledger.make()
                };
                tx.try_send(message).unwrap();
            }
            let mut waiting = polled(tx.closed());
            waiting.pending();
            assert!(panics(move || drop(rx)), "the panic is the caller's to see");
            ledger.assert_all_dropped_once();
            waiting.woken();
            assert!(matches!(
                tx.try_send(ledger.make()),
                Err(TrySendError::Closed(_))
            ));
        }
    }
}

#[test]
fn a_receiver_dropped_by_a_panicking_thread_drains() {
    // B069
    let ledger = Ledger::new();
    let (tx, rx) = channel(10);
    for _ in 0..10 {
        tx.try_send(ledger.make()).unwrap();
    }
    let result = thread::spawn(move || {
        let _rx = rx;
        panic!("unwinding");
    })
    .join();
    assert!(result.is_err());
    ledger.assert_all_dropped_once();
    assert!(tx.is_closed());
}

#[test]
fn a_panicking_withdrawn_message_leaves_the_channel_usable() {
    for deposited in [false, true] {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(2);
        tx.try_send(ledger.make()).unwrap();
        tx.try_send(ledger.make()).unwrap();
        let mut send = polled(tx.send(ledger.make_panicking()));
        send.pending();
        let mut next = polled(tx.send(ledger.make()));
        next.pending();
        if deposited {
            drop(rx.try_recv().unwrap());
        }
        // Either the drop of the future or the receiver that passes the message gets the panic.
        let mut hits = usize::from(panics(|| drop(send)));
        for _ in 0..4 {
            hits += usize::from(panics(|| drop(rx.try_recv())));
        }
        assert_eq!(hits, 1);
        assert!(next.woken().is_ok());
        drop(next);
        ledger.assert_all_dropped_once();
        assert_eq!(tx.capacity(), 2);
    }
}

#[test]
fn a_panicking_wake_does_not_keep_the_others_asleep() {
    within("panicking wake", || {
        for dropped in [false, true] {
            let (tx, mut rx) = full(1);
            let (count, waker) = counter();
            let bad = on_wake(|| panic!("a wake panics"));
            let mut sends: Vec<_> = (0..5).map(|i| Box::pin(tx.send(i))).collect();
            for (i, send) in sends.iter_mut().enumerate() {
                let waker = if i == 1 { &bad } else { &waker };
                assert!(poll_once(send.as_mut(), waker).is_pending());
            }
            if dropped {
                assert!(panics(move || drop(rx)));
            } else {
                assert!(panics(|| rx.close()));
                assert!(rx.is_closed());
                assert_eq!(rx.try_recv(), Ok(0));
                assert!(rx.try_recv().is_err());
            }
            assert_eq!(count.count(), 4);
            for send in &mut sends {
                assert!(poll_once(send.as_mut(), noop()).is_ready());
            }
        }
    });
}

#[test]
fn a_panicking_wake_at_a_release_leaves_the_channel_usable() {
    within("panicking wake", || {
        let (tx, mut rx) = full(1);
        let bad = on_wake(|| panic!("a wake panics"));
        let mut send = Box::pin(tx.send(1));
        assert!(poll_once(send.as_mut(), &bad).is_pending());
        let mut next = polled(tx.send(2));
        next.pending();
        // The receive frees the slot and wakes; whether it panics or not, its message is not lost.
        let mut got = Vec::new();
        got.extend(catch_unwind(AssertUnwindSafe(|| rx.try_recv().unwrap())));
        assert!(poll_once(send.as_mut(), noop()).is_ready());
        got.extend(std::iter::from_fn(|| rx.try_recv().ok()));
        assert_eq!(next.woken(), Ok(()));
        assert_eq!(got, [0, 1, 2]);
        assert_eq!(tx.capacity(), 1);
    });
}

#[test]
fn a_panicking_wake_of_the_receiver_reaches_the_sender() {
    within("panicking wake", || {
        let (tx, mut rx) = channel(2);
        let bad = on_wake(|| panic!("a wake panics"));
        assert!(
            rx.poll_recv(&mut std::task::Context::from_waker(&bad))
                .is_pending()
        );
        assert!(panics(|| _ = tx.try_send(1)));
        assert_eq!(rx.try_recv(), Ok(1));
        let mut recv = polled(rx.recv());
        recv.pending();
        tx.try_send(2).unwrap();
        assert_eq!(recv.woken(), Some(2));
    });
}

#[test]
fn a_panicking_waker_drop_leaves_the_channel_usable() {
    within("panicking waker drop", || {
        let bad = || on_drop(|| panic!("the drop of a waker panics"));
        let (tx, mut rx) = full(1);
        let mut send = Box::pin(tx.send(1));
        let _ = panics(|| _ = poll_once(send.as_mut(), &bad()));
        // Replaced by the next poll, and dropped there.
        let _ = panics(|| _ = poll_once(send.as_mut(), noop()));
        assert!(poll_once(send.as_mut(), noop()).is_pending());
        let _ = panics(|| _ = poll_once(send.as_mut(), &bad()));
        let _ = panics(move || drop(send));
        assert_eq!(rx.try_recv(), Ok(0));
        assert!(rx.try_recv().is_err());
        let _ = panics(|| {
            let waker = bad();
            _ = rx.poll_recv(&mut std::task::Context::from_waker(&waker));
        });
        let _ = panics(|| _ = polled(rx.recv()).poll());
        // Where the receiver's waker is still there, it goes as it is woken.
        let _ = panics(|| tx.try_send(2).unwrap());
        assert_eq!(rx.try_recv(), Ok(2));
        assert_eq!(tx.capacity(), 1);
    });
}

#[test]
fn a_panicking_waker_clone_leaves_the_channel_usable() {
    within("panicking waker clone", || {
        static ARMED: AtomicBool = AtomicBool::new(true);
        let bad = panicking_clone(&ARMED);
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(1);
        let recv = Box::pin(rx.recv());
        let mut recv = recv;
        assert!(panics(|| _ = poll_once(recv.as_mut(), &bad)));
        drop(recv);
        tx.try_send(ledger.make()).unwrap();
        let mut send = Box::pin(tx.send(ledger.make()));
        assert!(panics(|| _ = poll_once(send.as_mut(), &bad)));
        drop(send);
        assert_eq!(ledger.alive(), 1);
        let mut reserve = Box::pin(tx.reserve());
        assert!(panics(|| _ = poll_once(reserve.as_mut(), &bad)));
        drop(reserve);
        let mut closed = Box::pin(tx.closed());
        assert!(panics(|| _ = poll_once(closed.as_mut(), &bad)));
        drop(closed);
        let mut next = polled(tx.send(ledger.make()));
        next.pending();
        drop(rx.try_recv().unwrap());
        assert!(next.woken().is_ok());
        drop(next);
        drop((rx, tx));
        ledger.assert_all_dropped_once();
    });
}

#[test]
fn a_sender_dropped_by_a_panicking_thread_ends_the_channel() {
    let (tx, mut rx) = channel(1);
    let result = thread::spawn(move || {
        tx.try_send(1).unwrap();
        let _permit_or_not = tx.try_reserve();
        panic!("unwinding");
    })
    .join();
    assert!(result.is_err());
    assert_eq!(rx.blocking_recv(), Some(1));
    assert_eq!(rx.blocking_recv(), None);
}

#[test]
fn messages_behind_a_panicking_one_are_still_received() {
    let ledger = Ledger::new();
    let (tx, mut rx) = channel(4);
    tx.try_send(ledger.make_panicking()).unwrap();
    tx.try_send(ledger.make()).unwrap();
    assert!(panics(|| drop(rx.try_recv())));
    assert_eq!(rx.try_recv().map(|m| m.id).ok(), Some(1));
    assert_eq!(Arc::new(tx).capacity(), 4);
    ledger.assert_all_dropped_once();
}

/// Fills a channel whose positions have come to `lap`, has three senders wait whose wakers panic, and receives all.
fn panic_at_each_release<T: Send>(
    capacity: usize,
    lap: usize,
    message: fn(usize) -> T,
    number: fn(&T) -> usize,
) {
    let (tx, mut rx) = channel(capacity);
    for _ in 0..lap {
        tx.try_send(message(0)).unwrap();
        drop(rx.try_recv().unwrap());
    }
    for i in 0..capacity {
        tx.try_send(message(i)).unwrap();
    }
    let bad = on_wake(|| panic!("a wake panics"));
    let mut sends: Vec<_> = (0..3)
        .map(|i| Box::pin(tx.send(message(capacity + i))))
        .collect();
    for send in &mut sends {
        assert!(poll_once(send.as_mut(), &bad).is_pending());
    }
    let (mut got, mut hits) = (Vec::new(), 0);
    let mut cx = std::task::Context::from_waker(noop());
    while got.len() < capacity + 3 {
        let in_turn = hits + got.len();
        let received = catch_unwind(AssertUnwindSafe(|| {
            if in_turn % 2 == 0 {
                return rx.try_recv().unwrap();
            }
            match rx.poll_recv(&mut cx) {
                std::task::Poll::Ready(Some(message)) => message,
                _ => panic!("there is a message"),
            }
        }));
        match received {
            Ok(message) => got.push(number(&message)),
            Err(_) => hits += 1,
        }
        assert!(hits <= 3, "at {lap} of {capacity}: a message is gone");
    }
    assert!(
        got.into_iter().eq(0..capacity + 3),
        "at {lap} of {capacity}"
    );
    for send in &mut sends {
        assert!(poll_once(send.as_mut(), noop()).is_ready());
    }
    drop(sends);
    // As new: all of its room, lap after lap.
    assert_eq!(tx.capacity(), capacity);
    for _ in 0..2 {
        for i in 0..capacity {
            tx.try_send(message(i)).unwrap();
        }
        assert!(tx.try_send(message(0)).is_err());
        for i in 0..capacity {
            assert_eq!(number(&rx.try_recv().unwrap()), i);
        }
    }
}

#[test]
fn panicking_wakes_lose_no_message_wherever_it_stands() {
    within("panicking wakes", || {
        for capacity in [1, 2, 3, 5] {
            for lap in 0..8 {
                panic_at_each_release(capacity, lap, |i| i, |i| *i);
                panic_at_each_release(capacity, lap, |i| vec![i; 1], |i| i[0]);
                panic_at_each_release(capacity, lap, |i| [i; 9], |i| i[8]);
            }
        }
        // More than a block of slots, of which messages of this size have 64 in each: at its edges.
        for lap in [0, 1, 61, 62, 63, 64] {
            panic_at_each_release(65, lap, |i| [i; 100], |i| i[99]);
        }
    });
}
