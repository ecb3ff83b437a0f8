//! What can go wrong with time.

use std::error::Error;
use std::fmt;
use std::io;

/// The time of a [`timeout`](super::timeout()) was over first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    _private: (),
}

impl Elapsed {
    pub(super) fn new() -> Self {
        Self { _private: () }
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elapsed")
    }
}

impl Error for Elapsed {}

/// Of kind `TimedOut`.
impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(io::ErrorKind::TimedOut, elapsed)
    }
}
