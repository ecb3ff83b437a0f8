//! The benchmarks: which groups each has, and how much work.

use std::sync::Arc;
use std::time::Duration;

use crate::entrant::{Carried, Pair, RuntimeEntrant};
use crate::funnel::{CHANNELS, Shape};
use crate::latency;
use crate::micro;
use crate::payload::{KiB, Payload};
use crate::peers;
use crate::pinball::{GRAPHS, Table};
use crate::plan::{Form, Group, Plan, Unit};
use crate::scheduling::Scheduling;
use crate::work::{Cell, HARNESS};

/// One benchmark, of those whose cells do work against the clock.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Its name, as in `cargo bench --bench NAME`.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    groups: fn(&Size) -> Vec<Group>,
    /// Seconds that the quick form may take.
    quick: u64,
}

/// All of them, in the order of the report.
pub const SUITES: [Suite; 8] = [
    FUNNEL,
    PINBALL,
    TASKS,
    MPMC,
    BACKPRESSURE,
    MICRO,
    RUNTIME,
    THREADS,
];

/// Many channels side by side.
pub const FUNNEL: Suite = Suite {
    name: "funnel",
    about: "61 channels side by side, 13 senders or one each, at five capacities",
    groups: funnel,
    quick: 150,
};

/// Balls that jump over the nodes of graphs.
pub const PINBALL: Suite = Suite {
    name: "pinball",
    about: "61 complete graphs of 13 nodes, over which 1, 7, 41 or 241 balls jump at random",
    groups: pinball,
    quick: 45,
};

/// One channel.
pub const TASKS: Suite = Suite {
    name: "tasks",
    about: "one channel, 4 producers to 1 consumer with payloads of all sizes, and the extremes of capacity",
    groups: tasks,
    quick: 60,
};

/// One channel with many receivers.
pub const MPMC: Suite = Suite {
    name: "mpmc",
    about: "one channel of capacity 64 with one or eight senders and receivers",
    groups: mpmc,
    quick: 45,
};

/// Senders that wait.
pub const BACKPRESSURE: Suite = Suite {
    name: "backpressure",
    about: "one channel of capacity 64: what a message costs while up to a thousand producers wait in line",
    groups: backpressure,
    quick: 45,
};

/// Operations one by one.
pub const MICRO: Suite = Suite {
    name: "micro",
    about: "the operations of a channel one by one, on one thread, without a runtime",
    groups: micros,
    quick: 50,
};

/// Runtimes alone.
pub const RUNTIME: Suite = Suite {
    name: "runtime",
    about: "runtimes alone: spawning, yielding, waking, spreading, timers",
    groups: runtime,
    quick: 45,
};

/// Plain threads.
pub const THREADS: Suite = Suite {
    name: "threads",
    about: "channels between plain threads, with the forms that block",
    groups: threads,
    quick: 45,
};

/// What a form asks for.
#[derive(Clone, Debug)]
struct Size {
    /// The numbers of workers that are compared.
    workers: Vec<usize>,
    form: Form,
    /// Work is divided by it.
    thin: usize,
}

impl Suite {
    /// How to call it.
    pub fn usage(&self) -> String {
        format!(
            "\
cargo bench --bench {} -- [full | quick | smoke] [FILTER] [options]

{}

  full                   the whole matrix and criterion's estimates (the default)
  quick                  every entrant on two workers: {}
  smoke, --test          every entrant once, with little work: checks, and measures nothing
  FILTER                 only cells whose name contains it, as \"cap 10/kanal on tokio\"

  --list                 names the cells and ends
  --rounds N             rounds of each cell; criterion joins in at ten
  --out DIR              where the results go as JSON (default: wakerun-bench in the target folder);
                         a relative DIR starts in benches/
  --save-baseline NAME   criterion keeps its samples under this name
  --baseline NAME        criterion compares with these samples
",
            self.name,
            self.about,
            if self.quick > 60 {
                "under three minutes"
            } else {
                "about a minute"
            }
        )
    }

