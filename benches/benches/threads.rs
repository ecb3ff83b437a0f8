//! `cargo bench --bench threads`; see `-- --help`.

use std::process::ExitCode;

use wakerun_benches::{bench, suite};

fn main() -> ExitCode {
    bench::main(suite::THREADS)
}
