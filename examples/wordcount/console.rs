//! What the user sees on standard error: warnings, and the progress on a terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two reports of progress: fast enough to look alive, and nothing to a terminal.
const INTERVAL: Duration = Duration::from_millis(200);

/// Standard error. All threads may use it; a message does not get mixed with the progress.
///
/// Failing to write there is no reason to stop, and there is no place left to tell about it.
pub(crate) struct Console {
    progress: Mutex<Progress>,
}

struct Progress {
    /// When to report next; never if nobody looks.
    due: Option<Instant>,
    /// The length of the line that is shown.
    shown: usize,
}

impl Console {
    pub(crate) fn new() -> Self {
        let due = io::stderr()
            .is_terminal()
            .then(|| Instant::now() + INTERVAL);
        Console {
            progress: Mutex::new(Progress { due, shown: 0 }),
        }
    }

    /// A line that tells of a problem.
    pub(crate) fn warn(&self, message: fmt::Arguments<'_>) {
        self.note(format_args!("wordcount: {message}"));
    }

    /// A line.
    pub(crate) fn note(&self, line: fmt::Arguments<'_>) {
        self.with_progress(|progress, stderr| {
            progress.clear(stderr)?;
            writeln!(stderr, "{line}")
        });
    }

    /// Shows how far things are, if it is time for that.
    pub(crate) fn progress(&self, line: impl FnOnce() -> String) {
        self.with_progress(|progress, stderr| {
            let now = Instant::now();
            if progress.due.is_none_or(|due| now < due) {
                return Ok(());
            }
            progress.due = Some(now + INTERVAL);
            progress.clear(stderr)?;
            let line = line();
            progress.shown = line.chars().count();
            write!(stderr, "{line}")?;
            stderr.flush()
        });
    }

    /// Takes the progress away, before something else is written to the terminal.
    pub(crate) fn clear_progress(&self) {
        self.with_progress(|progress, stderr| {
            progress.clear(stderr)?;
            stderr.flush()
        });
    }

    fn with_progress(
        &self,
        write: impl FnOnce(&mut Progress, &mut io::StderrLock<'static>) -> io::Result<()>,
    ) {
        // A panic elsewhere leaves at worst a line to clear.
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write(&mut progress, &mut io::stderr().lock());
    }
}

impl Progress {
    /// Overwrites the line with blanks: any terminal can do that.
    fn clear(&mut self, stderr: &mut impl Write) -> io::Result<()> {
        match std::mem::take(&mut self.shown) {
            0 => Ok(()),
            shown => write!(stderr, "\r{:shown$}\r", ""),
        }
    }
}
