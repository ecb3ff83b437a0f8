//! The goals of the project, and whether a run meets them.
//!
//! All compare within one run: ours on our runtime with the best of what else took part, or with another cell of ours.

use crate::memory::Memory;
use crate::micro;
use crate::ours;
use crate::payload::{KiB, KiB4, Payload};
use crate::plan::Unit;
use crate::results::{CellResult, GroupResult};
use crate::work::Cell;

/// What is asked for, as a row of the table of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The funnel, against the best.
    Funnel,
    /// The funnel at capacity 1, against the best on a general runtime, and against nexosim's.
    FunnelOfOne,
    /// Everything else on runtimes, against the best.
    Workloads,
    /// tokio.
    Tokio,
    /// Reservation.
    Permits,
    /// More workers.
    Workers,
    /// A long line.
    Backpressure,
    /// The cheapest operations.
    Operations,
    /// Large messages.
    Large,
    /// As a guest.
    OnTokio,
    /// The runtime alone.
    Runtime,
    /// Memory.
    Memory,
}

impl Row {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 12] = [
        Self::Funnel,
        Self::FunnelOfOne,
        Self::Workloads,
        Self::Tokio,
        Self::Permits,
        Self::Workers,
        Self::Backpressure,
        Self::Operations,
        Self::Large,
        Self::OnTokio,
        Self::Runtime,
        Self::Memory,
    ];

    /// What is asked for, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Funnel => "funnel at capacity 10 and above: 1.5 × the best of all pairs",
            Self::FunnelOfOne => {
                "funnel at capacity 1: 1.5 × the best pair on a general runtime, 1.1 × nexosim's"
            }
            Self::Workloads => "pinball, tasks, mpmc: 1.3 × the best of all pairs",
            Self::Tokio => "tokio on tokio: 4 × in the funnel (3 × at capacity 1), 3 × elsewhere",
            Self::Permits => "reservation: 2 × the better of tokio and asyncband",
            Self::Workers => "more workers on one channel: 0.95 × one worker",
            Self::Backpressure => "1,000 blocked producers: a message costs 1.2 × that of 1",
            Self::Operations => "blocked send, try_send and try_recv: 0.8 × the time of the best",
            Self::Large => "1 KiB and 4 KiB: 1.3 × thingbuf in place, and 1.3 × the best by value",
            Self::OnTokio => "our channel on tokio: the best peer on tokio",
            Self::Runtime => "the runtime alone: 1.3 × tokio",
            Self::Memory => {
                "memory: 256 bytes and 1 allocation at capacity 1; 4 KiB for 10,000 × 1 KiB; a blocked send allocates nothing"
            }
        }
    }
}

/// One goal of one cell.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The row it belongs to.
    pub row: Row,
    /// The cell.
    pub cell: String,
    /// What ours is compared with, in words.
    pub against: &'static str,
    /// Ours, as it is shown.
    pub ours: f64,
    /// The other, as it is shown.
    pub other: f64,
    /// Who the other is.
    pub other_name: String,
    /// Whether less is better.
    pub less: bool,
    /// The ratio that is asked for: how much better ours is.
    pub asked: f64,
}

impl Goal {
    /// How much better ours is than the other.
    pub fn ratio(&self) -> f64 {
        let ratio = if self.less {
            self.other / self.ours
        } else {
            self.ours / self.other
        };
        // Nothing to pay is better than any ratio.
        ratio.min(1e6)
    }

    /// Whether the goal is met.
    pub fn met(&self) -> bool {
        self.ratio() >= self.asked || self.ours == self.other && self.asked <= 1.0
    }
}

/// The goals of a run, without those whose cells it did not measure.
pub fn goals(results: &[GroupResult], memory: Option<&Memory>) -> Vec<Goal> {
    let mut goals = Goals(Vec::new());
    for group in results {
        match group.group.suite {
            "funnel" => goals.funnel(group),
            "pinball" | "tasks" | "mpmc" => goals.workload(group),
            "backpressure" => goals.tokio(group, 3.0),
            "micro" => goals.micro(group),
            "runtime" => goals.runtime(group),
            _ => {}
        }
    }
    goals.backpressure(results);
    if let Some(memory) = memory {
        goals.memory(memory);
    }
    goals.0
}

