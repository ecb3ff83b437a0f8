//! Models of the channel's handshakes, through the public interface, with plain threads as tasks.
//!
//! Each shows one meeting of two or three threads, with as few steps as it takes.

mod blocks;
mod lapse;
mod mpmc;
mod mpsc;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// As many preemptions as the environment says, or two: enough for each pair of steps that meet.
fn model(f: impl Fn() + Sync + Send + 'static) {
    model_at_least(0, f);
}

/// As many preemptions as the environment says, or two, but at least `bound`.
fn model_at_least(bound: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let asked = builder.preemption_bound.unwrap_or(2);
    builder.preemption_bound = Some(asked.max(bound));
    builder.check(f);
}

/// A waker that counts. The count is a plain one: no step of the model.
fn count_wakes() -> (Arc<AtomicUsize>, Waker) {
    struct Counter(Arc<AtomicUsize>);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let wakes = Arc::new(AtomicUsize::new(0));
    let waker = Waker::from(Arc::new(Counter(Arc::clone(&wakes))));
    (wakes, waker)
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
