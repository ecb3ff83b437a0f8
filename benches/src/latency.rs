//! The workload: how long a message takes from before its send until after its receive.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::channel::Channel;
use crate::entrant::Pair;
use crate::gate::{Countdown, Gate};
use crate::plan::Form;
use crate::results::median;
use crate::rounds::order;
use crate::runtime::Runtime;
use crate::suite::latency_pairs;
use crate::svg::time;
use crate::watchdog::Watchdog;

/// Latencies in nanoseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

/// Senders and capacity under load.
pub const SENDERS: usize = 4;
/// The channel's capacity.
pub const CAPACITY: usize = 64;
/// Workers of every run.
pub const WORKERS: usize = 2;
/// What a message under no load waits for the one before.
const PACE: Duration = Duration::from_micros(50);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latencies {
    /// Whether the senders send as fast as they can; else a thread from outside sends a message now and then.
    pub loaded: bool,
    /// How many messages in all.
    pub messages: usize,
}

/// Measures on `C` and a fresh `R`.
///
/// # Errors
///
/// Where messages are missing.
///
/// # Panics
///
/// When `C` does not give the halves that were asked for.
pub fn run<C: Channel<usize>, R: Runtime>(
    load: Latencies,
    workers: usize,
) -> Result<Histogram, String> {
    let senders = if load.loaded && !C::ONE_SENDER {
        SENDERS
    } else {
        1
    };
    let each = (load.messages / senders).max(1);
    let (mut tx, mut rx) = C::open(CAPACITY, senders, 1);
    let board = Arc::new(Board {
        base: Instant::now(),
        gate: Gate::new(if load.loaded { senders } else { 0 }),
        histogram: Mutex::new(new_histogram()),
        running: Countdown::new(if load.loaded { senders + 2 } else { 1 }),
    });
    let runtime = R::new(workers);
    runtime.spawn(receive::<C>(rx.pop().expect("one receiver"), board.clone()));
    if load.loaded {
        for sender in tx {
            runtime.spawn(send::<C>(sender, each, board.clone()));
        }
        runtime.spawn(start(board.clone()));
        runtime.finish(board.running.zero());
    } else {
        let sender = tx.pop().expect("one sender");
        let board_outside = board.clone();
        let outside = thread::spawn(move || send_at_times::<C>(sender, each, &board_outside));
        runtime.finish(board.running.zero());
        outside.join().map_err(|_| "the sender panicked")?;
    }
    let mut histogram = board
        .histogram
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let histogram = std::mem::replace(&mut *histogram, new_histogram());
    let (got, expected) = (histogram.len() as usize, each * senders);
    if got == expected {
        Ok(histogram)
    } else {
        Err(format!("{got} messages arrived, expected {expected}"))
    }
}

/// From a nanosecond to a minute, with three digits.
pub(crate) fn new_histogram() -> Histogram {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("these bounds are possible")
}

struct Board {
    base: Instant,
    gate: Gate,
    histogram: Mutex<Histogram>,
    running: Countdown,
}

impl Board {
    /// The time, as a message carries it.
    fn now(&self) -> usize {
        self.base.elapsed().as_nanos() as usize
    }
}

async fn start(board: Arc<Board>) {
    board.gate.gathered().await;
    board.gate.open();
    board.running.tick();
}

async fn send<C: Channel<usize>>(mut sender: C::Sender, each: usize, board: Arc<Board>) {
    board.gate.pass().await;
    for _ in 0..each {
        C::send(&mut sender, board.now()).await;
    }
    drop(sender);
    board.running.tick();
}

fn send_at_times<C: Channel<usize>>(mut sender: C::Sender, each: usize, board: &Board) {
    for _ in 0..each {
        let due = Instant::now() + PACE;
        while Instant::now() < due {
            thread::yield_now();
        }
        futures_lite::future::block_on(C::send(&mut sender, board.now()));
    }
}

async fn receive<C: Channel<usize>>(mut receiver: C::Receiver, board: Arc<Board>) {
    let mut histogram = new_histogram();
    while let Some(sent) = C::recv(&mut receiver).await {
        histogram.saturating_record((board.now().saturating_sub(sent)) as u64);
    }
    *board
        .histogram
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = histogram;
    board.running.tick();
}

/// The percentiles that are told.
pub const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// The latencies of one pair.
#[derive(Clone, Debug)]
pub struct LatencyResult {
    /// The pair's name.
    pub name: String,
    /// Whether the channel is ours.
    pub ours: bool,
    /// Whether there was load.
    pub loaded: bool,
    /// The [`PERCENTILES`] of each round, in nanoseconds.
    pub rounds: Vec<[f64; 3]>,
}

