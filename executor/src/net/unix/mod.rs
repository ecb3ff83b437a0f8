//! Unix sockets: streams and datagrams on one machine, at paths.
//!
//! The path of a socket is not removed when the socket is dropped, and must not exist when one is bound
//! to it.

mod datagram;
mod listener;
mod stream;

pub use datagram::UnixDatagram;
pub use listener::{Incoming, UnixListener};
pub use stream::UnixStream;

pub use std::os::unix::net::SocketAddr;

use std::time::Duration;

/// The first wait, and the longest, for room in a queue about which the system tells nothing.
const RETRY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];
