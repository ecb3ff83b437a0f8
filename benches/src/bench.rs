//! The `main` of the benchmarks: reads the command line, measures, hands the samples to criterion, shows and saves.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};

use crate::args::{self, Args};
use crate::facts::Facts;
use crate::goals;
use crate::plan::Form;
use crate::results::GroupResult;
use crate::suite::Suite;
use crate::{chart, report, rounds, table};

/// Criterion's smallest sample.
const SAMPLE: usize = 10;

/// Runs one suite as the command line asks for.
pub fn main(suite: Suite) -> ExitCode {
    args::main(&suite.usage(), |args| run(suite, args))
}

fn run(suite: Suite, args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Full);
    let plan = suite.plan(form, args.rounds, |name| name.contains(&args.filter));
    if let Some(end) = args.without_run(&plan.names().collect::<Vec<_>>()) {
        return end;
    }
    let results = rounds::measure(&plan);
    if form == Form::Smoke {
        println!(
            "all results were right in {} runs; the smoke form measures nothing",
            plan.runs()
        );
        return ExitCode::SUCCESS;
    }
    if results.iter().all(|group| group.rounds() >= SAMPLE) {
        estimate(args, &results);
    }
    let facts = Facts::gather(&format!("cargo bench --bench {}", suite.name));
    let goals = goals::goals(&results, None);
    println!("\n{}", table::spreads(&results));
    println!("{}\n", facts.machine());
    println!("{}", table::comparison(&results));
    if !goals.is_empty() {
        println!("{}", table::verdicts(&goals, false));
    }
    let json = report::json(suite.name, form, &facts, &results, &goals);
    let mut files = vec![(format!("{}.json", suite.name), json)];
    if suite.name == "funnel" {
        files.push(("funnel.svg".into(), chart::bars(&facts, &results)));
    }
    match save(args.out.as_deref(), &files) {
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
            let mut replay = cell.samples.iter().cycle();
            bench.bench_function(cell.cell.name(), |bencher| {
                bencher.iter_custom(|iterations| {
                    let sample = replay.next().expect("a cycle has no end");
                    sample.time.mul_f64(iterations as f64 / sample.work as f64)
                });
            });
        }
        bench.finish();
    }
}

/// Writes files into a folder, by default `wakerun-bench` in the target folder.
///
/// # Errors
///
/// Where that is not possible.
pub fn save(folder: Option<&Path>, files: &[(String, String)]) -> std::io::Result<()> {
    let folder = folder.map_or_else(default_folder, Path::to_path_buf);
    std::fs::create_dir_all(&folder)?;
    for (name, content) in files {
        std::fs::write(folder.join(name), content)?;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    println!("written: {} in {}", names.join(", "), folder.display());
    Ok(())
}

/// `wakerun-bench` in the target folder, where cargo put this program: `<target>/<profile>/deps/<program>`, or a
/// folder higher.
pub fn default_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let mut folders = program.ancestors().skip(1);
    let profile = folders.find(|folder| !folder.ends_with("deps"));
    let target = profile.and_then(Path::parent);
    target.unwrap_or(Path::new("target")).join("wakerun-bench")
}
