//! Connections that come, fail and go in every way, for long: nothing is left of them.
#![cfg(target_os = "linux")]

mod common;

use std::future::Future;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use common::{Kind, LIMIT, rounds, within};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use wakerun::net::{TcpListener, TcpStream};
use wakerun::task::JoinSet;
use wakerun::time::{sleep, timeout};

/// The tests count what the process has open: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What both sides of a connection do, as the client's first byte says.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// The server sends everything back.
    Echo,
    /// The server drops the connection at once.
    Dropped,
    /// The server resets it.
    Reset,
    /// The server ends its direction first and then listens.
    HalfClosed,
    /// The server says nothing; the client gives up waiting.
    Silent,
    /// The client resets it.
    ResetByClient,
    /// The client's task is aborted while it reads.
    AbortedClient,
    /// The server's task is aborted while it reads.
    AbortedServer,
    /// Nobody is there to connect to.
    Deserted,
    /// The connect is given up as soon as it has begun.
    NotAwaited,
}

const WAYS: [Way; 10] = [
    Way::Echo,
    Way::Dropped,
    Way::Reset,
    Way::HalfClosed,
    Way::Silent,
    Way::ResetByClient,
    Way::AbortedClient,
    Way::AbortedServer,
    Way::Deserted,
    Way::NotAwaited,
];

/// Ends that are no failures of the test: the other side went its way.
fn gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected
    )
}

async fn until_end(stream: &TcpStream) -> io::Result<()> {
    let mut stream = stream;
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

async fn server(mut stream: TcpStream) -> io::Result<()> {
    let mut way = [0];
    if stream.read(&mut way).await? == 0 {
        return Ok(());
    }
    match WAYS[usize::from(way[0])] {
        Way::Echo => {
            futures_lite::io::copy(&stream, &stream).await?;
        }
        Way::Dropped => {}
        Way::Reset => stream.set_linger(Some(Duration::ZERO))?,
        Way::HalfClosed => {
            stream.shutdown(Shutdown::Write)?;
            until_end(&stream).await?;
        }
        Way::AbortedServer => {
            let task = wakerun::spawn(async move { until_end(&stream).await });
            wakerun::task::yield_now().await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        _ => until_end(&stream).await?,
    }
    Ok(())
}

async fn client(n: usize, address: SocketAddr, deserted: SocketAddr) -> io::Result<()> {
    let index = n % WAYS.len();
    let way = WAYS[index];
    match way {
        Way::Deserted => {
            let error = TcpStream::connect(deserted).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            return Ok(());
        }
        Way::NotAwaited => {
            poll_once(TcpStream::connect(address));
            return Ok(());
        }
        _ => {}
    }
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[index as u8]).await?;
    match way {
        Way::Echo => {
            let text = format!("{n} ").repeat(500);
            stream.write_all(text.as_bytes()).await?;
            stream.close().await?;
            let mut echo = String::new();
            stream.read_to_string(&mut echo).await?;
            assert_eq!(echo, text);
        }
        Way::HalfClosed => {
            until_end(&stream).await?;
            stream.write_all(&[0; 100]).await?;
        }
        Way::Silent => {
            let limit = Duration::from_millis(1);
            assert!(timeout(limit, stream.read(&mut [0])).await.is_err());
        }
        Way::ResetByClient => stream.set_linger(Some(Duration::ZERO))?,
        Way::AbortedClient => {
            let task = wakerun::spawn(async move { until_end(&stream).await });
            wakerun::task::yield_now().await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        }
        _ => until_end(&stream).await?,
    }
    Ok(())
}

fn poll_once(future: impl Future) {
    let mut cx = Context::from_waker(Waker::noop());
    let _ = pin!(future).poll(&mut cx);
}

/// So many connections, some at a time.
async fn soak(connections: usize) -> io::Result<()> {
    const AT_A_TIME: usize = 50;
    let deserted = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = wakerun::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            wakerun::spawn(async move {
                match server(stream).await {
                    Err(error) if !gone(&error) => panic!("{error}"),
                    _ => {}
                }
            });
        }
    });
    let mut clients = JoinSet::new();
    for n in 0..connections {
        if clients.len() == AT_A_TIME {
            clients.join_next().await.unwrap().unwrap();
        }
        clients.spawn(async move {
            let limited = timeout(LIMIT / 2, client(n, address, deserted)).await;
            match limited.unwrap_or_else(|_| panic!("{:?} hangs", WAYS[n % WAYS.len()])) {
                Err(error) if !gone(&error) => panic!("{:?}: {error}", WAYS[n % WAYS.len()]),
                _ => {}
            }
        });
    }
    clients.join_all().await;
    serving.abort();
    let _ = serving.await;
    Ok(())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn connections_leave_no_descriptor_no_task_and_no_memory_behind() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for kind in [Kind::Current, Kind::Workers(2)] {
        let runtime = Arc::new(kind.build());
        // What the first ones make is kept for all: the reactor, buffers, the allocator's pages.
        let before = within("the first connections", {
            let runtime = runtime.clone();
            move || stage(&runtime, STAGE.min(rounds(2_000)), None)
        });
        let connections = rounds(20_000);
        for done in (0..connections).step_by(STAGE) {
            let runtime = runtime.clone();
            let now = within("some connections", move || {
                stage(&runtime, STAGE.min(connections - done), Some(before.0))
            });
            let grown = now.1.saturating_sub(before.1);
            assert!(grown < 8 * 1024, "{grown} KiB more on {kind:?}");
        }
    }
}

