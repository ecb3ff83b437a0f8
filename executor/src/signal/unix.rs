//! The signals of Unix systems.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use rustix::process::Signal as Number;
use signal_hook_registry::{FORBIDDEN, SigId};

use crate::io::Async;

/// Which signal.
///
/// ```
/// use wakerun::signal::unix::SignalKind;
///
/// assert_eq!(SignalKind::from_raw(15), SignalKind::terminate());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalKind(i32);

impl SignalKind {
    /// The signal of this number.
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The signal's number.
    pub const fn as_raw_value(self) -> i32 {
        self.0
    }

    /// `SIGALRM`: a timer of the system is due.
    pub fn alarm() -> Self {
        Self(Number::ALARM.as_raw())
    }

    /// `SIGCHLD`: a child process has ended.
    pub fn child() -> Self {
        Self(Number::CHILD.as_raw())
    }

    /// `SIGHUP`: the terminal is gone; to servers: read the configuration again.
    pub fn hangup() -> Self {
        Self(Number::HUP.as_raw())
    }

    /// `SIGINT`: Ctrl-C.
    pub fn interrupt() -> Self {
        Self(Number::INT.as_raw())
    }

    /// `SIGPIPE`: nobody reads what is written.
    pub fn pipe() -> Self {
        Self(Number::PIPE.as_raw())
    }

    /// `SIGQUIT`: Ctrl-\.
    pub fn quit() -> Self {
        Self(Number::QUIT.as_raw())
    }

    /// `SIGTERM`: please end.
    pub fn terminate() -> Self {
        Self(Number::TERM.as_raw())
    }

    /// `SIGUSR1`: what the program makes of it.
    pub fn user_defined1() -> Self {
        Self(Number::USR1.as_raw())
    }

    /// `SIGUSR2`: what the program makes of it.
    pub fn user_defined2() -> Self {
        Self(Number::USR2.as_raw())
    }

    /// `SIGWINCH`: the terminal has another size.
    pub fn window_change() -> Self {
        Self(Number::WINCH.as_raw())
    }
}

/// Listens for a signal.
///
/// From the first call for a kind, that signal does not have its usual effect on the process any more,
/// such as ending it, not even after the listener is gone. Handlers that others have installed before
/// are still called.
///
/// # Errors
/// If the signal cannot be caught (`SIGKILL`, `SIGSTOP`) or not so (`SIGSEGV`, `SIGILL`, `SIGFPE`), or
/// there is no such signal; if the system has no descriptors left; outside a runtime.
///
/// ```
/// use wakerun::signal::unix::{SignalKind, signal};
///
/// wakerun::block_on(async {
///     let mut hangups = signal(SignalKind::hangup())?;
///     // What the system, or another process, does:
///     rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
///     assert_eq!(hangups.recv().await, Some(()));
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub fn signal(kind: SignalKind) -> io::Result<Signal> {
    if FORBIDDEN.contains(&kind.0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("signal {} cannot be listened for", kind.0),
        ));
    }
    let (read, write) = UnixStream::pair()?;
    let read = Async::new(read)?;
    write.set_nonblocking(true)?;
    let tell = move || {
        // A full socket holds a notice already.
        let _ = (&write).write(&[1]);
    };
    // SAFETY: the action is called in a signal handler. It does one system call that is allowed there,
    // a write to a socket whose other end is open as long as the action is registered; and it neither
    // allocates nor locks nor panics.
    let id = unsafe { signal_hook_registry::register(kind.0, tell) }?;
    Ok(Signal { kind, read, id })
}

/// What [`ctrl_c`](super::ctrl_c) waits for.
pub(super) fn interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// Tells of a signal; see [`signal`]. Each of several listeners for a signal hears of it.
pub struct Signal {
    kind: SignalKind,
    /// The handler puts a byte into the other end.
    read: Async<UnixStream>,
    id: SigId,
}

impl Signal {
    /// Waits for the signal. If it has come several times since the last call, that counts as one.
    /// `None`: the runtime has ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub async fn recv(&mut self) -> Option<()> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The poll form of [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.read.poll_read_with(cx, take_all).map(Result::ok)
    }
}

/// Takes all notices that are there; at least one.
fn take_all(mut from: &UnixStream) -> io::Result<()> {
    let mut notices = [0; 64];
    let mut n = from.read(&mut notices)?;
    while n == notices.len() {
        n = from.read(&mut notices).unwrap_or(0);
    }
    Ok(())
}

impl Stream for Signal {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<()>> {
        self.poll_recv(cx)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // Before the socket goes: the handler must not write to one that nobody reads.
        signal_hook_registry::unregister(self.id);
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.kind).finish()
    }
}
