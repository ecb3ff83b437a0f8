//! Signals of the system: a program's notice that it is to end, for example.
//!
//! ```no_run
//! # async fn serve() {}
//! #[wakerun::main]
//! async fn main() -> std::io::Result<()> {
//!     let service = wakerun::spawn(serve());
//!     wakerun::signal::ctrl_c().await?;
//!     println!("ending");
//!     service.abort();
//!     Ok(())
//! }
//! ```

#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
mod windows;

use std::io;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// Waits for the user to press Ctrl-C (for `SIGINT`).
///
/// It is the one signal that there is on Windows, too; module `unix` is for the others.
///
/// From the first poll of this future, the process is not ended by that signal any more, for as long
/// as it lives: whoever waits once goes on to see to the end of the process.
///
/// # Errors
/// If the system refuses; outside a runtime; if the runtime has ended.
///
/// # Cancel safety
/// A signal that came while the future was there, and that it has not told, is lost with it. Hold a
/// `unix::Signal` to lose none.
pub async fn ctrl_c() -> io::Result<()> {
    match system::interrupts()?.recv().await {
        Some(()) => Ok(()),
        None => Err(io::Error::other(
            "the runtime that waits for signals has been shut down",
        )),
    }
}
