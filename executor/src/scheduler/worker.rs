//! One worker: its queues, and the loop that takes tasks out of them.

mod drive;
mod measure;
mod row;
mod sleep;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_utils::CachePadded;

use super::counted::CountedShared;
use super::hook::HookSlots;
use super::phase::{Phase, Turns};
use super::remote::Remote;
use super::ring::Ring;
use super::spread::Seen;
use super::worth::{PAUSE, worth_a_worker, worth_many_wakes};
use super::{Place, Shared, Tools};
use crate::context::{self, PollGuard};
use crate::driver::Wakes;
use crate::task::header::Task;
use crate::task::owned::Owner;
use crate::task::state::{End, Start};
use measure::Measure;
use row::Row;

/// Tasks that a worker takes from the injector at a time, at most.
const INJECTOR_BATCH: usize = 64;

/// The worker's side that only its own thread touches. What each poll needs comes first, in one cache line.
#[repr(C, align(64))]
pub(crate) struct Worker {
    shared: CountedShared,
    /// The own one of the runtime's.
    remote: Arc<CachePadded<Remote>>,
    ring: Ring,
    index: usize,
    row: Row,
    turns: Turns,
    /// It is time to look at what comes from outside, before the next task.
    look_outside: Cell<bool>,
    searching: Cell<bool>,
    measure: Measure,
    /// This worker's shelf in the list of tasks.
    owned: Owner,
    pub(crate) hooks: HookSlots,
    /// When this worker last woke another one.
    last_notify: Cell<Option<Instant>>,
    /// This worker's looks into the driver.
    looks: drive::Looks,
    random: Cell<u32>,
    /// What came of sharing out short queues.
    seen_spread: Seen,
    /// The other workers' poll counts at the watch's last look.
    seen: RefCell<Vec<u32>>,
    /// The own poll count when this worker was last woken, if that was outside the driver.
    woken_at: Cell<Option<u32>>,
    /// This worker has come out of the driver and has not seen to the watch since.
    left_driver: Cell<bool>,
    /// What the driver has brought; kept for its memory.
    wakes: Cell<Wakes>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, tools: Tools) -> Self {
        let workers = shared.remotes.len();
        Self {
            remote: Arc::clone(&shared.remotes[index]),
            shared: CountedShared::new(shared),
            index,
            ring: tools.ring,
            owned: tools.owned,
            turns: Turns::new(workers == 1),
            hooks: HookSlots::new(),
            row: Row::new(),
            look_outside: Cell::new(false),
            measure: Measure::new(),
            last_notify: Cell::new(None),
            looks: drive::Looks::default(),
            searching: Cell::new(false),
            seen_spread: Seen::default(),
            random: Cell::new((index as u32).wrapping_mul(0x9E37_79B9) | 1),
            seen: RefCell::new(vec![0; workers]),
            woken_at: Cell::new(None),
            left_driver: Cell::new(false),
            wakes: Cell::new(Wakes::default()),
        }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.shared.get()
    }

    /// A count of the runtime, for a new task.
    #[inline]
    pub(crate) fn count_shared(&self) -> Arc<Shared> {
        self.shared.count()
    }

    /// Takes a count of the runtime back, of a task that is gone.
    #[inline]
    pub(crate) fn keep_shared(&self, shared: Arc<Shared>) {
        self.shared.keep(shared);
    }

    #[inline]
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    // ---- putting tasks in

    /// Queues a task; from this worker's thread.
    #[inline]
    pub(crate) fn push(&self, task: Task, place: Place) {
        match place {
            Place::Next => self.push_next(task),
            Place::Tail => self.push_behind(task),
        }
    }

    /// Queues a task at [`Place::Next`].
    #[inline(always)]
    pub(crate) fn push_next(&self, task: Task) {
        // A task that comes from another worker has nothing in this one's caches. It waits its
        // turn, and with it what it talks to: senders on either side find their channel full,
        // stand in line, and are all woken here.
        let displaced = if task.header().is_at_home(self.index) {
            self.remote().next.put(task)
        } else {
            Some(task)
        };
        if let Some(task) = displaced {
            self.push_behind(task);
        } else {
            self.consider_notify(false);
        }
    }

    /// Queues a task at [`Place::Tail`].
    #[inline]
    fn push_behind(&self, task: Task) {
        self.push_ring(task);
        self.consider_notify(false);
    }

    /// Lists and queues a new task; its polls are unknown, so it always counts as worth a wake. Not after the
    /// worker has left its loop.
    pub(crate) fn take_on(&self, task: Task) {
        self.owned.insert(&task);
        self.push_ring(task);
        self.consider_notify(true);
    }

    /// Queues tasks as one batch: one store makes all visible, at most one worker is notified.
    pub(crate) fn push_batch(&self, tasks: impl ExactSizeIterator<Item = Task>) {
        if tasks.len() <= self.ring.spare() {
            // Only this thread fills the ring, so there is room for all; `extend` drops the rest.
            self.ring.extend(tasks);
        } else {
            tasks.for_each(|task| self.push_ring(task));
        }
        self.consider_notify(false);
    }

    #[inline]
    fn push_ring(&self, task: Task) {
        if let Err(task) = self.ring.push(task) {
            self.overflow(task);
        }
    }

    /// The ring is full: half of it and the new task go to the injector, where all find them.
    #[cold]
    fn overflow(&self, task: Task) {
        self.ring
            .halve()
            .for_each(|task| self.shared.inject_quietly(task));
        self.shared.inject_quietly(task);
        self.shared.notify_for_injected();
    }

    /// Draws in another worker if the queued work is worth it, or if nobody is on watch.
    #[inline]
    fn consider_notify(&self, worth_it: bool) {
        if self.shared.idle.relaxed().may_want_a_wake() {
            self.consider_sleepers(worth_it);
        }
    }

    #[cold]
    #[inline(never)]
    fn consider_sleepers(&self, worth_it: bool) {
        let idle = self.shared.idle.relaxed();
        if idle.parked() == 0 || idle.searching() > 0 {
            return;
        }
        if worth_it || !idle.watched() || self.worth_helping() {
            self.notify_one();
        }
    }

    /// Wakes a worker, if one sleeps. The system call is no part of the poll that makes it: if it were, tasks that
    /// have been split apart once would count as long, since each of their polls wakes the other worker, and
    /// would be worth the next wake.
    #[cold]
    fn notify_one(&self) {
        let before = Instant::now();
        self.last_notify.set(Some(before));
        self.shared.notify_one();
        self.measure.leave_out(before);
    }

    /// Whether this worker's ring holds work for two.
    fn worth_helping(&self) -> bool {
        let spread = &self.shared.spread;
        if spread.is_on() {
            if spread.has_core_beside(self.shared.awake()) {
                return self.ring.len() > 1;
            }
        } else if !spread.keeps_together() {
            return true;
        }
        let (queued, mean) = (self.ring.len(), self.remote().mean_ns());
        worth_a_worker(queued, mean) && (worth_many_wakes(queued, mean) || self.has_paused())
    }

    /// Whether this worker has woken none for its own work lately. Tasks that talk run slower when they are split up,
    /// so that what they do looks worth the next wake; what the owner has done within the pause need not be helped.
    fn has_paused(&self) -> bool {
        let soon = |last: Instant| last.elapsed() < PAUSE;
        !self.last_notify.get().is_some_and(soon)
    }

    // ---- taking tasks out

    /// The next task: of this worker's own queues, or one from outside when it is time to look there.
    fn next_task(&self) -> Option<Task> {
        if self.look_outside.take() {
            self.look_if_due();
            // A look is cheaper than a pop of an empty one.
            if !self.shared.injector.is_empty()
                && let Ok(task) = self.shared.injector.pop()
            {
                return Some(task);
            }
        }
        self.next_own(self.remote())
    }

    /// The next task of the own queues.
    #[inline(always)]
    fn next_own(&self, remote: &Remote) -> Option<Task> {
        if self.turns.alone(&remote.phase) {
            self.take_own(remote, true)
        } else {
            self.next_beside_others()
        }
    }

    /// [`next_own`](Self::next_own) where there is a thief; or the shutdown, which comes as one.
    #[cold]
    #[inline(never)]
    fn next_beside_others(&self) -> Option<Task> {
        if self.shared.is_shut_down() {
            return None;
        }
        self.take_own(self.remote(), false)
    }

    #[inline(always)]
    fn take_own(&self, remote: &Remote, alone: bool) -> Option<Task> {
        if let Some(task) = remote.next.take(alone) {
            if self.row.goes_on() {
                return Some(task);
            }
            self.push_ring(task);
        }
        self.row.begin();
        self.ring.pop(alone)
    }

    /// Takes a fair share out of the injector.
    fn take_injected(&self) -> Option<Task> {
        let injector = &self.shared.injector;
        let task = injector.pop().ok()?;
        let share = (injector.len() / self.shared.remotes.len())
            .min(INJECTOR_BATCH)
            .min(self.ring.spare());
        self.ring
            .extend((0..share).map_while(|_| injector.pop().ok()));
        Some(task)
    }

    /// Looks everywhere for work. Afterwards this worker is a searcher unless it found some.
    fn search(&self) -> Option<Task> {
        if !self.searching.replace(true) {
            self.shared.idle.start_searching();
        }
        // The search is no part of a poll.
        let before = Instant::now();
        self.pause_measure(before);
        let task = self.take_injected().or_else(|| self.steal())?;
        self.stop_searching();
        self.resume_measure(before, Instant::now());
        Some(task)
    }

    /// A searcher has found work; the last of them sees to what else there is, and that the sleepers
    /// do not all sleep without a limit while somebody runs whose pushes relied on a searcher.
    fn stop_searching(&self) {
        if !self.searching.replace(false) || !self.shared.idle.stop_searching() {
            return;
        }
        let idle = self.shared.idle.relaxed();
        // One that comes out of the driver alone needs a watcher, too: its poll may be long.
        let others_run = idle.parked() + 1 < self.shared.remotes.len();
        let watch_wanted = self.left_driver.take() || others_run;
        if !self.shared.injector.is_empty()
            || self.worth_helping()
            || (watch_wanted && !idle.watched())
        {
            self.notify_one();
        }
    }

    /// Steals half of somebody's ring, beginning anywhere.
    fn steal(&self) -> Option<Task> {
        let workers = self.shared.remotes.len();
        let start = self.random_below(workers);
        (0..workers)
            .map(|step| (start + step) % workers)
            .filter(|victim| *victim != self.index)
            .find_map(|victim| {
                let victim = &*self.shared.remotes[victim];
                let keep_together = self.shared.spread.keeps_together();
                let share = |queued: usize| {
                    if keep_together {
                        victim.share(queued)
                    } else {
                        queued - queued / 2
                    }
                };
                if victim.stealer.is_empty() {
                    return None;
                }
                let visit = victim.phase.visit()?;
                let stolen = victim.stealer.steal(&self.ring, share);
                drop(visit);
                if stolen == 0 {
                    return None;
                }
                // What is true of the victim's tasks is true of those taken from it; but if they talk to each other
                // and wander between the two, a mistake must not wander with them.
                let own = self.remote();
                own.set_mean_ns(own.mean_ns().min(victim.mean_ns()));
                self.ring.pop(false)
            })
    }

    fn random_below(&self, bound: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.random.set(x);
        x as usize % bound
    }

    // ---- running

    /// The loop of a worker thread, until shutdown.
    pub(crate) fn run(&self) {
        self.remote().parker.attach();
        while !self.shared.is_shut_down() {
            let own = self.next_task();
            if own.is_some() {
                // A worker that was notified counts as searching until it has found something.
                self.stop_searching();
            }
            if let Some(task) = own.or_else(|| self.search()) {
                self.run_from(task);
            } else if let Some(task) = self.park() {
                self.stop_searching();
                self.run_from(task);
            }
        }
        self.stop_searching();
    }

    /// Runs tasks on a current-thread runtime, if there are any, until it is time to look at the main future, too.
    pub(crate) fn run_some(&self) -> bool {
        let first = self.next_task().or_else(|| self.take_injected());
        let found = first.is_some();
        first.into_iter().for_each(|task| self.run_from(task));
        found
    }

    /// Runs a task, and then those of the own queues until they are empty, or it is time to look elsewhere.
    fn run_from(&self, first: Task) {
        let remote = self.remote();
        let mut task = first;
        loop {
            self.run_task(remote, task);
            if self.count_poll() {
                return;
            }
            // Not `next_own`: with the two ways apart, none of them looks twice whether there is a task.
            let next = if self.turns.alone(&remote.phase) {
                let Some(next) = self.take_own(remote, true) else {
                    return;
                };
                next
            } else {
                let Some(next) = self.next_beside_others() else {
                    return;
                };
                next
            };
            task = next;
        }
    }

    /// Turns a queue entry into a poll.
    #[inline(always)]
    fn run_task(&self, remote: &Remote, task: Task) {
        let header = task.header();
        let phase = &remote.phase;
        let over = match header.state.start() {
            Start::Stale => return,
            Start::Poll => {
                self.turns.begin(phase);
                let poll = PollGuard::new(Some(task.as_ptr()));
                if !header.is_at_home(self.index) && header.set_home(self.index) {
                    self.seen_spread.count_wanderer();
                }
                header.advance_epoch();
                // SAFETY: `start` made this thread the poller.
                let over = unsafe { (header.vtable.poll)(task.as_ptr()) };
                header.advance_epoch();
                drop(poll);
                over
            }
            Start::Cancel => {
                self.turns.begin(phase);
                let poll = PollGuard::new(Some(task.as_ptr()));
                // SAFETY: as above.
                unsafe { (header.vtable.cancel)(task.as_ptr()) };
                drop(poll);
                true
            }
        };
        // SAFETY: this thread is the poller until `finish` or the end below.
        unsafe { header.poll_over(over) };
        if over {
            // It may have asked before it came to its end.
            let _ = context::take_again();
            self.finish(phase, task);
        } else {
            let deferred = context::take_deferred();
            let end = if context::take_again() {
                // The word says already that the task is queued.
                self.turns.end(phase, !deferred.is_null());
                End::Requeue
            } else {
                self.turns.end_by(phase, || header.state.end_pending())
            };
            match end {
                End::Idle => {
                    // The reference is in the task's stock.
                    let _ = task.into_raw();
                }
                End::Requeue => self.push(task, Place::Tail),
            }
            if !deferred.is_null() {
                // Behind the fence that either end has made.
                self.hooks.run(deferred);
            }
        }
    }

    /// Runs foreign code between two polls, or inside one. It may take long, so thieves may come as in a poll.
    pub(crate) fn foreign<R>(&self, f: impl FnOnce() -> R) -> R {
        struct End<'a>(&'a Worker, bool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                let Self(worker, has_run_nothing) = *self;
                let phase = &worker.remote().phase;
                worker.turns.end(phase, false);
                if has_run_nothing {
                    // Nor has it now.
                    worker.woken_at.set(Some(phase.polls()));
                }
            }
        }
        let phase = &self.remote().phase;
        if phase.is_in_poll() {
            return f();
        }
        let _end = End(self, self.woken_at.get() == Some(phase.polls()));
        self.turns.begin(phase);
        f()
    }

    /// Does what a poll of the future in `block_on` has left to be done.
    pub(crate) fn end_main_poll(&self) {
        let deferred = context::take_deferred();
        if !deferred.is_null() {
            self.remote().phase.fence();
            self.hooks.run(deferred);
        }
    }

    /// Settles a task whose output is in place, and does what its last poll has left to be done.
    fn finish(&self, phase: &Phase, task: Task) {
        // Foreign code, as destructors are: the poll is not over before.
        task.settle(task.header().state.complete_on_worker());
        self.owned.remove(&task);
        let deferred = context::take_deferred();
        self.turns
            .end_perhaps_by(phase, !deferred.is_null(), || task.release_completed(1));
        if !deferred.is_null() {
            self.hooks.run(deferred);
        }
    }

    // ---- leaving

    /// Gives back everything in this worker's queues; the tasks' fate is the list's business.
    pub(crate) fn abandon_queues(&self) {
        self.hooks.clear();
        drop(self.remote().next.take(false));
        while let Some(task) = self.ring.pop(false) {
            drop(task);
        }
    }
}
