//! A connection.

use std::io;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

use super::RETRY;
use crate::io::Async;
use crate::net::nap::nap;
use crate::net::traits::{byte_stream, readiness, socket};

/// A connection between processes of one machine.
///
/// `&UnixStream` reads and writes, too. Closing it with
/// [`AsyncWrite`](futures_io::AsyncWrite::poll_close) ends the direction of writing; dropping it ends
/// the connection.
///
/// # Cancel safety
/// The futures of single reads and writes may be dropped: then nothing has been read or written. Those
/// of several, such as `read_exact` and `write_all`, may have done a part.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use wakerun::net::UnixStream;
///
/// wakerun::block_on(async {
///     let (mut one, mut two) = UnixStream::pair()?;
///     one.write_all(b"hello").await?;
///     one.close().await?;
///     let mut text = String::new();
///     two.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixStream {
    io: Async<net::UnixStream>,
}

socket!(UnixStream, net::UnixStream);
readiness!(UnixStream);
byte_stream!(UnixStream);

impl UnixStream {
    /// Connects to the listener at a path. If its queue is full, waits for room.
    ///
    /// # Errors
    /// If nobody listens there; outside a runtime.
    ///
    /// # Cancel safety
    /// Dropping the future ends the attempt.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        // Before the first await, so that the future does not keep the path.
        let addr = SockAddr::unix(path);
        Self::connect_to(addr?).await
    }

    /// Connects to an address, which may be one that is no path.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); and if the address is of a socket without a name.
    pub async fn connect_addr(addr: &SocketAddr) -> io::Result<Self> {
        let addr = to_sock_addr(addr)?;
        Self::connect_to(addr).await
    }

    async fn connect_to(addr: SockAddr) -> io::Result<Self> {
        let mut pause = RETRY[0];
        loop {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            match socket.connect(&addr) {
                Ok(()) => return Self::from_nonblocking(socket.into()),
                // The queue is full, and the system has no event for room in it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    nap(pause).await;
                    pause = (pause * 2).min(RETRY[1]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Two streams that are connected to each other.
    ///
    /// # Errors
    /// If the system has none to give; outside a runtime.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, two) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(two)?))
    }

    fn from_nonblocking(stream: net::UnixStream) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(stream)?,
        })
    }

    /// The address of this side.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// The address of the other side.
    ///
    /// # Errors
    /// If there is no connection (any more).
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().peer_addr()
    }
}

/// The address in the form of the crate that connects without blocking.
fn to_sock_addr(addr: &SocketAddr) -> io::Result<SockAddr> {
    if let Some(path) = addr.as_pathname() {
        return SockAddr::unix(path);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::ffi::OsString;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStringExt;

        if let Some(name) = addr.as_abstract_name() {
            // Names that are no paths begin with a zero byte.
            return SockAddr::unix(OsString::from_vec([&[0], name].concat()));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "a socket without a name cannot be connected to",
    ))
}