    /// Its plan, without the cells that `wanted` turns down by their full name.
    pub fn plan(&self, form: Form, rounds: Option<usize>, wanted: impl Fn(&str) -> bool) -> Plan {
        let (workers, default_rounds, thin) = match form {
            Form::Full => (vec![1, 2, 4], 10, 1),
            Form::Quick => (vec![2], 5, 2),
            Form::Smoke => (vec![1, 2], 1, 200),
        };
        let groups = (self.groups)(&Size {
            workers,
            form,
            thin,
        });
        let mut plan = Plan {
            suite: self.name,
            form,
            groups,
            rounds: rounds.unwrap_or(default_rounds),
            slow: match form {
                Form::Full => Duration::from_millis(600),
                Form::Quick if self.quick > 60 => Duration::from_millis(300),
                Form::Quick => Duration::from_millis(80),
                Form::Smoke => Duration::from_millis(4),
            },
            budget: (form == Form::Quick).then_some(Duration::from_secs(self.quick)),
        };
        plan.keep(wanted);
        plan
    }
}

/// The cells of the pairs that take part, on each number of workers that they can have.
pub(crate) fn cells<F>(
    pairs: &[Pair],
    workers: &[usize],
    takes: impl Fn(&Pair) -> bool,
    run: F,
) -> Vec<Cell>
where
    F: Fn(&Pair, usize, usize) -> Result<crate::work::Sample, String>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let mut cells = Vec::new();
    for &pair in pairs.iter().filter(|pair| takes(pair)) {
        let several: Vec<usize> = workers
            .iter()
            .copied()
            .filter(|workers| pair.takes_workers(*workers))
            .collect();
        // A runtime for one thread takes part where others have two.
        let workers = if several.is_empty() { vec![1] } else { several };
        for workers in workers {
            let run = run.clone();
            cells.push(Cell {
                channel: pair.channel,
                runtime: pair.runtime,
                packages: pair.packages.into(),
                workers,
                run: Arc::new(move |work| run(&pair, work, workers)),
            });
        }
    }
    cells
}

/// A group of funnels, of one channel or many.
pub(crate) fn funnels(
    suite: &'static str,
    (block, column): (&str, &str),
    pairs: &[Pair],
    (shape, carried, work): (Shape, Carried, usize),
    workers: &[usize],
) -> Group {
    let mpmc = suite == MPMC.name;
    let takes = |pair: &Pair| {
        if mpmc {
            pair.takes_mpmc()
        } else {
            pair.takes(&shape, carried)
        }
    };
    Group {
        suite,
        block: block.into(),
        column: column.into(),
        work,
        unit: Unit::Rate,
        compared: workers.into(),
        cells: cells(pairs, workers, takes, move |pair, work, workers| {
            pair.funnel(shape.with_messages(work), carried, workers)
        }),
    }
}

impl Size {
    /// As many workers as are compared, and for us one and two, to see whether a second one hurts.
    fn with_one_worker(&self, group: &mut Group, pairs: &[Pair], of: (Shape, Carried, usize)) {
        if self.form != Form::Quick {
            return;
        }
        let ours: Vec<Pair> = pairs
            .iter()
            .filter(|pair| pair.runtime == crate::ours::NAME)
            .copied()
            .collect();
        let more = funnels(group.suite, ("", ""), &ours, of, &[1]);
        group.cells.extend(more.cells);
        // A runtime for one thread is compared although its number of workers is not.
        group.compared = self.workers.clone();
    }

    fn work(&self, full: usize) -> usize {
        (full / self.thin).max(1)
    }
}

fn funnel(size: &Size) -> Vec<Group> {
    let pairs = peers::pairs();
    let capacities: &[usize] = match size.form {
        Form::Smoke => &[1, 100],
        _ => &[1, 10, 100, 1000, 10_000],
    };
    let mut groups = Vec::new();
    for senders in [13, 1] {
        for &capacity in capacities {
            let shape = Shape {
                channels: CHANNELS,
                senders,
                receivers: 1,
                capacity,
                per_sender: 0,
            };
            // About a tenth of a second for the fastest pairs of 2026, four tenths and more for tokio's. In much less,
            // where the system puts a second worker counts for more than what is measured.
            let work = match capacity {
                ..10 => 8_000_000,
                10..100 => 16_000_000,
                _ => 24_000_000,
            };
            let names = (format!("funnel-{senders}"), format!("cap {capacity}"));
            groups.push(funnels(
                FUNNEL.name,
                (&names.0, &names.1),
                &pairs,
                (shape, Carried::Usize, size.work(work)),
                &size.workers,
            ));
        }
    }
    groups
}

