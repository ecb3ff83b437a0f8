//! What a run measures: which cells, how much work, how many rounds, and for how long.

use std::time::Duration;

use crate::work::Cell;

/// The three forms of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The whole matrix, with enough rounds for criterion's estimates.
    Full,
    /// Every entrant on two workers: about a minute, and two for the funnel.
    Quick,
    /// Every entrant once, with little work: seconds. It checks, and measures nothing.
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

/// In what a group's figures are told. All are rates inside; a time is one over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Messages per microsecond: more is better.
    Rate,
    /// Nanoseconds each: less is better.
    Nanos,
}

impl Unit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Rate => "messages per microsecond",
            Unit::Nanos => "nanoseconds",
        }
    }

    /// What is shown for a rate.
    pub fn figure(self, rate: f64) -> f64 {
        match self {
            Unit::Rate => rate,
            Unit::Nanos => 1000.0 / rate,
        }
    }
}

/// The cells that do the same, and are measured in turn.
#[derive(Clone, Debug)]
pub struct Group {
    /// The benchmark it belongs to.
    pub suite: &'static str,
    /// The table that it stands in.
    pub block: String,
    /// Its column there.
    pub column: String,
    /// How much work every cell is asked for.
    pub work: usize,
    /// How its figures are told.
    pub unit: Unit,
    /// The numbers of workers that are compared with each other; cells with others are there for themselves.
    pub compared: Vec<usize>,
    /// The cells.
    pub cells: Vec<Cell>,
}

impl Group {
    /// Its name: the table and the column.
    pub fn name(&self) -> String {
        format!("{} {}", self.block, self.column)
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The benchmark's name.
    pub suite: &'static str,
    /// The form that the plan was made from.
    pub form: Form,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// Rounds of each group; each round runs each cell once.
    pub rounds: usize,
    /// A cell that would take longer than this does less work.
    pub slow: Duration,
    /// No group starts another round when its share of this is used up.
    pub budget: Option<Duration>,
}

impl Plan {
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
        let cells = self.groups.iter().map(|group| group.cells.len());
        self.rounds * cells.sum::<usize>()
    }

    /// Drops the cells that `wanted` turns down by their full name, and the groups that have none left.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        for group in &mut self.groups {
            let name = group.name();
            group
                .cells
                .retain(|cell| wanted(&format!("{name}/{}", cell.name())));
        }
        self.groups.retain(|group| !group.cells.is_empty());
    }
}
