//! A source's hold on the driver.

use std::io;
use std::sync::Arc;

use super::Driver;
use super::direction::{Direction, Interest, Seen};
use super::reactor::{Key, Source};
use crate::context;
use crate::scheduler::Shared;
use crate::sys::{BorrowedSource, RawSource};

/// Keeps a descriptor registered with the driver of a runtime; dropped before the descriptor.
pub(crate) struct Registration {
    driver: Arc<Driver>,
    source: Arc<Source>,
    /// Absent when it has ended.
    key: Option<Key>,
    fd: RawSource,
}

impl Registration {
    /// Registers with the runtime that the calling code runs in.
    ///
    /// # Safety
    /// The descriptor is open, and stays so until the registration is dropped.
    pub(crate) unsafe fn new(fd: RawSource) -> io::Result<Self> {
        let shared = context::try_current().map_err(io::Error::other)?;
        // SAFETY: handed on.
        unsafe { Self::with(&shared, fd) }
    }

    /// # Safety
    /// As [`new`](Self::new).
    unsafe fn with(shared: &Shared, fd: RawSource) -> io::Result<Self> {
        shared.start_driver()?;
        let driver = shared.driver.clone();
        // SAFETY: handed on; `drop` removes it.
        let (key, source) = unsafe { driver.reactor()?.add(fd) }?;
        Ok(Self {
            driver,
            source,
            key: Some(key),
            fd,
        })
    }

    pub(crate) fn direction(&self, interest: Interest) -> &Direction {
        match interest {
            Interest::Read => &self.source.read,
            Interest::Write => &self.source.write,
        }
    }

    /// An operation that began after `seen` was read would block.
    ///
    /// # Errors
    /// If the poller cannot be asked for the next event.
    #[inline]
    pub(crate) fn clear(&self, interest: Interest, seen: Seen) -> io::Result<()> {
        self.direction(interest).clear(seen);
        let Some(key) = self.key else {
            return Ok(());
        };
        self.source.arming.ask(key.0, interest, |_, event| {
            self.driver.reactor()?.ask(self.fd(), event)
        })
    }

    /// Ends the registration and tells what the system said to it.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        self.remove_once()
    }

    /// Lends the descriptor.
    pub(crate) fn fd(&self) -> BorrowedSource<'_> {
        // SAFETY: open until the registration is gone, says the caller of `new`.
        unsafe { BorrowedSource::borrow_raw(self.fd) }
    }

    fn remove_once(&mut self) -> io::Result<()> {
        match self.key.take() {
            None => Ok(()),
            Some(key) => self.driver.reactor()?.remove(key, self.fd()),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // There is nobody to tell an error to, and nothing is left behind in any case.
        let _ = self.remove_once();
    }
}
