//! Datagrams.

use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::task::{Context, Poll};

use super::RETRY;
use crate::io::Async;
use crate::net::nap::nap;
use crate::net::traits::{readiness, socket};
use crate::wake;

/// A Unix socket for datagrams, which arrive all and in order. All methods take `&self`, so several
/// tasks can share it.
///
/// A datagram that is longer than the buffer it is read into is cut off.
///
/// # Cancel safety
/// The futures of receiving and sending may be dropped: then no datagram has been taken or sent.
///
/// ```
/// use wakerun::net::UnixDatagram;
///
/// wakerun::block_on(async {
///     let (one, two) = UnixDatagram::pair()?;
///     one.send(b"datagram").await?;
///     let mut buf = [0; 64];
///     let n = two.recv(&mut buf).await?;
///     assert_eq!(&buf[..n], b"datagram");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixDatagram {
    io: Async<net::UnixDatagram>,
}

socket!(UnixDatagram, net::UnixDatagram);
readiness!(UnixDatagram);

impl UnixDatagram {
    /// A socket at a path.
    ///
    /// # Errors
    /// If the path exists or cannot be made; outside a runtime.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::bind(path)?)
    }

    /// A socket at an address, which may be one that is no path.
    ///
    /// # Errors
    /// If the address is taken; outside a runtime.
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::bind_addr(addr)?)
    }

    /// A socket without an address, which can send.
    ///
    /// # Errors
    /// If the system has none to give; outside a runtime.
    pub fn unbound() -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::unbound()?)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// If the system has none to give; outside a runtime.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, two) = net::UnixDatagram::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(two)?))
    }

    fn from_nonblocking(socket: net::UnixDatagram) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(socket)?,
        })
    }

    /// Says whom [`send`](Self::send) sends to and [`recv`](Self::recv) takes datagrams from.
    ///
    /// # Errors
    /// If nobody is there.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.io.get_ref().connect(path)
    }

    /// As [`connect`](Self::connect), to an address that may be no path.
    ///
    /// # Errors
    /// If nobody is there.
    pub fn connect_addr(&self, addr: &SocketAddr) -> io::Result<()> {
        self.io.get_ref().connect_addr(addr)
    }

    /// Sends a datagram to whom the socket is connected to; waits while the queue there is full.
    ///
    /// # Errors
    /// If the socket is not connected, the peer is gone or the datagram is too long; if the runtime
    /// has ended.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.write_with(|socket| socket.send(buf)).await
    }

    /// Sends a datagram to a path. If the queue there is full, tries again every now and then: the
    /// system tells only a connected socket when there is room.
    ///
    /// # Errors
    /// If nobody is there or the datagram is too long; if the runtime has ended.
    pub async fn send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        poll_fn(wake::poll_budget).await;
        let mut pause = RETRY[0];
        loop {
            match self.io.get_ref().send_to(buf, path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    nap(pause).await;
                    pause = (pause * 2).min(RETRY[1]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Receives a datagram of whom the socket is connected to.
    ///
    /// # Errors
    /// Those of the socket, or if the runtime has ended.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.read_with(|socket| socket.recv(buf)).await
    }

    /// Receives a datagram; gives its length and its sender.
    ///
    /// # Errors
    /// Those of the socket, or if the runtime has ended.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.read_with(|socket| socket.recv_from(buf)).await
    }

    /// The poll form of [`send`](Self::send). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write_with(cx, |socket| socket.send(buf))
    }

    /// The poll form of [`recv`](Self::recv). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_with(cx, |socket| socket.recv(buf))
    }

    /// As [`send`](Self::send), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now, and those of `send`.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.get_ref().send(buf)
    }

    /// As [`send_to`](Self::send_to), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now, and those of `send_to`.
    pub fn try_send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.io.get_ref().send_to(buf, path)
    }

    /// As [`recv`](Self::recv), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing now, and those of `recv`.
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.get_ref().recv(buf)
    }

    /// As [`recv_from`](Self::recv_from), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing now, and those of `recv_from`.
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.get_ref().recv_from(buf)
    }

    /// Ends a direction, or both.
    ///
    /// # Errors
    /// If the socket is not connected.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.get_ref().shutdown(how)
    }

    /// The address of this side.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
    }

    /// The address that the socket is connected to.
    ///
    /// # Errors
    /// If it is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().peer_addr()
    }
}
