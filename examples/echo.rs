//! A server that sends back what it gets.
//!
//! ```text
//! cargo run --release --example echo -- 127.0.0.1:7000
//! ```
//!
//! Port 0 is a free one; the address is printed. Ctrl-C ends the server.

use futures_lite::future::or;
use wakerun::net::{TcpListener, TcpStream};
use wakerun::signal;

#[wakerun::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:7000")).await?;
    println!("listening on {}", listener.local_addr()?);

    // Whichever ends first; the tasks of the connections end with `main`.
    or(serve(&listener), signal::ctrl_c()).await
}

async fn serve(listener: &TcpListener) -> std::io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(wakerun::spawn(echo(stream))),
            // Too many open files, for example. Connections wait until there are less: the next
            // accept is the one that waits, so that this loop does not spin.
            Err(error) => eprintln!("a connection could not be accepted: {error}"),
        }
    }
}

async fn echo(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    // `&stream` reads and writes. A client that does not read what it gets back makes the write
    // wait, and with it the next read: nothing piles up here.
    futures_lite::io::copy(&stream, &stream).await?;
    Ok(())
}
