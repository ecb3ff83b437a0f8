//! Counts the words of files and folders, and shows the most frequent ones.
//!
//! ```text
//! cargo run --release --example wordcount -- --top 20 PATH…
//! ```
//!
//! The program is a pipeline with backpressure. A slow stage makes the stages before it wait, so
//! the memory it needs depends on the number of different words, and not on the size of the input:
//!
//! ```text
//! walk ──► readers (threads) ══► parsers (tasks) ──► aggregator (task) ──► report
//!          read files in chunks   count words         adds up the counts
//!                               ▲                   ▲
//!                               bounded channels, one for each parser, and one for all counts
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `args` | the command line |
//! | `walk` | which files there are |
//! | `chunks` | reading a file in pieces that do not cut a word |
//! | `words` | what a word is, and counting |
//! | `pipeline` | the stages and the channels between them |
//! | `console` | warnings and progress on standard error |
//! | `report` | the result |

mod args;
mod chunks;
mod console;
mod pipeline;
mod report;
mod walk;
mod words;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use args::{Args, Request};
use console::Console;

/// Something could not be read or written.
const FAILED: u8 = 1;
/// The command line makes no sense.
const USAGE: u8 = 2;

/// The whole program: what it does with the arguments behind its name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let console = Console::new();
    match args::parse(args) {
        Ok(Request::Count(args)) => count(&args, &console),
        Ok(Request::Help) => print(&console, |out| out.write_all(args::HELP.as_bytes())),
        Err(error) => {
            console.warn(format_args!("{error}\nTry --help for more."));
            ExitCode::from(USAGE)
        }
    }
}

fn count(args: &Args, console: &Console) -> ExitCode {
    let summary = match pipeline::run(args, console) {
        Ok(summary) => summary,
        Err(error) => {
            console.warn(format_args!("cannot start the pipeline: {error}"));
            return ExitCode::from(FAILED);
        }
    };
    console.clear_progress();
    let printed = print(console, |out| {
        report::write_counts(out, &summary.counts, args.show)
    });
    console.note(format_args!("{}", report::Totals(&summary)));

    if summary.failed > 0 {
        ExitCode::from(FAILED)
    } else {
        printed
    }
}

/// Writes to standard output. A reader that has seen enough, such as `head`, is not an error.
fn print(console: &Console, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            console.warn(format_args!("cannot write the result: {error}"));
            ExitCode::from(FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}
