//! Wakers for polling by hand, and a small `block_on` that knows nothing of the runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn counter() -> (Arc<Counter>, Waker) {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    (counter, waker)
}

/// One poll with the given waker.
pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

struct OnWake<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        (self.0)();
    }
}

/// A waker that runs `f` at each wake, on the stack of whoever wakes.
pub(crate) fn on_wake(f: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(OnWake(f)))
}

type Action = Box<dyn FnOnce() + Send>;

struct OnDrop(Mutex<Option<Action>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        let action = self.0.get_mut().unwrap().take();
        if let Some(action) = action {
            action();
        }
    }
}

impl Wake for OnDrop {
    fn wake(self: Arc<Self>) {}

    fn wake_by_ref(self: &Arc<Self>) {}
}

/// A waker whose last clone runs `f` when it is dropped.
pub(crate) fn on_drop(f: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(OnDrop(Mutex::new(Some(Box::new(f))))))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread, parking in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match poll_once(future.as_mut(), &waker) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
