//! `cargo bench --bench latency`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::args::{self, Args};
use wakerun_benches::bench::save;
use wakerun_benches::facts::Facts;
use wakerun_benches::plan::Form;
use wakerun_benches::suite::latency_pairs;
use wakerun_benches::{chart, latency, table};

const USAGE: &str = "\
cargo bench --bench latency -- [full | quick | smoke] [FILTER] [options]

How long a message takes from before its send until after its receive, in percentiles: under load, and from a thread
to a task that sleeps.

  full                   ten rounds (the default)
  quick                  five, with fewer messages: under a minute
  smoke, --test          every pair once: checks, and measures nothing
  FILTER                 only pairs whose name contains it, as \"kanal on tokio\"

  --list                 names the pairs and ends
  --rounds N             rounds of each pair
  --out DIR              where latency.svg goes
";

fn main() -> ExitCode {
    args::main(USAGE, run)
}

fn run(args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Full);
    let wanted = |name: &str| name.contains(&args.filter);
    let names: Vec<String> = latency_pairs(wanted)
        .iter()
        .map(|pair| pair.name())
        .collect();
    if let Some(end) = args.without_run(&names) {
        return end;
    }
    let results = latency::measure(form, args.rounds, wanted);
    if form == Form::Smoke {
        println!("all messages arrived; the smoke form measures nothing");
        return ExitCode::SUCCESS;
    }
    let facts = Facts::gather("cargo bench --bench latency");
    println!("\n{}", facts.machine());
    for (title, lines) in latency::tables(&results) {
        println!("\n{title}\n\n{}", table::markdown(&lines));
    }
    let chart = chart::latencies(&facts, &results).unwrap_or_default();
    match save(args.out.as_deref(), &[("latency.svg".into(), chart)]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("the chart could not be saved: {wrong}");
            ExitCode::FAILURE
        }
    }
}