/// Connections that one watchdog looks after.
const STAGE: usize = 20_000;

/// Makes so many connections, and waits until all is gone but `open` descriptors. Gives what is open,
/// and how much memory is in use.
fn stage(runtime: &wakerun::Runtime, connections: usize, open: Option<usize>) -> (usize, usize) {
    let task = runtime.spawn(soak(connections));
    runtime.block_on(task).unwrap().unwrap();
    runtime.block_on(all_gone(runtime, open));
    (descriptors(), resident())
}

/// Waits until no task is left, and no more descriptors than `open`.
async fn all_gone(runtime: &wakerun::Runtime, open: Option<usize>) {
    let start = Instant::now();
    loop {
        let (tasks, now) = (runtime.handle().num_alive_tasks(), descriptors());
        if tasks == 0 && open.is_none_or(|open| now <= open) {
            return;
        }
        assert!(
            start.elapsed() < LIMIT / 2,
            "{tasks} tasks, {now} descriptors instead of {open:?}"
        );
        sleep(Duration::from_millis(2)).await;
    }
}

// Case B055.
#[test]
fn a_runtime_can_end_in_the_middle_of_traffic() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    within("an end in traffic", || {
        for kind in Kind::ALL {
            for round in 0..rounds(300).min(300) {
                end_in_traffic(kind, round);
            }
        }
    });
}

fn end_in_traffic(kind: Kind, round: usize) {
    const CLIENTS: usize = 3;
    let runtime = kind.build();
    let address = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        wakerun::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                wakerun::spawn(async move { futures_lite::io::copy(&stream, &stream).await });
            }
        });
        address
    });
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(move || {
                    // Refused, if the runtime is gone already.
                    let Ok(mut stream) = std::net::TcpStream::connect(address) else {
                        return;
                    };
                    stream.set_read_timeout(Some(LIMIT / 2)).unwrap();
                    let mut echo = [0; 16];
                    let end = loop {
                        if let Err(error) = stream.write_all(b"0123456789abcdef") {
                            break error;
                        }
                        if let Err(error) = stream.read_exact(&mut echo) {
                            break error;
                        }
                    };
                    let told = gone(&end) || end.kind() == ErrorKind::UnexpectedEof;
                    assert!(told, "not the end of a connection: {end}");
                })
            })
            .collect();
        // On a current-thread runtime this is what serves.
        let while_serving = Duration::from_micros(200 * (round as u64 % 17));
        runtime.block_on(async { sleep(while_serving).await });
        let start = Instant::now();
        drop(runtime);
        assert!(start.elapsed() < Duration::from_secs(10));
        for client in clients {
            client.join().unwrap();
        }
    });
}
