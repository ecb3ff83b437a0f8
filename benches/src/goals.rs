//! The goals of the project for this benchmark, and whether a run meets them.

use crate::results::{CellResult, GroupResult};

/// One goal of one group: ours on our runtime against something else of the same run.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The group.
    pub group: String,
    /// What ours is compared with, in words.
    pub against: &'static str,
    /// Ours, in messages per microsecond.
    pub ours: f64,
    /// The other, in messages per microsecond.
    pub other: f64,
    /// Who the other is.
    pub other_name: String,
    /// The ratio that is asked for.
    pub asked: f64,
}

impl Goal {
    /// The ratio that was measured.
    pub fn ratio(&self) -> f64 {
        self.ours / self.other
    }

    /// Whether the goal is met.
    pub fn met(&self) -> bool {
        self.ratio() >= self.asked
    }
}

/// The goals of a run, without those whose cells it did not measure.
pub fn goals(results: &[GroupResult]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for group in results {
        let one = group.shape.capacity == 1;
        // nexosim's executor is not a general one: it has no timers and no I/O, and runs only until nothing can go on.
        let general = |cell: &CellResult| !cell.is_ours() && cell.cell.pair.runtime != "nexosim";
        let best = if one {
            (
                "the best pair on tokio or async-executor",
                group.best(general),
                1.0,
            )
        } else {
            ("the best of all other pairs", group.best_other(), 1.0)
        };
        let tokio = ("tokio on tokio", group.tokio(), if one { 2.5 } else { 4.0 });
        for (against, other, asked) in [best, tokio] {
            if let (Some(ours), Some(other)) = (group.ours(), other) {
                goals.push(Goal {
                    group: group.name(),
                    against,
                    ours: ours.rate(),
                    other: other.rate(),
                    other_name: other.cell.name(),
                    asked,
                });
            }
        }
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_at_its_ratio() {
        let mut goal = Goal {
            group: String::new(),
            against: "",
            ours: 40.0,
            other: 10.0,
            other_name: String::new(),
            asked: 4.0,
        };
        assert!(goal.met());
        goal.ours = 39.9;
        assert!(!goal.met());
    }
}
