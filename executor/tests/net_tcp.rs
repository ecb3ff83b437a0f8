//! TCP: connections, their ends and their errors.

mod common;

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Event, LIMIT, each_kind, within};
use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use wakerun::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use wakerun::task::JoinSet;

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

/// Two ends of a connection.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (one, two) = futures_lite::future::try_zip(
        TcpStream::connect(listener.local_addr()?),
        listener.accept(),
    )
    .await?;
    Ok((one, two.0))
}

/// An address at which nobody listens.
async fn deserted() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").await?.local_addr()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 % 251) as u8).collect()
}

#[test]
fn megabytes_go_both_ways_at_the_same_time() {
    each(|| async {
        const LEN: usize = 3_000_000;
        let (one, two) = pair().await?;
        let mut tasks = JoinSet::new();
        for stream in [one, two] {
            let (mut read, mut write) = stream.into_split();
            tasks.spawn(async move {
                // More than the system's buffers hold, so that writers have to wait.
                write.write_all(&pattern(LEN)).await?;
                write.close().await
            });
            tasks.spawn(async move {
                let mut data = Vec::new();
                read.read_to_end(&mut data).await?;
                assert!(data == pattern(LEN));
                Ok(())
            });
        }
        tasks.join_all().await.into_iter().collect()
    });
}

#[test]
fn hundreds_of_connections_are_served_at_once() {
    each(|| async {
        const CONNECTIONS: usize = 200;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        for n in 0..CONNECTIONS {
            tasks.spawn(async move {
                let mut stream = TcpStream::connect(addr).await?;
                let text = format!("client {n}");
                let mut echo = vec![0; text.len()];
                for _ in 0..3 {
                    stream.write_all(text.as_bytes()).await?;
                    stream.read_exact(&mut echo).await?;
                    assert_eq!(echo, text.as_bytes());
                }
                io::Result::Ok(())
            });
        }
        // All are open before the first is served.
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            streams.push(listener.accept().await?.0);
        }
        for stream in streams {
            wakerun::spawn(async move { futures_lite::io::copy(&stream, &stream).await });
        }
        tasks.join_all().await.into_iter().collect()
    });
}

#[test]
fn connect_tells_that_nobody_listens() {
    each(|| async {
        let error = TcpStream::connect(deserted().await?).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn connect_tries_all_addresses() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (good, bad) = (listener.local_addr()?, deserted().await?);
        let stream = TcpStream::connect([bad, good, bad].as_slice()).await?;
        assert_eq!(stream.peer_addr()?, good);
        let error = TcpStream::connect(vec![bad, bad]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = TcpStream::connect([]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        Ok(())
    });
}

#[test]
fn names_are_resolved_and_bad_ones_told() {
    each(|| async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        TcpStream::connect(("localhost", port)).await?;
        TcpStream::connect(("localhost".to_owned(), port)).await?;
        TcpStream::connect(format!("localhost:{port}")).await?;
        assert!(
            lookup_host("localhost:7")
                .await?
                .all(|addr| addr.port() == 7)
        );
        assert!(lookup_host("no port").await.is_err());
        assert!(lookup_host("name.invalid:80").await.is_err());
        Ok(())
    });
}

#[test]
fn a_connect_that_is_dropped_leaves_nothing() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        for _ in 0..10 {
            poll_once(TcpStream::connect(listener.local_addr()?));
        }
        // Those that were made before the drop have ended; the next one is not.
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        client.write_all(b"x").await?;
        loop {
            let (mut stream, from) = listener.accept().await?;
            if from == client.local_addr()? {
                stream.read_exact(&mut [0]).await?;
                return Ok(());
            }
            assert_ne!(stream.read(&mut [0]).await.ok(), Some(1));
        }
    });
}

/// Polls a future once and drops it; whether it was ready.
fn poll_once(future: impl Future) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut cx).is_ready()
}

#[test]
fn an_accept_that_is_dropped_loses_no_connection() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        assert!(!poll_once(listener.accept()));
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (_, from) = listener.accept().await?;
        assert_eq!(from, client.local_addr()?);
        Ok(())
    });
}

