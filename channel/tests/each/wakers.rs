//! Wakers: the last one counts, none is kept, none is registered twice, and none runs under a lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};

use super::full;
use crate::common::{
    counter, everywhere, noop, on_drop, on_wake, poll_once, polled, settle, within,
};
use crate::flavor::{Receiver, Sender, channel};
use futures_lite::Stream;

/// Polls twice with different wakers, runs `event`, and asserts that the second waker fired.
fn last_waker_fires<F: Future>(future: Pin<&mut F>, event: impl FnOnce()) {
    let mut future = future;
    let (first, waker1) = counter();
    let (second, waker2) = counter();
    assert!(poll_once(future.as_mut(), &waker1).is_pending());
    assert!(poll_once(future.as_mut(), &waker2).is_pending());
    drop(waker1);
    assert_eq!(Arc::strong_count(&first), 1, "the replaced waker is kept");
    event();
    assert!(second.fired(), "the last waker did not fire");
    assert!(poll_once(future.as_mut(), noop()).is_ready());
}

#[test]
fn the_last_waker_of_a_send_fires() {
    // B008
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        last_waker_fires(Box::pin(tx.send(9)).as_mut(), || rx.close());
        let (tx, rx) = channel(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        last_waker_fires(Box::pin(tx.send(9)).as_mut(), || drop(permits));
        drop(rx);
    });
}

#[test]
fn the_last_waker_of_a_reservation_fires() {
    // B008
    everywhere(|capacity| async move {
        let (tx, rx) = channel::<u8>(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        last_waker_fires(Box::pin(tx.reserve()).as_mut(), || drop(permits));
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        last_waker_fires(Box::pin(tx.reserve()).as_mut(), || drop(rx));
        drop(permits);
    });
}

#[test]
fn the_last_waker_of_a_receive_fires() {
    // B008
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        last_waker_fires(Box::pin(rx.recv()).as_mut(), || tx.try_send(1).unwrap());
        let mut out = Vec::new();
        last_waker_fires(Box::pin(rx.recv_many(&mut out, 2)).as_mut(), || {
            tx.try_send(1).unwrap();
        });
        last_waker_fires(
            Box::pin(std::future::poll_fn(|cx| Pin::new(&mut rx).poll_next(cx))).as_mut(),
            || tx.try_send(1).unwrap(),
        );
        last_waker_fires(Box::pin(rx.recv()).as_mut(), || drop(tx));
    });
}

#[test]
fn the_last_waker_of_closed_fires() {
    // B008
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel::<u8>(capacity);
        last_waker_fires(Box::pin(tx.closed()).as_mut(), || rx.close());
    });
}

#[test]
fn a_waker_is_stored_once_whatever_the_number_of_polls() {
    // B035
    let polls = if cfg!(miri) { 100 } else { 100_000 };
    let many = |mut future: Pin<&mut dyn Future<Output = ()>>| {
        let (count, waker) = counter();
        for _ in 0..polls {
            let mut cx = Context::from_waker(&waker);
            assert!(future.as_mut().poll(&mut cx).is_pending());
        }
        assert!(
            Arc::strong_count(&count) <= 3,
            "more than one clone is stored"
        );
    };
    let (tx, mut rx) = channel::<usize>(1);
    many(Box::pin(async { _ = rx.recv().await }).as_mut());
    let (count, waker) = counter();
    for _ in 0..polls {
        assert!(poll_once(Box::pin(rx.recv()).as_mut(), &waker).is_pending());
        assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    }
    assert!(
        Arc::strong_count(&count) <= 3,
        "more than one clone is stored"
    );
    assert_eq!(count.take(), 0);
    tx.try_send(0).unwrap();
    assert_eq!(count.take(), 1, "one message, one wake");
    many(Box::pin(async { _ = tx.send(1).await }).as_mut());
    many(Box::pin(async { _ = tx.reserve().await }).as_mut());
    many(Box::pin(async { tx.closed().await }).as_mut());
    drop((tx, rx));
    assert_eq!(Arc::strong_count(&count), 2);
}

