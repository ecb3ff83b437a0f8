//! Models of the scheduler's handshakes: who sleeps, and who is told.

mod shutdown;

use loom::thread;

use super::idle::Idle;
use super::parker::Parker;
use super::phase::{Phase, Turns};
use super::remote::NextSlot;
use super::ring::{RING, Ring};
use super::{Hooks, Shared};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::task::header::Task;
use crate::task::{Id, cell};

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

/// A worker's queues, as it and thieves see them.
struct Queues {
    phase: Phase,
    next: NextSlot,
    stealer: super::ring::Stealer,
}

/// A worker's own ends, and what thieves see of it.
fn worker() -> (Ring, Turns, Arc<Queues>) {
    let ring = Ring::new();
    let queues = Queues {
        phase: Phase::new(),
        next: NextSlot::new(),
        stealer: ring.stealer(),
    };
    (ring, Turns::new(false), Arc::new(queues))
}

/// So many new tasks, of which the model has the queue entries.
fn tasks(count: usize) -> Vec<Task> {
    let (shared, _) = Shared::new(1, false, true, Hooks::default());
    let new = || {
        let future = std::future::pending::<()>();
        let header = cell::allocate(future, shared.clone(), Id::next(), None);
        // SAFETY: a new task counts three references, one of them for a queue entry.
        unsafe { Task::from_raw(header) }
    };
    (0..count).map(|_| new()).collect()
}

/// Checks that each task came once, and frees them.
fn each_came_once(mut came: Vec<Task>, count: usize) {
    assert_eq!(came.len(), count, "a task was lost, or came twice");
    came.sort_by_key(Task::as_ptr);
    came.dedup_by_key(|task| task.as_ptr());
    assert_eq!(came.len(), count, "another one came twice");
    for task in came {
        // Those of the handle and the list, which there are not.
        assert!(task.header().state.take_for_shutdown());
        task.shut_down();
        task.release_completed(2);
    }
}

/// Steals like a worker without work.
fn steal(from: &Queues, rescue: bool) -> Vec<Task> {
    let to = Ring::new();
    let mut got = Vec::new();
    if let Some(visit) = from.phase.visit() {
        from.stealer.steal(&to, |queued| queued - queued / 2);
        if rescue {
            got.extend(from.next.take(false));
        }
        drop(visit);
    }
    got.extend(std::iter::from_fn(|| to.pop(false)));
    got
}

/// The owner's end of a poll, and what it takes after it.
fn take_all(owner: &Ring, turns: &Turns, queues: &Queues) -> Vec<Task> {
    // In place of the exchange of a task's state; under loom it is no fence, which `end_by` makes.
    turns.end_by(&queues.phase, || ());
    take_after_poll(owner, turns, queues)
}

/// What the owner takes after a poll.
fn take_after_poll(owner: &Ring, turns: &Turns, queues: &Queues) -> Vec<Task> {
    let alone = || turns.alone(&queues.phase);
    let mut got: Vec<_> = queues.next.take(alone()).into_iter().collect();
    got.extend(std::iter::from_fn(|| owner.pop(alone())));
    got
}

#[test]
fn owner_and_thief_do_not_both_get_a_task() {
    for (rescue, exchange) in [(false, false), (true, false), (true, true)] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(move || {
            let (owner, turns, queues) = worker();
            let mut new = tasks(3);
            turns.begin(&queues.phase);
            let thief = {
                let queues = queues.clone();
                thread::spawn(move || steal(&queues, rescue))
            };
            assert!(queues.next.put(new.remove(0)).is_none());
            owner.extend(new.drain(..));
            let mut came = if exchange {
                turns.end(&queues.phase, false);
                take_after_poll(&owner, &turns, &queues)
            } else {
                take_all(&owner, &turns, &queues)
            };
            came.extend(thief.join().unwrap());
            each_came_once(came, 3);
        });
    }
}

#[test]
fn a_thief_that_stays_over_the_end_of_a_poll_meets_the_next_one() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let (owner, turns, queues) = worker();
        // The ring is full: what the owner pushes in the second poll overwrites slots of the first.
        let mut new = tasks(RING + 1);
        owner.extend(new.drain(..RING));
        turns.begin(&queues.phase);
        let thief = {
            let queues = queues.clone();
            thread::spawn(move || steal(&queues, false))
        };
        turns.end_by(&queues.phase, || ());
        let mut came = Vec::new();
        came.extend(owner.pop(turns.alone(&queues.phase)));
        turns.begin(&queues.phase);
        came.extend(new.drain(..).filter_map(|task| owner.push(task).err()));
        came.extend(take_all(&owner, &turns, &queues));
        came.extend(thief.join().unwrap());
        each_came_once(came, RING + 1);
    });
}

#[test]
fn a_ring_that_a_thief_fills_is_stolen_from_meanwhile() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let mut new = tasks(4);
        // One that is in a long poll all the time.
        let (busy, long, from) = worker();
        busy.extend(new.drain(..3));
        long.begin(&from.phase);
        // One that runs its only task, then steals, and runs what it got.
        let (thief, turns, own) = worker();
        thief.extend(new.drain(..));
        turns.begin(&own.phase);
        let other = {
            let own = own.clone();
            thread::spawn(move || steal(&own, false))
        };
        let mut came = take_all(&thief, &turns, &own);
        let visit = from.phase.visit().expect("it is in a poll");
        from.stealer.steal(&thief, |queued| queued - queued / 2);
        drop(visit);
        came.extend(thief.pop(false));
        turns.begin(&own.phase);
        came.extend(take_all(&thief, &turns, &own));
        came.extend(other.join().unwrap());
        came.extend(std::iter::from_fn(|| busy.pop(false)));
        each_came_once(came, 4);
    });
}

#[test]
fn a_full_ring_is_halved_beside_a_thief() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let (owner, turns, queues) = worker();
        owner.extend(tasks(RING).into_iter());
        turns.begin(&queues.phase);
        let thief = {
            let queues = queues.clone();
            thread::spawn(move || steal(&queues, false))
        };
        let mut came: Vec<_> = owner.halve().collect();
        came.extend(take_all(&owner, &turns, &queues));
        came.extend(thief.join().unwrap());
        each_came_once(came, RING);
    });
}

#[test]
fn a_thief_that_comes_while_foreign_code_runs_between_polls_is_met() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        let (owner, turns, queues) = worker();
        let mut new = tasks(3);
        owner.extend(new.drain(..2));
        turns.begin(&queues.phase);
        let thief = {
            let queues = queues.clone();
            thread::spawn(move || steal(&queues, true))
        };
        turns.end_by(&queues.phase, || ());
        // As `Worker::foreign` does; what is woken is queued.
        turns.begin(&queues.phase);
        assert!(queues.next.put(new.remove(0)).is_none());
        turns.end(&queues.phase, false);
        let alone = || turns.alone(&queues.phase);
        let mut came: Vec<_> = queues.next.take(alone()).into_iter().collect();
        came.extend(std::iter::from_fn(|| owner.pop(alone())));
        came.extend(thief.join().unwrap());
        each_came_once(came, 3);
    });
}
