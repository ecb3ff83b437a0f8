//! Ends the process when a cell hangs, and says which.

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Far above what the slowest cell takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A thread that is told what runs. While a cell is measured it sleeps.
#[derive(Debug)]
pub struct Watchdog(Sender<Option<String>>);

impl Watchdog {
    /// Starts the thread.
    pub fn start() -> Self {
        let (sender, receiver) = mpsc::channel::<Option<String>>();
        std::thread::spawn(move || {
            while let Ok(told) = receiver.recv() {
                let Some(name) = told else { continue };
                if receiver.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                    eprintln!("\n{name} has not ended within {LIMIT:?}: aborting");
                    std::process::abort();
                }
            }
        });
        Self(sender)
    }

    /// Runs `work`, and aborts the process when it takes too long.
    pub fn watch<T>(&self, name: String, work: impl FnOnce() -> T) -> T {
        // The thread ends with the process, never before it.
        let _ = self.0.send(Some(name));
        let result = work();
        let _ = self.0.send(None);
        result
    }
}
