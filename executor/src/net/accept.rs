//! What a listener does when the system cannot give it a connection.
//!
//! An error such as "no descriptors left" is told to whoever accepts, and the connection stays in the
//! system's queue: the listener is still ready. A server that tells the error and accepts again would
//! burn a core until a descriptor is free. So after such an error the next accept waits for a moment.

use std::io;
use std::time::{Duration, Instant};

use super::nap::{Nap, nap};
use crate::lock::Lock;

/// How long an accept waits after an error that the next one would most likely meet again: long enough
/// to cost nothing, and short enough for those who wait to be let in.
const PAUSE: Duration = Duration::from_millis(50);

/// Until when there is nothing to accept with.
pub(super) struct Pause {
    until: Lock<Option<Instant>>,
}

impl Pause {
    pub(super) fn new() -> Self {
        Self {
            until: Lock::new(None),
        }
    }

    /// The wait before the next try, if there has to be one.
    pub(super) fn nap(&self) -> Option<Nap> {
        let until = (*self.until.lock())?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| nap(left))
    }

    /// Notes how a try ended.
    pub(super) fn note<T>(&self, accepted: &io::Result<T>) {
        let until = match accepted {
            Err(error) if !concerns_one_connection(error) => Some(Instant::now() + PAUSE),
            _ => None,
        };
        *self.until.lock() = until;
    }
}

/// Whether an error took a connection out of the queue, so that the next try is another matter.
fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkUnreachable,
        PermissionDenied, TimedOut,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkUnreachable
            | PermissionDenied
            | TimedOut
    )
}
