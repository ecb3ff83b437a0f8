//! hyper's server and client on wakerun's executor, timer and streams.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1 as client1, http2 as client2};
use hyper::rt::Timer as _;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use wakerun::hyper::{Executor, Io, Timer};
use wakerun::net::{TcpStream, UnixListener, UnixStream};
use wakerun::task::JoinSet;
use wakerun::time::{Instant, timeout};

use super::{Result, each, pattern, serve};

/// Sends the body back as it comes in.
async fn echo(request: Request<Incoming>) -> std::result::Result<Response<Incoming>, Infallible> {
    Ok(Response::new(request.into_body()))
}

async fn server1() -> Result<SocketAddr> {
    serve(|stream| async {
        let mut http = http1::Builder::new();
        http.timer(Timer)
            .serve_connection(stream, service_fn(echo))
            .await?;
        Ok(())
    })
    .await
}

fn request(body: &[u8]) -> Request<Full<Bytes>> {
    Request::post("http://localhost/")
        .header("host", "localhost")
        .body(Full::from(body.to_vec()))
        .unwrap()
}

async fn body(response: Response<Incoming>) -> Result<Bytes> {
    Ok(response.into_body().collect().await?.to_bytes())
}

#[test]
fn many_connections_keep_alive_over_many_requests() {
    each(|| async {
        let address = server1().await?;
        let mut clients = JoinSet::new();
        for n in 0..100 {
            clients.spawn(async move {
                let stream = TcpStream::connect(address).await?;
                let (mut sender, connection) = client1::handshake(stream).await?;
                let connection = wakerun::spawn(connection);
                for round in 0..10 {
                    let text = format!("{n}, {round}");
                    sender.ready().await?;
                    let response = sender.send_request(request(text.as_bytes())).await?;
                    assert_eq!(body(response).await?, text);
                }
                drop(sender);
                connection.await??;
                Result::Ok(())
            });
        }
        clients.join_all().await.into_iter().collect()
    });
}

#[test]
fn megabytes_stream_through() {
    each(|| async {
        let address = server1().await?;
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = client1::handshake(stream).await?;
        wakerun::spawn(connection);
        let data = pattern(3_000_000);
        for _ in 0..2 {
            sender.ready().await?;
            let response = sender.send_request(request(&data)).await?;
            assert!(body(response).await? == data);
        }
        Ok(())
    });
}

#[test]
fn other_streams_go_through_the_wrapper() {
    each(|| async {
        let address = serve(|stream| async {
            let stream = Io::new(stream);
            http1::Builder::new()
                .serve_connection(stream, service_fn(echo))
                .await?;
            Ok(())
        })
        .await?;
        let stream = Io::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = client1::handshake(stream).await?;
        wakerun::spawn(connection);
        for len in [0, 1, 10, 100_000, 1_000_000] {
            let data = pattern(len);
            sender.ready().await?;
            let response = sender.send_request(request(&data)).await?;
            assert!(body(response).await? == data);
        }
        Ok(())
    });
}

#[test]
fn unix_sockets_serve_too() {
    each(|| async {
        let path = std::env::temp_dir().join(format!("wakerun-hyper-{}", std::process::id()));
        let listener = UnixListener::bind(&path)?;
        let stream = UnixStream::connect(&path).await;
        std::fs::remove_file(&path)?;
        let (server, _) = listener.accept().await?;
        wakerun::spawn(http1::Builder::new().serve_connection(server, service_fn(echo)));
        let (mut sender, connection) = client1::handshake(stream?).await?;
        wakerun::spawn(connection);
        sender.ready().await?;
        let response = sender.send_request(request(b"hello")).await?;
        assert_eq!(body(response).await?, "hello");
        Ok(())
    });
}

#[test]
fn hundreds_of_streams_share_one_connection() {
    each(|| async {
        let address = serve(|stream| async {
            let mut http = http2::Builder::new(Executor);
            http.timer(Timer)
                .keep_alive_interval(Duration::from_millis(5));
            http.serve_connection(stream, service_fn(echo)).await?;
            Ok(())
        })
        .await?;
        let stream = TcpStream::connect(address).await?;
        let (sender, connection) = client2::handshake(Executor, stream).await?;
        let connection = wakerun::spawn(connection);
        let mut requests = JoinSet::new();
        for n in 0..300 {
            let mut sender = sender.clone();
            requests.spawn(async move {
                let data = pattern(n * 100);
                sender.ready().await?;
                let response = sender.send_request(request(&data)).await?;
                assert!(body(response).await? == data);
                Result::Ok(())
            });
        }
        requests.join_all().await.into_iter().collect::<Result>()?;
        drop(sender);
        connection.await??;
        Ok(())
    });
}

#[test]
fn a_client_that_sends_no_head_is_cut_off_in_time() {
    each(|| async {
        const LIMIT: Duration = Duration::from_millis(50);
        let address = serve(|stream| async {
            let mut http = http1::Builder::new();
            http.timer(Timer).header_read_timeout(LIMIT);
            let error = http.serve_connection(stream, service_fn(echo)).await;
            assert!(error.unwrap_err().is_timeout());
            Ok(())
        })
        .await?;
        let start = Instant::now();
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"POST / HTTP/1.1\r\nhost: ").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        assert!(start.elapsed() >= LIMIT);
        Ok(())
    });
}

#[test]
fn the_timer_sleeps_resets_and_keeps_the_runtimes_clock() {
    each(|| async {
        let (start, step) = (Timer.now(), Duration::from_millis(20));
        Timer.sleep(step).await;
        assert!(start.elapsed() >= step);
        Timer.sleep_until(start).await;
        // Put off, and brought forward.
        let mut sleep = Timer.sleep(step);
        let later = Timer.now() + 2 * step;
        Timer.reset(&mut sleep, later);
        sleep.as_mut().await;
        assert!(Timer.now() >= later);
        let mut sleep = Timer.sleep(Duration::from_secs(3600));
        Timer.reset(&mut sleep, Timer.now() + step);
        timeout(super::LIMIT, sleep).await?;
        Ok(())
    });
}

#[test]
fn a_paused_clock_is_hypers_too() {
    let mut builder = wakerun::Builder::new_current_thread();
    let runtime = builder.start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (real, start) = (std::time::Instant::now(), Timer.now());
        Timer.sleep(Duration::from_secs(3600)).await;
        assert!(Timer.now() - start >= Duration::from_secs(3600));
        assert!(real.elapsed() < Duration::from_secs(60));
    });
}
