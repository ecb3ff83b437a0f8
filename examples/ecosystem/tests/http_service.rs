//! Runs the example service as a process of its own, as its users and its disk would.
#![cfg(unix)]

#[path = "../../tests/support/program.rs"]
mod program;
#[path = "../../tests/support/server.rs"]
mod server;

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode};
use server::{LIMIT, Server};
use wakerun::net::TcpStream;
use wakerun::task::JoinSet;
use wakerun::time::{sleep, timeout};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Error>;

/// A path of its own, removed in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // It may be there from the last time.
        let _ = fs::remove_file(&path);
        Self(path)
    }

    fn pipe(name: &str) -> Self {
        let file = Self::new(name);
        let made = Command::new("mkfifo").arg(&file.0).status().unwrap();
        assert!(made.success());
        file
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn start(file: &File, capacity: usize) -> Server {
    server::raise_descriptor_limit();
    let mut program = program::example("http_service");
    program
        .arg("127.0.0.1:0")
        .arg(&file.0)
        .arg(capacity.to_string());
    Server::start(program)
}

fn run(test: impl Future<Output = Result>) {
    let runtime = wakerun::Runtime::new().unwrap();
    let ended = runtime.block_on(async { timeout(LIMIT, test).await });
    ended.expect("the test hangs").unwrap();
}

struct Client(SendRequest<Full<Bytes>>);

impl Client {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let (sender, connection) = handshake(stream).await?;
        wakerun::spawn(connection);
        Ok(Self(sender))
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .body(Full::new(body.into()))?;
        self.0.ready().await?;
        let (head, body) = self.0.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    async fn event(&mut self, text: String) -> Result<StatusCode> {
        Ok(self.send(Method::POST, "/events", text).await?.status())
    }

    /// A number of `/metrics`.
    async fn metric(&mut self, name: &str) -> Result<u64> {
        let response = self.send(Method::GET, "/metrics", "").await?;
        assert_eq!(response.status(), StatusCode::OK);
        let text = String::from_utf8(response.into_body().to_vec())?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.expect("the metric is there").trim().parse()?)
    }
}

#[test]
fn a_thousand_clients_events_are_written_once_each() {
    const CLIENTS: usize = 1000;
    const EVENTS: usize = 5;
    let file = File::new("events.log");
    let server = start(&file, 4096);
    let address = server.address;
    run(async {
        let mut clients = JoinSet::new();
        for n in 0..CLIENTS {
            clients.spawn(async move {
                let mut client = Client::connect(address).await?;
                for event in 0..EVENTS {
                    // A queue that is full for a moment is no loss: that is what 503 is for.
                    while client.event(format!("event {event} of {n}")).await?
                        != StatusCode::ACCEPTED
                    {
                        sleep(Duration::from_millis(5)).await;
                    }
                }
                Result::Ok(())
            });
        }
        clients.join_all().await.into_iter().collect::<Result>()?;
        let mut client = Client::connect(address).await?;
        assert_eq!(
            client.metric("events_accepted_total").await?,
            (CLIENTS * EVENTS) as u64
        );
        assert_eq!(client.metric("events_queue_capacity").await?, 4096);
        Ok(())
    });
    // What has been accepted is written before the end.
    assert!(server.interrupt().success());
    let text = fs::read_to_string(&file.0).unwrap();
    let lines: HashSet<&str> = text.lines().collect();
    assert_eq!(text.lines().count(), CLIENTS * EVENTS);
    let expected = |n, event| lines.contains(format!("event {event} of {n}").as_str());
    assert!((0..CLIENTS).all(|n| (0..EVENTS).all(|event| expected(n, event))));
}

