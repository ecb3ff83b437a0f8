//! Windows: sources are sockets.

use std::io;
use std::os::windows::io::{AsRawSocket, AsSocket};
pub(crate) use std::os::windows::io::{
    AsSocket as AsSource, BorrowedSocket as BorrowedSource, RawSocket as RawSource,
};

use rustix::event::PollFlags;

/// What readiness to read is to `WSAPoll`, which refuses a question about urgent data. (It tells of a
/// failed connect from Windows 10, version 2004, on. Connects of ours do not ask it.)
pub(crate) const READABLE: PollFlags = PollFlags::IN;

pub(crate) fn borrow(source: &impl AsSocket) -> BorrowedSource<'_> {
    source.as_socket()
}

pub(crate) fn raw(source: &impl AsSocket) -> RawSource {
    source.as_socket().as_raw_socket()
}

pub(crate) fn set_nonblocking(socket: BorrowedSource<'_>) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(socket, true)?)
}

/// Whether a connection has been begun.
pub(crate) fn is_connect_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The traits of `std` that lend the socket, for a type that has it in a part of its own.
macro_rules! lends_source {
    ($name:ty $(where $of:ident)?, $this:ident => $part:expr) => {
        impl $(<$of: std::os::windows::io::AsSocket>)? std::os::windows::io::AsSocket for $name {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                let $this = self;
                std::os::windows::io::AsSocket::as_socket($part)
            }
        }

        impl $(<$of: std::os::windows::io::AsRawSocket>)? std::os::windows::io::AsRawSocket
            for $name
        {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                let $this = self;
                std::os::windows::io::AsRawSocket::as_raw_socket($part)
            }
        }
    };
}

pub(crate) use lends_source;