#[test]
fn incoming_gives_connections_in_order() {
    each(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let clients = wakerun::spawn(async move {
            let mut clients = Vec::new();
            for _ in 0..20 {
                clients.push(TcpStream::connect(addr).await?);
            }
            io::Result::Ok(clients)
        });
        let streams: Vec<_> = listener.incoming().take(20).try_collect().await?;
        for (client, stream) in clients.await.unwrap()?.iter().zip(&streams) {
            let _: &TcpStream = stream;
            assert_eq!(client.local_addr()?, stream.peer_addr()?);
        }
        Ok(())
    });
}

#[test]
fn peeked_bytes_are_read_again() {
    each(|| async {
        let (one, two) = pair().await?;
        (&one).write_all(b"abc").await?;
        let mut buf = [0; 8];
        while two.peek(&mut buf).await? < 3 {}
        assert_eq!(poll_fn(|cx| two.poll_peek(cx, &mut buf)).await?, 3);
        assert_eq!(&buf[..3], b"abc");
        (&two).read_exact(&mut buf[3..6]).await?;
        assert_eq!(&buf[3..6], b"abc");
        drop(one);
        assert_eq!(two.peek(&mut buf).await?, 0);
        Ok(())
    });
}

#[test]
fn several_buffers_go_in_one_call() {
    each(|| async {
        let (mut one, mut two) = pair().await?;
        let bufs = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(one.write_vectored(&bufs).await?, 5);
        let (mut first, mut second) = ([0; 3], [0; 8]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(two.read_vectored(&mut bufs).await?, 5);
        assert_eq!((&first, &second[..2]), (b"abc", &b"de"[..]));
        Ok(())
    });
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    each(|| async {
        let (mut one, mut two) = pair().await?;
        one.write_all(b"last").await?;
        one.close().await?;
        one.close().await?;
        let mut text = String::new();
        two.read_to_string(&mut text).await?;
        assert_eq!(text, "last");
        assert_eq!(
            one.write(b"x").await.unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
        two.write_all(b"answer").await?;
        two.shutdown(Shutdown::Both)?;
        text.clear();
        one.read_to_string(&mut text).await?;
        assert_eq!(text, "answer");
        Ok(())
    });
}

#[test]
fn halves_share_a_stream_and_find_each_other_again() {
    each(|| async {
        let (mut one, two) = pair().await?;
        {
            let (mut read, mut write) = one.split();
            let (mut other_read, mut other_write) = (&two, &two);
            write.write_all(b"to").await?;
            other_write.write_all(b"fro").await?;
            let mut buf = [0; 3];
            other_read.read_exact(&mut buf[..2]).await?;
            read.read_exact(&mut buf).await?;
            assert_eq!(&buf, b"fro");
            assert_eq!(read.peer_addr()?, write.peer_addr()?);
        }
        let (read, write) = one.into_split();
        let (other_read, other_write) = two.into_split();
        let error = read.reunite(other_write).unwrap_err();
        assert!(error.to_string().contains("not of the same stream"));
        let (read, other_write) = (error.0, error.1);
        // Neither the failed attempt nor this one has ended a direction.
        let mut one = write.reunite(read).unwrap();
        let mut two = other_read.reunite(other_write).unwrap();
        one.write_all(b"x").await?;
        two.write_all(b"y").await?;
        one.read_exact(&mut [0]).await?;
        two.read_exact(&mut [0]).await?;

        let (mut read, write) = one.into_split();
        write.forget();
        two.write_all(b"z").await?;
        read.read_exact(&mut [0]).await?;
        assert!(!poll_once(two.read(&mut [0])), "the direction has ended");
        drop(read);
        assert_eq!(two.read(&mut [0]).await?, 0);
        Ok(())
    });
}

#[test]
fn a_dropped_write_half_ends_its_direction() {
    each(|| async {
        let (one, mut two) = pair().await?;
        let (mut read, write) = one.into_split();
        drop(write);
        assert_eq!(two.read(&mut [0; 4]).await?, 0);
        two.write_all(b"still").await?;
        drop(two);
        let mut text = String::new();
        read.read_to_string(&mut text).await?;
        assert_eq!(text, "still");
        Ok(())
    });
}

#[test]
fn readiness_and_tries_do_not_wait_for_each_other() {
    each(|| async {
        let (one, two) = pair().await?;
        let mut buf = [0; 8];
        assert_eq!(
            two.try_read(&mut buf).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        one.writable().await?;
        assert_eq!(one.try_write(b"abc")?, 3);
        two.readable().await?;
        assert_eq!(two.try_read(&mut buf)?, 3);
        assert_eq!(
            two.try_read(&mut buf).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        // What has been taken does not count as ready again.
        assert!(!poll_once(two.readable()));
        poll_fn(|cx| one.poll_writable(cx)).await?;
        drop(one);
        poll_fn(|cx| two.poll_readable(cx)).await?;
        assert_eq!(two.try_read(&mut buf)?, 0);
        Ok(())
    });
}

#[test]
fn options_are_kept() {
    each(|| async {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.set_keepalive(Some(Duration::from_secs(30)))?;
        socket.set_keepalive(None)?;
        socket.set_send_buffer_size(64 * 1024)?;
        socket.set_recv_buffer_size(64 * 1024)?;
        socket.bind("127.0.0.1:0".parse().unwrap())?;
        let addr = socket.local_addr()?;
        let listener = socket.listen(4)?;
        assert_eq!(listener.local_addr()?, addr);
        listener.set_ttl(40)?;
        assert_eq!(listener.ttl()?, 40);

        let socket = TcpSocket::new_v4()?;
        socket.set_nodelay(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        let stream = socket.connect(addr).await?;
        assert!(stream.nodelay()?);
        assert_eq!(stream.linger()?, Some(Duration::ZERO));
        stream.set_nodelay(false)?;
        assert!(!stream.nodelay()?);
        stream.set_ttl(41)?;
        assert_eq!(stream.ttl()?, 41);
        assert!(stream.take_error()?.is_none());

        // A drop without lingering resets the connection.
        let (mut server, _) = listener.accept().await?;
        drop(stream);
        let error = server.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        let second = TcpListener::bind(addr).await.unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        assert!(format!("{listener:?}").contains("127.0.0.1"));
        Ok(())
    });
}

#[test]
fn sockets_of_std_go_in_and_out() {
    each(|| async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let client = std::net::TcpStream::connect(addr)?;
        let mut client = TcpStream::try_from(client)?;
        let (server, _) = listener.accept().await?;
        let server = TcpStream::from_std(server.into_std()?)?;
        (&server).write_all(b"x").await?;
        client.read_exact(&mut [0]).await?;
        listener.into_std()?;
        Ok(())
    });
}

#[test]
fn a_task_that_never_has_to_wait_lets_others_run() {
    each(|| async {
        let (one, two) = pair().await?;
        let other = Event::new();
        let set = other.clone();
        let busy = wakerun::spawn(async move {
            while !other.is_set() {
                (&one).write_all(b"x").await?;
                (&two).read_exact(&mut [0]).await?;
            }
            io::Result::Ok(())
        });
        // Behind the busy one in the only queue, where there is one worker.
        wakerun::task::yield_now().await;
        set.set();
        busy.await.unwrap()
    });
}

#[test]
fn sockets_need_a_runtime_only_to_be_made() {
    within("sockets outside", || {
        let error = common::block_on(TcpListener::bind("127.0.0.1:0")).unwrap_err();
        assert!(error.to_string().contains("no wakerun runtime"), "{error}");
        let error = common::block_on(TcpStream::connect("127.0.0.1:1")).unwrap_err();
        assert!(
            error.to_string().contains("no wakerun runtime")
                || error.kind() == ErrorKind::ConnectionRefused,
            "{error}"
        );

        // The workers serve those who wait elsewhere.
        let runtime = wakerun::Runtime::new().unwrap();
        let (one, mut two) = runtime.block_on(pair()).unwrap();
        let reader = std::thread::spawn(move || {
            common::block_on(async {
                let mut buf = [0; 4];
                two.read_exact(&mut buf).await.map(|()| buf)
            })
        });
        common::block_on((&one).write_all(b"ping")).unwrap();
        assert_eq!(&reader.join().unwrap().unwrap(), b"ping");
    });
}

#[test]
fn the_end_of_the_runtime_closes_what_its_tasks_hold() {
    each_kind(|_, runtime| {
        let (mut outside, held) = runtime
            .block_on(async {
                let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
                let outside = std::net::TcpStream::connect(listener.local_addr()?)?;
                let held = TcpStream::from_std(listener.accept()?.0)?;
                io::Result::Ok((outside, held))
            })
            .unwrap();
        let waiting = Event::new();
        let waits = waiting.clone();
        runtime.spawn(async move {
            let mut held = held;
            assert!(!poll_once(held.read(&mut [0])));
            waits.set();
            let _ = held.read(&mut [0]).await;
        });
        runtime.block_on(waiting.wait());
        drop(runtime);
        outside.set_read_timeout(Some(LIMIT / 2)).unwrap();
        assert_eq!(io::Read::read(&mut outside, &mut [0]).unwrap(), 0);
    });
}

#[test]
fn a_socket_that_outlives_its_runtime_fails_instead_of_waiting() {
    each_kind(|_, runtime| {
        let (one, mut two) = runtime.block_on(pair()).unwrap();
        drop(runtime);
        // What needs no waiting still goes.
        assert_eq!(common::block_on((&one).write(b"x")).unwrap(), 1);
        let mut buf = [0; 4];
        let mut got = 0;
        let error = loop {
            match common::block_on(two.read(&mut buf)) {
                Ok(n) => got += n,
                Err(error) => break error,
            }
        };
        assert!(got <= 1);
        assert!(error.to_string().contains("shut down"), "{error}");
    });
}

// ---- no descriptors left: in a process of its own

#[cfg(target_os = "linux")]
#[test]
fn no_descriptors_left_is_told_and_does_not_spin() {
    use std::time::Instant;

    const CHILD: &str = "WAKERUN_TEST_FEW_DESCRIPTORS";

    if std::env::var_os(CHILD).is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "no_descriptors_left_is_told_and_does_not_spin"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    each_kind(|_, runtime| {
        runtime
            .block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let addr = listener.local_addr()?;
                let first = TcpStream::connect(addr).await?;
                listener.accept().await?;
                // Clients whose connections wait in the listener's queue, then no descriptor more.
                let clients = [
                    std::net::TcpStream::connect(addr)?,
                    std::net::TcpStream::connect(addr)?,
                ];
                let mut hoard = Vec::new();
                let error = loop {
                    match std::fs::File::open("/dev/null") {
                        Ok(file) => hoard.push(file),
                        Err(error) => break error,
                    }
                };
                let start = Instant::now();
                let mut told = 0;
                while start.elapsed() < Duration::from_millis(400) {
                    let accepted = listener.accept().await.unwrap_err();
                    assert_eq!(accepted.raw_os_error(), error.raw_os_error());
                    told += 1;
                }
                assert!((2..=10).contains(&told), "{told} tries in 400 ms");
                // The same where there are no timers.
                let listener = std::thread::spawn(move || {
                    let start = Instant::now();
                    common::block_on(listener.accept()).unwrap_err();
                    common::block_on(listener.accept()).unwrap_err();
                    assert!(start.elapsed() >= Duration::from_millis(50));
                    listener
                })
                .join()
                .unwrap();
                let mut incoming = listener.incoming();
                assert!(incoming.next().await.unwrap().is_err());
                // Room again: both get in.
                drop(hoard);
                let mut streams = [incoming.next().await.unwrap()?, listener.accept().await?.0];
                for (mut client, stream) in clients.iter().zip(&mut streams) {
                    io::Write::write_all(&mut client, b"in")?;
                    stream.read_exact(&mut [0; 2]).await?;
                }
                drop(first);
                io::Result::Ok(())
            })
            .unwrap();
    });
}

#[test]
fn poll_forms_are_ready_or_wake() {
    each(|| async {
        let (one, two) = pair().await?;
        let (woken, waker) = common::counter();
        assert!(
            two.poll_readable(&mut Context::from_waker(&waker))
                .is_pending()
        );
        (&one).write_all(b"x").await?;
        while woken.count() == 0 {
            wakerun::task::yield_now().await;
        }
        let ready = two.poll_readable(&mut Context::from_waker(&waker));
        assert!(matches!(ready, Poll::Ready(Ok(()))));
        Ok(())
    });
}
