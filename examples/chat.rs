//! A chat server: each line of a client goes to all others.
//!
//! ```text
//! cargo run --release --example chat -- 127.0.0.1:7000
//! nc 127.0.0.1 7000                                     # some of these
//! ```
//!
//! One task, the room, knows all clients. Everything comes to it by one bounded channel, and goes from
//! it to each client by a bounded channel of the client's own:
//!
//! ```text
//! client ──► Event ──┐                     ┌──► lines ──► client
//! client ──► Event ──┼──► channel ─► room ─┼──► lines ──► client
//! client ──► Event ──┘                     └──► lines ──► client
//! ```
//!
//! - **A client that sends too fast** waits: its task is not read from while the room's channel is full,
//!   so that in the end its own writes wait.
//! - **A client that reads too slowly** must not make the others wait, nor use up the memory. So the room
//!   never waits for a client: when one is [`LINES_BEHIND`] lines behind (beyond what the system keeps
//!   for its connection), the connection is closed, and the others are told.
//! - **A line of more than [`LONGEST_LINE`] bytes** ends the connection of its sender.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use wakerun::net::{TcpListener, TcpStream};
use wakerun::signal;
use wakerun_channel::mpsc::{self, Receiver, Sender};

/// Lines that wait for a client at most.
const LINES_BEHIND: usize = 256;
/// Events that wait for the room at most.
const EVENTS: usize = 64;
/// Bytes of a line at most, its end among them.
const LONGEST_LINE: usize = 4096;
/// Lines that are written together.
const BATCH: usize = 64;

type Line = Arc<str>;
type Id = u64;

enum Event {
    Joined(Id, Client),
    Said(Id, String),
    Left(Id),
}

/// What the room knows of a client.
struct Client {
    lines: Sender<Line>,
    /// The connection, to be closed under the hands of the client's task.
    stream: Arc<TcpStream>,
}

#[wakerun::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:7000")).await?;
    println!("listening on {}", listener.local_addr()?);

    let (to_room, events) = mpsc::channel(EVENTS);
    wakerun::spawn(room(events));
    or(serve(&listener, &to_room), signal::ctrl_c()).await
}

async fn serve(listener: &TcpListener, to_room: &Sender<Event>) -> io::Result<()> {
    let mut id = 0;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => Arc::new(stream),
            Err(error) => {
                eprintln!("a connection could not be accepted: {error}");
                continue;
            }
        };
        id += 1;
        let (lines, to_write) = mpsc::channel(LINES_BEHIND);
        let joined = Client {
            lines,
            stream: stream.clone(),
        };
        // First, so that the room hears of the client before it hears from it.
        if to_room.send(Event::Joined(id, joined)).await.is_err() {
            return Err(io::Error::other("the room has ended"));
        }
        wakerun::spawn(client(id, stream, to_write, to_room.clone()));
    }
}

// ---- the room

async fn room(mut events: Receiver<Event>) {
    let mut clients = HashMap::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Joined(id, client) => {
                clients.insert(id, client);
                let others = clients.len() - 1;
                tell(&mut clients, Some(id), format!("* guest-{id} is here\n"));
                let welcome = format!("* you are guest-{id}, with {others} others\n").into();
                // There is room: it is the first line.
                let _ = clients[&id].lines.try_send(welcome);
            }
            Event::Said(id, text) => {
                tell(&mut clients, Some(id), format!("guest-{id}: {text}\n"));
            }
            Event::Left(id) => {
                if clients.remove(&id).is_some() {
                    tell(&mut clients, None, format!("* guest-{id} has left\n"));
                }
            }
        }
        // The clients' tasks come first: not one more than a line a turn is put into their channels
        // while they could write.
        wakerun::task::yield_now().await;
    }
}

/// Sends a line to all but its author, and puts out those who are too far behind.
fn tell(clients: &mut HashMap<Id, Client>, author: Option<Id>, line: String) {
    let mut lines = vec![Line::from(line)];
    while let Some(line) = lines.pop() {
        clients.retain(|id, client| {
            if author == Some(*id) {
                return true;
            }
            match client.lines.try_send(line.clone()) {
                Err(error) if error.is_full() => {
                    // Its task fails in the write that it waits for. (So does this, if the client
                    // has closed the connection just now.)
                    let _ = client.stream.shutdown(Shutdown::Both);
                    lines.push(format!("* guest-{id} was too slow\n").into());
                    false
                }
                // Closed: its task has ended, and the word that it has left is on its way.
                Ok(()) | Err(_) => true,
            }
        });
    }
}

// ---- a client

async fn client(id: Id, stream: Arc<TcpStream>, lines: Receiver<Line>, to_room: Sender<Event>) {
    let ended = or(listen(id, &stream, &to_room), speak(&stream, lines)).await;
    if let Err(error) = ended {
        eprintln!("guest-{id}: {error}");
    }
    // Fails when the room has ended.
    let _ = to_room.send(Event::Left(id)).await;
}

/// Takes the client's lines to the room, until the client ends its side.
async fn listen(id: Id, mut stream: &TcpStream, to_room: &Sender<Event>) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(LONGEST_LINE);
    let mut piece = [0; LONGEST_LINE];
    loop {
        let n = stream.read(&mut piece).await?;
        if n == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&piece[..n]);
        let mut start = 0;
        while let Some(length) = buffer[start..].iter().position(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(&buffer[start..start + length]).into_owned();
            start += length + 1;
            if to_room.send(Event::Said(id, text)).await.is_err() {
                return Ok(());
            }
        }
        buffer.drain(..start);
        if buffer.len() >= LONGEST_LINE {
            return Err(io::Error::other("a line is too long"));
        }
    }
}

/// Writes the lines that the room sends, some at a time.
async fn speak(mut stream: &TcpStream, mut lines: Receiver<Line>) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    while lines.recv_many(&mut batch, BATCH).await > 0 {
        let text: String = batch.drain(..).map(|line| line.to_string()).collect();
        stream.write_all(text.as_bytes()).await?;
    }
    Ok(())
}
