//! `cargo bench --bench timers`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::args::{self, Args};
use wakerun_benches::facts::Facts;
use wakerun_benches::plan::Form;
use wakerun_benches::timers::{self, USAGE};

fn main() -> ExitCode {
    args::main(USAGE, bench)
}

fn bench(args: &Args) -> ExitCode {
    let form = args.form.unwrap_or(Form::Full);
    let wanted = |name: &str| name.contains(&args.filter);
    if let Some(end) = args.without_run(&timers::names(wanted)) {
        return end;
    }
    let table = timers::measure(form, args.rounds, wanted);
    if form == Form::Smoke {
        println!("all timers were set and have ended; the smoke form measures nothing");
        return ExitCode::SUCCESS;
    }
    println!(
        "\n{}\n\n{table}",
        Facts::gather("cargo bench --bench timers").machine()
    );
    ExitCode::SUCCESS
}
