//! Taking in connections.

use std::future::Future;
use std::io;
use std::os::unix::net::{self, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::UnixStream;
use crate::io::Async;
use crate::net::accept::Pause;
use crate::net::nap::Nap;
use crate::net::traits::{readiness, socket};

/// Listens for connections at a path.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("wakerun-unix-doc-{}", std::process::id()));
/// use wakerun::net::{UnixListener, UnixStream};
///
/// wakerun::block_on(async {
///     let listener = UnixListener::bind(&path)?;
///     let client = UnixStream::connect(&path).await?;
///     let (server, _) = listener.accept().await?;
///     assert_eq!(client.peer_addr()?.as_pathname(), Some(path.as_path()));
///     # drop(server);
///     std::io::Result::Ok(())
/// })?;
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
pub struct UnixListener {
    io: Async<net::UnixListener>,
    pause: Pause,
}

socket!(UnixListener, net::UnixListener);
readiness!(UnixListener);

impl UnixListener {
    /// Listens at a path.
    ///
    /// # Errors
    /// If the path exists or cannot be made; outside a runtime.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_std(net::UnixListener::bind(path)?)
    }

    /// Listens at an address, which may be one that is no path.
    ///
    /// # Errors
    /// If the address is taken; outside a runtime.
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<Self> {
        Self::from_std(net::UnixListener::bind_addr(addr)?)
    }

    fn from_nonblocking(listener: net::UnixListener) -> io::Result<Self> {
        Ok(Self {
            io: Async::new_nonblocking(listener)?,
            pause: Pause::new(),
        })
    }

    /// Waits for a connection; gives it with the peer's address, which mostly has no name.
    ///
    /// # Errors
    /// As [`TcpListener::accept`](crate::net::TcpListener::accept).
    ///
    /// # Cancel safety
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        if let Some(nap) = self.pause.nap() {
            nap.await;
        }
        let accepted = self.io.read_with(net::UnixListener::accept).await;
        self.accepted(accepted)
    }

    /// Makes a stream of ours, and notes how it went.
    fn accepted(
        &self,
        accepted: io::Result<(net::UnixStream, SocketAddr)>,
    ) -> io::Result<(UnixStream, SocketAddr)> {
        let accepted =
            accepted.and_then(|(stream, addr)| Ok((UnixStream::from_std(stream)?, addr)));
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
}

/// The connections of a listener; see [`UnixListener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct Incoming<'a> {
    listener: &'a UnixListener,
    nap: Option<Nap>,
}

impl Stream for Incoming<'_> {
    type Item = io::Result<UnixStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(nap) = &mut this.nap {
            ready!(Pin::new(nap).poll(cx));
            this.nap = None;
        }
        let listener = this.listener;
        let accepted = ready!(listener.io.poll_read_with(cx, net::UnixListener::accept));
        let accepted = listener.accepted(accepted);
        if accepted.is_err() {
            this.nap = listener.pause.nap();
        }
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}
