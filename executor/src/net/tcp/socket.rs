//! A socket that is neither a listener nor a connection yet.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use super::{TcpListener, TcpStream};
use crate::sys;

/// A TCP socket that is still to be told what it will be: for options that must be set before.
///
/// ```
/// use wakerun::net::TcpSocket;
///
/// wakerun::block_on(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuseaddr(true)?;
///     socket.bind("127.0.0.1:0".parse().unwrap())?;
///     let listener = socket.listen(16)?;
///
///     let socket = TcpSocket::new_v4()?;
///     socket.set_nodelay(true)?;
///     let stream = socket.connect(listener.local_addr()?).await?;
///     assert!(stream.nodelay()?);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpSocket {
    socket: Socket,
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn new_v4() -> io::Result<Self> {
        Self::new(Domain::IPV4)
    }

    /// A socket for IPv6.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn new_v6() -> io::Result<Self> {
        Self::new(Domain::IPV6)
    }

    /// A socket for addresses of the same kind as `addr`.
    pub(super) fn for_addr(addr: SocketAddr) -> io::Result<Self> {
        Self::new(Domain::for_address(addr))
    }

    fn new(domain: Domain) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Gives it an address of this machine.
    ///
    /// # Errors
    /// If the address is taken or not of this machine, or the port is not allowed.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.socket.bind(&addr.into())
    }

    /// Makes it a listener, with room for so many connections that have not been accepted.
    ///
    /// # Errors
    /// If the system refuses; outside a runtime.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        TcpListener::from_nonblocking(self.socket.into())
    }

    /// Makes it a connection.
    ///
    /// # Errors
    /// If the peer does not answer or refuses; outside a runtime.
    ///
    /// # Cancel safety
    /// Dropping the future ends the attempt.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        match self.socket.connect(&addr.into()) {
            Err(error) if !sys::is_connect_under_way(&error) => return Err(error),
            _ => {}
        }
        TcpStream::connected(self.socket.into()).await
    }

    /// The address of this side.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("the socket has no Internet address"))
    }

    /// Whether its address may be taken although connections of an earlier listener linger.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_reuseaddr(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_address(reuse)
    }

    /// Whether several sockets may listen at its address, among which the system spreads connections.
    ///
    /// # Errors
    /// If the system refuses.
    #[cfg(all(unix, not(any(target_os = "solaris", target_os = "illumos"))))]
    pub fn set_reuseport(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuse)
    }

    /// As [`TcpStream::set_nodelay`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.set_tcp_nodelay(nodelay)
    }

    /// As [`TcpStream::set_linger`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.socket.set_linger(linger)
    }

    /// Has the system find out whether the peer is still there when nothing has come from it for so
    /// long; `None`: it does not.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        self.socket.set_keepalive(idle.is_some())?;
        match idle {
            Some(idle) => self
                .socket
                .set_tcp_keepalive(&TcpKeepalive::new().with_time(idle)),
            None => Ok(()),
        }
    }

    /// The system's buffer for sending, in bytes; the system may take another number.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_send_buffer_size(bytes)
    }

    /// The system's buffer for receiving, in bytes; the system may take another number.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_recv_buffer_size(bytes)
    }
}

sys::lends_source!(TcpSocket, this => &this.socket);

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket")
            .field("fd", &sys::raw(&self.socket))
            .finish()
    }
}
