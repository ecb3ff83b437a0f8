//! Who sleeps, who searches, who keeps watch: the protocol that loses no wake-up.
//!
//! One word counts parked and searching workers and tells whether a parked one keeps watch.
//!
//! **Work from outside** (injector) is never stranded. The one who brings it and the worker that
//! goes to sleep each publish, fence, then look:
//!
//! | bringer | sleeper |
//! |---|---|
//! | 1 push into the injector | 1 `announce`: parked + 1, searching − 1 |
//! | 2 fence(SeqCst) | 2 fence(SeqCst) |
//! | 3 read the word: a searcher? nobody parked? then done, else `notify_one` | 3 look at the injector: something there? then `retract` |
//!
//! By the fences at least one of the two sees the other. A bringer that saw a searcher relies on
//! it: a searcher that stops (with work in hand or not) goes through the same two steps, its
//! decrement in place of the announcement, and the last one to stop with work in hand looks at the
//! injector again and wakes one more.
//!
//! The model in `loom_tests.rs` checks this half.
//!
//! **Work on a worker's own queue** is run by that worker, which is awake, so the push needs no
//! fence. That nobody waits behind a long poll is the watch's business. While a worker runs and
//! another is parked, one of these is true:
//!
//! - a worker searches, and the pushes of the others rely on it;
//! - a parked worker keeps watch: it looks at the others every millisecond;
//! - just one worker runs, woken while all slept without a limit: its first push finds neither a
//!   searcher nor a watcher, and wakes somebody.
//!
//! A worker that parks takes the watch if there is none. A searcher that finds work is the only one
//! that can break this: the last one to stop, if another worker runs and nobody watches, wakes one
//! more, which searches and then watches.

use crate::lock::Lock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

const PARKED: u64 = 1;
const WATCHED: u64 = 1 << 20;
/// On top, so that one shift tells whether any searches.
const SEARCHING: u64 = 1 << 40;
const COUNT: u64 = (1 << 20) - 1;
const NOBODY: usize = usize::MAX;

/// A snapshot of the word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    pub(crate) fn searching(self) -> usize {
        (self.0 / SEARCHING) as usize
    }

    pub(crate) fn parked(self) -> usize {
        (self.0 & COUNT) as usize
    }

    /// A quick look: `false` if all workers run, or some sleep and another one searches, so that none is to be woken.
    #[inline]
    pub(crate) fn may_want_a_wake(self) -> bool {
        // A watcher is a sleeper, so the word is 0 without any of them.
        self.0.wrapping_sub(1) < SEARCHING
    }

    /// Whether a parked worker looks at the others every millisecond.
    pub(crate) fn watched(self) -> bool {
        self.0 & WATCHED != 0
    }
}

#[derive(Debug)]
pub(crate) struct Idle {
    word: AtomicU64,
    sleepers: Lock<Sleepers>,
    /// The parked worker that waits in the driver; a hint.
    in_driver: AtomicUsize,
    workers: usize,
}

#[derive(Debug)]
struct Sleepers {
    /// Parked workers, the last to park at the end: it is woken first, its caches are warmest.
    parked: Vec<usize>,
    /// The parked worker that keeps watch.
    watcher: Option<usize>,
}

/// What a worker that goes to sleep learns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    /// It is to keep watch, and must not sleep without a limit.
    pub(crate) watch: bool,
    /// All others sleep already.
    pub(crate) last: bool,
}

