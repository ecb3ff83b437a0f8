//! Crates that others have written, on wakerun, with many connections at once and in each kind of
//! runtime.
#![cfg(unix)]

mod compat;
mod hyper;
mod process;
mod tls;
mod websocket;

use std::future::Future;
use std::time::Duration;

use wakerun::net::{TcpListener, TcpStream};
use wakerun::{Builder, Runtime};

/// How long a test may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(100);

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Error>;

/// Runs the test on a current-thread runtime, on one worker and on four.
#[track_caller]
fn each<F>(test: impl Fn() -> F)
where
    F: Future<Output = Result> + Send + 'static,
{
    let workers = |n| Builder::new_multi_thread().worker_threads(n).build();
    let current = Builder::new_current_thread().build();
    for runtime in [current, workers(1), workers(4)] {
        let runtime: Runtime = runtime.unwrap();
        let kind = format!("{runtime:?}");
        let test = test();
        let task = runtime.spawn(async { wakerun::time::timeout(LIMIT, test).await });
        runtime
            .block_on(task)
            .unwrap()
            .unwrap_or_else(|_| panic!("hangs on {kind}"))
            .unwrap_or_else(|error| panic!("{error} on {kind}"));
    }
}

/// A listener that serves each connection in a task of its own, until it is dropped with the task.
async fn serve<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Result<std::net::SocketAddr>
where
    F: Future<Output = Result> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    wakerun::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            wakerun::spawn(handle(stream));
        }
    });
    Ok(address)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 % 251) as u8).collect()
}
