//! `cargo bench --bench together`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::args::{self, Args};
use wakerun_benches::facts::Facts;
use wakerun_benches::fanout::{self, FanOut};
use wakerun_benches::plan::Form;
use wakerun_benches::rounds;
use wakerun_benches::together::{self, USAGE};

fn main() -> ExitCode {
    args::main(USAGE, bench)
}

fn bench(args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Full);
    let wanted = |name: &str| name.contains(&args.filter);
    let plan = together::plan(form, args.rounds, wanted);
    let mut fan_out = fanout::cells(wanted);
    let names = plan.names().chain(fan_out.iter().map(FanOut::name));
    if let Some(end) = args.without_run(&names.collect::<Vec<_>>()) {
        return end;
    }

    let talkers = rounds::measure(&plan);
    let load = together::load(form);
    fanout::measure(&mut fan_out, load, plan.rounds);
    if form == Form::Smoke {
        println!(
            "all messages and results arrived in {} runs; the smoke form measures nothing",
            plan.runs() + plan.rounds * fan_out.len()
        );
        return ExitCode::SUCCESS;
    }
    println!(
        "\n{}\n",
        Facts::gather("cargo bench --bench together").machine()
    );
    println!("{}", together::table(&talkers, &fan_out, load));
    ExitCode::SUCCESS
}
