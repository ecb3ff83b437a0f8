//! The same service on tokio, to be loaded beside the one on wakerun (`load.py`): the same answers, the
//! same channel, the same writer; only what a runtime provides is tokio's.

mod metrics;
mod service;
mod writer;

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_compat::CompatExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::fs::OpenOptions;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wakerun_channel::mpsc::{self, Sender};

use metrics::Metrics;
use service::Service;

const CAPACITY: usize = 1024;
const HEAD_LIMIT: Duration = Duration::from_secs(30);
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const GRACE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(file)) = (args.next(), args.next()) else {
        return Err(io::Error::other(
            "usage: http_service_on_tokio ADDRESS FILE",
        ));
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
    let (events, to_write) = mpsc::channel(CAPACITY);
    let service = Arc::new(Service::new(events, metrics.clone()));
    let mut writer = tokio::spawn(writer::write(to_write, file.compat(), metrics));

    let (running, stop) = mpsc::channel::<()>(1);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, service.clone(), running.clone()));
                    while connections.try_join_next().is_some() {}
                }
                Err(error) => eprintln!("a connection could not be accepted: {error}"),
            },
            failed = &mut writer => return failed?,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }

    drop(listener);
    drop(stop);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(GRACE, all_ended).await.is_err() {
        eprintln!("some requests are cut off");
        connections.shutdown().await;
    }
    drop(service);
    writer.await?
}

async fn serve(stream: TcpStream, service: Arc<Service>, running: Sender<()>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request| {
        let service = service.clone();
        async move {
            let answer = timeout(REQUEST_LIMIT, service.answer(request)).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|_| service::too_late()))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = running.closed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result
        && !error.is_incomplete_message()
    {
        eprintln!("a connection ended early: {error}");
    }
}
