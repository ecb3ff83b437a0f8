//! What was measured, and the statistics on it.

use std::time::Duration;

use crate::funnel::Shape;
use crate::ours;
use crate::plan::{Cell, group_name};

/// The measurements of one cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// What was measured.
    pub cell: Cell,
    /// What it was asked for: its group's shape, or fewer messages where the cell is slow.
    pub shape: Shape,
    /// The time of each round.
    pub times: Vec<Duration>,
}

impl CellResult {
    /// Messages per microsecond of each round, in ascending order.
    pub fn rates(&self) -> Vec<f64> {
        let rate = |time: &Duration| self.shape.messages() as f64 / time.as_secs_f64() / 1e6;
        let mut rates: Vec<f64> = self.times.iter().map(rate).collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    /// The median of the rounds, in messages per microsecond.
    pub fn rate(&self) -> f64 {
        median(&self.rates())
    }

    /// Whether the channel is ours.
    pub fn is_ours(&self) -> bool {
        self.cell.pair.channel == ours::NAME
    }

    /// Whether this is the pair of that channel and that runtime.
    pub fn is_pair(&self, channel: &str, runtime: &str) -> bool {
        self.cell.pair.channel == channel && self.cell.pair.runtime == runtime
    }
}

/// The median of figures in ascending order.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let middle = figures.len() / 2;
    if figures.len() % 2 == 1 {
        figures[middle]
    } else {
        (figures[middle - 1] + figures[middle]) / 2.0
    }
}

/// The measurements of one group.
#[derive(Clone, Debug)]
pub struct GroupResult {
    /// The shape its cells were asked for.
    pub shape: Shape,
    /// Its cells.
    pub cells: Vec<CellResult>,
}

impl GroupResult {
    /// Its name: the workload and the capacity.
    pub fn name(&self) -> String {
        group_name(&self.shape)
    }

    /// Rounds that were run.
    pub fn rounds(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.times.len())
            .max()
            .unwrap_or(0)
    }

    /// The fastest of the cells that `of` names.
    pub fn best(&self, of: impl Fn(&CellResult) -> bool) -> Option<&CellResult> {
        let cells = self.cells.iter().filter(|cell| of(cell));
        cells.max_by(|a, b| a.rate().total_cmp(&b.rate()))
    }

    /// Ours on our runtime, with the number of workers that is best.
    pub fn ours(&self) -> Option<&CellResult> {
        self.best(|cell| cell.is_pair(ours::NAME, ours::NAME))
    }

    /// The fastest of all cells with a channel that is not ours.
    pub fn best_other(&self) -> Option<&CellResult> {
        self.best(|cell| !cell.is_ours())
    }

    /// tokio's channel on tokio's multi-threaded runtime, with the number of workers that is best.
    pub fn tokio(&self) -> Option<&CellResult> {
        self.best(|cell| cell.is_pair("tokio", "tokio"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::{Form, Plan};

    /// Made-up results: the n-th cell of a group takes n milliseconds and a bit.
    pub(crate) fn invented() -> Vec<GroupResult> {
        let invent = |(index, cell): (usize, &Cell), shape: Shape| CellResult {
            cell: *cell,
            shape,
            times: [2, 0, 1]
                .map(|extra| Duration::from_micros(1000 * (index as u64 + 1) + extra))
                .into(),
        };
        let plan = Plan::new(Form::Full, None, |_| true);
        let group = |group: &crate::plan::Group| GroupResult {
            shape: group.shape,
            cells: group
                .cells
                .iter()
                .enumerate()
                .map(|cell| invent(cell, group.shape))
                .collect(),
        };
        plan.groups.iter().map(group).collect()
    }

    #[test]
    fn the_rate_is_the_median_of_the_rounds() {
        let cell = &invented()[0].cells[0];
        let expected = cell.shape.messages() as f64 / 1001.0;
        assert!((cell.rate() - expected).abs() < 1e-6);
        assert_eq!(cell.rates().len(), 3);
        assert!(cell.rates().is_sorted());
    }

    #[test]
    fn the_best_is_the_fastest() {
        let group = &invented()[0];
        let best = group.best(|_| true).unwrap();
        assert_eq!(best.cell.name(), group.cells[0].cell.name());
        assert!(!group.best_other().unwrap().is_ours());
    }
}
