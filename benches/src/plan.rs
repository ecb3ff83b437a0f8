//! What a run measures: which cells, how many messages, how many rounds, and for how long.

use std::time::Duration;

use crate::funnel::{CHANNELS, Shape};
use crate::pairs::{self, Pair};

/// The three forms of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole matrix, with enough rounds for criterion's estimates: half an hour.
    Full,
    /// Every pair on two workers: under three minutes.
    Quick,
    /// Every pair once, with a few messages: seconds. It checks, and measures nothing.
    Smoke,
}

impl Form {
    /// Its name on the command line and in the report.
    pub fn name(self) -> &'static str {
        match self {
            Form::Full => "full",
            Form::Quick => "quick",
            Form::Smoke => "smoke",
        }
    }
}

/// One pair with one number of workers.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The channel and the runtime.
    pub pair: Pair,
    /// The runtime's workers.
    pub workers: usize,
}

impl Cell {
    /// Its name within the group.
    pub fn name(&self) -> String {
        format!("{} w{}", self.pair.name(), self.workers)
    }
}

/// The cells that share a shape, and are measured in turn.
#[derive(Clone, Debug)]
pub struct Group {
    /// The run that all cells are asked for.
    pub shape: Shape,
    /// The cells.
    pub cells: Vec<Cell>,
}

impl Group {
    /// Its name: the workload and the capacity.
    pub fn name(&self) -> String {
        group_name(&self.shape)
    }
}

/// The name of the group with this shape.
pub(crate) fn group_name(shape: &Shape) -> String {
    format!("funnel-{} cap {}", shape.senders, shape.capacity)
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The form that the plan was made from.
    pub form: Form,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// Rounds of each group; each round runs each cell once.
    pub rounds: usize,
    /// A cell that would take longer than this sends fewer messages.
    pub slow: Duration,
    /// No group starts another round when its share of this is used up.
    pub budget: Option<Duration>,
}

impl Plan {
    /// The plan of a form, without the cells that `wanted` turns down by their full name.
    pub fn new(form: Form, rounds: Option<usize>, wanted: impl Fn(&str) -> bool) -> Self {
        // Messages are divided by `thin`.
        let (capacities, workers, default_rounds, thin): (&[usize], &[usize], usize, usize) =
            match form {
                Form::Full => (&[1, 10, 100, 1000, 10_000], &[1, 2, 4], 10, 1),
                Form::Quick => (&[1, 10, 100, 1000, 10_000], &[2], 5, 2),
                Form::Smoke => (&[1, 100], &[1, 2], 1, 100),
            };
        let pairs = pairs::all();
        let mut groups = Vec::new();
        for senders in [13, 1] {
            for &capacity in capacities {
                let per_sender = messages(capacity) / thin / CHANNELS / senders;
                let shape = Shape {
                    channels: CHANNELS,
                    senders,
                    capacity,
                    per_sender,
                };
                let cells = cells(&pairs, senders, workers);
                groups.push(Group { shape, cells });
            }
        }
        keep(&mut groups, wanted);
        Self {
            form,
            groups,
            rounds: rounds.unwrap_or(default_rounds),
            slow: Duration::from_millis(600) / thin as u32,
            budget: (form == Form::Quick).then_some(Duration::from_secs(150)),
        }
    }

    /// Names every cell, in order.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let names = |group: &Group| {
            let of_cell = |cell: &Cell| format!("{}/{}", group.name(), cell.name());
            group.cells.iter().map(of_cell).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(names)
    }

    /// How often the plan runs a cell, without calibration.
    pub fn runs(&self) -> usize {
        self.rounds
            * self
                .groups
                .iter()
                .map(|group| group.cells.len())
                .sum::<usize>()
    }
}

/// Drops the cells that `wanted` turns down by their full name, and the groups that have none left.
pub(crate) fn keep(groups: &mut Vec<Group>, wanted: impl Fn(&str) -> bool) {
    for group in &mut *groups {
        let name = group.name();
        group
            .cells
            .retain(|cell| wanted(&format!("{name}/{}", cell.name())));
    }
    groups.retain(|group| !group.cells.is_empty());
}

/// Every one of the pairs that takes so many senders, on each number of workers.
pub(crate) fn cells(pairs: &[Pair], senders: usize, workers: &[usize]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &pair in pairs {
        for &workers in workers {
            if pair.supports(senders, workers) {
                cells.push(Cell { pair, workers });
            }
        }
    }
    cells
}

/// Messages of a full run: about a tenth of a second for the fastest pairs of 2026, four tenths for tokio's.
fn messages(capacity: usize) -> usize {
    match capacity {
        ..10 => 2_500_000,
        10..100 => 4_000_000,
        _ => 6_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_sends_something_from_every_sender() {
        for form in [Form::Full, Form::Quick, Form::Smoke] {
            let plan = Plan::new(form, None, |_| true);
            assert!(plan.groups.iter().all(|group| group.shape.per_sender > 0));
            assert_eq!(plan.names().count() * plan.rounds, plan.runs());
        }
    }

    #[test]
    fn a_filter_keeps_matching_cells_only() {
        let plan = Plan::new(Form::Full, None, |name| name.contains("cap 10/flume"));
        assert_eq!(plan.groups.len(), 2);
        assert!(plan.names().all(|name| name.contains("flume on tokio")));
    }

    #[test]
    fn a_channel_for_one_sender_gets_one() {
        let plan = Plan::new(Form::Quick, None, |name| name.contains("spsc"));
        assert!(plan.groups.iter().all(|group| group.shape.senders == 1));
        assert!(!plan.groups.is_empty());
    }
}
