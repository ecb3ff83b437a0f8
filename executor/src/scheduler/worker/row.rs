//! How many polls out of the next slot follow each other before the ring gets its turn.
//!
//! Tasks that talk wake each other into the next slot, so that each finds in the cache what the one before has left
//! there. If the ring came after every few of them, all conversations of a worker would take turns at every message,
//! and each would find its own tasks and channels driven out of the fastest cache. So a conversation of short polls has
//! a turn as long as that of a task that always finds messages (`context.rs`): some ten microseconds. One of long polls
//! makes way after a few.

use std::cell::Cell;

/// Polls in a row however long they take: two tasks that talk are not torn apart at each message.
const FEW: u32 = 3;
/// Polls in a row at most.
const MANY: u32 = 256;
/// What a row takes, in nanoseconds, if its polls take as long as those measured last.
const TURN_NS: u32 = 10_000;

/// The worker's present row.
pub(super) struct Row {
    left: Cell<u32>,
    /// That of a whole row.
    length: Cell<u32>,
}

impl Row {
    pub(super) fn new() -> Self {
        Self {
            left: Cell::new(FEW),
            length: Cell::new(FEW),
        }
    }

    /// One more out of the next slot. `false`: it is the others' turn.
    #[inline(always)]
    pub(super) fn goes_on(&self) -> bool {
        let left = self.left.get();
        let goes_on = left > 0;
        if goes_on {
            self.left.set(left - 1);
        }
        goes_on
    }

    /// The others had their turn.
    #[inline(always)]
    pub(super) fn begin(&self) {
        self.left.set(self.length.get());
    }

    /// Polls take this long at present. A row that would be too long by that ends sooner.
    pub(super) fn measured(&self, mean_ns: u32) {
        let length = (TURN_NS / mean_ns.max(1)).clamp(FEW, MANY);
        self.length.set(length);
        self.left.set(self.left.get().min(length));
    }

    /// How long polls take is not known.
    pub(super) fn forget(&self) {
        self.measured(u32::MAX);
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;

    fn length(row: &Row) -> u32 {
        row.begin();
        (0..).take_while(|_| row.goes_on()).count() as u32
    }

    #[test]
    fn a_row_takes_ten_microseconds_but_has_three_polls_at_least_and_256_at_most() {
        let row = Row::new();
        assert_eq!(length(&row), 3, "nothing is known yet");
        for (mean_ns, polls) in [(0, 256), (1, 256), (100, 100), (2_000, 5), (9_000, 3)] {
            row.measured(mean_ns);
            assert_eq!(length(&row), polls, "of {mean_ns} ns");
        }
        row.measured(100);
        row.forget();
        assert_eq!(length(&row), 3, "nothing is known any more");
    }

    #[test]
    fn a_row_is_cut_short_when_polls_turn_out_long() {
        let row = Row::new();
        row.measured(100);
        row.begin();
        for _ in 0..32 {
            assert!(row.goes_on());
        }
        row.measured(1_000_000);
        for _ in 0..3 {
            assert!(row.goes_on());
        }
        assert!(!row.goes_on());
    }
}
