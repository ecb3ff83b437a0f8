//! TCP: streams of bytes over the network.

mod listener;
mod socket;
mod stream;

pub use listener::{Incoming, TcpListener};
pub use socket::TcpSocket;
pub use stream::TcpStream;
