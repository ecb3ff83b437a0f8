//! Waiting a moment before a thread is put to sleep.

/// How often others are let run before a thread gives up. A `sched_yield` that finds nobody takes a third of a
/// microsecond, so this is some ten microseconds: what going to sleep and being woken costs.
const YIELDS: u32 = if cfg!(wakerun_loom) { 0 } else { 32 };

/// What is left of a blocking form's readiness to wait without going to sleep.
///
/// A thread that sleeps has to be woken by a system call of whoever brings what it waits for, and comes back
/// tens of microseconds later; in that time the other side has run full, or empty, and sleeps in turn. So it
/// first lets others run, which is right whether they are on the same core or on another one: where there
/// are more threads than cores, the one that it waits for gets this core.
///
/// ```
/// use wakerun::wake::Patience;
///
/// let mut patience = Patience::new();
/// assert!(patience.wait(|| true));
/// assert!(!patience.wait(|| false), "it has an end");
/// assert!(!patience.wait(|| true));
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
        while self.left > 0 {
            self.left -= 1;
            std::thread::yield_now();
            if done() {
                return true;
            }
        }
        false
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}
