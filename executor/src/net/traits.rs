//! What all sockets here have in common, written once.

/// Conversions from and to the type of `std`, the descriptor, and `Debug`.
macro_rules! socket {
    ($name:ident, $std:ty) => {
        impl $name {
            /// Takes over a socket of `std`, and makes it non-blocking.
            ///
            /// # Errors
            /// Outside a runtime, and if the system refuses to watch the socket.
            pub fn from_std(socket: $std) -> io::Result<Self> {
                socket.set_nonblocking(true)?;
                Self::from_nonblocking(socket)
            }

            /// Gives the socket of `std`. It is still non-blocking.
            ///
            /// # Errors
            /// If the system cannot stop watching it.
            pub fn into_std(self) -> io::Result<$std> {
                self.io.into_inner()
            }

            /// The error that the system has kept for the socket, if there is one; this takes it.
            ///
            /// # Errors
            /// If the system does not answer.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.io.get_ref().take_error()
            }
        }

        impl TryFrom<$std> for $name {
            type Error = io::Error;

            fn try_from(socket: $std) -> io::Result<Self> {
                Self::from_std(socket)
            }
        }

        crate::sys::lends_source!($name, this => this.io.get_ref());

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.io.get_ref().fmt(f)
            }
        }
    };
}

/// Waiting for readiness, without an operation.
macro_rules! readiness {
    ($name:ident) => {
        impl $name {
            /// Waits until there is something to read, or the end, or an error. It may be a false
            /// alarm: the operation that follows (a `try_` one) tells.
            ///
            /// # Errors
            /// If the runtime has ended.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            pub async fn readable(&self) -> io::Result<()> {
                self.io.readable().await
            }

            /// Waits until there is room to write, or an error. It may be a false alarm: the
            /// operation that follows (a `try_` one) tells.
            ///
            /// # Errors
            /// If the runtime has ended.
            ///
            /// # Cancel safety
            /// Dropping the future loses nothing.
            pub async fn writable(&self) -> io::Result<()> {
                self.io.writable().await
            }

            /// The poll form of [`readable`](Self::readable). A few tasks at a time may wait so.
            ///
            /// # Errors
            /// If the runtime has ended.
            pub fn poll_readable(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                self.io.poll_readable(cx)
            }

            /// The poll form of [`writable`](Self::writable). A few tasks at a time may wait so.
            ///
            /// # Errors
            /// If the runtime has ended.
            pub fn poll_writable(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                self.io.poll_writable(cx)
            }
        }
    };
}

/// The traits of a stream of bytes, for the type and for `&` of it.
macro_rules! byte_stream {
    ($name:ident) => {
        impl futures_io::AsyncRead for &$name {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut [u8],
            ) -> std::task::Poll<io::Result<usize>> {
                self.io
                    .poll_read_with(cx, |mut socket| io::Read::read(&mut socket, buf))
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &mut [io::IoSliceMut<'_>],
            ) -> std::task::Poll<io::Result<usize>> {
                self.io
                    .poll_read_with(cx, |mut socket| io::Read::read_vectored(&mut socket, bufs))
            }
        }

        impl futures_io::AsyncWrite for &$name {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<io::Result<usize>> {
                self.io
                    .poll_write_with(cx, |mut socket| io::Write::write(&mut socket, buf))
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> std::task::Poll<io::Result<usize>> {
                self.io.poll_write_with(cx, |mut socket| {
                    io::Write::write_vectored(&mut socket, bufs)
                })
            }

            /// There is nothing to flush: what a write has taken, the system has.
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            /// Ends the direction of writing; reading goes on.
            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::task::Poll::Ready(match self.shutdown(std::net::Shutdown::Write) {
                    // The peer has ended it already, or so have we.
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                    result => result,
                })
            }
        }

        impl futures_io::AsyncRead for $name {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut [u8],
            ) -> std::task::Poll<io::Result<usize>> {
                std::pin::Pin::new(&mut &*self).poll_read(cx, buf)
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &mut [io::IoSliceMut<'_>],
            ) -> std::task::Poll<io::Result<usize>> {
                std::pin::Pin::new(&mut &*self).poll_read_vectored(cx, bufs)
            }
        }

        impl futures_io::AsyncWrite for $name {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<io::Result<usize>> {
                std::pin::Pin::new(&mut &*self).poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> std::task::Poll<io::Result<usize>> {
                std::pin::Pin::new(&mut &*self).poll_write_vectored(cx, bufs)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::pin::Pin::new(&mut &*self).poll_flush(cx)
            }

            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<()>> {
                std::pin::Pin::new(&mut &*self).poll_close(cx)
            }
        }

        impl $name {
            /// Reads what is there, without waiting. 0 is the end of the stream.
            ///
            /// # Errors
            /// `WouldBlock` if there is nothing now, and those of the connection.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                io::Read::read(&mut self.io.get_ref(), buf)
            }

            /// Writes what there is room for, without waiting.
            ///
            /// # Errors
            /// `WouldBlock` if there is no room now, and those of the connection.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                io::Write::write(&mut self.io.get_ref(), buf)
            }

            /// Ends a direction of the connection, or both.
            ///
            /// # Errors
            /// If there is no connection (any more).
            pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
                self.io.get_ref().shutdown(how)
            }

            /// Two halves, to read and write in one task at the same time. As `&` of the stream
            /// can do both, this is for code that wants one of each.
            pub fn split(
                &mut self,
            ) -> (
                crate::net::ReadHalf<'_, Self>,
                crate::net::WriteHalf<'_, Self>,
            ) {
                crate::net::halves::split(self)
            }

            /// Two halves to be moved to different tasks, which share the socket. The one for
            /// writing ends its direction when it is dropped.
            pub fn into_split(
                self,
            ) -> (
                crate::net::OwnedReadHalf<Self>,
                crate::net::OwnedWriteHalf<Self>,
            ) {
                crate::net::halves::into_split(self)
            }
        }

        #[cfg(feature = "hyper")]
        impl $name {
            /// Reads into memory that need not be initialized. So many bytes at its start are then.
            pub(crate) fn poll_read_uninit(
                &self,
                cx: &mut std::task::Context<'_>,
                buf: &mut [std::mem::MaybeUninit<u8>],
            ) -> std::task::Poll<io::Result<usize>> {
                self.io.poll_read_with(cx, |socket| {
                    let (read, _) = rustix::io::read(socket, &mut *buf)?;
                    Ok(read.len())
                })
            }
        }

        impl crate::net::halves::sealed::Sealed for $name {
            fn end_writing(&self) {
                // Where the peer has ended the connection there is nothing to end.
                let _ = self.shutdown(std::net::Shutdown::Write);
            }
        }

        impl crate::net::Duplex for $name {}
    };
}

pub(super) use {byte_stream, readiness, socket};
