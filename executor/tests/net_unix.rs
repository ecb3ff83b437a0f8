//! Unix sockets.
#![cfg(unix)]

mod common;

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::each_kind;
use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use wakerun::net::{UnixDatagram, UnixListener, UnixStream};
use wakerun::task::JoinSet;

/// A path for a socket, removed in the end.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wakerun-{}-{n}.socket", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl AsRef<Path> for SocketPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the test as a task on each kind of runtime.
#[track_caller]
fn each<F, Fut>(test: F)
where
    F: Fn() -> Fut + Send + 'static,
    Fut: Future<Output = io::Result<()>> + Send + 'static,
{
    each_kind(move |_, runtime| {
        let task = runtime.spawn(test());
        runtime.block_on(task).unwrap().unwrap();
    });
}

#[test]
fn hundreds_of_connections_are_served_at_once() {
    each(|| async {
        const CONNECTIONS: usize = 200;
        let path = SocketPath::new();
        let listener = UnixListener::bind(&path)?;
        let mut tasks = JoinSet::new();
        for n in 0..CONNECTIONS {
            let path = path.0.clone();
            tasks.spawn(async move {
                let mut stream = UnixStream::connect(&path).await?;
                stream.write_all(format!("{n}").as_bytes()).await?;
                stream.close().await?;
                let mut echo = String::new();
                stream.read_to_string(&mut echo).await?;
                assert_eq!(echo, format!("{n}"));
                io::Result::Ok(())
            });
        }
        let streams: Vec<_> = listener.incoming().take(CONNECTIONS).try_collect().await?;
        for stream in streams {
            wakerun::spawn(async move {
                let stream: UnixStream = stream;
                futures_lite::io::copy(&stream, &stream).await
            });
        }
        tasks.join_all().await.into_iter().collect()
    });
}

#[test]
fn a_full_backlog_makes_connects_wait() {
    each(|| async {
        let path = SocketPath::new();
        let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        listener.bind(&socket2::SockAddr::unix(&path)?)?;
        listener.listen(1)?;
        let listener = UnixListener::from_std(listener.into())?;
        let mut clients = JoinSet::new();
        for _ in 0..10 {
            let path = path.0.clone();
            clients.spawn(async move { UnixStream::connect(path).await });
        }
        let mut streams = Vec::new();
        for _ in 0..10 {
            streams.push(listener.accept().await?.0);
        }
        for client in clients.join_all().await {
            client?;
        }
        Ok(())
    });
}

#[test]
fn nobody_listening_is_told() {
    each(|| async {
        let path = SocketPath::new();
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        drop(UnixListener::bind(&path)?);
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(
            UnixListener::bind(&path).unwrap_err().kind(),
            ErrorKind::AddrInUse
        );
        Ok(())
    });
}

#[test]
fn a_pair_is_split_and_ended() {
    each(|| async {
        let (one, mut two) = UnixStream::pair()?;
        let (mut read, mut write) = one.into_split();
        write.write_all(b"abc").await?;
        drop(write);
        let mut text = String::new();
        two.read_to_string(&mut text).await?;
        assert_eq!(text, "abc");
        two.write_all(b"def").await?;
        two.shutdown(std::net::Shutdown::Both)?;
        text.clear();
        read.read_to_string(&mut text).await?;
        assert_eq!(text, "def");
        assert!(two.peer_addr()?.is_unnamed() && two.local_addr()?.is_unnamed());
        let (one, two) = UnixStream::pair()?;
        assert_eq!(one.try_write(b"x")?, 1);
        two.readable().await?;
        assert_eq!(two.try_read(&mut [0; 4])?, 1);
        assert_eq!(
            two.try_read(&mut [0; 4]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        UnixStream::from_std(one.into_std()?)?;
        Ok(())
    });
}

#[cfg(target_os = "linux")]
#[test]
fn addresses_that_are_no_paths() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    each(|| async {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wakerun-test-{}-{n}", std::process::id());
        let addr = SocketAddr::from_abstract_name(&name)?;
        let listener = UnixListener::bind_addr(&addr)?;
        let mut client = UnixStream::connect_addr(&addr).await?;
        let (mut server, from) = listener.accept().await?;
        assert!(from.is_unnamed());
        server.write_all(b"x").await?;
        client.read_exact(&mut [0]).await?;
        assert_eq!(
            client.peer_addr()?.as_abstract_name(),
            Some(name.as_bytes())
        );
        let nameless = client.local_addr()?;
        let error = UnixStream::connect_addr(&nameless).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let path = SocketPath::new();
        let listener = UnixListener::bind(&path)?;
        UnixStream::connect_addr(&listener.local_addr()?).await?;
        Ok(())
    });
}

#[test]
fn datagrams_are_sent_and_received() {
    each(|| async {
        let (here, there) = (SocketPath::new(), SocketPath::new());
        let one = UnixDatagram::bind(&here)?;
        let two = UnixDatagram::bind(&there)?;
        let mut buf = [0; 16];
        one.send_to(b"to", &there).await?;
        let (n, from) = two.recv_from(&mut buf).await?;
        assert_eq!(
            (&buf[..n], from.as_pathname()),
            (&b"to"[..], Some(here.as_ref()))
        );
        one.connect(&there)?;
        one.send(b"connected").await?;
        assert_eq!(two.recv(&mut buf).await?, 9);
        assert_eq!(one.peer_addr()?.as_pathname(), Some(there.as_ref()));
        let nameless = UnixDatagram::unbound()?;
        nameless.connect_addr(&two.local_addr()?)?;
        assert_eq!(nameless.try_send(b"x")?, 1);
        assert!(two.recv_from(&mut buf).await?.1.is_unnamed());
        assert_eq!(
            two.try_recv(&mut buf).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(two.try_send_to(b"y", &here)?, 1);
        assert_eq!(one.try_recv_from(&mut buf)?.0, 1);
        let (three, four) = UnixDatagram::pair()?;
        poll_fn(|cx| three.poll_send(cx, b"z")).await?;
        assert_eq!(poll_fn(|cx| four.poll_recv(cx, &mut buf)).await?, 1);
        four.shutdown(std::net::Shutdown::Both)?;
        assert!(three.send(b"z").await.is_err());
        Ok(())
    });
}

#[test]
fn senders_of_datagrams_wait_while_the_queue_is_full() {
    each(|| async {
        const EACH: usize = 300;
        let path = SocketPath::new();
        let receiver = UnixDatagram::bind(&path)?;
        let mut senders = JoinSet::new();
        for connected in [true, false, false] {
            let path = path.0.clone();
            senders.spawn(async move {
                let socket = UnixDatagram::unbound()?;
                if connected {
                    socket.connect(&path)?;
                }
                for _ in 0..EACH {
                    if connected {
                        socket.send(b"x").await?;
                    } else {
                        socket.send_to(b"x", &path).await?;
                    }
                }
                io::Result::Ok(())
            });
        }
        for _ in 0..3 * EACH {
            receiver.recv(&mut [0]).await?;
        }
        senders.join_all().await.into_iter().collect()
    });
}
