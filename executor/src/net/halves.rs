//! A stream's two directions as values of their own.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

pub(super) mod sealed {
    pub trait Sealed {
        fn end_writing(&self);
    }
}

/// The streams that can be split: [`TcpStream`](super::TcpStream) and
/// [`UnixStream`](super::UnixStream).
pub trait Duplex: sealed::Sealed {}

/// The direction of reading of a stream that is borrowed; the stream's own methods work on it.
#[derive(Debug)]
pub struct ReadHalf<'a, S>(&'a S);

/// The direction of writing of a stream that is borrowed; the stream's own methods work on it.
#[derive(Debug)]
pub struct WriteHalf<'a, S>(&'a S);

/// The direction of reading of a shared stream; the stream's own methods work on it.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use wakerun::net::UnixStream;
///
/// wakerun::block_on(async {
///     let (ours, mut theirs) = UnixStream::pair()?;
///     let (mut read, mut write) = ours.into_split();
///     wakerun::spawn(async move { write.write_all(b"ping").await });
///     // The end comes when the half for writing is dropped, though this one is not.
///     let mut text = String::new();
///     theirs.read_to_string(&mut text).await?;
///     assert_eq!(text, "ping");
///     theirs.write_all(b"pong").await?;
///     drop(theirs);
///     text.clear();
///     read.read_to_string(&mut text).await?;
///     assert_eq!(text, "pong");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct OwnedReadHalf<S>(Arc<S>);

/// The direction of writing of a shared stream; the stream's own methods work on it. When it is dropped
/// it ends the direction, unless it was [forgotten](Self::forget) or [reunited](Self::reunite).
pub struct OwnedWriteHalf<S: Duplex> {
    stream: Arc<S>,
    ends: bool,
}

pub(super) fn split<S>(stream: &mut S) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf(stream), WriteHalf(stream))
}

pub(super) fn into_split<S: Duplex>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    let write = OwnedWriteHalf {
        stream: stream.clone(),
        ends: true,
    };
    (OwnedReadHalf(stream), write)
}

impl<S: Duplex> OwnedReadHalf<S> {
    /// Makes one stream of two halves again.
    ///
    /// # Errors
    /// Gives the halves back if they are not of the same stream.
    pub fn reunite(self, write: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.0, &write.stream) {
            return Err(ReuniteError(self, write));
        }
        write.forget();
        match Arc::try_unwrap(self.0) {
            Ok(stream) => Ok(stream),
            Err(_) => unreachable!("a stream has two halves, and the other one is gone"),
        }
    }
}

impl<S: Duplex> OwnedWriteHalf<S> {
    /// As [`OwnedReadHalf::reunite`].
    ///
    /// # Errors
    /// Gives the halves back if they are not of the same stream.
    pub fn reunite(self, read: OwnedReadHalf<S>) -> Result<S, ReuniteError<S>> {
        read.reunite(self)
    }

    /// Drops the half without ending the direction, which then ends with the other half.
    pub fn forget(mut self) {
        self.ends = false;
    }
}

impl<S: Duplex> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.ends {
            self.stream.end_writing();
        }
    }
}

impl<S> Deref for ReadHalf<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.0
    }
}

impl<S> Deref for WriteHalf<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.0
    }
}

impl<S> Deref for OwnedReadHalf<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Duplex> Deref for OwnedWriteHalf<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.stream
    }
}

/// The half for reading reads as `&` of the stream does.
macro_rules! reads {
    ($half:ty) => {
        impl<S> AsyncRead for $half
        where
            for<'s> &'s S: AsyncRead,
        {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &**self).poll_read(cx, buf)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &**self).poll_read_vectored(cx, bufs)
            }
        }
    };
}

/// The half for writing writes as `&` of the stream does.
macro_rules! writes {
    ($half:ty) => {
        impl<S: Duplex> AsyncWrite for $half
        where
            for<'s> &'s S: AsyncWrite,
        {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &**self).poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut &**self).poll_write_vectored(cx, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut &**self).poll_flush(cx)
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut &**self).poll_close(cx)
            }
        }
    };
}

reads!(ReadHalf<'_, S>);
reads!(OwnedReadHalf<S>);
writes!(WriteHalf<'_, S>);
writes!(OwnedWriteHalf<S>);

impl<S: fmt::Debug> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReadHalf").field(&self.0).finish()
    }
}

impl<S: Duplex + fmt::Debug> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedWriteHalf").field(&self.stream).finish()
    }
}

/// Two halves are not of the same stream; holds them both.
pub struct ReuniteError<S: Duplex>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

impl<S: Duplex + fmt::Debug> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReuniteError")
            .field(&self.0)
            .field(&self.1)
            .finish()
    }
}

impl<S: Duplex> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of the same stream")
    }
}

impl<S: Duplex + fmt::Debug> Error for ReuniteError<S> {}