#[test]
fn a_dropped_future_keeps_no_waker() {
    // B063
    everywhere(|capacity| async move {
        let (tx, rx) = full(capacity);
        let (count, waker) = counter();
        let mut send = Box::pin(tx.send(9));
        let mut reserve = Box::pin(tx.reserve());
        let mut closed = Box::pin(tx.closed());
        assert!(poll_once(send.as_mut(), &waker).is_pending());
        assert!(poll_once(reserve.as_mut(), &waker).is_pending());
        assert!(poll_once(closed.as_mut(), &waker).is_pending());
        drop((send, reserve, closed));
        assert_eq!(Arc::strong_count(&count), 2);
        drop(rx);
    });
}

#[test]
fn a_finished_future_keeps_no_waker() {
    // B063
    everywhere(|capacity| async move {
        let (tx, mut rx) = full(capacity);
        let (count, waker) = counter();
        let mut send = Box::pin(tx.send(9));
        let mut reserve = Box::pin(tx.reserve());
        let mut closed = Box::pin(tx.closed());
        assert!(poll_once(send.as_mut(), &waker).is_pending());
        assert!(poll_once(reserve.as_mut(), &waker).is_pending());
        assert!(poll_once(closed.as_mut(), &waker).is_pending());
        rx.try_recv().unwrap();
        settle().await;
        rx.close();
        assert!(poll_once(send.as_mut(), &waker).is_ready());
        assert!(poll_once(reserve.as_mut(), &waker).is_ready());
        assert!(poll_once(closed.as_mut(), &waker).is_ready());
        assert_eq!(Arc::strong_count(&count), 2);
        drop((send, reserve, closed));
    });
}

#[test]
fn a_dropped_receiver_keeps_no_waker() {
    // B063: the receiver may keep its waker between receives, but not beyond its own life.
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let (count, waker) = counter();
        assert!(poll_once(Box::pin(rx.recv()).as_mut(), &waker).is_pending());
        tx.try_send(1).unwrap();
        assert!(poll_once(Box::pin(rx.recv()).as_mut(), &waker).is_ready());
        assert!(poll_once(Box::pin(rx.recv()).as_mut(), &waker).is_pending());
        drop(rx);
        assert_eq!(Arc::strong_count(&count), 2);
        drop(tx);
    });
}

#[test]
fn a_closed_channel_keeps_no_waker() {
    // B063: nobody will wake it any more once the receiver has seen the end and is dropped.
    let (count, waker) = counter();
    let (tx, mut rx) = channel::<u8>(1);
    assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    drop(tx);
    assert_eq!(count.take(), 1);
    assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_ready());
    drop(rx);
    assert_eq!(Arc::strong_count(&count), 2);
}

/// Both ends, reachable from a waker. The receiver is behind a lock because it needs `&mut`; a
/// waker that runs while somebody uses it leaves it alone.
struct Ends {
    tx: Sender<usize>,
    rx: Mutex<Option<Receiver<usize>>>,
}

impl Ends {
    fn new(capacity: usize) -> Arc<Self> {
        let (tx, rx) = full(capacity);
        Arc::new(Self {
            tx,
            rx: Mutex::new(Some(rx)),
        })
    }

    fn with_rx<R>(&self, f: impl FnOnce(&mut Receiver<usize>) -> R) -> R {
        f(self.rx.lock().unwrap().as_mut().unwrap())
    }

    /// Takes the receiver out first, so that a waker can get at it during the call.
    fn outside<R>(&self, f: impl FnOnce(&mut Receiver<usize>) -> R) -> R {
        let mut rx = self.rx.lock().unwrap().take().unwrap();
        let result = f(&mut rx);
        *self.rx.lock().unwrap() = Some(rx);
        result
    }

