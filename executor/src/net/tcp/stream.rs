//! A connection.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;

use super::TcpSocket;
use crate::io::Async;
use crate::net::addr::{self, ToSocketAddrs};
use crate::net::traits::{byte_stream, readiness, socket};

/// A TCP connection.
///
/// `&TcpStream` reads and writes, too, so that several tasks can share one, in an
/// [`Arc`](std::sync::Arc) for example. Closing it with
/// [`AsyncWrite`](futures_io::AsyncWrite::poll_close) ends the direction of writing; dropping it ends
/// the connection. Bytes that the system has taken are sent in both cases.
///
/// # Cancel safety
/// The futures of single reads and writes may be dropped: then nothing has been read or written. Those
/// of several, such as `read_exact` and `write_all`, may have done a part.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use wakerun::net::{TcpListener, TcpStream};
///
/// wakerun::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let (server, _) = listener.accept().await?;
///     client.write_all(b"question").await?;
///     client.close().await?;
///     let mut text = String::new();
///     (&server).read_to_string(&mut text).await?;
///     assert_eq!(text, "question");
///     (&server).write_all(b"answer").await?;
///     drop(server);
///     text.clear();
///     client.read_to_string(&mut text).await?;
///     assert_eq!(text, "answer");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpStream {
    io: Async<std::net::TcpStream>,
}

socket!(TcpStream, std::net::TcpStream);
readiness!(TcpStream);
byte_stream!(TcpStream);

impl TcpStream {
    /// Connects to the first of the addresses that answers, which are tried one after the other.
    ///
    /// # Errors
    /// If the name cannot be resolved; the last address' error, if none answers; outside a runtime.
    ///
    /// # Cancel safety
    /// Dropping the future ends the attempt.
    pub async fn connect(addrs: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = None;
        for addr in addr::addrs(addrs).await? {
            match TcpSocket::for_addr(addr)?.connect(addr).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(addr::no_address))
    }

    /// Waits until a connection that has been begun is made.
    pub(super) async fn connected(begun: std::net::TcpStream) -> io::Result<Self> {
        let stream = Self::from_nonblocking(begun)?;
        stream.io.write_with(established).await?;
        Ok(stream)
    }

    fn from_nonblocking(stream: std::net::TcpStream) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(stream)?,
        })
    }

    /// Waits for data and reads it, without taking it: the next read gets it again. 0 is the end of
    /// the stream.
    ///
    /// # Errors
    /// Those of the connection, or if the runtime has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.read_with(|stream| stream.peek(buf)).await
    }

    /// The poll form of [`peek`](Self::peek). A few tasks at a time may wait so.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.io.poll_read_with(cx, |stream| stream.peek(buf))
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

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.get_ref().nodelay()
    }

    /// Whether small writes are sent at once, instead of waiting for more (Nagle's algorithm). For
    /// protocols of requests and answers that is the right thing; by default it is off.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.get_ref().set_nodelay(nodelay)
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

    /// See [`set_linger`](Self::set_linger).
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.io.get_ref()).linger()
    }

    /// What becomes of unsent bytes when the socket is dropped. `None`, the default: the system goes on
    /// sending them. Zero: they are thrown away, and the peer sees a reset. Another time should not be
    /// set: the drop would block the worker for as long.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.io.get_ref()).set_linger(linger)
    }
}

/// Whether the connection is made; `WouldBlock` while it is under way.
fn established(stream: &std::net::TcpStream) -> io::Result<()> {
    // In this order: a failure after the first question makes an event, and both are asked again.
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
            Err(io::ErrorKind::WouldBlock.into())
        }
        Err(error) => Err(error),
    }
}