/// Whether it runs on a runtime for programs: nexosim's has no timers and no I/O, and runs only until nothing can go
/// on.
fn is_general(cell: &Cell) -> bool {
    cell.is_peer() && cell.runtime != "nexosim"
}

struct Goals(Vec<Goal>);

impl Goals {
    /// Adds a goal where both were measured.
    fn compare(
        &mut self,
        row: Row,
        group: &GroupResult,
        (ours, other): (Option<&CellResult>, Option<&CellResult>),
        against: &'static str,
        asked: f64,
    ) {
        let (Some(ours), Some(other)) = (ours, other) else {
            return;
        };
        let unit = group.group.unit;
        self.0.push(Goal {
            row,
            cell: group.name(),
            against,
            ours: unit.figure(ours.rate()),
            other: unit.figure(other.rate()),
            other_name: other.cell.name(),
            less: unit == Unit::Nanos,
            asked,
        });
    }

    fn funnel(&mut self, group: &GroupResult) {
        let ours = group.ours();
        let one = group.group.column == "cap 1";
        if one {
            let general = (ours, group.best(is_general));
            self.compare(
                Row::FunnelOfOne,
                group,
                general,
                "the best pair on a general runtime",
                1.5,
            );
            let nexosim = group.best(|cell| cell.is_peer() && cell.runtime == "nexosim");
            self.compare(
                Row::FunnelOfOne,
                group,
                (ours, nexosim),
                "the best pair on nexosim",
                1.1,
            );
        } else {
            let best = (ours, group.best_other());
            self.compare(Row::Funnel, group, best, "the best of all pairs", 1.5);
        }
        self.tokio(group, if one { 3.0 } else { 4.0 });
        self.on_tokio(group);
    }

    fn workload(&mut self, group: &GroupResult) {
        let ours = group.ours();
        let best = (ours, group.best_other());
        self.compare(Row::Workloads, group, best, "the best of all pairs", 1.3);
        self.tokio(group, 3.0);
        self.on_tokio(group);
        if group.group.suite != "pinball" {
            self.workers(group);
        }
        if [KiB::NAME, KiB4::NAME].contains(&group.group.column.as_str()) {
            let by_value = |cell: &Cell| cell.is_peer() && !in_place(cell);
            let ours_by_value =
                group.best(|cell| cell.is_ours() && cell.is_at_home() && !in_place(cell));
            self.compare(
                Row::Large,
                group,
                (ours_by_value, group.best(by_value)),
                "the best by value",
                1.3,
            );
            let ours_in_place = group.best(|cell| cell.is_ours() && in_place(cell));
            let thingbuf = group.best(|cell| cell.is_peer() && in_place(cell));
            self.compare(
                Row::Large,
                group,
                (ours_in_place, thingbuf),
                "in place, the best in place",
                1.3,
            );
        }
    }

    fn tokio(&mut self, group: &GroupResult, asked: f64) {
        let both = (group.ours(), group.tokio());
        self.compare(Row::Tokio, group, both, "tokio on tokio", asked);
    }

    fn on_tokio(&mut self, group: &GroupResult) {
        let ours = group.best(|cell| cell.is_ours() && cell.runtime == "tokio");
        let peer = group.best(|cell| cell.is_peer() && cell.runtime == "tokio");
        self.compare(Row::OnTokio, group, (ours, peer), "the best on tokio", 1.0);
    }

    /// Ours with several workers against ours with one, whether compared with others or not.
    fn workers(&mut self, group: &GroupResult) {
        let mut channels: Vec<&str> = Vec::new();
        for cell in &group.cells {
            let home = cell.cell.is_ours() && cell.cell.runtime == ours::NAME;
            if home && !channels.contains(&cell.cell.channel) {
                channels.push(cell.cell.channel);
            }
        }
        for channel in channels {
            let with = |workers: usize| {
                group.cells.iter().find(|cell| {
                    let cell = &cell.cell;
                    (cell.channel, cell.runtime, cell.workers) == (channel, ours::NAME, workers)
                })
            };
            for (workers, against) in [(2, "2 workers, one worker"), (4, "4 workers, one worker")] {
                let both = (with(workers), with(1));
                self.compare(Row::Workers, group, both, against, 0.95);
            }
        }
    }

