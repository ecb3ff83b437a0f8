//! The worker of a current-thread runtime, which whoever is in `block_on` takes and runs.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use super::main_future::{Ends, Main};
use crate::context::{PollGuard, WorkerGuard};
use crate::scheduler::{Shared, Worker};

pub(crate) struct CoreSlot {
    slot: Mutex<Slot>,
}

struct Slot {
    /// Absent while some `block_on` runs it, and after shutdown.
    core: Option<Box<Worker>>,
    /// Callers of `block_on` that could not have it.
    waiting: Vec<Arc<Main>>,
}

// SAFETY: a `Worker` is used by one thread at a time, the one that took it out of the slot; what it
// holds (a ring of tasks, cells, a counted reference) may move between threads, and its end-of-poll
// hook, which may not, has been cleared before it is put back.
unsafe impl Send for Slot {}

impl CoreSlot {
    pub(super) fn new(core: Worker) -> Self {
        Self {
            slot: Mutex::new(Slot {
                core: Some(Box::new(core)),
                waiting: Vec::new(),
            }),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn block_on<F: Future>(&self, shared: &Arc<Shared>, future: F) -> F::Output {
        let main = Main::new(Some(shared.clone()));
        let _ends = Ends(&main);
        let waker = main.waker();
        let mut cx = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            let core = {
                let mut slot = self.slot();
                let core = slot.core.take();
                if core.is_none() && !slot.waiting.iter().any(|other| Arc::ptr_eq(other, &main)) {
                    slot.waiting.push(main.clone());
                }
                core
            };
            if let Some(core) = core {
                // Puts the worker back on every way out, also when the future panics.
                let core = Running {
                    slot: self,
                    core: Some(core),
                    main: &main,
                };
                if let Some(output) =
                    core.run(&main, |main_cx| future.as_mut().poll(main_cx), &mut cx)
                {
                    return output;
                }
            } else {
                if main.take_woken() {
                    let polled = main.poll(|| future.as_mut().poll(&mut cx));
                    main.poll_over();
                    let Poll::Ready(output) = polled else {
                        continue;
                    };
                    self.slot()
                        .waiting
                        .retain(|other| !Arc::ptr_eq(other, &main));
                    return output;
                }
                main.parker.park();
            }
        }
    }

    /// Drops the tasks here, if no `block_on` is under way; else that one does.
    pub(super) fn shut_down(&self, shared: &Shared) {
        let core = self.slot().core.take();
        if let Some(core) = core {
            shared.worker_left(&core);
        } else {
            shared.unpark(0);
        }
    }
}

/// The worker, taken out of the slot.
struct Running<'a> {
    slot: &'a CoreSlot,
    core: Option<Box<Worker>>,
    main: &'a Arc<Main>,
}

impl Running<'_> {
    /// Runs tasks and the main future. `None`: the runtime has been shut down meanwhile, and the
    /// main future has to go on alone.
    fn run<T>(
        mut self,
        main: &Main,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
        cx: &mut Context<'_>,
    ) -> Option<T> {
        let core = self.core.as_ref()?;
        // SAFETY: the box keeps the worker in place, and `self` outlives the guard.
        let guard = unsafe { WorkerGuard::new(core) };
        core.remote().parker.attach();
        let output = loop {
            if core.shared().is_shut_down() {
                break None;
            }
            if main.is_woken() && main.take_woken() {
                let polled = {
                    // In this order, and also when the poll panics: the budget ends, then what the
                    // poll has deferred is done.
                    let _end = EndPoll(core, main);
                    let _budget = PollGuard::new(None);
                    main.poll(|| poll(cx))
                };
                if let Poll::Ready(output) = polled {
                    break Some(output);
                }
            }
            let woken = || main.is_woken();
            if !core.run_some() && !woken() {
                core.park_unless(woken);
            }
        };
        drop(guard);
        if output.is_none()
            && let Some(core) = self.core.take()
        {
            core.shared().worker_left(&core);
        }
        output
    }
}

/// Does what a poll of the main future has left to be done.
struct EndPoll<'a>(&'a Worker, &'a Main);

impl Drop for EndPoll<'_> {
    fn drop(&mut self) {
        self.0.end_main_poll();
        self.1.poll_over();
        let _ = self.0.count_poll();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut slot = self.slot.slot();
            slot.waiting.retain(|other| !Arc::ptr_eq(other, self.main));
            if let Some(core) = self.core.take() {
                if core.shared().is_shut_down() {
                    // The shutdown found the slot empty and left the tasks to this thread.
                    drop(slot);
                    core.hooks.clear();
                    core.shared().worker_left(&core);
                    return;
                }
                core.hooks.clear();
                slot.core = Some(core);
            }
            std::mem::take(&mut slot.waiting)
        };
        for main in waiting {
            main.parker.unpark();
        }
    }
}