#[test]
fn a_disk_that_stands_still_makes_it_refuse_and_recover() {
    const CAPACITY: usize = 32;
    let pipe = File::pipe("events.pipe");
    // Opened for both, so that opening does not wait for the other side.
    let mut options = fs::OpenOptions::new();
    let mut disk = options.read(true).write(true).open(&pipe.0).unwrap();
    // A pipe that nobody reads from any more would be a failure; it is open until the service has ended.
    let _open = disk.try_clone().unwrap();
    let server = start(&pipe, CAPACITY);
    let address = server.address;
    run(async move {
        let mut client = Client::connect(address).await?;
        // The pipe takes some, then the writer waits, and then the queue fills.
        let text = |n: usize| format!("{n:05} {}", "x".repeat(4000));
        let mut accepted = Vec::new();
        let mut refused = 0;
        for n in 0..1000 {
            match client.event(text(n)).await? {
                StatusCode::ACCEPTED => accepted.push(n),
                StatusCode::SERVICE_UNAVAILABLE => refused += 1,
                other => panic!("{other}"),
            }
        }
        assert!(refused > 500, "{refused} were refused");
        assert_eq!(client.metric("events_queued").await?, CAPACITY as u64);
        assert_eq!(client.metric("events_refused_total").await?, refused);
        let response = client.send(Method::POST, "/events", "x").await?;
        assert_eq!(response.headers()["retry-after"], "1");
        // Others are not held up, either.
        let mut other = timeout(Duration::from_secs(10), Client::connect(address)).await??;
        assert_eq!(
            other.event("y".to_owned()).await?,
            StatusCode::SERVICE_UNAVAILABLE
        );

        // The disk goes on: everything that was accepted is there, in order.
        let expected: usize = accepted.iter().map(|n| text(*n).len() + 1).sum();
        let read = wakerun::task::spawn_blocking(move || {
            let mut all = vec![0; expected];
            disk.read_exact(&mut all).map(|()| (all, disk))
        });
        let (all, _disk) = read.await??;
        let all = String::from_utf8(all)?;
        assert!(all.lines().eq(accepted.iter().map(|n| text(*n))));
        while client.event("z".to_owned()).await? != StatusCode::ACCEPTED {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    });
    assert!(server.interrupt().success());
}

#[test]
fn requests_that_are_wrong_are_answered_so() {
    let file = File::new("wrong.log");
    let server = start(&file, 4);
    let address = server.address;
    run(async move {
        let mut client = Client::connect(address).await?;
        let response = client.send(Method::GET, "/nowhere", "").await?;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        let response = client.send(Method::GET, "/events", "").await?;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "POST");
        let response = client.send(Method::POST, "/metrics", "").await?;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        let mut other = Client::connect(address).await?;
        let response = other
            .send(Method::POST, "/events", vec![b'x'; 65 * 1024])
            .await?;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        // No HTTP at all ends one connection and nothing else.
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"\0\0\0\0\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        assert!(answer.starts_with(b"HTTP/1.1 400"));
        assert_eq!(client.event("fine".to_owned()).await?, StatusCode::ACCEPTED);
        Ok(())
    });
    assert!(server.interrupt().success());
    assert_eq!(fs::read_to_string(&file.0).unwrap(), "fine\n");
}

#[test]
fn a_request_under_way_is_answered_at_the_end() {
    let file = File::new("end.log");
    let server = start(&file, 4);
    let address = server.address;
    let runtime = wakerun::Runtime::new().unwrap();
    let mut stream = runtime
        .block_on(async {
            let mut stream = TcpStream::connect(address).await?;
            let head = b"POST /events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n";
            stream.write_all(head).await?;
            // The answer to this says that the request is being handled.
            stream.write_all(b"expect: 100-continue\r\n\r\n").await?;
            let mut answer = [0; 25];
            stream.read_exact(&mut answer).await?;
            assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
            std::io::Result::Ok(stream)
        })
        .unwrap();
    let ending = std::thread::spawn(move || server.interrupt());
    runtime
        .block_on(async {
            // No longer is anybody let in.
            while TcpStream::connect(address).await.is_ok() {
                sleep(Duration::from_millis(5)).await;
            }
            stream.write_all(b"last").await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
            std::io::Result::Ok(())
        })
        .unwrap();
    assert!(ending.join().unwrap().success());
    assert_eq!(fs::read_to_string(&file.0).unwrap(), "last\n");
}

#[test]
fn a_full_disk_ends_the_service_with_an_error() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    server::raise_descriptor_limit();
    let mut program = program::example("http_service");
    program.args(["127.0.0.1:0", "/dev/full"]);
    let server = Server::start(program);
    let address = server.address;
    run(async {
        let mut client = Client::connect(address).await?;
        assert_eq!(client.event("lost".to_owned()).await?, StatusCode::ACCEPTED);
        Ok(())
    });
    assert!(!server.wait().success());
}