fn pinball(size: &Size) -> Vec<Group> {
    let group = |balls: usize| {
        let table = Table {
            graphs: GRAPHS,
            balls,
            jumps: 0,
        };
        let takes = |pair: &Pair| {
            let many = Shape {
                channels: 1,
                senders: 2,
                receivers: 1,
                capacity: balls,
                per_sender: 1,
            };
            pair.takes(&many, Carried::Usize)
        };
        Group {
            suite: PINBALL.name,
            block: PINBALL.name.into(),
            column: format!("{balls} ball{}", if balls == 1 { "" } else { "s" }),
            work: size.work(6_000_000),
            unit: Unit::Rate,
            compared: size.workers.clone(),
            cells: cells(
                &peers::pairs(),
                &size.workers,
                takes,
                move |pair, work, workers| pair.pinball(table.with_messages(work), workers),
            ),
        }
    };
    [1, 7, 41, 241].map(group).into()
}

/// One channel with its senders and receivers.
fn one(senders: usize, receivers: usize, capacity: usize) -> Shape {
    Shape {
        channels: 1,
        senders,
        receivers,
        capacity,
        per_sender: 0,
    }
}

fn tasks(size: &Size) -> Vec<Group> {
    let pairs = peers::pairs();
    let mut groups = Vec::new();
    let mut add = |names, shape, carried, work| {
        let of = (shape, carried, size.work(work));
        let mut group = funnels(TASKS.name, names, &pairs, of, &size.workers);
        size.with_one_worker(&mut group, &pairs, of);
        groups.push(group);
    };
    for carried in Carried::ALL {
        let work = match carried {
            Carried::Usize | Carried::B16 => 2_000_000,
            Carried::B64 | Carried::B256 => 1_000_000,
            Carried::KiB | Carried::Boxed => 500_000,
            Carried::KiB4 => 200_000,
        };
        add(
            ("tasks 4→1 cap 64", carried.name()),
            one(4, 1, 64),
            carried,
            work,
        );
    }
    let usize = Carried::Usize;
    add(("tasks", "4→1 cap 1"), one(4, 1, 1), usize, 1_000_000);
    add(("tasks", "1→1 cap 1024"), one(1, 1, 1024), usize, 4_000_000);
    groups
}

fn mpmc(size: &Size) -> Vec<Group> {
    let pairs = peers::pairs();
    let group = |(senders, receivers)| {
        let of = (
            one(senders, receivers, 64),
            Carried::Usize,
            size.work(4_000_000),
        );
        let column = format!("{senders}→{receivers}");
        let names = ("mpmc cap 64", column.as_str());
        let mut group = funnels(MPMC.name, names, &pairs, of, &size.workers);
        size.with_one_worker(&mut group, &pairs, of);
        group
    };
    [(1, 1), (1, 8), (8, 1), (8, 8)].map(group).into()
}

fn backpressure(size: &Size) -> Vec<Group> {
    let pairs: Vec<Pair> = peers::pairs();
    let group = |producers: usize| {
        let many = one(producers.max(2), 1, 64);
        let takes = |pair: &Pair| pair.takes(&many, Carried::Usize);
        let shape = one(producers, 1, 64);
        Group {
            suite: BACKPRESSURE.name,
            block: "backpressure cap 64".into(),
            column: format!("{producers}→1"),
            // Every producer must come to wait in the line, again and again.
            work: size.work(2_000_000).max(producers * 4),
            unit: Unit::Nanos,
            compared: size.workers.clone(),
            cells: cells(&pairs, &size.workers, takes, move |pair, work, workers| {
                pair.funnel(shape.with_messages(work), Carried::Usize, workers)
            }),
        }
    };
    [1, 10, 50, 100, 1000].map(group).into()
}

fn micros(size: &Size) -> Vec<Group> {
    let mut groups = Vec::new();
    let entrants = peers::channels();
    for payload in [usize::NAME, KiB::NAME] {
        for operation in micro::OPERATIONS {
            let cell = |channel, packages, micro: &micro::Micro| {
                let run = micro.run;
                Cell {
                    channel,
                    runtime: "",
                    packages,
                    workers: 0,
                    run: Arc::new(run),
                }
            };
            let mut cells = Vec::new();
            for entrant in &entrants {
                let mut micros = entrant.micros.iter();
                if let Some(micro) =
                    micros.find(|micro| micro.operation == operation && micro.payload == payload)
                {
                    cells.push(cell(entrant.name, vec![entrant.package], micro));
                }
            }
            let alone = if payload == usize::NAME {
                micro::alone::<usize>()
            } else {
                micro::alone::<KiB>()
            };
            if alone.operation == operation {
                cells.push(cell(HARNESS, Vec::new(), &alone));
            }
            groups.push(Group {
                suite: MICRO.name,
                block: format!("micro {payload}"),
                column: operation.into(),
                work: size.work(2_000_000),
                unit: Unit::Nanos,
                compared: Vec::new(),
                cells,
            });
        }
    }
    groups
}

