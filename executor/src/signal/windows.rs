//! Ctrl-C on Windows.
//!
//! The C library calls a handler on a thread of its own. As on Unix, the handler puts a notice into a
//! socket that the runtime watches; pairs of sockets do not exist, so it is one that sends to itself.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

use signal_hook_registry::SigId;

use crate::io::Async;

/// `SIGINT` in the C library.
const INTERRUPT: i32 = 2;

/// Tells of Ctrl-C.
pub(super) struct Interrupts {
    notices: Async<Arc<UdpSocket>>,
    id: SigId,
}

pub(super) fn interrupts() -> io::Result<Interrupts> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    // It takes datagrams of nobody else, either.
    socket.connect(socket.local_addr()?)?;
    socket.set_nonblocking(true)?;
    let socket = Arc::new(socket);
    let notices = Async::new_nonblocking(socket.clone())?;
    let tell = move || {
        // A full socket holds a notice already.
        let _ = socket.send(&[1]);
    };
    // SAFETY: the action is called by the C library, on a thread that it starts for that, or on one
    // that raises the signal. It makes one system call, on a socket that is open as long as the action
    // is registered, and neither allocates nor locks nor panics.
    let id = unsafe { signal_hook_registry::register(INTERRUPT, tell) }?;
    Ok(Interrupts { notices, id })
}

impl Interrupts {
    /// Waits for Ctrl-C. `None`: the runtime has ended.
    pub(super) async fn recv(&mut self) -> Option<()> {
        let notice = self.notices.read_with(|socket| socket.recv(&mut [0; 1]));
        notice.await.map(drop).ok()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        signal_hook_registry::unregister(self.id);
    }
}
