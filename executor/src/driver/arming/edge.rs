//! Edge-triggered events: the poller tells of each change.

use std::io;

use polling::Event;

use crate::driver::direction::Interest;
use crate::sys::RawSource;

/// Nothing to know.
pub(crate) struct Arming;

impl Arming {
    pub(crate) fn new(_: RawSource) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn told(
        &self,
        _: Event,
        _: impl FnOnce(RawSource, Event) -> io::Result<()>,
    ) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    pub(crate) fn ask(
        &self,
        _: usize,
        _: Interest,
        _: impl FnOnce(RawSource, Event) -> io::Result<()>,
    ) -> io::Result<()> {
        Ok(())
    }
}
