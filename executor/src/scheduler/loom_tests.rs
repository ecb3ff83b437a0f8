//! Models of the scheduler's handshakes: who sleeps, and who is told.

use loom::thread;

use super::idle::Idle;
use super::parker::Parker;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The parts of the protocol around `Idle`, with a counter for the injector.
struct Model {
    idle: Idle,
    parkers: Vec<Parker>,
    injected: AtomicUsize,
    done: AtomicUsize,
}

impl Model {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            injected: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        })
    }

    /// A task from outside.
    fn inject(&self) {
        self.injected.fetch_add(1, Ordering::AcqRel);
        if let Some(worker) = self.idle.worker_to_notify() {
            self.parkers[worker].unpark();
        }
    }

    fn take(&self) -> bool {
        let mut now = self.injected.load(Ordering::Acquire);
        while now > 0 {
            match self
                .injected
                .compare_exchange(now, now - 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// A worker's loop as in `worker.rs`, until all is done. The one who does the last task lets
    /// the others go.
    fn work(&self, index: usize, tasks: usize) {
        self.parkers[index].attach();
        let mut searching = false;
        while self.done.load(Ordering::Acquire) < tasks {
            if !searching {
                self.idle.start_searching();
                searching = true;
            }
            if self.take() {
                searching = false;
                if self.idle.stop_searching()
                    && self.injected.load(Ordering::Acquire) > 0
                    && let Some(worker) = self.idle.notify_one()
                {
                    self.parkers[worker].unpark();
                }
                if self.done.fetch_add(1, Ordering::AcqRel) + 1 == tasks {
                    loom::sync::atomic::fence(Ordering::SeqCst);
                    while let Some(worker) = self.idle.notify_one() {
                        self.parkers[worker].unpark();
                    }
                }
                continue;
            }
            let _ = self.idle.announce(index, searching);
            let over = self.done.load(Ordering::Acquire) >= tasks;
            if over || self.injected.load(Ordering::Acquire) > 0 {
                if !self.idle.retract(index) {
                    self.parkers[index].park();
                }
            } else {
                self.parkers[index].park();
            }
            searching = true;
        }
        if searching {
            let _ = self.idle.stop_searching();
        }
    }
}

#[test]
fn a_task_from_outside_is_never_slept_through() {
    loom::model(|| {
        let model = Model::new(1);
        let worker = {
            let model = model.clone();
            thread::spawn(move || model.work(0, 1))
        };
        model.inject();
        worker.join().unwrap();
    });
}

#[test]
fn two_tasks_from_outside_meet_one_worker() {
    loom::model(|| {
        let model = Model::new(1);
        let worker = {
            let model = model.clone();
            thread::spawn(move || model.work(0, 2))
        };
        model.inject();
        model.inject();
        worker.join().unwrap();
    });
}

#[test]
fn the_last_searcher_answers_for_what_others_left_to_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(|| {
        let model = Model::new(2);
        let workers: Vec<_> = (0..2)
            .map(|index| {
                let model = model.clone();
                thread::spawn(move || model.work(index, 2))
            })
            .collect();
        model.inject();
        model.inject();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(model.idle.relaxed().searching(), 0);
        assert_eq!(model.idle.relaxed().parked(), 0);
    });
}

#[test]
fn a_token_is_never_lost() {
    loom::model(|| {
        let parker = Arc::new(Parker::new());
        let flag = Arc::new(AtomicUsize::new(0));
        let other = {
            let (parker, flag) = (parker.clone(), flag.clone());
            thread::spawn(move || {
                flag.store(1, Ordering::Relaxed);
                parker.unpark();
            })
        };
        parker.attach();
        parker.park();
        assert_eq!(flag.load(Ordering::Relaxed), 1, "the token orders");
        other.join().unwrap();
    });
}
