//! Wakers that poll on the spot, on the stack of whoever wakes.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use crate::common::{on_wake, within};
use crate::flavor::{Receiver, channel};

type Recv = Pin<Box<dyn Future<Output = Option<u32>> + Send>>;

/// A receive that is polled whenever it is woken.
struct Inline {
    recv: Mutex<Option<Recv>>,
    waker: Mutex<Option<Waker>>,
    wakes: AtomicUsize,
}

impl Inline {
    fn new(rx: Receiver<u32>) -> Arc<Self> {
        let this = Arc::new(Self {
            recv: Mutex::new(Some(Box::pin(async move { rx.recv().await }))),
            waker: Mutex::new(None),
            wakes: AtomicUsize::new(0),
        });
        let weak = Arc::downgrade(&this);
        let waker = on_wake(move || {
            let this = weak.upgrade().expect("polled while it lives");
            this.wakes.fetch_add(1, Ordering::SeqCst);
            this.poll();
        });
        *this.waker.lock().unwrap() = Some(waker);
        this.poll();
        this
    }

    fn poll(&self) {
        let waker = self.waker.lock().unwrap().clone().expect("set at once");
        let mut recv = self.recv.lock().unwrap();
        if let Some(polled) = recv.as_mut()
            && let poll = polled.as_mut().poll(&mut Context::from_waker(&waker))
            && poll.is_ready()
        {
            *recv = None;
        }
    }

    fn is_over(&self) -> bool {
        self.recv.lock().unwrap().is_none()
    }
}

#[test]
fn closing_wakes_each_of_many_receivers_once() {
    within("closing", || {
        // More than are woken at a time.
        const RECEIVERS: usize = 100;
        let (tx, rx) = channel(1);
        let permit = tx.try_reserve().unwrap();
        let receivers: Vec<_> = (0..RECEIVERS).map(|_| Inline::new(rx.clone())).collect();
        // All have to look, and all wait again, since the permit is out: those at the front before those
        // behind have been woken.
        rx.close();
        for recv in &receivers {
            assert_eq!(recv.wakes.load(Ordering::SeqCst), 1);
            assert!(!recv.is_over());
        }
        drop(permit);
        assert!(receivers.iter().all(|recv| recv.is_over()));
    });
}