    /// Everything that takes a lock of the channel, or could.
    fn use_all(&self) {
        let _ = (self.tx.len(), self.tx.capacity(), self.tx.is_closed());
        let _ = self.tx.try_send(1);
        drop(self.tx.try_reserve());
        drop(self.tx.clone());
        drop(self.tx.downgrade().upgrade());
        _ = polled(self.tx.send(2)).poll();
        _ = polled(self.tx.reserve()).poll();
        _ = polled(self.tx.closed()).poll();
        if let Ok(mut rx) = self.rx.try_lock()
            && let Some(rx) = rx.as_mut()
        {
            let _ = rx.try_recv();
            _ = polled(rx.recv()).poll();
        }
    }
}

/// Parks one waiter of each kind on a full channel with wakers from `make`, then runs `event`.
fn reentrant(what: &'static str, event: fn(&Ends), make: fn(Weak<Ends>) -> Waker) {
    within(what, move || {
        for capacity in [1, 2, 3] {
            let ends = Ends::new(capacity);
            let waker = || make(Arc::downgrade(&ends));
            let mut send = Box::pin(ends.tx.send(7));
            let mut reserve = Box::pin(ends.tx.reserve());
            let mut closed = Box::pin(ends.tx.closed());
            let mut second = Box::pin(ends.tx.send(8));
            assert!(poll_once(send.as_mut(), &waker()).is_pending());
            assert!(poll_once(reserve.as_mut(), &waker()).is_pending());
            assert!(poll_once(closed.as_mut(), &waker()).is_pending());
            assert!(poll_once(second.as_mut(), &waker()).is_pending());
            // Polled again with another waker: the first one is dropped.
            _ = poll_once(send.as_mut(), &waker());
            _ = poll_once(reserve.as_mut(), &waker());
            _ = poll_once(closed.as_mut(), &waker());
            event(&ends);
            drop(second);
            _ = poll_once(closed.as_mut(), &waker());
            drop((closed, reserve, send));
        }
    });
}

/// Parks a receive with wakers from `make`, then runs `event`.
fn reentrant_receive(what: &'static str, event: fn(&Ends), make: fn(Weak<Ends>) -> Waker) {
    within(what, move || {
        let ends = Ends::new(2);
        ends.with_rx(|rx| while rx.try_recv().is_ok() {});
        for _ in 0..2 {
            let waker = make(Arc::downgrade(&ends));
            ends.outside(move |rx| {
                _ = rx.poll_recv(&mut Context::from_waker(&waker));
            });
        }
        event(&ends);
    });
}

fn waking(ends: Weak<Ends>) -> Waker {
    on_wake(move || {
        if let Some(ends) = ends.upgrade() {
            ends.use_all();
        }
    })
}

fn dropping(ends: Weak<Ends>) -> Waker {
    on_drop(move || {
        if let Some(ends) = ends.upgrade() {
            ends.use_all();
        }
    })
}

fn receive(ends: &Ends) {
    ends.outside(|rx| {
        for _ in 0..4 {
            let _ = rx.try_recv();
        }
    });
}

fn receive_many(ends: &Ends) {
    ends.outside(|rx| _ = polled(rx.recv_many(&mut Vec::new(), 10)).poll());
}

fn close(ends: &Ends) {
    ends.outside(|rx| rx.close());
}

fn drop_receiver(ends: &Ends) {
    let rx = ends.rx.lock().unwrap().take();
    drop(rx);
}

fn send(ends: &Ends) {
    let _ = ends.tx.try_send(5);
    if let Ok(permit) = ends.tx.try_reserve() {
        let _ = permit.send(6);
    }
}

#[test]
fn a_waker_may_use_the_channel_when_a_receive_wakes_it() {
    // B009
    reentrant("receive, wake", receive, waking);
    reentrant("receive many, wake", receive_many, waking);
}

#[test]
fn a_waker_may_use_the_channel_when_a_close_wakes_it() {
    // B009
    reentrant("close, wake", close, waking);
    reentrant("drop of the receiver, wake", drop_receiver, waking);
}

