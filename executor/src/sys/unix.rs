//! Unix: sources are descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
pub(crate) use std::os::fd::{AsFd as AsSource, BorrowedFd as BorrowedSource, RawFd as RawSource};

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// What readiness to read is to `poll`.
pub(crate) const READABLE: PollFlags = PollFlags::IN.union(PollFlags::PRI);

pub(crate) fn borrow(source: &impl AsFd) -> BorrowedSource<'_> {
    source.as_fd()
}

pub(crate) fn raw(source: &impl AsFd) -> RawSource {
    source.as_fd().as_raw_fd()
}

pub(crate) fn set_nonblocking(fd: BorrowedSource<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    if !flags.contains(OFlags::NONBLOCK) {
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    }
    Ok(())
}

/// Whether a connection has been begun: a non-blocking one is, and one that a signal interrupts goes
/// on, too.
pub(crate) fn is_connect_under_way(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::INPROGRESS | Errno::INTR)
    )
}

/// The traits of `std` that lend the descriptor, for a type that has it in a part of its own.
macro_rules! lends_source {
    ($name:ty $(where $of:ident)?, $this:ident => $part:expr) => {
        impl $(<$of: std::os::fd::AsFd>)? std::os::fd::AsFd for $name {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                let $this = self;
                std::os::fd::AsFd::as_fd($part)
            }
        }

        impl $(<$of: std::os::fd::AsRawFd>)? std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                let $this = self;
                std::os::fd::AsRawFd::as_raw_fd($part)
            }
        }
    };
}

pub(crate) use lends_source;
