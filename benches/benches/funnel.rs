//! `cargo bench --bench funnel`; see `-- --help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use wakerun_benches::args::{self, Args, USAGE};
use wakerun_benches::facts::Facts;
use wakerun_benches::goals::{Goal, goals};
use wakerun_benches::plan::{Form, Plan};
use wakerun_benches::results::GroupResult;
use wakerun_benches::{chart, report, rounds, table};

/// Criterion's smallest sample.
const SAMPLE: usize = 10;

fn main() -> ExitCode {
    args::main(USAGE, bench)
}

fn bench(args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Full);
    let plan = Plan::new(form, args.rounds, |name| name.contains(&args.filter));
    if let Some(end) = args.without_run(&plan.names().collect::<Vec<_>>()) {
        return end;
    }

    let results = rounds::measure(&plan);
    if form == Form::Smoke {
        println!(
            "all messages arrived in {} runs; the smoke form measures nothing",
            plan.runs()
        );
        return ExitCode::SUCCESS;
    }
    if results.iter().all(|group| group.rounds() >= SAMPLE) {
        estimate(args, &results);
    }
    let facts = Facts::gather();
    let goals = goals(&results);
    print(&facts, &results, &goals);
    match save(args, form, &facts, &results, &goals) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("the results could not be saved: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Hands criterion the samples of all rounds, for its estimates, outliers and comparisons.
///
/// Criterion by itself would measure one cell after the other, and what the machine does in the meantime would
/// look like a difference between them. An iteration is a message, so that runs of any size compare.
fn estimate(args: &Args, results: &[GroupResult]) {
    let mut criterion = Criterion::default().without_plots().nresamples(10_000);
    if let Some(name) = &args.save_baseline {
        criterion = criterion.save_baseline(name.clone());
    }
    if let Some(name) = &args.baseline {
        criterion = criterion.retain_baseline(name.clone(), true);
    }
    for group in results {
        let mut bench = criterion.benchmark_group(group.name());
        bench
            .sampling_mode(SamplingMode::Flat)
            .sample_size(group.rounds());
        // A replay takes no time, so neither does what criterion plans by the clock. Its warm-up is one call.
        bench
            .warm_up_time(Duration::from_nanos(1))
            .measurement_time(Duration::from_millis(10))
            .throughput(Throughput::Elements(1));
        for cell in &group.cells {
            // One call past the warm-up, the cycle still gives every sample once.
            let mut replay = cell.times.iter().cycle();
            let messages = cell.shape.messages() as f64;
            bench.bench_function(cell.cell.name(), |bencher| {
                bencher.iter_custom(|iterations| {
                    let time = replay.next().expect("a cycle has no end");
                    time.mul_f64(iterations as f64 / messages)
                });
            });
        }
        bench.finish();
    }
}

fn print(facts: &Facts, results: &[GroupResult], goals: &[Goal]) {
    println!("\n{}", table::spreads(results));
    println!("{}\n", facts.machine());
    println!("{}", table::comparison(results));
    if !goals.is_empty() {
        println!("{}", table::verdicts(goals));
    }
}

/// Writes `funnel.json` and `funnel.svg`.
fn save(
    args: &Args,
    form: Form,
    facts: &Facts,
    results: &[GroupResult],
    goals: &[Goal],
) -> std::io::Result<()> {
    let folder = args.out.clone().unwrap_or_else(default_folder);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("funnel.json"),
        report::json(form, facts, results, goals),
    )?;
    std::fs::write(folder.join("funnel.svg"), chart::svg(facts, results))?;
    println!(
        "written: funnel.json and funnel.svg in {}",
        folder.display()
    );
    Ok(())
}

/// `wakerun-bench` in the target folder, which is where cargo put this program: `<target>/<profile>/deps/<program>`.
fn default_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("target"));
    target.join("wakerun-bench")
}