impl Idle {
    /// All `workers` run.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            word: AtomicU64::new(0),
            sleepers: Lock::new(Sleepers {
                parked: Vec::with_capacity(workers),
                watcher: None,
            }),
            in_driver: AtomicUsize::new(NOBODY),
            workers,
        }
    }

    /// Says whether this worker, which is parked, waits in the driver.
    pub(crate) fn note_in_driver(&self, worker: usize, is: bool) {
        // Relaxed: who reads a stale note wakes another sleeper than the best.
        let now = if is { worker } else { NOBODY };
        self.in_driver.store(now, Ordering::Relaxed);
    }

    /// A snapshot for decisions where a stale answer costs time only.
    #[inline]
    pub(crate) fn relaxed(&self) -> Snapshot {
        Snapshot(self.word.load(Ordering::Relaxed))
    }

    /// The bringer's steps 2 and 3: the parked worker to wake, if one must be; call it after the
    /// work is where a searcher finds it.
    #[must_use = "the worker sleeps on until its parker is told"]
    pub(crate) fn worker_to_notify(&self) -> Option<usize> {
        // Pairs with the fences in `announce` and `stop_searching`.
        fence(Ordering::SeqCst);
        let now = self.relaxed();
        if now.searching() > 0 || now.parked() == 0 {
            return None;
        }
        self.notify_one()
    }

    /// Takes a parked worker off the list and makes it a searcher. The caller unparks it.
    #[must_use = "the worker sleeps on until its parker is told"]
    pub(crate) fn notify_one(&self) -> Option<usize> {
        let mut sleepers = self.sleepers.lock();
        // Whoever waits in the driver would leave it, and whoever keeps watch leaves nobody to take
        // the driver's place: the one last but one, the other last.
        let in_driver = self.in_driver.load(Ordering::Relaxed);
        let watcher = sleepers.watcher;
        let parked = &sleepers.parked;
        let at = parked
            .iter()
            .rposition(|worker| Some(*worker) != watcher && *worker != in_driver)
            .or_else(|| parked.iter().rposition(|worker| Some(*worker) != watcher))
            .or_else(|| parked.len().checked_sub(1))?;
        let worker = sleepers.parked.remove(at);
        self.leave_list(&mut sleepers, worker);
        Some(worker)
    }

    /// The bookkeeping of a worker that is off the list: from parked to searching.
    fn leave_list(&self, sleepers: &mut Sleepers, worker: usize) {
        let mut change = SEARCHING.wrapping_sub(PARKED);
        if sleepers.watcher == Some(worker) {
            sleepers.watcher = None;
            change = change.wrapping_sub(WATCHED);
        }
        self.word.fetch_add(change, Ordering::SeqCst);
    }

    /// The sleeper's steps 1 and 2. The caller then looks at the injector once more, and parks or
    /// calls [`retract`](Self::retract).
    #[must_use = "whoever keeps watch must not sleep without a time limit"]
    pub(crate) fn announce(&self, worker: usize, was_searching: bool) -> Announced {
        let mut sleepers = self.sleepers.lock();
        sleepers.parked.push(worker);
        let mut change = PARKED;
        if was_searching {
            change = change.wrapping_sub(SEARCHING);
        }
        let last = sleepers.parked.len() == self.workers;
        let watch = sleepers.watcher.is_none() && !last;
        if watch {
            sleepers.watcher = Some(worker);
            change = change.wrapping_add(WATCHED);
        }
        self.word.fetch_add(change, Ordering::SeqCst);
        drop(sleepers);
        // Pairs with the fence in `worker_to_notify`.
        fence(Ordering::SeqCst);
        Announced { watch, last }
    }

    /// A parked worker goes back to searching by its own decision. `false`: somebody has notified
    /// it meanwhile (it is a searcher already), and a token is at its parker or about to be.
    #[must_use = "a token left at the parker would end the next sleep early"]
    pub(crate) fn retract(&self, worker: usize) -> bool {
        let mut sleepers = self.sleepers.lock();
        let Some(at) = sleepers.parked.iter().position(|parked| *parked == worker) else {
            return false;
        };
        sleepers.parked.remove(at);
        self.leave_list(&mut sleepers, worker);
        true
    }

    /// A worker that runs starts to search.
    pub(crate) fn start_searching(&self) {
        self.word.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// A searcher has work in hand. `true`: it was the last one, and has to look whether there is
    /// more for somebody else.
    #[must_use = "the last searcher answers for what others left to it"]
    pub(crate) fn stop_searching(&self) -> bool {
        let before = Snapshot(self.word.fetch_sub(SEARCHING, Ordering::SeqCst));
        // Pairs with the fence in `worker_to_notify`.
        fence(Ordering::SeqCst);
        before.searching() == 1
    }

    /// The watcher found that all are parked: whether it may sleep without a limit, too.
    pub(crate) fn stop_watching(&self, worker: usize) -> bool {
        let mut sleepers = self.sleepers.lock();
        if sleepers.watcher != Some(worker) || sleepers.parked.len() < self.workers {
            return false;
        }
        sleepers.watcher = None;
        self.word.fetch_sub(WATCHED, Ordering::SeqCst);
        true
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_watcher_is_woken_last() {
        let idle = Idle::new(4);
        assert!(idle.announce(0, false).watch, "others run: keep watch");
        assert!(!idle.announce(1, false).watch);
        assert!(!idle.announce(2, false).watch);
        assert_eq!(idle.notify_one(), Some(2));
        assert_eq!(idle.notify_one(), Some(1));
        assert!(idle.relaxed().watched());
        assert_eq!(idle.notify_one(), Some(0));
        assert!(!idle.relaxed().watched());
        assert_eq!(idle.notify_one(), None);
        assert_eq!(idle.relaxed().searching(), 3);
        assert_eq!(idle.relaxed().parked(), 0);
    }

    #[test]
    fn the_last_to_park_does_not_watch_an_idle_runtime() {
        let idle = Idle::new(2);
        assert!(idle.announce(1, false).watch);
        assert!(!idle.stop_watching(1), "worker 0 runs");
        assert!(!idle.announce(0, false).watch);
        assert!(idle.stop_watching(1));
        assert!(!idle.relaxed().watched());
    }

    #[test]
    fn a_lone_worker_has_nobody_to_watch() {
        let idle = Idle::new(1);
        assert!(!idle.announce(0, false).watch);
    }

    #[test]
    fn retract_after_notify_tells_so() {
        let idle = Idle::new(2);
        let _ = idle.announce(0, false);
        assert_eq!(idle.notify_one(), Some(0));
        assert!(!idle.retract(0));
        let _ = idle.announce(0, true);
        assert!(idle.retract(0));
        assert_eq!(idle.relaxed().searching(), 1);
        assert!(idle.stop_searching());
    }
}
