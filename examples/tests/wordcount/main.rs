//! Runs the `wordcount` program as a user does.

#[cfg(unix)]
mod counts;
mod inputs;
#[cfg(target_os = "linux")]
mod memory;
mod output;
#[path = "../support/program.rs"]
mod program;
mod support;

use std::process::Command;

fn wordcount() -> Command {
    program::example("wordcount")
}
