//! What differs between systems, in one place: how a descriptor is called and lent, and a few calls.
//!
//! A *source* is what the system can poll: a descriptor on Unix systems, a socket on Windows. Both
//! modules have the same names.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(any(unix, windows)))]
compile_error!("wakerun is for Unix systems, and for Windows");
