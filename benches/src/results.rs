//! What was measured, and the statistics on it.

use crate::plan::Group;
use crate::work::{Cell, Sample};

/// The measurements of one cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// What was measured.
    pub cell: Cell,
    /// How much work it was asked for: as much as its group says, or less where the cell is slow.
    pub work: usize,
    /// The sample of each round.
    pub samples: Vec<Sample>,
}

impl CellResult {
    /// Work per microsecond of each round, in ascending order.
    pub fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.samples.iter().map(Sample::rate).collect();
        rates.sort_by(f64::total_cmp);
        rates
    }

    /// The median of the rounds, in work per microsecond.
    pub fn rate(&self) -> f64 {
        median(&self.rates())
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
    /// The group as planned.
    pub group: Group,
    /// Its cells.
    pub cells: Vec<CellResult>,
}

impl GroupResult {
    /// Its name: the table and the column.
    pub fn name(&self) -> String {
        self.group.name()
    }

    /// Rounds that were run.
    pub fn rounds(&self) -> usize {
        let rounds = self.cells.iter().map(|cell| cell.samples.len());
        rounds.max().unwrap_or(0)
    }

    /// The fastest of the cells that `of` names, among those that are compared.
    pub fn best(&self, of: impl Fn(&Cell) -> bool) -> Option<&CellResult> {
        let cells = self.cells.iter().filter(|cell| of(&cell.cell));
        let cells = cells.filter(|cell| self.is_compared(&cell.cell));
        cells.max_by(|a, b| a.rate().total_cmp(&b.rate()))
    }

    /// Whether the cell's number of workers is one that others have, too, or the only one that it can have.
    pub fn is_compared(&self, cell: &Cell) -> bool {
        let compared = &self.group.compared;
        compared.is_empty() || compared.contains(&cell.workers) || !cell.is_ours()
    }

    /// Ours where it is at home, with the number of workers that is best.
    pub fn ours(&self) -> Option<&CellResult> {
        self.best(|cell| cell.is_ours() && cell.is_at_home())
    }

    /// The fastest of all peers.
    pub fn best_other(&self) -> Option<&CellResult> {
        self.best(Cell::is_peer)
    }

    /// tokio on tokio's multi-threaded runtime, with the number of workers that is best.
    pub fn tokio(&self) -> Option<&CellResult> {
        self.best(Cell::is_tokio)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::{Form, Plan};
    use crate::suite::FUNNEL;
    use std::time::Duration;

    /// Made-up results of the funnel.
    pub(crate) fn invented() -> Vec<GroupResult> {
        invent(&FUNNEL.plan(Form::Full, None, |_| true))
    }

    /// Made-up results: the n-th cell of a group takes n milliseconds and a bit.
    pub(crate) fn invent(plan: &Plan) -> Vec<GroupResult> {
        let sample = |index: usize, work| {
            move |extra| Sample {
                time: Duration::from_micros(1000 * (index as u64 + 1) + extra),
                work,
            }
        };
        let group = |group: &Group| GroupResult {
            group: group.clone(),
            cells: group
                .cells
                .iter()
                .enumerate()
                .map(|(index, cell)| CellResult {
                    cell: cell.clone(),
                    work: group.work,
                    samples: [2, 0, 1].map(sample(index, group.work)).into(),
                })
                .collect(),
        };
        plan.groups.iter().map(group).collect()
    }

    #[test]
    fn the_rate_is_the_median_of_the_rounds() {
        let cell = &invented()[0].cells[0];
        let expected = cell.work as f64 / 1001.0;
        assert!((cell.rate() - expected).abs() < 1e-6);
        assert_eq!(cell.rates().len(), 3);
        assert!(cell.rates().is_sorted());
    }

    #[test]
    fn the_best_is_the_fastest() {
        let group = &invented()[0];
        let best = group.best(|_| true).unwrap();
        assert_eq!(best.cell.name(), group.cells[0].cell.name());
        assert!(!group.best_other().unwrap().cell.is_ours());
    }
}
