//! I/O on any descriptor: [`Async`], for sockets, pipes and whatever else the system can poll.
//!
//! The traits are those of `futures-io`, so that what is written for them works here.

mod readiness;
mod traits;

pub use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use crate::driver::{Interest, Registration};
use crate::sys::{self, AsSource};
use crate::wake;

/// A descriptor whose operations wait without blocking the thread. On Windows it is a socket, and `AsSocket`
/// takes the place of `AsFd`.
///
/// It is registered with the runtime in which it is made, once and for both directions. Its futures
/// may be polled anywhere, by any executor; they are served as long as that runtime lives. After
/// that, what would have to wait fails.
///
/// Any number of tasks may wait for the same direction at the same time: an event wakes them all,
/// and each tries again. Operations of a task that never have to wait make it yield when its budget
/// is used up, as those of channels do.
///
/// ```
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use wakerun::io::Async;
///
/// wakerun::block_on(async {
///     let (one, mut other) = UnixStream::pair()?;
///     let one = Async::new(one)?;
///     let task = wakerun::spawn(async move {
///         let mut buffer = [0; 16];
///         let n = one.read_with(|mut socket| socket.read(&mut buffer)).await?;
///         std::io::Result::Ok(buffer[..n].to_vec())
///     });
///     other.write_all(b"hello")?;
///     assert_eq!(task.await.unwrap()?, b"hello");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
///
/// # What it does not do
///
/// Regular files are always ready as far as the system can tell, and block all the same (Linux
/// refuses to register them): use [`fs`](crate::fs). The descriptor must not be set back to
/// blocking, through a clone of it for example, or operations block their thread.
pub struct Async<T> {
    // In this order: a descriptor leaves the driver before it is closed.
    registration: Registration,
    io: T,
}

impl<T: AsSource> Async<T> {
    /// Sets the descriptor to nonblocking and registers it.
    ///
    /// # Errors
    /// Outside a runtime; if the runtime has been shut down; and if the system refuses, because
    /// there are no descriptors left for the poller, or because this one cannot be polled.
    pub fn new(io: T) -> io::Result<Self> {
        sys::set_nonblocking(sys::borrow(&io))?;
        Self::new_nonblocking(io)
    }

    /// As [`new`](Self::new), for a descriptor that is nonblocking already.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn new_nonblocking(io: T) -> io::Result<Self> {
        let fd = sys::raw(&io);
        // SAFETY: the descriptor is open as long as `io`, which is dropped after the registration
        // and not given out by `&mut` before.
        let registration = unsafe { Registration::new(fd) }?;
        Ok(Self { registration, io })
    }

    /// Ends the registration and gives the descriptor back, still nonblocking.
    ///
    /// # Errors
    /// If the system refuses, because the descriptor has been closed otherwise.
    pub fn into_inner(self) -> io::Result<T> {
        self.registration.remove()?;
        Ok(self.io)
    }
}

impl<T> Async<T> {
    /// What was wrapped.
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Waits until a read would not block: there is data, the other side has closed, an error is
    /// pending, a connection is to be accepted.
    ///
    /// A hint, as somebody else may be faster: whoever then reads must be ready to wait again, as
    /// [`read_with`](Self::read_with) is.
    ///
    /// *Cancel safe*: nothing is lost or left behind when the future is dropped.
    ///
    /// # Errors
    /// If the runtime has been shut down.
    ///
    /// ```
    /// use std::io::{Read, Write};
    ///
    /// wakerun::block_on(async {
    ///     let (reader, mut writer) = std::io::pipe()?;
    ///     let reader = wakerun::io::Async::new(reader)?;
    ///     writer.write_all(b"x")?;
    ///     reader.readable().await?;
    ///     assert_eq!(reader.get_ref().read(&mut [0; 8])?, 1);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::Read).await
    }

    /// Waits until a write would not block; also the end of a connect. A hint, as
    /// [`readable`](Self::readable).
    ///
    /// *Cancel safe.*
    ///
    /// # Errors
    /// If the runtime has been shut down.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::Write).await
    }

    /// The `poll_` form of [`readable`](Self::readable).
    ///
    /// It does not know when a task stops waiting, so its waker is kept until the next event or the
    /// end of the descriptor. If more than 64 tasks wait so, the first is woken without a cause; the
    /// `async` forms have no such limit.
    ///
    /// # Errors
    /// If the runtime has been shut down.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Interest::Read, cx)
    }

    /// The `poll_` form of [`writable`](Self::writable), with the limit of
    /// [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    /// If the runtime has been shut down.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Interest::Write, cx)
    }

    /// Does `op`, and whenever that would block, waits until the descriptor is readable and does it
    /// again. An `op` that a signal interrupts is repeated at once.
    ///
    /// `op` must really try to read: the next event comes only after it has told `WouldBlock`
    /// because there was nothing (more) to be had.
    ///
    /// *Cancel safe*: if the future is dropped, `op` has not succeeded.
    ///
    /// # Errors
    /// Those of `op` but `WouldBlock` and `Interrupted`; and if the runtime has been shut down and
    /// it would block.
    pub async fn read_with<R>(&self, op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.with(Interest::Read, op).await
    }

    /// As [`read_with`](Self::read_with), waiting until the descriptor is writable.
    ///
    /// # Errors
    /// As [`read_with`](Self::read_with).
    ///
    /// ```
    /// use std::io::Write;
    /// use std::os::unix::net::UnixStream;
    ///
    /// wakerun::block_on(async {
    ///     let (one, _other) = UnixStream::pair()?;
    ///     let one = wakerun::io::Async::new(one)?;
    ///     let n = one.write_with(|mut socket| socket.write(b"hello")).await?;
    ///     assert_eq!(n, 5);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn write_with<R>(&self, op: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.with(Interest::Write, op).await
    }

    /// The `poll_` form of [`read_with`](Self::read_with), with the limit of
    /// [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    /// As [`read_with`](Self::read_with).
    pub fn poll_read_with<R>(
        &self,
        cx: &mut Context<'_>,
        op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Interest::Read, cx, op)
    }

    /// The `poll_` form of [`write_with`](Self::write_with), with the limit of
    /// [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    /// As [`read_with`](Self::read_with).
    pub fn poll_write_with<R>(
        &self,
        cx: &mut Context<'_>,
        op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Interest::Write, cx, op)
    }

    fn poll_with<R>(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        ready!(wake::poll_budget(cx));
        let direction = self.registration.direction(interest);
        loop {
            let seen = match direction.poll_try(cx) {
                Poll::Ready(seen) => seen?,
                Poll::Pending => {
                    wake::refund_budget();
                    return Poll::Pending;
                }
            };
            match op(&self.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.registration.clear(interest, seen)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

sys::lends_source!(Async<T> where T, this => &this.io);

impl<T: fmt::Debug> fmt::Debug for Async<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(&self.io).finish()
    }
}
