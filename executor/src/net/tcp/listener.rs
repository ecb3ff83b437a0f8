//! Taking in connections.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::{TcpSocket, TcpStream};
use crate::io::Async;
use crate::net::accept::Pause;
use crate::net::addr::{self, ToSocketAddrs};
use crate::net::nap::Nap;
use crate::net::traits::{readiness, socket};

/// Connections that the system keeps for a listener until they are accepted.
const BACKLOG: u32 = 1024;

/// Listens for TCP connections.
///
/// ```
/// use wakerun::net::{TcpListener, TcpStream};
///
/// wakerun::block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let (server, address) = listener.accept().await?;
///     assert_eq!(address, client.local_addr()?);
///     assert_eq!(server.local_addr()?, client.peer_addr()?);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpListener {
    io: Async<std::net::TcpListener>,
    pause: Pause,
}

socket!(TcpListener, std::net::TcpListener);
readiness!(TcpListener);

impl TcpListener {
    /// Listens at the first of the addresses for which that is possible. Port 0 is a port of the
    /// system's choice, which [`local_addr`](Self::local_addr) tells.
    ///
    /// Where that is usual (on Unix), the address may be taken again at once after another listener
    /// has gone. 1024 connections wait in the system at most; [`TcpSocket`] has a say in that.
    ///
    /// # Errors
    /// If the name cannot be resolved; the last address' error, if none is good; outside a runtime.
    pub async fn bind(addrs: impl ToSocketAddrs) -> io::Result<Self> {
        addr::first(addr::addrs(addrs).await?, |addr| {
            let socket = TcpSocket::for_addr(addr)?;
            #[cfg(unix)]
            socket.set_reuseaddr(true)?;
            socket.bind(addr)?;
            socket.listen(BACKLOG)
        })
    }

    pub(super) fn from_nonblocking(listener: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(listener)?,
            pause: Pause::new(),
        })
    }

    /// Waits for a connection; gives it with the peer's address.
    ///
    /// # Errors
    /// What the system says. An error of one connection, which its peer has given up for example, is
    /// followed by others as usual. After an error such as "too many open files", for which the
    /// connections wait in the system, the next accept waits 50 milliseconds before it tries: a loop
    /// that tells errors and goes on does not spin.
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(nap) = self.pause.nap() {
            nap.await;
        }
        let accepted = self.io.read_with(std::net::TcpListener::accept).await;
        self.accepted(accepted)
    }

    /// Makes a stream of ours, and notes how it went.
    fn accepted(
        &self,
        accepted: io::Result<(std::net::TcpStream, SocketAddr)>,
    ) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = accepted.and_then(|(stream, addr)| Ok((TcpStream::from_std(stream)?, addr)));
        self.pause.note(&accepted);
        accepted
    }

    /// The stream of connections, which never ends. Its items are as those of
    /// [`accept`](Self::accept).
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            listener: self,
            nap: None,
        }
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.get_ref().local_addr()
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
}

/// The connections of a listener; see [`TcpListener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
    nap: Option<Nap>,
}

impl Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(nap) = &mut this.nap {
            ready!(Pin::new(nap).poll(cx));
            this.nap = None;
        }
        let listener = this.listener;
        let accepted = ready!(
            listener
                .io
                .poll_read_with(cx, std::net::TcpListener::accept)
        );
        let accepted = listener.accepted(accepted);
        if accepted.is_err() {
            this.nap = listener.pause.nap();
        }
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}
