//! Takes events by HTTP and writes them to a file; see the README beside it.
//!
//! ```text
//! cargo run --release --example http_service -- ADDRESS FILE [CAPACITY]
//! ```

mod metrics;
mod service;
mod writer;

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use wakerun::fs::OpenOptions;
use wakerun::net::{TcpListener, TcpStream};
use wakerun::signal::unix::{SignalKind, signal};
use wakerun::task::{JoinError, JoinSet};
use wakerun::time::timeout;
use wakerun_channel::mpsc::{self, Sender};

use metrics::Metrics;
use service::Service;

/// Events that wait to be written at most, unless the command line says otherwise.
const CAPACITY: usize = 1024;
/// How long a client may take for the head of a request, and an unused connection stays open.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a request may take in all.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// How long requests may go on when the service ends.
const GRACE: Duration = Duration::from_secs(5);

#[wakerun::main]
async fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(file)) = (args.next(), args.next()) else {
        return Err(invalid("usage: http_service ADDRESS FILE [CAPACITY]"));
    };
    let capacity = match args.next() {
        None => CAPACITY,
        Some(text) => match text.parse() {
            Ok(capacity) if (1..=mpsc::MAX_CAPACITY).contains(&capacity) => capacity,
            _ => {
                return Err(invalid(
                    "the capacity must be a number of events, 1 at least",
                ));
            }
        },
    };
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .await?;
    let listener = TcpListener::bind(address).await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    println!("listening on {}", listener.local_addr()?);

    let metrics = Arc::new(Metrics::default());
    let (events, to_write) = mpsc::channel(capacity);
    let service = Arc::new(Service::new(events, metrics.clone()));
    let mut writer = wakerun::spawn(writer::write(to_write, file, metrics));

    // Closed when the service is to end: connections wait for that.
    let (running, stop) = mpsc::channel::<()>(1);
    let mut connections = JoinSet::new();
    let serving = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, service.clone(), running.clone()));
                    // Those that have ended meanwhile.
                    while connections.try_join_next().is_some() {}
                }
                Err(error) => eprintln!("a connection could not be accepted: {error}"),
            }
        }
    };
    // The writer does not end before the service, unless it fails: on a full disk, for example.
    let failed = async { result_of((&mut writer).await) };
    let asked = async {
        or(interrupt.recv(), terminate.recv()).await;
        Ok(())
    };
    or(serving, or(asked, failed)).await?;

    drop(listener);
    drop(stop);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(GRACE, all_ended).await.is_err() {
        eprintln!("some requests are cut off");
        connections.shutdown().await;
    }
    // With the last sender the channel ends, and the writer when it has written all.
    drop(service);
    result_of(writer.await)
}

/// The error of a task that failed or panicked.
fn result_of(ended: Result<io::Result<()>, JoinError>) -> io::Result<()> {
    ended.map_err(io::Error::other)?
}

/// Serves a connection until it ends, or the service does.
async fn serve(stream: TcpStream, service: Arc<Service>, running: Sender<()>) {
    // Answers are small, and not to be held back.
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let service = service.clone();
        async move {
            let answer = timeout(REQUEST_LIMIT, service.answer(request)).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|_| service::too_late()))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(wakerun::hyper::Timer)
        .header_read_timeout(HEAD_LIMIT);
    let mut connection = pin!(http.serve_connection(stream, answer));
    let ended = or(async { Some(connection.as_mut().await) }, async {
        running.closed().await;
        None
    })
    .await;
    let result = match ended {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // Clients go away, which is not worth a line, and send nonsense, which concerns nobody else.
    if let Err(error) = result
        && !error.is_incomplete_message()
    {
        eprintln!("a connection ended early: {error}");
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
