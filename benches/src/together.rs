//! What the rule to keep talkers together brings: few tasks that talk over one channel, with the rule on and off.
//!
//! Such tasks have work for one worker. The rule has done its part when more workers make them no slower.

use std::time::Duration;

use crate::entrant::{Carried, Pair};
use crate::fanout::{self, FanOut, Load, TASKS};
use crate::funnel::Shape;
use crate::ours::{Apart, Mpsc, Wakerun};
use crate::peers::{Tokio, TokioMpsc};
use crate::plan::{Form, Plan};
use crate::results::GroupResult;
use crate::runtime::Runtime;
use crate::suite::funnels;
use crate::table::{markdown, spread};

/// How to call the benchmark `together`.
pub const USAGE: &str = "\
cargo bench --bench together -- [full | smoke] [FILTER] [options]

  full                   all cells (the default, also for quick): about half a minute
  smoke, --test          every cell once, with few messages: checks, and measures nothing
  FILTER                 only cells whose name contains it, as \"cap 64/wakerun on wakerun\"

  --list                 names the cells and ends
  --rounds N             rounds of each cell (default: 7)

Other options of the benchmark funnel are accepted, so that both can be called at once, and do nothing.
";

/// The numbers of workers that are compared.
const WORKERS: [usize; 3] = [1, 2, 4];

/// The columns for each number of workers: the runtime, and what stands over it.
const RUNTIMES: [(&str, &str); 3] = [
    (<Wakerun as Runtime>::NAME, "on"),
    (<Apart as Runtime>::NAME, "off"),
    (<Tokio as Runtime>::NAME, "tokio"),
];

/// Rounds where nobody asks for another number.
const ROUNDS: usize = 7;

/// Senders and capacity of each workload, and more messages than the fastest of 2026 send in a fifth of a second.
const WORKLOADS: [(usize, usize, usize); 3] =
    [(4, 64, 8_000_000), (4, 1, 4_000_000), (1, 1024, 16_000_000)];

/// The plan of the talkers, without the cells that `wanted` turns down by their full name.
pub fn plan(form: Form, rounds: Option<usize>, wanted: impl Fn(&str) -> bool) -> Plan {
    let (default_rounds, thin) = match form {
        Form::Smoke => (1, 1000),
        Form::Full | Form::Quick => (ROUNDS, 1),
    };
    let pairs = [
        Pair::of::<Mpsc, Wakerun>(),
        Pair::of::<Mpsc, Apart>(),
        Pair::of::<TokioMpsc, Tokio>(),
    ];
    let group = |(senders, capacity, messages)| {
        let shape = Shape {
            channels: 1,
            senders,
            receivers: 1,
            capacity,
            per_sender: 0,
        };
        let of = (shape, Carried::Usize, messages / thin);
        let block = format!("{senders} → 1,");
        let column = format!("cap {capacity}");
        funnels("together", (&block, &column), &pairs, of, &WORKERS)
    };
    let mut plan = Plan {
        suite: "together",
        form,
        groups: WORKLOADS.map(group).into(),
        rounds: rounds.unwrap_or(default_rounds),
        // Halved until it takes less, a run lasts a tenth to a fifth of a second.
        slow: Duration::from_millis(200),
        budget: None,
    };
    plan.keep(wanted);
    plan
}

/// The fan-out of a form.
pub fn load(form: Form) -> Load {
    match form {
        Form::Smoke => Load::new(1000, Duration::from_micros(20)),
        Form::Full | Form::Quick => Load::new(20_000, Duration::from_millis(2)),
    }
}

/// The table: a line for each workload and one for its ratios, and a line for the fan-out.
pub fn table(talkers: &[GroupResult], fan_out: &[FanOut], load: Load) -> String {
    let title = "msg/µs, median (least–most)".to_string();
    let mut lines = vec![line(title, |workers, column| {
        Some(format!("{} w{workers}", RUNTIMES[column].1))
    })];
    for group in talkers {
        let find = |workers: usize, column: usize| {
            let mut cells = group.cells.iter();
            cells.find(|cell| {
                cell.cell.workers == workers && cell.cell.runtime == RUNTIMES[column].0
            })
        };
        lines.push(line(group.name(), |workers, column| {
            Some(spread(&find(workers, column)?.rates()))
        }));
        lines.push(line("**÷ 1 worker**".into(), |workers, column| {
            let one = find(1, column).filter(|_| workers > 1)?;
            let several = find(workers, column)?;
            Some(format!("{:.2}", several.rate() / one.rate()))
        }));
    }
    if !fan_out.is_empty() {
        let name = format!("fan-out of {TASKS} × {:?}, in ms", load.task);
        lines.push(line(name, |workers, column| {
            let mut cells = fan_out.iter().filter(|_| workers == fanout::WORKERS);
            let cell = cells.find(|cell| cell.runtime == RUNTIMES[column].0)?;
            Some(spread(&cell.millis()))
        }));
    }
    markdown(&lines) + &cost(fan_out, load)
}

/// A line of the table: its name, and what `cell` says for each number of workers and each runtime.
fn line(name: String, cell: impl Fn(usize, usize) -> Option<String>) -> Vec<String> {
    let columns = WORKERS
        .iter()
        .flat_map(|&workers| (0..RUNTIMES.len()).map(move |column| (workers, column)));
    let cells = columns.map(|(workers, column)| cell(workers, column).unwrap_or_default());
    std::iter::once(name).chain(cells).collect()
}

/// What the rule costs the fan-out, in words.
fn cost(fan_out: &[FanOut], load: Load) -> String {
    let median = |(name, _): (&str, &str)| {
        let cell = fan_out.iter().find(|cell| cell.runtime == name)?;
        Some(cell.median())
    };
    let (Some(on), Some(off)) = (median(RUNTIMES[0]), median(RUNTIMES[1])) else {
        return String::new();
    };
    format!(
        "\nThe fan-out follows {} tiny polls; the rule costs it {:+.1} ms.\n",
        load.polls,
        on - off
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds;

    /// The lines of the table of a smoke run.
    fn lines(wanted: fn(&str) -> bool) -> Vec<Vec<String>> {
        let talkers = rounds::measure(&plan(Form::Smoke, None, wanted));
        let load = load(Form::Smoke);
        let mut fan_out = fanout::cells(wanted);
        fanout::measure(&mut fan_out, load, 1);
        let table = table(&talkers, &fan_out, load);
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().into()).collect();
        table.lines().map(cells).collect()
    }

    #[test]
    fn every_cell_of_every_workload_has_its_place() {
        let lines = lines(|_| true);
        let empty: Vec<usize> = lines[2..9]
            .iter()
            .map(|line| line[2..11].iter().filter(|cell| cell.is_empty()).count())
            .collect();
        assert_eq!(empty, [0, 3, 0, 3, 0, 3, 6], "{lines:?}");
        assert!(lines[10][0].contains("the rule costs it"), "{lines:?}");
    }

    #[test]
    fn a_filter_leaves_places_empty() {
        let lines = lines(|name| name.contains("cap 1/wakerun on wakerun w2"));
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines[2].iter().filter(|cell| !cell.is_empty()).count(), 2);
    }
}
