//! What may go to other threads: sockets, files, and the futures of their operations.
#![cfg(unix)]

use std::net::SocketAddr;

use wakerun::fs::{self, File, OpenOptions, ReadDir};
use wakerun::net::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, TcpListener, TcpSocket, TcpStream, UdpSocket,
    UnixDatagram, UnixListener, UnixStream, WriteHalf, tcp, unix,
};
use wakerun::signal::unix::Signal;

fn everywhere<T: Send + Sync + Unpin>() {}
fn send<T: Send>(_: impl FnOnce() -> T) {}

#[test]
fn values_may_go_and_be_seen_everywhere() {
    everywhere::<TcpListener>();
    everywhere::<TcpSocket>();
    everywhere::<TcpStream>();
    everywhere::<UdpSocket>();
    everywhere::<UnixDatagram>();
    everywhere::<UnixListener>();
    everywhere::<UnixStream>();
    everywhere::<ReadHalf<'_, TcpStream>>();
    everywhere::<WriteHalf<'_, UnixStream>>();
    everywhere::<OwnedReadHalf<TcpStream>>();
    everywhere::<OwnedWriteHalf<UnixStream>>();
    everywhere::<tcp::Incoming<'_>>();
    everywhere::<unix::Incoming<'_>>();
    everywhere::<File>();
    everywhere::<OpenOptions>();
    everywhere::<ReadDir>();
    everywhere::<Signal>();
}

/// Compiled, not run.
#[allow(dead_code, clippy::too_many_arguments)]
fn futures_may_go_to_other_threads(
    listener: &TcpListener,
    stream: &TcpStream,
    udp: &UdpSocket,
    unix: &UnixListener,
    datagram: &UnixDatagram,
    file: &mut File,
    folder: &mut ReadDir,
    signal: &mut Signal,
) {
    send(|| TcpListener::bind("localhost:0"));
    send(|| TcpStream::connect(("localhost", 1)));
    send(|| TcpStream::connect([SocketAddr::from(([127, 0, 0, 1], 1))]));
    send(|| listener.accept());
    send(|| stream.readable());
    send(|| stream.peek(&mut []));
    send(|| UdpSocket::bind("localhost:0"));
    send(|| udp.connect("localhost:1".to_owned()));
    send(|| udp.send_to(&[], "localhost:1"));
    send(|| udp.recv_from(&mut []));
    send(|| unix.accept());
    send(|| UnixStream::connect("/nowhere"));
    send(|| datagram.send_to(&[], "/nowhere"));
    send(|| wakerun::net::lookup_host("localhost:1"));
    send(|| fs::copy("from", "to"));
    send(|| fs::read_dir("folder"));
    send(|| File::open("file"));
    send(|| file.sync_all());
    send(|| folder.next_entry());
    send(|| signal.recv());
    send(wakerun::signal::ctrl_c);
}
