//! Models of the driver's handshakes.

mod arming;
mod direction;
mod timers;
mod waiting;

use std::task::{Wake, Waker};

use loom::sync::{Condvar, Mutex};

use crate::sync::atomic::{AtomicUsize, Ordering};

struct Poller {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Poller {
    fn new() -> Self {
        Self {
            state: Mutex::new((false, 0)),
            changed: Condvar::new(),
        }
    }

    fn interrupt(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_one();
    }

    fn event(&self) {
        self.state.lock().unwrap().1 += 1;
        self.changed.notify_one();
    }

    /// The events that have come.
    fn wait(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        while *state == (false, 0) {
            state = self.changed.wait(state).unwrap();
        }
        state.0 = false;
        std::mem::take(&mut state.1)
    }
}

/// Counts its wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

fn count() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), Waker::from(count))
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}
