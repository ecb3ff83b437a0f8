//! The measurement: rounds in which the cells of a group take turns, so that a machine that drifts treats them alike.

use std::time::{Duration, Instant};

use crate::plan::{Group, Plan};
use crate::progress::Progress;
use crate::results::{CellResult, GroupResult};
use crate::watchdog::Watchdog;
use crate::work::{Cell, Sample};

/// The calibrating run does this fraction of the work.
const CALIBRATION: usize = 32;
/// A slow cell does at least this fraction of the work.
const THINNEST: usize = 128;

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
    let calibrate = |cell: &Cell| CellResult {
        cell: cell.clone(),
        work: calibrated(group, cell, plan.slow, watchdog),
        samples: Vec::new(),
    };
    progress.calibrates(group);
    let mut cells: Vec<CellResult> = group.cells.iter().map(calibrate).collect();
    for round in 0..plan.rounds {
        let round_start = Instant::now();
        for index in order(cells.len(), round, plan.rounds) {
            let result = &mut cells[index];
            progress.runs(group, &result.cell, round);
            let sample = run(group, &result.cell, result.work, watchdog);
            result.samples.push(sample);
        }
        let next_would_end = Instant::now() + round_start.elapsed();
        if deadline.is_some_and(|deadline| next_would_end > deadline) {
            progress.skip(cells.len() * (plan.rounds - round - 1));
            break;
        }
    }
    GroupResult {
        group: group.clone(),
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

/// How much work a cell gets: as much as the group's, halved until it takes no longer than `slow`. A rate needs enough
/// work, not the same; the report says where there was less.
fn calibrated(group: &Group, cell: &Cell, slow: Duration, watchdog: &Watchdog) -> usize {
    let sample = run(group, cell, (group.work / CALIBRATION).max(1), watchdog);
    let each = sample.time.as_secs_f64() / sample.work as f64;
    let thinnest = (group.work / THINNEST).max(1);
    let mut work = group.work;
    while each * work as f64 > slow.as_secs_f64() && work / 2 >= thinnest {
        work /= 2;
    }
    work
}

/// Runs one cell, with its checks.
fn run(group: &Group, cell: &Cell, work: usize, watchdog: &Watchdog) -> Sample {
    let name = format!("{}/{}", group.name(), cell.name());
    let result = watchdog.watch(name.clone(), || (cell.run)(work));
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
