//! Waiting a moment before a thread is put to sleep.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often others are let run before a thread gives up. A `sched_yield` that finds nobody takes a third of a
/// microsecond, so this is some ten microseconds: what going to sleep and being woken costs.
const YIELDS: u32 = if cfg!(wakerun_loom) { 0 } else { 32 };
/// A yield that takes longer has gone to somebody who has nothing to do with this: the other side of a channel
/// runs full, or empty, long before.
const TOO_LONG: Duration = Duration::from_micros(500);
/// So many waits after a yield that took too long go without.
const SHUNNED: u32 = 256;

thread_local! {
    /// How many more waits of this thread go without yields.
    static SHUN: Cell<u32> = const { Cell::new(0) };
}

/// What is left of a blocking form's readiness to wait without going to sleep.
///
/// A thread that sleeps has to be woken by a system call of whoever brings what it waits for, and comes back
/// tens of microseconds later; in that time the other side has run full, or empty, and sleeps in turn. So it
/// first lets others run, which is right whether they are on the same core or on another one: where there
/// are more threads than cores, the one that it waits for gets this core.
///
/// It is wrong where other programs want the cores: whoever yields loses a time slice to them, while one that
/// sleeps comes first when it is woken. A yield that took long tells, and then there is none for a while.
///
/// ```
/// use wakerun::wake::Patience;
///
/// let mut patience = Patience::new();
/// assert!(!patience.wait(|| false), "it has an end");
/// assert!(!patience.wait(|| true), "and that is final");
/// ```
#[derive(Debug)]
pub struct Patience {
    left: u32,
}

impl Patience {
    /// All of it.
    #[must_use]
    pub const fn new() -> Self {
        Self { left: YIELDS }
    }

    /// Lets others run until `done`. `false`: the patience is at its end, and it is time to sleep.
    pub fn wait(&mut self, mut done: impl FnMut() -> bool) -> bool {
        if self.left == YIELDS && shuns() {
            self.left = 0;
        }
        let mut before = None;
        while self.left > 0 {
            self.left -= 1;
            let start = before.unwrap_or_else(Instant::now);
            std::thread::yield_now();
            let now = Instant::now();
            if now - start > TOO_LONG {
                SHUN.with(|shun| shun.set(SHUNNED));
                self.left = 0;
            }
            before = Some(now);
            if done() {
                return true;
            }
        }
        false
    }
}

/// Counts a wait that goes without yields, if this one does.
fn shuns() -> bool {
    SHUN.with(|shun| {
        let left = shun.get();
        shun.set(left.saturating_sub(1));
        left > 0
    })
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}
