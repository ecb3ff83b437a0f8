//! Running one future on a thread that has nothing else to run.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::scheduler::parker::Parker;

/// Wakes a thread in `block_on`.
struct ThreadWaker {
    parker: Parker,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.parker.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.parker.unpark();
    }
}

/// Runs a future on a plain thread, without a runtime: polls it whenever it is woken, and sleeps in
/// between. What the blocking forms of operations are made of; they check
/// [`must_not_block`](crate::wake::must_not_block) first.
///
/// ```
/// assert_eq!(wakerun::wake::block_on_thread(async { 7 }), 7);
/// ```
pub fn block_on_thread<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let thread = Arc::new(ThreadWaker {
        parker: Parker::new(),
    });
    thread.parker.attach();
    let waker = Waker::from(thread.clone());
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        thread.parker.park();
    }
}
