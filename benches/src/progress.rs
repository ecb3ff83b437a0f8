//! Says on stderr how far the run is.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::plan::{Group, Plan};
use crate::work::Cell;

/// Counts runs, and writes a line: over the last one on a terminal, else one a round.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    budget: Option<Duration>,
    rounds: usize,
    total: usize,
    done: usize,
    terminal: bool,
    last_round: Option<(String, usize)>,
}

impl Progress {
    /// The progress of a plan that starts now.
    pub fn start(plan: &Plan) -> Self {
        Self {
            start: Instant::now(),
            budget: plan.budget,
            rounds: plan.rounds,
            total: plan.runs(),
            done: 0,
            terminal: std::io::stderr().is_terminal(),
            last_round: None,
        }
    }

    /// A group is being calibrated.
    pub fn calibrates(&mut self, group: &Group) {
        if self.terminal {
            self.write(&format!(
                "{}: calibrating {} cells",
                group.name(),
                group.cells.len()
            ));
        }
    }

    /// A cell is about to run.
    pub fn runs(&mut self, group: &Group, cell: &Cell, round: usize) {
        let round_name = format!("{}, round {} of {}", group.name(), round + 1, self.rounds);
        if self.terminal {
            self.write(&format!("{round_name}: {}", cell.name()));
        } else if self.last_round.as_ref() != Some(&(group.name(), round)) {
            self.write(&round_name);
            self.last_round = Some((group.name(), round));
        }
        self.done += 1;
    }

    /// Runs that will not take place.
    pub fn skip(&mut self, runs: usize) {
        self.total -= runs;
    }

    /// The last line.
    pub fn end(&mut self) {
        self.write(&format!(
            "{} runs in {}",
            self.done,
            clock(self.start.elapsed())
        ));
        if self.terminal {
            eprintln!();
        }
    }

    fn write(&self, what: &str) {
        let left = self.left().map_or("?".into(), clock);
        let line = format!("[run {} of {}, {left} left] {what}", self.done, self.total);
        if self.terminal {
            eprint!("\r\x1b[K{line}");
        } else {
            eprintln!("{line}");
        }
    }

    /// The time left, if the rest is like what is done.
    fn left(&self) -> Option<Duration> {
        let elapsed = self.start.elapsed();
        let rest = (self.total - self.done) as f64 / self.done as f64;
        let left = (self.done > 0).then(|| elapsed.mul_f64(rest));
        let budget = self.budget.map(|budget| budget.saturating_sub(elapsed));
        left.into_iter().chain(budget).min()
    }
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