#[test]
fn a_waker_may_use_the_channel_when_a_send_wakes_it() {
    // B009
    reentrant_receive("send, wake", send, waking);
    reentrant_receive("close, wake", close, waking);
}

#[test]
fn a_waker_may_use_the_channel_when_it_is_dropped() {
    // B010
    reentrant("receive, drop", receive, dropping);
    reentrant("receive many, drop", receive_many, dropping);
    reentrant("close, drop", close, dropping);
    reentrant("drop of the receiver, drop", drop_receiver, dropping);
    reentrant_receive("send, drop", send, dropping);
    reentrant_receive("close, drop", close, dropping);
    reentrant_receive("drop of the receiver, drop", drop_receiver, dropping);
}

#[test]
fn a_waker_may_use_the_channel_when_the_last_sender_wakes_it() {
    // B009
    within("last sender", || {
        let (tx, rx) = channel::<usize>(1);
        let rx = Arc::new(Mutex::new(rx));
        let weak = tx.downgrade();
        // Weak, for the channel keeps the waker.
        let seen = Arc::downgrade(&rx);
        let waker = on_wake(move || {
            assert!(weak.upgrade().is_none());
            let rx = seen.upgrade().unwrap();
            assert!(rx.lock().unwrap().try_recv().is_err());
        });
        _ = rx
            .lock()
            .unwrap()
            .poll_recv(&mut Context::from_waker(&waker));
        drop(tx);
        assert!(rx.lock().unwrap().is_closed());
    });
}

#[test]
fn a_waker_may_drop_the_other_waiters() {
    // B009: the wake of the first ends the others, while a batch of wakes is under way.
    within("drop the others", || {
        let (tx, mut rx) = full(4);
        let tx = Arc::new(tx);
        type Parked = Pin<Box<dyn Future<Output = ()> + Send>>;
        let others = Arc::new(Mutex::new(Vec::<Parked>::new()));
        let reach = Arc::clone(&others);
        let waker = on_wake(move || {
            let taken = std::mem::take(&mut *reach.lock().unwrap());
            drop(taken);
        });
        for i in 0..8 {
            let tx = Arc::clone(&tx);
            let mut send: Parked = Box::pin(async move {
                let _ = tx.send(i).await;
            });
            assert!(poll_once(send.as_mut(), &waker).is_pending());
            others.lock().unwrap().push(send);
        }
        let mut got = Vec::new();
        assert!(polled(rx.recv_many(&mut got, 4)).poll().is_ready());
        rx.close();
        assert!(others.lock().unwrap().is_empty());
        while rx.try_recv().is_ok() {}
    });
}

#[test]
fn waiters_that_come_back_inside_a_wake_do_not_keep_close_busy() {
    // B127: each woken `closed()` waits again from inside its wake; close must end all the same.
    within("wake all", || {
        let (tx, mut rx) = channel::<u8>(1);
        let tx = Arc::new(tx);
        let again = Arc::clone(&tx);
        let waker = on_wake(move || _ = polled(again.closed()).poll());
        let mut waits: Vec<_> = (0..1000).map(|_| Box::pin(tx.closed())).collect();
        for wait in &mut waits {
            assert!(poll_once(wait.as_mut(), &waker).is_pending());
        }
        rx.close();
        for wait in &mut waits {
            assert!(poll_once(wait.as_mut(), noop()).is_ready());
        }
    });
}

#[test]
fn wakes_are_bounded_by_events() {
    // B038
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let (count, waker) = counter();
        for i in 0..100 {
            assert!(rx.poll_recv(&mut Context::from_waker(&waker)).is_pending());
            tx.try_send(i).unwrap();
            for j in 1..capacity {
                tx.try_send(j).unwrap();
            }
            assert_eq!(count.take(), 1, "a parked receiver is woken once");
            while rx.try_recv().is_ok() {}
            settle().await;
        }
    });
}
