//! TCP, UDP and Unix sockets.
//!
//! Windows has no Unix sockets here.
//!
//! Streams implement `AsyncRead` and `AsyncWrite` of [futures-io](https://docs.rs/futures-io), owned and
//! by `&`, so that the methods of `futures-lite` or `futures-util` and the crates built on them work on
//! them. For descriptors that have no type here there is [`io::Async`](crate::io::Async).
//!
//! A socket belongs to the runtime inside which it was made: its reactor tells when the socket is ready.
//! It may be moved to, and awaited in, any task of any executor. Outside a runtime making a socket fails
//! with an [`io::Error`](std::io::Error) that says so. When its runtime has ended, operations that would
//! have to wait fail.
//!
//! Where a name is to be resolved ([`ToSocketAddrs`]), that is done on the pool for blocking work.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use wakerun::net::{TcpListener, TcpStream};
//!
//! wakerun::block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let server = wakerun::spawn(async move {
//!         let (mut stream, _) = listener.accept().await?;
//!         stream.write_all(b"hello").await?;
//!         stream.close().await
//!     });
//!     let mut text = String::new();
//!     TcpStream::connect(address).await?.read_to_string(&mut text).await?;
//!     assert_eq!(text, "hello");
//!     server.await.unwrap()
//! })?;
//! # std::io::Result::Ok(())
//! ```

mod accept;
mod addr;
mod halves;
mod nap;
mod traits;

pub mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use addr::{ToSocketAddrs, lookup_host};
pub use halves::{Duplex, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use tcp::{TcpListener, TcpSocket, TcpStream};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{UnixDatagram, UnixListener, UnixStream};