    fn micro(&mut self, group: &GroupResult) {
        let ours = group.ours();
        let operation = group.group.column.as_str();
        let with_permits = [
            micro::RESERVE,
            micro::TRY_RESERVE,
            micro::FULL,
            micro::DROPPED,
            micro::BLOCKED_RESERVE,
        ];
        if with_permits.contains(&operation) {
            let both = (ours, group.best_other());
            self.compare(Row::Permits, group, both, "the better of the two", 2.0);
        } else if [micro::TRY, micro::BLOCKED].contains(&operation) {
            let both = (ours, group.best_other());
            self.compare(Row::Operations, group, both, "the best peer", 1.25);
        }
    }

    fn runtime(&mut self, group: &GroupResult) {
        let both = (group.ours(), group.tokio());
        self.compare(Row::Runtime, group, both, "tokio", 1.3);
    }

    fn backpressure(&mut self, results: &[GroupResult]) {
        let group = |column: &str| {
            let mut groups = results.iter();
            groups.find(|group| group.group.suite == "backpressure" && group.group.column == column)
        };
        if let (Some(few), Some(many)) = (group("1→1"), group("1000→1")) {
            let both = (many.ours(), few.ours());
            let asked = 1.0 / 1.2;
            self.compare(Row::Backpressure, many, both, "one producer", asked);
        }
    }

    fn memory(&mut self, memory: &Memory) {
        let mut add = |cell: &str, ours: f64, limit: f64| {
            self.0.push(Goal {
                row: Row::Memory,
                cell: cell.into(),
                against: "the limit",
                ours,
                other: limit,
                other_name: String::new(),
                less: true,
                asked: 1.0,
            });
        };
        if let Some(footprint) = memory.of(ours::NAME, usize::NAME) {
            add("capacity 1, bytes", footprint.empty[0].bytes, 256.0);
            add(
                "capacity 1, allocations",
                footprint.empty[0].allocations,
                1.0,
            );
            if let Some(blocked) = footprint.blocked {
                add("a blocked send, allocations", blocked.allocations, 0.0);
            }
        }
        if let Some(footprint) = memory.of(ours::NAME, KiB::NAME) {
            add("10,000 × 1 KiB, bytes", footprint.empty[2].bytes, 4096.0);
        }
    }
}

/// Whether the channel's messages are built and read in its slots.
fn in_place(cell: &Cell) -> bool {
    cell.channel.ends_with(" ref") || cell.channel.ends_with(" in place")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Form;
    use crate::results::tests::invent;
    use crate::suite::SUITES;

    fn goal() -> Goal {
        Goal {
            row: Row::Funnel,
            cell: String::new(),
            against: "",
            ours: 40.0,
            other: 10.0,
            other_name: String::new(),
            less: false,
            asked: 4.0,
        }
    }

    #[test]
    fn a_goal_is_met_at_its_ratio() {
        let mut goal = goal();
        assert!(goal.met());
        goal.ours = 39.9;
        assert!(!goal.met());
    }

    #[test]
    fn of_times_less_is_better() {
        let goal = Goal {
            ours: 10.0,
            other: 40.0,
            less: true,
            ..goal()
        };
        assert!(goal.met());
    }

    #[test]
    fn nothing_is_not_more_than_nothing() {
        let goal = Goal {
            ours: 0.0,
            other: 0.0,
            less: true,
            asked: 1.0,
            ..goal()
        };
        assert!(goal.met());
    }

    #[test]
    fn a_full_run_has_goals_in_every_row() {
        let mut results = Vec::new();
        for suite in SUITES {
            results.extend(invent(&suite.plan(Form::Full, None, |_| true)));
        }
        let memory = crate::memory::measure(2, |name| name == ours::NAME);
        let goals = goals(&results, Some(&memory));
        for row in Row::ALL {
            assert!(goals.iter().any(|goal| goal.row == row), "{}", row.name());
        }
    }
}
