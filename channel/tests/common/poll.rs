//! Polling by hand, and a small `block_on` that knows nothing of any runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::{Counter, counter};

/// One poll with the given waker.
pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// A boxed future with a counting waker of its own.
pub(crate) struct Polled<F> {
    pub(crate) future: Pin<Box<F>>,
    pub(crate) wakes: Arc<Counter>,
    waker: Waker,
}

impl<F: Future> Polled<F> {
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        poll_once(self.future.as_mut(), &self.waker)
    }

    /// Asserts that one poll gives `Pending`.
    #[track_caller]
    pub(crate) fn pending(&mut self) {
        assert!(self.poll().is_pending(), "expected Pending, was Ready");
    }

    /// Asserts that one poll gives `Ready`, and returns the output.
    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("expected Ready, was Pending"),
        }
    }

    /// Asserts that the waker has fired and that one poll then gives `Ready`.
    #[track_caller]
    pub(crate) fn woken(&mut self) -> F::Output {
        assert!(self.wakes.fired(), "the waiter was not woken");
        self.ready()
    }
}

/// Boxes a future for polling by hand. Nothing is polled yet.
pub(crate) fn polled<F: Future>(future: F) -> Polled<F> {
    let (wakes, waker) = counter();
    Polled {
        future: Box::pin(future),
        wakes,
        waker,
    }
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
