//! When a second worker is worth it: the price of a wake, and what the queued work is worth.
//!
//! Tasks that talk over one channel hand over a message every few hundred nanoseconds. Spread over
//! two cores they run slower than on one, since every hand-over then moves cache lines and, at the
//! end of each burst, wakes a sleeping thread. So work draws in another worker only when the queue
//! it stands in would take its owner longer than the wake costs.

use std::time::Duration;

/// What waking a sleeping worker costs, in nanoseconds: the system call, the switch, and the cache
/// lines that move. With 4 µs, talkers whose polls move a whole buffer at a time are still split
/// apart; by 20 µs they are not, and work that long is worth a core.
pub(crate) const WAKE_COST_NS: u64 = 20_000;

/// Wakes in a row have this time between them, unless the work is worth more than that.
pub(crate) const PAUSE: Duration = Duration::from_nanos(WAKES_A_PAUSE * WAKE_COST_NS);
const WAKES_A_PAUSE: u64 = 10;

/// The mean poll time of a worker that has not been measured since it last slept: long enough to
/// make any queue worth a wake.
pub(crate) const UNKNOWN_MEAN_NS: u32 = u32::MAX;

/// Whether `queued` tasks of `mean_ns` each are worth another worker.
#[inline]
pub(crate) fn worth_a_worker(queued: usize, mean_ns: u32) -> bool {
    is_worth(1, queued, mean_ns)
}

/// Whether such tasks take their worker longer than [`PAUSE`].
pub(crate) fn worth_many_wakes(queued: usize, mean_ns: u32) -> bool {
    is_worth(WAKES_A_PAUSE, queued, mean_ns)
}

#[inline]
fn is_worth(wakes: u64, queued: usize, mean_ns: u32) -> bool {
    queued as u64 * u64::from(mean_ns) >= wakes * WAKE_COST_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_work_is_worth_it_and_no_work_never_is() {
        assert!(worth_a_worker(1, UNKNOWN_MEAN_NS));
        assert!(!worth_a_worker(0, UNKNOWN_MEAN_NS));
        assert!(!worth_a_worker(5, 300));
        assert!(worth_a_worker(100, 300));
        assert!(worth_a_worker(256, UNKNOWN_MEAN_NS));
    }
}
