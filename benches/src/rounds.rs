//! The measurement: rounds in which the cells of a group take turns, so that a machine that drifts treats them alike.

use std::time::{Duration, Instant};

use crate::funnel::Shape;
use crate::plan::{Cell, Group, Plan};
use crate::progress::Progress;
use crate::results::{CellResult, GroupResult};
use crate::watchdog::Watchdog;

/// The calibrating run sends this fraction of the messages.
const CALIBRATION: usize = 8;
/// A slow cell sends at least this fraction of the messages.
const THINNEST: usize = 64;

/// Measures everything in the plan.
///
/// # Panics
///
/// When a cell loses, invents or mixes up messages.
pub fn measure(plan: &Plan) -> Vec<GroupResult> {
    let watchdog = Watchdog::start();
    let mut progress = Progress::start(plan);
    let start = Instant::now();
    let mut results = Vec::new();
    for (index, group) in plan.groups.iter().enumerate() {
        let share =
            |budget: Duration| start + budget * (index as u32 + 1) / plan.groups.len() as u32;
        let deadline = plan.budget.map(share);
        results.push(measure_group(
            plan,
            group,
            deadline,
            &watchdog,
            &mut progress,
        ));
    }
    progress.end();
    results
}

/// Runs the rounds of one group, all of them or as many as end before the deadline, and one at least.
fn measure_group(
    plan: &Plan,
    group: &Group,
    deadline: Option<Instant>,
    watchdog: &Watchdog,
    progress: &mut Progress,
) -> GroupResult {
    let calibrate = |&cell: &Cell| {
        let shape = calibrated(cell, group.shape, plan.slow, watchdog);
        CellResult {
            cell,
            shape,
            times: Vec::new(),
        }
    };
    progress.calibrates(group);
    let mut cells: Vec<CellResult> = group.cells.iter().map(calibrate).collect();
    for round in 0..plan.rounds {
        let round_start = Instant::now();
        for index in order(cells.len(), round, plan.rounds) {
            let result = &mut cells[index];
            progress.runs(group, &result.cell, round);
            result.times.push(run(result.cell, result.shape, watchdog));
        }
        let next_would_end = Instant::now() + round_start.elapsed();
        if deadline.is_some_and(|deadline| next_would_end > deadline) {
            progress.skip(cells.len() * (plan.rounds - round - 1));
            break;
        }
    }
    GroupResult {
        shape: group.shape,
        cells,
    }
}

/// The order of the cells in a round: each round starts elsewhere, every second one runs backwards.
pub(crate) fn order(cells: usize, round: usize, rounds: usize) -> impl Iterator<Item = usize> {
    let first = round * cells / rounds;
    (0..cells).map(move |step| {
        let step = if round.is_multiple_of(2) {
            step
        } else {
            cells - 1 - step
        };
        (first + step) % cells
    })
}

/// How many messages a cell gets: as many as the group's shape says, halved until it takes no longer than `slow`.
/// A rate needs enough messages, not the same; the report says where there were fewer.
fn calibrated(cell: Cell, shape: Shape, slow: Duration, watchdog: &Watchdog) -> Shape {
    let sample = Shape {
        per_sender: (shape.per_sender / CALIBRATION).max(1),
        ..shape
    };
    let time = run(cell, sample, watchdog);
    let expected = |per_sender: usize| time.mul_f64(per_sender as f64 / sample.per_sender as f64);
    let thinnest = (shape.per_sender / THINNEST).max(1);
    let mut per_sender = shape.per_sender;
    while expected(per_sender) > slow && per_sender / 2 >= thinnest {
        per_sender /= 2;
    }
    Shape {
        per_sender,
        ..shape
    }
}

/// Runs one funnel, with its checks.
fn run(cell: Cell, shape: Shape, watchdog: &Watchdog) -> Duration {
    let name = format!("{}/{}", crate::plan::group_name(&shape), cell.name());
    let result = watchdog.watch(name.clone(), || cell.pair.funnel(shape, cell.workers));
    result.unwrap_or_else(|wrong| panic!("{name}: {wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_runs_every_cell_once() {
        for round in 0..10 {
            let mut cells: Vec<_> = order(7, round, 10).collect();
            cells.sort();
            assert!(cells.into_iter().eq(0..7));
        }
    }

    #[test]
    fn rounds_start_at_different_cells() {
        let firsts = [0, 2, 4].map(|round| order(12, round, 6).next());
        assert_eq!(firsts, [Some(0), Some(4), Some(8)]);
    }
}
