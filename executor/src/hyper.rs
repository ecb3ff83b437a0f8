//! [hyper](https://docs.rs/hyper) 1.x on wakerun: executor, timer, input and output. Feature `hyper`.
//!
//! [`TcpStream`] and [`UnixStream`] implement hyper's traits for input and output themselves; [`Io`] is
//! for other streams with the traits of `futures-io`, such as those of TLS. So hyper's connections take
//! them as they are:
//!
//! ```
//! use hyper::body::Incoming;
//! use hyper::server::conn::http1;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response};
//! use wakerun::net::{TcpListener, TcpStream};
//!
//! async fn hello(_: Request<Incoming>) -> hyper::Result<Response<String>> {
//!     Ok(Response::new("hello".to_owned()))
//! }
//!
//! wakerun::block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     wakerun::spawn(async move {
//!         while let Ok((stream, _)) = listener.accept().await {
//!             wakerun::spawn(
//!                 http1::Builder::new()
//!                     .timer(wakerun::hyper::Timer)
//!                     .serve_connection(stream, service_fn(hello)),
//!             );
//!         }
//!     });
//!
//!     let stream = TcpStream::connect(address).await?;
//!     let (mut client, connection) = hyper::client::conn::http1::handshake(stream).await?;
//!     wakerun::spawn(connection);
//!     let response = client.send_request(Request::new(String::new())).await?;
//!     assert_eq!(response.status(), 200);
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! })
//! # .unwrap();
//! ```

use std::future::Future;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use ::hyper::rt::{self, ReadBufCursor};
use futures_io::{AsyncRead, AsyncWrite};

use crate::net::TcpStream;
#[cfg(unix)]
use crate::net::UnixStream;
use crate::time::{self, Sleep};

/// Spawns hyper's background tasks, such as those of HTTP/2 streams, on the current runtime.
///
/// # Panics
/// `execute` panics outside a runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor;

impl<F> rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(crate::spawn(future));
    }
}

/// The runtime's timers, for hyper's timeouts.
///
/// # Panics
/// Its methods panic outside a runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer;

impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(time::sleep(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(time::sleep_until(deadline.into()))
    }

    /// The runtime's clock, which a test may have paused.
    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(ours) => ours.reset(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

impl rt::Sleep for Sleep {}

/// A stream with the traits of `futures-io` as one with hyper's traits.
#[derive(Clone, Copy, Debug)]
pub struct Io<T>(T);

impl<T> Io<T> {
    /// Wraps a stream.
    pub fn new(stream: T) -> Self {
        Self(stream)
    }

    /// The stream.
    pub fn get_ref(&self) -> &T {
        &self.0
    }

    /// The stream.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Gives the stream back.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: AsyncRead + Unpin> rt::Read for Io<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: nothing is made uninitialized.
        let free = unsafe { buf.as_mut() };
        // A reader may look at the buffer before it writes.
        free.fill(MaybeUninit::new(0));
        let free: *mut [MaybeUninit<u8>] = free;
        // SAFETY: initialized just now, and of the same layout.
        let free = unsafe { &mut *(free as *mut [u8]) };
        let most = free.len();
        let n = ready!(Pin::new(&mut self.0).poll_read(cx, free))?;
        assert!(
            n <= most,
            "a reader says that it has read more than there was room for"
        );
        // SAFETY: the whole buffer has been initialized.
        unsafe { buf.advance(n) };
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> rt::Write for Io<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    /// The trait cannot be asked. So hyper puts its parts together first, which is what a TLS stream
    /// wants; others lose little.
    fn is_write_vectored(&self) -> bool {
        false
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

/// Our streams read straight into hyper's buffer, which need not be initialized for the system.
macro_rules! stream {
    ($stream:ty) => {
        impl rt::Read for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                mut buf: ReadBufCursor<'_>,
            ) -> Poll<io::Result<()>> {
                // SAFETY: nothing is made uninitialized.
                let free = unsafe { buf.as_mut() };
                let n = ready!(self.poll_read_uninit(cx, free))?;
                // SAFETY: the system has written so many bytes.
                unsafe { buf.advance(n) };
                Poll::Ready(Ok(()))
            }
        }

        impl rt::Write for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                AsyncWrite::poll_write(self, cx, buf)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                AsyncWrite::poll_close(self, cx)
            }
        }
    };
}

stream!(TcpStream);
#[cfg(unix)]
stream!(UnixStream);
