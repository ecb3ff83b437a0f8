//! Something that happens once and that tasks and threads wait for.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::LIMIT;

#[derive(Default)]
struct State {
    set: bool,
    wakers: Vec<Waker>,
}

#[derive(Clone, Default)]
pub(crate) struct Event(Arc<(Mutex<State>, Condvar)>);

impl Event {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set(&self) {
        let wakers = {
            let mut state = self.0.0.lock().unwrap();
            state.set = true;
            self.0.1.notify_all();
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.0.lock().unwrap().set
    }

    pub(crate) async fn wait(&self) {
        poll_fn(|cx| {
            let mut state = self.0.0.lock().unwrap();
            if state.set {
                return Poll::Ready(());
            }
            if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Waits on this thread, in whatever it is doing. False after a while.
    pub(crate) fn wait_for(&self, time: Duration) -> bool {
        let state = self.0.0.lock().unwrap();
        let (state, _) = self
            .0
            .1
            .wait_timeout_while(state, time, |state| !state.set)
            .unwrap();
        state.set
    }

    #[track_caller]
    pub(crate) fn wait_blocking(&self) {
        assert!(self.wait_for(LIMIT / 2), "the event did not happen");
    }

    /// How many wakers are waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.0.0.lock().unwrap().wakers.len()
    }
}

/// Counts drops of its clones-by-move and says where the last one was.
pub(crate) struct DropFlag {
    dropped: Event,
    on: Arc<Mutex<Vec<ThreadId>>>,
}

impl DropFlag {
    /// A flag to be moved into a future, and the view of it: the event of its drop, and the threads
    /// it was dropped on (one, if all is well).
    pub(crate) fn new() -> (Self, Event, Arc<Mutex<Vec<ThreadId>>>) {
        let (dropped, on) = (Event::new(), Arc::default());
        let flag = Self {
            dropped: dropped.clone(),
            on: Arc::clone(&on),
        };
        (flag, dropped, on)
    }
}

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.on.lock().unwrap().push(thread::current().id());
        self.dropped.set();
    }
}
