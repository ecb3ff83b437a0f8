//! `cargo bench --bench memory`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::args::{self, Args};
use wakerun_benches::facts::Facts;
use wakerun_benches::goals;
use wakerun_benches::memory::{self, Counting};
use wakerun_benches::plan::Form;
use wakerun_benches::table;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "\
cargo bench --bench memory -- [full | quick | smoke] [FILTER]

What empty channels, waiting sends and tasks take of memory: bytes and allocations, counted.

  full       one, and 100,000 of each (the default)
  quick      the same
  smoke      one, and 100 of each
  FILTER     only channels and runtimes whose name contains it
";

fn main() -> ExitCode {
    args::main(USAGE, run)
}

fn run(args: &Args) -> ExitCode {
    let many = match args.form {
        Some(Form::Smoke) => 100,
        _ => memory::MANY,
    };
    assert!(memory::counts(), "this program counts its allocations");
    let memory = memory::measure(many, |name| name.contains(&args.filter));
    println!(
        "{}\n\n{}",
        Facts::gather("cargo bench --bench memory").machine(),
        memory.markdown()
    );
    println!(
        "{}",
        table::verdicts(&goals::goals(&[], Some(&memory)), false)
    );
    ExitCode::SUCCESS
}
