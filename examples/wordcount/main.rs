//! Counts the words of files and folders: see `lib.rs` beside this file, where the program is.
//!
//! ```text
//! cargo run --release --example wordcount -- --top 20 PATH…
//! ```

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    wordcount::run(env::args_os().skip(1))
}
