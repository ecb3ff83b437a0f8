//! Who waits in the driver, and whether a token finds them there.

use loom::thread;

use super::Poller;
use crate::lock::Lock;
use crate::scheduler::idle::Idle;
use crate::scheduler::parker::Parker;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

#[test]
fn a_token_finds_its_owner_on_either_bed() {
    loom::model(|| {
        let shared = Arc::new((Parker::new(), Poller::new(), AtomicUsize::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (parker, poller, given) = &*shared;
                for _ in 0..2 {
                    given.fetch_add(1, Ordering::AcqRel);
                    parker.unpark_or(|| poller.interrupt());
                }
            })
        };
        let (parker, poller, given) = &*shared;
        parker.attach();
        let mut in_driver = true;
        while given.load(Ordering::Acquire) < 2 {
            // An interruption without a token ends a sleep too early; that is no harm.
            if in_driver {
                parker.park_in(|| {
                    poller.wait();
                });
            } else {
                parker.park();
            }
            in_driver = !in_driver;
        }
        other.join().unwrap();
    });
}

/// Workers that sleep in the driver or out of it, as in `worker/sleep.rs` and `worker/drive.rs`, but
/// without the watch, which only ever adds to what is served.
struct Model {
    idle: Idle,
    parkers: Vec<Parker>,
    poller: Poller,
    driver: Lock<()>,
    in_use: AtomicBool,
    injected: AtomicUsize,
    served: AtomicUsize,
    goal: usize,
}

impl Model {
    fn new(workers: usize, in_use: bool, goal: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            poller: Poller::new(),
            driver: Lock::new(()),
            in_use: AtomicBool::new(in_use),
            injected: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            goal,
        })
    }

    fn unpark(&self, worker: usize) {
        self.parkers[worker].unpark_or(|| self.poller.interrupt());
    }

    /// A task from outside.
    fn inject(&self) {
        self.injected.fetch_add(1, Ordering::AcqRel);
        if let Some(worker) = self.idle.worker_to_notify() {
            self.unpark(worker);
        }
    }

    /// As `Driver::start` and `Shared::start_driver`.
    fn start_driver(&self) {
        self.in_use.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if let Some(worker) = self.idle.notify_one() {
            self.unpark(worker);
        }
    }

    fn is_over(&self) -> bool {
        self.served.load(Ordering::Acquire) >= self.goal
    }

    /// Some tasks have run; the one who runs the last lets the others go.
    fn serve(&self, tasks: usize) {
        if self.served.fetch_add(tasks, Ordering::AcqRel) + tasks >= self.goal {
            fence(Ordering::SeqCst);
            while let Some(worker) = self.idle.notify_one() {
                self.unpark(worker);
            }
        }
    }

    fn work(&self, index: usize) {
        let parker = &self.parkers[index];
        parker.attach();
        let mut searching = false;
        let mut may_drive = false;
        while !self.is_over() {
            if self.injected.swap(0, Ordering::AcqRel) > 0 {
                if std::mem::replace(&mut searching, false) {
                    let _ = self.idle.stop_searching();
                }
                self.serve(1);
                continue;
            }
            let announced = self
                .idle
                .announce(index, std::mem::replace(&mut searching, false));
            if self.injected.load(Ordering::Acquire) > 0 || self.is_over() {
                self.wake_up(index);
                searching = true;
                continue;
            }
            let mut hold = None;
            if self.in_use.load(Ordering::Acquire) && (announced.last || may_drive) {
                hold = self.driver.try_lock();
            }
            may_drive = hold.is_some();
            let events = self.sleep(index, &mut hold);
            searching = true;
            drop(hold);
            if events > 0 {
                self.serve(events);
            }
        }
        if searching {
            let _ = self.idle.stop_searching();
        }
    }

    /// Sleeps until a token or an event, and is off the list then.
    fn sleep(&self, index: usize, hold: &mut Option<crate::lock::LockGuard<'_, ()>>) -> usize {
        let parker = &self.parkers[index];
        if hold.is_none() {
            parker.park();
            return 0;
        }
        loop {
            let mut events = 0;
            let token = parker.park_in(|| events = self.poller.wait());
            if token {
                return events;
            }
            if events > 0 {
                self.wake_up(index);
                return events;
            }
        }
    }

    fn wake_up(&self, index: usize) {
        if !self.idle.retract(index) {
            self.parkers[index].park();
        }
    }
}

/// Some workers, and what the rest of the world does.
fn check(workers: usize, in_use: bool, goal: usize, world: fn(&Model)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let model = Model::new(workers, in_use, goal);
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let model = model.clone();
                thread::spawn(move || model.work(index))
            })
            .collect();
        world(&model);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(model.idle.relaxed().searching(), 0);
        assert_eq!(model.idle.relaxed().parked(), 0);
        assert!(model.driver.try_lock().is_some());
    });
}

#[test]
fn an_event_finds_somebody_in_the_driver() {
    check(2, true, 1, |model| model.poller.event());
}

#[test]
fn an_event_and_a_task_from_outside_are_both_served() {
    check(2, true, 2, |model| {
        model.poller.event();
        model.inject();
    });
}

#[test]
fn the_first_source_gets_a_worker_into_the_driver() {
    check(1, false, 1, |model| {
        model.start_driver();
        model.poller.event();
    });
}
