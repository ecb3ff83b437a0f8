//! A loop that waits for room and does something else meanwhile: the pattern that hangs on other fair
//! channels, and does not here.
//!
//! A task holds a reservation in a `select` loop. While it waits in line, a tick comes, and the branch
//! for the tick sends on the same channel. Now the channel's only slot is granted to the reservation,
//! which is first in line; but nobody polls it, since the task is in the branch; and the branch waits for
//! the slot behind it. On a fair channel that is the end ("futurelock").
//!
//! On wakerun the grant lapses when a poll of the task ends without claiming it: the slot goes to the
//! next in line, the branch goes on, and the reservation, which has kept its place, gets the next slot.
//!
//! ```text
//! cargo run -p wakerun-examples --example futurelock
//! ```

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use futures_lite::future::or;

/// How long a run may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(2);

enum Event<P> {
    Room(P),
    Tick,
}

/// A clock that ticks once, at once.
#[derive(Default)]
struct Ticks {
    over: bool,
}

impl Ticks {
    async fn next<P>(&mut self) -> Event<P> {
        if std::mem::replace(&mut self.over, true) {
            pending::<()>().await;
        }
        Event::Tick
    }
}

/// The loop, on wakerun.
async fn on_wakerun() -> Vec<&'static str> {
    let (tx, mut rx) = wakerun_channel::mpsc::channel(1);
    let (ticked, mut tick) = wakerun_channel::mpsc::channel(1);
    tx.send("what fills the channel").await.unwrap();
    let task = wakerun::spawn(async move {
        let mut room = pin!(tx.reserve());
        let mut ticks = Ticks::default();
        loop {
            let room = async { Event::Room(room.as_mut().await.unwrap()) };
            match or(room, ticks.next()).await {
                Event::Room(permit) => break permit.send("the loop's own").unwrap(),
                Event::Tick => {
                    ticked.send(()).await.unwrap();
                    tx.send("the tick's").await.unwrap();
                }
            }
        }
    });
    // Room is made only when the loop is in the branch.
    tick.recv().await;
    let mut got = Vec::new();
    while let Some(message) = rx.recv().await {
        got.push(message);
    }
    task.await.unwrap();
    got
}

/// The same, word for word, on tokio.
async fn on_tokio() -> Vec<&'static str> {
    let (tx, mut rx) = tokio::sync::mpsc::channel(1);
    let (ticked, mut tick) = tokio::sync::mpsc::channel(1);
    tx.send("what fills the channel").await.unwrap();
    let task = tokio::spawn(async move {
        let mut room = pin!(tx.reserve());
        let mut ticks = Ticks::default();
        loop {
            let room = async { Event::Room(room.as_mut().await.unwrap()) };
            match or(room, ticks.next()).await {
                Event::Room(permit) => break permit.send("the loop's own"),
                Event::Tick => {
                    ticked.send(()).await.unwrap();
                    tx.send("the tick's").await.unwrap();
                }
            }
        }
    });
    // Room is made only when the loop is in the branch.
    tick.recv().await;
    let mut got = Vec::new();
    while let Some(message) = rx.recv().await {
        got.push(message);
    }
    task.await.unwrap();
    got
}

/// Runs on a thread of its own, and gives up on it after the limit.
fn within_limit(
    run: impl FnOnce() -> Vec<&'static str> + Send + 'static,
) -> Option<Vec<&'static str>> {
    let (done, wait) = channel();
    thread::spawn(move || done.send(run()));
    match wait.recv_timeout(LIMIT) {
        Ok(got) => Some(got),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => panic!("the run panicked"),
    }
}

fn block_on_tokio<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn main() {
    let wakerun = within_limit(|| wakerun::block_on(on_wakerun()));
    println!("wakerun: {}", tell(&wakerun));
    let tokio = within_limit(|| block_on_tokio(on_tokio()));
    println!("tokio:   {}", tell(&tokio));
    assert!(wakerun.is_some(), "wakerun's channel hangs");
}

fn tell(got: &Option<Vec<&'static str>>) -> String {
    match got {
        Some(got) => format!("received {}", got.join(", ")),
        None => format!("hangs (no end within {LIMIT:?})"),
    }
}
