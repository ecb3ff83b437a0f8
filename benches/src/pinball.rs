//! The workload: balls that jump at random over the nodes of complete graphs.
//!
//! Each node is a task with one receiver, and with a sender to each other node of its graph. It hands every ball that
//! it gets to another node, chosen at random, until the ball has made its jumps. A channel has room for all balls of
//! its graph, so no node ever waits for room: what is measured is how cheaply a task sleeps, is woken and forwards.
//! With one ball a graph does one thing at a time; with many, every node is busy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::channel::{Channel, Forward};
use crate::gate::{Countdown, Gate};
use crate::runtime::Runtime;
use crate::work::Sample;

/// Graphs side by side.
pub const GRAPHS: usize = 61;
/// Nodes of each graph.
pub const NODES: usize = 13;
/// The ball that ends a node's task.
const END: usize = usize::MAX;

/// The size of one game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Graphs side by side.
    pub graphs: usize,
    /// Balls in each graph.
    pub balls: usize,
    /// Jumps of each ball.
    pub jumps: usize,
}

impl Table {
    /// Messages of the whole game: each ball is thrown in once, and makes its jumps.
    pub fn messages(&self) -> usize {
        self.graphs * self.balls * (self.jumps + 1)
    }

    /// The same with so many messages in all, or somewhat fewer.
    pub fn with_messages(self, messages: usize) -> Self {
        let jumps = (messages / self.graphs / self.balls).max(2) - 1;
        Self { jumps, ..self }
    }
}

/// Plays one game on `C` and a fresh `R`: the time from the opening of the gate until the last ball has ended.
///
/// # Errors
///
/// Says how many messages the nodes got, where it is not what the balls amount to.
pub fn run<C: Channel<usize>, R: Runtime>(table: Table, workers: usize) -> Result<Sample, String> {
    let board = Arc::new(Board::new(&table));
    let runtime = R::new(workers);
    for graph in 0..table.graphs {
        let balls = Arc::new(AtomicUsize::new(table.balls));
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..NODES {
            let (node, receiver) = C::open(table.balls, NODES - 1, 1);
            senders.push(node);
            receivers.extend(receiver);
        }
        for (node, receiver) in receivers.into_iter().enumerate() {
            let others = (0..NODES).filter(|other| *other != node);
            let others = others.filter_map(|other| senders[other].pop()).collect();
            let first = (0..table.balls).filter(|ball| ball % NODES == node);
            let node = Node::<C> {
                receiver,
                others,
                balls: balls.clone(),
                throws: first.count(),
                jumps: table.jumps,
                walk: Walk((graph * NODES + node + 1) as u64),
            };
            runtime.spawn(node.run(Seat(board.clone())));
        }
    }
    runtime.spawn(start(Seat(board.clone())));
    runtime.finish(board.running.zero());
    let (got, expected) = (board.got.load(Ordering::Relaxed), table.messages());
    if got != expected {
        return Err(format!("the nodes got {got} messages, expected {expected}"));
    }
    match (board.started.get(), board.ended.get()) {
        (Some(started), Some(ended)) => Ok(Sample {
            time: *ended - *started,
            work: expected,
        }),
        _ => Err("no ball stopped the clock".into()),
    }
}

/// What the tasks of a run share.
struct Board {
    gate: Gate,
    started: OnceLock<Instant>,
    ended: OnceLock<Instant>,
    playing: AtomicUsize,
    got: AtomicUsize,
    running: Countdown,
}

impl Board {
    fn new(table: &Table) -> Self {
        let nodes = table.graphs * NODES;
        Self {
            gate: Gate::new(nodes),
            started: OnceLock::new(),
            ended: OnceLock::new(),
            playing: AtomicUsize::new(table.graphs),
            got: AtomicUsize::new(0),
            running: Countdown::new(nodes + 1),
        }
    }
}

/// A task's share of the board; dropped with the task, however it ends.
struct Seat(Arc<Board>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.running.tick();
    }
}

/// The task that starts the clock and opens the gate once all others stand at it.
async fn start(seat: Seat) {
    seat.0.gate.gathered().await;
    seat.0.started.set(Instant::now()).expect("one start");
    seat.0.gate.open();
}

/// The task of a node.
struct Node<C: Channel<usize>> {
    receiver: C::Receiver,
    others: Vec<C::Sender>,
    /// Balls of the graph that have not ended.
    balls: Arc<AtomicUsize>,
    /// Balls that this node throws in.
    throws: usize,
    jumps: usize,
    walk: Walk,
}

impl<C: Channel<usize>> Node<C> {
    async fn run(mut self, seat: Seat) {
        let board = &*seat.0;
        board.gate.pass().await;
        for _ in 0..self.throws {
            let to = self.walk.next(self.others.len());
            C::send(&mut self.others[to], self.jumps).await;
        }
        let (others, balls, mut walk) = (self.others.len(), &self.balls, self.walk);
        let (mut got, mut was_last) = (0, false);
        C::forward_all(&mut self.receiver, &mut self.others, |ball| {
            if ball == END {
                return Forward::End;
            }
            got += 1;
            if ball > 0 {
                return Forward::To(walk.next(others), ball - 1);
            }
            was_last = balls.fetch_sub(1, Ordering::AcqRel) == 1;
            if was_last {
                Forward::End
            } else {
                Forward::Nowhere
            }
        })
        .await;
        if was_last {
            if board.playing.fetch_sub(1, Ordering::AcqRel) == 1 {
                board.ended.set(Instant::now()).expect("one last ball");
            }
            // No ball is left, so there is room everywhere.
            for other in &mut self.others {
                let _ = C::send(other, END).await;
            }
        }
        board.got.fetch_add(got, Ordering::Relaxed);
    }
}

/// A walk at random, by a xorshift generator: the same on every channel and runtime.
#[derive(Clone, Copy)]
struct Walk(u64);

impl Walk {
    fn next(&mut self, places: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{TokioCurrentThread, TokioMpsc};

    #[test]
    fn every_ball_makes_its_jumps() {
        for balls in [1, 7, 41] {
            let table = Table {
                graphs: 3,
                balls,
                jumps: 10,
            };
            let sample = run::<TokioMpsc, TokioCurrentThread>(table, 1).unwrap();
            assert_eq!(sample.work, 3 * balls * 11);
        }
    }

    #[test]
    fn a_game_can_be_made_as_long_as_wanted() {
        let table = Table {
            graphs: 61,
            balls: 7,
            jumps: 0,
        };
        let messages = table.with_messages(1_000_000).messages();
        assert!((990_000..=1_000_000).contains(&messages), "{messages}");
    }
}
