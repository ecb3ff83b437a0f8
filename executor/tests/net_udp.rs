//! UDP.

mod common;

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use common::{Event, each_kind};
use wakerun::net::UdpSocket;
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

async fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind("127.0.0.1:0").await?;
    let two = UdpSocket::bind("127.0.0.1:0").await?;
    one.connect(two.local_addr()?).await?;
    two.connect(one.local_addr()?).await?;
    Ok((one, two))
}

/// Polls a future once and drops it; whether it was ready.
fn poll_once(future: impl Future) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut cx).is_ready()
}

#[test]
fn datagrams_keep_their_bounds_and_tell_their_sender() {
    each(|| async {
        let one = UdpSocket::bind("127.0.0.1:0").await?;
        let two = UdpSocket::bind(("127.0.0.1", 0)).await?;
        let (from, to) = (one.local_addr()?, two.local_addr()?);
        assert_eq!(one.send_to(b"first", to).await?, 5);
        assert_eq!(one.send_to(b"", to).await?, 0);
        assert_eq!(one.send_to(b"too long", ("127.0.0.1", to.port())).await?, 8);
        let mut buf = [0; 5];
        assert_eq!(two.peek_from(&mut buf).await?, (5, from));
        assert_eq!(two.recv_from(&mut buf).await?, (5, from));
        assert_eq!(&buf, b"first");
        assert_eq!(two.recv_from(&mut buf).await?, (0, from));
        assert_eq!(two.recv_from(&mut buf).await?, (5, from), "cut off");
        assert_eq!(&buf, b"too l");
        Ok(())
    });
}

#[test]
fn connected_sockets_talk_to_each_other_only() {
    each(|| async {
        let (one, two) = pair().await?;
        let stranger = UdpSocket::bind("127.0.0.1:0").await?;
        stranger.send_to(b"psst", two.local_addr()?).await?;
        one.send(b"hello").await?;
        let mut buf = [0; 16];
        assert_eq!(two.peek(&mut buf).await?, 5);
        assert_eq!(two.recv(&mut buf).await?, 5);
        assert_eq!(two.peer_addr()?, one.local_addr()?);
        assert!(stranger.send(b"to whom?").await.is_err());
        assert!(stranger.peer_addr().is_err());
        poll_fn(|cx| two.poll_send(cx, b"back")).await?;
        assert_eq!(poll_fn(|cx| one.poll_recv(cx, &mut buf)).await?, 4);
        Ok(())
    });
}

#[test]
fn each_of_several_receivers_gets_a_datagram_even_when_others_give_up() {
    each(|| async {
        for round in 0..200 {
            let (one, two) = pair().await?;
            let two = Arc::new(two);
            let waiting = Arc::new(AtomicUsize::new(0));
            let mut tasks = JoinSet::new();
            for n in 0..4 {
                let (two, waiting) = (two.clone(), waiting.clone());
                tasks.spawn(async move {
                    if n == round % 4 {
                        // One that waits for a moment and goes.
                        poll_once(two.recv(&mut [0; 4]));
                    }
                    waiting.fetch_add(1, Ordering::Relaxed);
                    two.recv(&mut [0; 4]).await
                });
            }
            while waiting.load(Ordering::Relaxed) < 4 {
                wakerun::task::yield_now().await;
            }
            for _ in 0..4 {
                one.send(b"x").await?;
                wakerun::task::yield_now().await;
            }
            for received in tasks.join_all().await {
                assert_eq!(received?, 1);
            }
        }
        Ok(())
    });
}

#[test]
fn tries_do_not_wait() {
    each(|| async {
        let (one, two) = pair().await?;
        let mut buf = [0; 8];
        assert_eq!(
            two.try_recv(&mut buf).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        one.writable().await?;
        assert_eq!(one.try_send(b"abc")?, 3);
        two.readable().await?;
        assert_eq!(two.try_recv_from(&mut buf)?, (3, one.local_addr()?));
        assert!(!poll_once(two.readable()));
        let free = UdpSocket::bind("127.0.0.1:0").await?;
        assert_eq!(free.try_send_to(b"abcd", two.local_addr()?)?, 4);
        poll_fn(|cx| free.poll_send_to(cx, b"abcd", one.local_addr().unwrap())).await?;
        assert!(!poll_once(poll_fn(|cx| free.poll_recv_from(cx, &mut [0]))));
        Ok(())
    });
}

#[test]
fn what_the_network_answers_is_told() {
    each(|| async {
        let (one, two) = pair().await?;
        drop(two);
        one.send(b"anybody?").await?;
        let error = one.recv(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn options_are_kept() {
    each(|| async {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        socket.set_broadcast(true)?;
        assert!(socket.broadcast()?);
        socket.set_ttl(33)?;
        assert_eq!(socket.ttl()?, 33);
        socket.set_multicast_loop_v4(true)?;
        socket.set_multicast_ttl_v4(2)?;
        assert!(socket.take_error()?.is_none());
        let not_one = std::net::Ipv4Addr::LOCALHOST;
        assert!(socket.join_multicast_v4(not_one, not_one).is_err());
        UdpSocket::from_std(socket.into_std()?)?;
        Ok(())
    });
}

#[test]
fn a_socket_that_is_always_ready_lets_others_run() {
    each(|| async {
        let (one, two) = pair().await?;
        let other = Event::new();
        let set = other.clone();
        let busy = wakerun::spawn(async move {
            while !other.is_set() {
                one.send(b"x").await?;
                two.recv(&mut [0]).await?;
            }
            io::Result::Ok(())
        });
        wakerun::task::yield_now().await;
        set.set();
        busy.await.unwrap()
    });
}
