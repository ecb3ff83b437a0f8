//! UDP: datagrams over the network.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use super::addr::{self, ToSocketAddrs};
use super::traits::{readiness, socket};
use crate::io::Async;

/// A UDP socket. All methods take `&self`, so several tasks can share it, in an
/// [`Arc`](std::sync::Arc) for example.
///
/// A datagram that is longer than the buffer it is read into is cut off; on Windows, reading it is an
/// error.
///
/// # Cancel safety
/// The futures of receiving and sending may be dropped: then no datagram has been taken or sent.
///
/// ```
/// use wakerun::net::UdpSocket;
///
/// wakerun::block_on(async {
///     let one = UdpSocket::bind("127.0.0.1:0").await?;
///     let two = UdpSocket::bind("127.0.0.1:0").await?;
///     one.send_to(b"datagram", two.local_addr()?).await?;
///     let mut buf = [0; 64];
///     let (n, from) = two.recv_from(&mut buf).await?;
///     assert_eq!((&buf[..n], from), (&b"datagram"[..], one.local_addr()?));
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct UdpSocket {
    io: Async<std::net::UdpSocket>,
}

socket!(UdpSocket, std::net::UdpSocket);
readiness!(UdpSocket);

impl UdpSocket {
    /// A socket at the first of the addresses for which that is possible. Port 0 is a port of the
    /// system's choice, which [`local_addr`](Self::local_addr) tells.
    ///
    /// # Errors
    /// If the name cannot be resolved; the last address' error, if none is good; outside a runtime.
    pub async fn bind(addrs: impl ToSocketAddrs) -> io::Result<Self> {
        addr::first(addr::addrs(addrs).await?, |addr| {
            Self::from_std(std::net::UdpSocket::bind(addr)?)
        })
    }

    fn from_nonblocking(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(socket)?,
        })
    }

    /// Says whom [`send`](Self::send) sends to and [`recv`](Self::recv) takes datagrams from: the
    /// first of the addresses for which that is possible. Nothing is sent for it.
    ///
    /// # Errors
    /// If the name cannot be resolved; the last address' error, if none is good.
    pub async fn connect(&self, addrs: impl ToSocketAddrs) -> io::Result<()> {
        let socket = self.io.get_ref();
        addr::first(addr::addrs(addrs).await?, |addr| socket.connect(addr))
    }

    /// Sends a datagram to whom the socket is connected to.
    ///
    /// # Errors
    /// If the socket is not connected or the datagram is too long; what the network has answered to
    /// an earlier one; if the runtime has ended.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.write_with(|socket| socket.send(buf)).await
    }

    /// Sends a datagram to an address, of several ones to the first. An address that is a name is
    /// resolved each time: [`lookup_host`](super::lookup_host) does it once.
    ///
    /// # Errors
    /// If the name cannot be resolved or the datagram is too long; what the network has answered to
    /// an earlier one; if the runtime has ended.
    pub async fn send_to(&self, buf: &[u8], to: impl ToSocketAddrs) -> io::Result<usize> {
        let to = addr::addrs(to).await?.next();
        let to = to.ok_or_else(addr::no_address)?;
        self.io.write_with(|socket| socket.send_to(buf, to)).await
    }

    /// Receives a datagram of whom the socket is connected to.
    ///
    /// # Errors
    /// If the socket is not connected; what the network has answered to an earlier datagram; if the
    /// runtime has ended.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.read_with(|socket| socket.recv(buf)).await
    }

    /// Receives a datagram; gives its length and its sender.
    ///
    /// # Errors
    /// What the network has answered to an earlier datagram; if the runtime has ended.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.read_with(|socket| socket.recv_from(buf)).await
    }

    /// As [`recv`](Self::recv), but leaves the datagram where it is.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.read_with(|socket| socket.peek(buf)).await
    }

    /// As [`recv_from`](Self::recv_from), but leaves the datagram where it is.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.read_with(|socket| socket.peek_from(buf)).await
    }

    /// The poll form of [`send`](Self::send). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.poll_write_with(cx, |socket| socket.send(buf))
    }

    /// The poll form of [`send_to`](Self::send_to). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to).
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.io
            .poll_write_with(cx, |socket| socket.send_to(buf, to))
    }

    /// The poll form of [`recv`](Self::recv). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_with(cx, |socket| socket.recv(buf))
    }

    /// The poll form of [`recv_from`](Self::recv_from). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.io.poll_read_with(cx, |socket| socket.recv_from(buf))
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
    pub fn try_send_to(&self, buf: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.io.get_ref().send_to(buf, to)
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

    /// Whether datagrams to a whole network may be sent.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.io.get_ref().broadcast()
    }

    /// Sets whether datagrams to a whole network may be sent.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.io.get_ref().set_broadcast(broadcast)
    }

    /// The time to live of the packets it sends.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.get_ref().ttl()
    }

    /// Sets the time to live of the packets it sends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_ttl(ttl)
    }

    /// Whether multicast datagrams come back to this machine (IPv4).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_multicast_loop_v4(&self, back: bool) -> io::Result<()> {
        self.io.get_ref().set_multicast_loop_v4(back)
    }

    /// The time to live of multicast datagrams (IPv4).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.io.get_ref().set_multicast_ttl_v4(ttl)
    }

    /// Whether multicast datagrams come back to this machine (IPv6).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_multicast_loop_v6(&self, back: bool) -> io::Result<()> {
        self.io.get_ref().set_multicast_loop_v6(back)
    }

    /// Joins a multicast group on an interface of this machine (IPv4).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().join_multicast_v4(&group, &interface)
    }

    /// Leaves a multicast group (IPv4).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v4(&group, &interface)
    }

    /// Joins a multicast group on the interface of this index, 0 being any (IPv6).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().join_multicast_v6(group, interface)
    }

    /// Leaves a multicast group (IPv6).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.get_ref().leave_multicast_v6(group, interface)
    }
}