fn runtime(size: &Size) -> Vec<Group> {
    // Three runtimes only: there is time for one worker and for two.
    let workers = match size.form {
        Form::Full => vec![1, 2, 4],
        _ => vec![1, 2],
    };
    let group = |what: Scheduling| {
        let cell = |(entrant, workers): (RuntimeEntrant, usize)| Cell {
            channel: "",
            runtime: entrant.name,
            packages: vec![entrant.package],
            workers,
            run: Arc::new(move |work| (entrant.run)(what, work, workers)),
        };
        let (block, column) = what.name();
        let entrants = peers::runtimes().into_iter();
        Group {
            suite: RUNTIME.name,
            block: format!("runtime {block}"),
            column: column.into(),
            work: size.work(what.full()),
            unit: Unit::Nanos,
            compared: workers.clone(),
            cells: entrants
                .flat_map(|entrant| workers.iter().map(move |workers| (entrant, *workers)))
                .map(cell)
                .collect(),
        }
    };
    Scheduling::ALL.map(group).into()
}

fn threads(size: &Size) -> Vec<Group> {
    let group = |(senders, receivers, capacity)| {
        let shape = one(senders, receivers, capacity);
        let entrants = peers::threads().into_iter();
        let takes = entrants.filter(|entrant| receivers == 1 || !entrant.one_receiver);
        Group {
            suite: THREADS.name,
            block: THREADS.name.into(),
            column: format!("{senders}→{receivers} cap {capacity}"),
            work: size.work(if capacity == 1 { 400_000 } else { 2_000_000 }),
            unit: Unit::Rate,
            compared: Vec::new(),
            cells: takes
                .map(|entrant| Cell {
                    channel: entrant.name,
                    runtime: "",
                    packages: vec![entrant.package],
                    workers: 0,
                    run: Arc::new(move |work| (entrant.run)(shape.with_messages(work))),
                })
                .collect(),
        }
    };
    [(1, 1, 1), (1, 1, 64), (1, 1, 1024), (4, 1, 64), (4, 4, 64)]
        .map(group)
        .into()
}

/// The pairs whose latencies are compared, with how many workers.
pub fn latency_pairs(wanted: impl Fn(&str) -> bool) -> Vec<Pair> {
    let shape = one(latency::SENDERS, 1, latency::CAPACITY);
    let mut pairs = peers::pairs();
    pairs.retain(|pair| pair.takes(&shape, Carried::Usize) && pair.takes_workers(2));
    pairs.retain(|pair| wanted(&pair.name()));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_every_suite_has_work_for_every_cell() {
        for suite in SUITES {
            for form in [Form::Full, Form::Quick, Form::Smoke] {
                let plan = suite.plan(form, None, |_| true);
                assert!(!plan.groups.is_empty());
                assert!(plan.groups.iter().all(|group| group.work > 0));
                assert_eq!(plan.names().count() * plan.rounds, plan.runs());
            }
        }
    }

    #[test]
    fn no_cell_is_planned_twice() {
        for suite in SUITES {
            let plan = suite.plan(Form::Quick, None, |_| true);
            let mut names: Vec<_> = plan.names().collect();
            names.sort();
            let planned = names.len();
            names.dedup();
            assert_eq!(planned, names.len(), "{}", suite.name);
        }
    }

    #[test]
    fn a_filter_keeps_matching_cells_only() {
        let plan = FUNNEL.plan(Form::Full, None, |name| name.contains("cap 10/flume"));
        assert_eq!(plan.groups.len(), 2);
        assert!(plan.names().all(|name| name.contains("flume on tokio")));
    }

    #[test]
    fn a_channel_for_one_sender_gets_one() {
        let plan = FUNNEL.plan(Form::Quick, None, |name| name.contains("spsc"));
        assert!(plan.names().all(|name| name.starts_with("funnel-1 ")));
        assert!(!plan.groups.is_empty());
    }

    #[test]
    fn channels_for_one_receiver_stay_out_of_mpmc() {
        let plan = MPMC.plan(Form::Quick, None, |_| true);
        assert!(plan.names().all(|name| !name.contains("tachyonix")));
    }
}
