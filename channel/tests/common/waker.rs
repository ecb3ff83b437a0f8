//! Wakers for polling by hand.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// Counts how often it was woken.
#[derive(Default)]
pub(crate) struct Counter(AtomicUsize);

impl Counter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn fired(&self) -> bool {
        self.count() > 0
    }

    /// The count since the last call.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
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

/// A counting waker and the view of its count. The strong count of the `Arc` tells how many clones
/// of the waker are alive: 2 means this pair only.
pub(crate) fn counter() -> (Arc<Counter>, Waker) {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    (counter, waker)
}

/// A waker nobody looks at.
pub(crate) fn noop() -> &'static Waker {
    Waker::noop()
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

/// Runs an action when its last clone goes.
pub(crate) struct OnDrop(Mutex<Option<Action>>);

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

/// A waker whose last clone runs `f` when it is dropped (or woken by value).
pub(crate) fn on_drop(f: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(OnDrop(Mutex::new(Some(Box::new(f))))))
}