impl LatencyResult {
    /// The figures of one percentile, in ascending order.
    fn figures(&self, percentile: usize) -> Vec<f64> {
        let mut figures: Vec<f64> = self.rounds.iter().map(|round| round[percentile]).collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    /// The median of each percentile over the rounds.
    pub fn medians(&self) -> [f64; 3] {
        [0, 1, 2].map(|percentile| median(&self.figures(percentile)))
    }
}

/// Measures the pairs whose name is wanted, in rounds in which they take turns, on two workers.
///
/// # Panics
///
/// When messages are lost.
pub fn measure(
    form: Form,
    rounds: Option<usize>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<LatencyResult> {
    let (default_rounds, thin) = match form {
        Form::Full => (10, 1),
        Form::Quick => (5, 2),
        Form::Smoke => (1, 100),
    };
    let rounds = rounds.unwrap_or(default_rounds);
    let watchdog = Watchdog::start();
    let mut results = Vec::new();
    for loaded in [true, false] {
        let load = Latencies {
            loaded,
            messages: if loaded { 200_000 } else { 2000 } / thin,
        };
        let mut pairs = latency_pairs(&wanted);
        // From outside nobody can send into nexosim's runs, which end as soon as nothing can go on.
        pairs.retain(|pair| loaded || pair.runtime != "nexosim");
        let result = |pair: &Pair| LatencyResult {
            name: pair.name(),
            ours: pair.channel.starts_with(crate::ours::NAME),
            loaded,
            rounds: Vec::new(),
        };
        let mut of_load: Vec<LatencyResult> = pairs.iter().map(result).collect();
        for round in 0..rounds {
            eprintln!(
                "latency, {}, round {} of {rounds}",
                if loaded { "under load" } else { "from outside" },
                round + 1
            );
            for index in order(pairs.len(), round, rounds) {
                let name = format!("latency/{}", pairs[index].name());
                let histogram =
                    watchdog.watch(name.clone(), || pairs[index].latencies(load, WORKERS));
                let histogram = histogram.unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
                let at = |percentile| histogram.value_at_percentile(percentile) as f64;
                of_load[index].rounds.push(PERCENTILES.map(at));
            }
        }
        results.extend(of_load);
    }
    results
}

/// The tables: each a title, and lines of cells with a header.
pub fn tables(results: &[LatencyResult]) -> Vec<(String, Vec<Vec<String>>)> {
    let mut tables = Vec::new();
    for (loaded, title) in [
        (
            true,
            "Latency under load: 4 senders at full speed, capacity 64, median (least–most)",
        ),
        (
            false,
            "Latency from outside: a thread sends to a task that sleeps, median (least–most)",
        ),
    ] {
        let mut lines = vec![["pair", "p50", "p99", "p99.9"].map(String::from).to_vec()];
        for result in results.iter().filter(|result| result.loaded == loaded) {
            let figures = [0, 1, 2].map(|percentile| {
                let figures = result.figures(percentile);
                let last = figures[figures.len() - 1];
                format!(
                    "{} ({}–{})",
                    time(median(&figures)),
                    time(figures[0]),
                    time(last)
                )
            });
            lines.push([vec![result.name.clone()], figures.into()].concat());
        }
        if lines.len() > 1 {
            tables.push((title.into(), lines));
        }
    }
    tables
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::peers::{Tokio, TokioMpsc};

    /// Made-up results.
    pub(crate) fn invented() -> Vec<LatencyResult> {
        let result = |(name, ours, factor): (&str, bool, f64)| LatencyResult {
            name: name.into(),
            ours,
            loaded: factor < 3.0,
            rounds: vec![[400.0 * factor, 900.0 * factor, 120_000.0 * factor]; 3],
        };
        [
            ("wakerun on wakerun", true, 1.0),
            ("tokio on tokio", false, 2.0),
            ("kanal on tokio", false, 50.0),
        ]
        .map(result)
        .into()
    }

    #[test]
    fn every_load_has_a_table() {
        let tables = tables(&invented());
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].1.len(), 3);
        assert!(tables[0].1[1][3].starts_with("120 µs"));
    }

    #[test]
    fn every_message_is_in_the_histogram() {
        for loaded in [true, false] {
            let load = Latencies {
                loaded,
                messages: 100,
            };
            let histogram = run::<TokioMpsc, Tokio>(load, 2).unwrap();
            assert_eq!(histogram.len(), 100);
        }
    }
}
