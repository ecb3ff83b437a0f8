//! `cargo bench --bench report`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::args::{self, Args};
use wakerun_benches::bench::save;
use wakerun_benches::facts::Facts;
use wakerun_benches::goals::goals;
use wakerun_benches::memory::{self, Counting};
use wakerun_benches::page::{self, Report};
use wakerun_benches::plan::Form;
use wakerun_benches::suite::{SUITES, latency_pairs};
use wakerun_benches::{chart, latency, report, rounds, table};

// It counts only while memory is measured; else it costs everybody a load and a branch.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "\
cargo bench --bench report -- [full | quick | smoke] [FILTER] [options]

Runs all benchmarks, or some of them, in one go, and makes one page of HTML with charts and tables of it. Prints the
goals, row by row.

  full                   everything, with ten rounds: some hours
  quick                  everything on two workers: some ten minutes (the default)
  smoke, --test          everything once, with little work: checks, and measures nothing
  FILTER                 only cells whose name contains it, as \"cap 10/kanal on tokio\"

  --only NAMES           these only, separated by commas: funnel, pinball, tasks, mpmc, backpressure, micro, runtime,
                         threads, latency, memory
  --list                 names the cells and ends
  --rounds N             rounds of each cell
  --out DIR              where report.html, report.json and the charts go (default: wakerun-bench in the target
                         folder); a relative DIR starts in benches/
";

fn main() -> ExitCode {
    args::main(USAGE, run)
}

fn run(args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Quick);
    let known = SUITES.iter().map(|suite| suite.name);
    let known: Vec<&str> = known.chain(["latency", "memory"]).collect();
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        eprintln!("there is no benchmark {unknown}, only {}", known.join(", "));
        return ExitCode::FAILURE;
    }
    let part = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let wanted = |name: &str| name.contains(&args.filter);
    let suites = SUITES.iter().filter(|suite| part(suite.name));
    let plans: Vec<_> = suites
        .map(|suite| suite.plan(form, args.rounds, wanted))
        .collect();
    let mut names: Vec<String> = plans.iter().flat_map(|plan| plan.names()).collect();
    if part("latency") {
        names.extend(
            latency_pairs(wanted)
                .iter()
                .map(|pair| format!("latency/{}", pair.name())),
        );
    }
    if part("memory") {
        names.push("memory".into());
    }
    if let Some(end) = args.without_run(&names) {
        return end;
    }

    // First, while nothing else has happened in this process.
    let many = if form == Form::Smoke {
        100
    } else {
        memory::MANY
    };
    let memory = part("memory").then(|| memory::measure(many, wanted));
    let mut results = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        eprintln!("{} ({} of {})", plan.suite, index + 1, plans.len());
        results.extend(rounds::measure(plan));
    }
    let latencies = if part("latency") {
        latency::measure(form, args.rounds, wanted)
    } else {
        Vec::new()
    };

    let facts = Facts::gather("cargo bench --bench report");
    let goals = goals(&results, memory.as_ref());
    let report = Report {
        form,
        facts,
        results,
        latencies,
        memory,
        goals,
    };
    match write(args, &report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("the report could not be saved: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the goals, and writes the page, the charts and the figures.
fn write(args: &Args, report: &Report) -> std::io::Result<()> {
    let Report { facts, results, .. } = report;
    let funnel: Vec<_> = results
        .iter()
        .filter(|group| group.group.suite == "funnel")
        .cloned()
        .collect();
    let bars = (!funnel.is_empty()).then(|| chart::bars(facts, &funnel));
    let charts = [
        ("ratios.svg", chart::ratios(facts, results)),
        ("capacities.svg", chart::capacities(facts, results)),
        ("latency.svg", chart::latencies(facts, &report.latencies)),
        ("funnel.svg", bars),
    ];
    let charts: Vec<(String, String)> = charts
        .into_iter()
        .filter_map(|(name, chart)| Some((name.to_string(), chart?)))
        .collect();
    let mut files = charts.clone();
    files.push(("report.html".into(), page::html(report, &charts)));
    files.push((
        "report.json".into(),
        report::json("report", report.form, facts, results, &report.goals),
    ));
    if report.form == Form::Smoke {
        println!("all results were right; the smoke form measures nothing, whatever its page says");
    } else {
        println!("{}", table::verdicts(&report.goals, true));
    }
    save(args.out.as_deref(), &files)
}
