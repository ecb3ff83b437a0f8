//! The workload: independent channels, many or one, each with its senders and receivers, all at full speed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::channel::Channel;
use crate::gate::{Countdown, Gate};
use crate::payload::Payload;
use crate::runtime::Runtime;
use crate::work::Sample;

/// How many channels run side by side in `cargo bench --bench funnel`.
pub const CHANNELS: usize = 61;

/// The size of one funnel run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels that run side by side.
    pub channels: usize,
    /// Senders of each channel.
    pub senders: usize,
    /// Receivers of each channel.
    pub receivers: usize,
    /// Capacity of each channel.
    pub capacity: usize,
    /// Messages that each sender sends.
    pub per_sender: usize,
}

impl Shape {
    /// Messages of the whole run.
    pub fn messages(&self) -> usize {
        self.channels * self.per_channel()
    }

    fn per_channel(&self) -> usize {
        self.senders * self.per_sender
    }

    /// The same with so many messages in all, or somewhat fewer, so that all senders send as many.
    pub fn with_messages(self, messages: usize) -> Self {
        let per_sender = (messages / self.channels / self.senders).max(1);
        Self { per_sender, ..self }
    }

    /// What the receivers of channel `channel` must report together: its messages are consecutive numbers, and no two
    /// channels carry the same.
    fn expected(&self, channel: usize) -> Tally {
        let count = self.per_channel();
        let first = channel * count;
        let sum = first * count + count * count.saturating_sub(1) / 2;
        Tally { count, sum }
    }
}

/// What the receivers of one channel got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: usize,
    sum: usize,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Runs one funnel of `C` on a fresh `R`: the time from the opening of the gate until the last receiver saw the
/// end of its channel.
///
/// # Errors
///
/// Says what a receiver got instead of its messages, where one got anything else.
pub fn run<T: Payload, C: Channel<T>, R: Runtime>(
    shape: Shape,
    workers: usize,
) -> Result<Sample, String> {
    let board = Arc::new(Board::new(&shape));
    let runtime = R::new(workers);
    for channel in 0..shape.channels {
        let (senders, receivers) = C::open(shape.capacity, shape.senders, shape.receivers);
        for receiver in receivers {
            runtime.spawn(receive::<T, C>(receiver, channel, Seat::new(&board)));
        }
        for (index, sender) in senders.into_iter().enumerate() {
            let first = channel * shape.per_channel() + index * shape.per_sender;
            let messages = first..first + shape.per_sender;
            runtime.spawn(send::<T, C>(sender, messages, Seat::new(&board)));
        }
    }
    // Spawned last, since some runtimes start nothing before they are told to finish.
    runtime.spawn(start(Seat::new(&board)));
    runtime.finish(board.running.zero());
    let time = board.result(&shape)?;
    Ok(Sample {
        time,
        work: shape.messages(),
    })
}

/// What the tasks of a run share.
struct Board {
    gate: Gate,
    started: OnceLock<Instant>,
    receiving: AtomicUsize,
    elapsed: OnceLock<Duration>,
    tallies: Vec<Mutex<Tally>>,
    running: Countdown,
}

impl Board {
    fn new(shape: &Shape) -> Self {
        let tasks = shape.channels * (shape.senders + shape.receivers);
        Self {
            gate: Gate::new(tasks),
            started: OnceLock::new(),
            receiving: AtomicUsize::new(shape.channels * shape.receivers),
            elapsed: OnceLock::new(),
            tallies: (0..shape.channels).map(|_| Mutex::default()).collect(),
            running: Countdown::new(tasks + 1),
        }
    }

    fn result(&self, shape: &Shape) -> Result<Duration, String> {
        for (channel, tally) in self.tallies.iter().enumerate() {
            let got = *tally.lock().unwrap_or_else(PoisonError::into_inner);
            let expected = shape.expected(channel);
            if got != expected {
                return Err(format!(
                    "channel {channel} gave {got:?}, expected {expected:?}"
                ));
            }
        }
        let elapsed = self.elapsed.get();
        elapsed
            .copied()
            .ok_or_else(|| "no receiver stopped the clock".into())
    }
}

/// A task's share of the board; dropped with the task, however it ends, so that nobody waits for a dead one.
struct Seat(Arc<Board>);

impl Seat {
    fn new(board: &Arc<Board>) -> Self {
        Self(board.clone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.running.tick();
    }
}

/// The task that starts the clock and opens the gate once all others stand at it.
async fn start(seat: Seat) {
    let board = &*seat.0;
    board.gate.gathered().await;
    board.started.set(Instant::now()).expect("one start");
    board.gate.open();
}

/// The task of a sender.
async fn send<T: Payload, C: Channel<T>>(
    mut sender: C::Sender,
    messages: std::ops::Range<usize>,
    seat: Seat,
) {
    seat.0.gate.pass().await;
    C::send_all(&mut sender, messages).await;
}

/// The task of a receiver. The last of them stops the clock.
async fn receive<T: Payload, C: Channel<T>>(mut receiver: C::Receiver, channel: usize, seat: Seat) {
    let board = &*seat.0;
    board.gate.pass().await;
    let mut tally = Tally::default();
    C::recv_all(&mut receiver, |message| {
        tally.count += 1;
        tally.sum = tally.sum.wrapping_add(message);
    })
    .await;
    board.tallies[channel]
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .add(tally);
    if board.receiving.fetch_sub(1, Ordering::AcqRel) == 1 {
        let started = board.started.get().expect("the gate is open");
        board
            .elapsed
            .set(started.elapsed())
            .expect("one last receiver");
    }
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "channels are described as public ones")]
mod tests {
    use super::*;
    use crate::channel::channel;
    use crate::peers::TokioCurrentThread;

    const TINY: Shape = Shape {
        channels: 9,
        senders: 3,
        receivers: 1,
        capacity: 2,
        per_sender: 5,
    };

    channel! {
        /// A channel that loses the message with the number 7.
        Lossy = "lossy" from "tokio",
        many to one, tokio::sync::mpsc::Sender<T> => tokio::sync::mpsc::Receiver<T>,
        open |capacity| tokio::sync::mpsc::channel(capacity),
        send |tx, number| number == 7 || tx.send(T::new(number)).await.is_ok(),
        recv |rx| rx.recv().await,
        try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
        try_recv |rx| rx.try_recv().ok(),
    }

    #[test]
    fn a_lost_message_is_an_error() {
        let error = run::<usize, Lossy, TokioCurrentThread>(TINY, 1).unwrap_err();
        assert!(
            error.contains("channel 0") && error.contains("count: 14"),
            "{error}"
        );
    }

    #[test]
    fn messages_are_counted_over_all_channels() {
        assert_eq!(TINY.messages(), 9 * 15);
        assert_eq!(
            TINY.expected(1),
            Tally {
                count: 15,
                sum: (15..30).sum()
            }
        );
    }

    #[test]
    fn every_sender_sends_as_many() {
        assert_eq!(TINY.with_messages(1000).per_sender, 37);
        assert_eq!(TINY.with_messages(1).per_sender, 1);
    }
}
