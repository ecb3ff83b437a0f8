//! The workload that shows what the rule costs: tasks that compute, right after a phase of tiny polls.
//!
//! The tiny polls teach the runtime that its polls are short, and so that nothing in the queue is worth a second
//! worker. The tasks that follow prove it wrong, and the time until all have ended shows how soon it notices.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;

use crate::gate::Countdown;
use crate::ours::{Apart, Wakerun};
use crate::peers::Tokio;
use crate::results::median;
use crate::rounds::order;
use crate::runtime::General;
use crate::watchdog::Watchdog;

/// Workers of every run.
pub const WORKERS: usize = 2;
/// Tasks that compute.
pub const TASKS: usize = 64;

/// The size of one run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Tiny polls before the tasks.
    pub polls: usize,
    /// What each task takes on this machine, undisturbed.
    pub task: Duration,
    /// The steps of computation that take so long.
    steps: u64,
    /// The sum of what the tasks compute.
    sum: u64,
}

impl Load {
    /// So many tiny polls, then tasks that take `task` each.
    pub fn new(polls: usize, task: Duration) -> Self {
        const SAMPLE: u64 = 1 << 20;
        let time = |_| {
            let start = Instant::now();
            black_box(churn(1, SAMPLE));
            start.elapsed()
        };
        let fastest = (0..5).map(time).min().unwrap_or_default();
        let steps = (SAMPLE as f64 * task.as_secs_f64() / fastest.as_secs_f64()).ceil() as u64;
        let results = (1..=TASKS as u64).map(|seed| churn(seed, steps));
        Self {
            polls,
            task,
            steps,
            sum: results.fold(0, u64::wrapping_add),
        }
    }
}

/// Pure computation, each step of which needs the one before.
pub(crate) fn churn(seed: u64, steps: u64) -> u64 {
    (0..steps).fold(black_box(seed), |mut x, _| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^ x << 17
    })
}

/// The measurements of one runtime.
#[derive(Clone, Debug)]
pub struct FanOut {
    /// The runtime's name.
    pub runtime: &'static str,
    /// The time of each round.
    pub times: Vec<Duration>,
    run: fn(Load) -> Result<Duration, String>,
}

impl FanOut {
    fn of<R: General>() -> Self {
        Self {
            runtime: R::NAME,
            times: Vec::new(),
            run: run::<R>,
        }
    }

    /// Its name, as those of the cells of a plan.
    pub fn name(&self) -> String {
        format!("fan-out/{} w{WORKERS}", self.runtime)
    }

    /// Milliseconds of each round, in ascending order.
    pub fn millis(&self) -> Vec<f64> {
        let millis = |time: &Duration| time.as_secs_f64() * 1e3;
        let mut millis: Vec<f64> = self.times.iter().map(millis).collect();
        millis.sort_by(f64::total_cmp);
        millis
    }

    /// The median of the rounds, in milliseconds.
    pub fn median(&self) -> f64 {
        median(&self.millis())
    }
}

/// What is to be measured: our runtime with the rule and without, and tokio, where their names are `wanted`.
pub fn cells(wanted: impl Fn(&str) -> bool) -> Vec<FanOut> {
    let mut cells = vec![
        FanOut::of::<Wakerun>(),
        FanOut::of::<Apart>(),
        FanOut::of::<Tokio>(),
    ];
    cells.retain(|cell| wanted(&cell.name()));
    cells
}

/// Measures the cells in rounds, in which they take turns.
///
/// # Panics
///
/// When a run loses tasks or their results.
pub fn measure(cells: &mut [FanOut], load: Load, rounds: usize) {
    let watchdog = Watchdog::start();
    for round in 0..rounds {
        for index in order(cells.len(), round, rounds) {
            let cell = &mut cells[index];
            let time = watchdog.watch(cell.name(), || (cell.run)(load));
            let time = time.unwrap_or_else(|wrong| panic!("{}: {wrong}", cell.name()));
            cell.times.push(time);
        }
    }
}

/// Runs one fan-out on a fresh `R`: the time from the last tiny poll until the last task has ended.
fn run<R: General>(load: Load) -> Result<Duration, String> {
    let board = Arc::new(Board {
        started: OnceLock::new(),
        elapsed: OnceLock::new(),
        sum: AtomicU64::new(0),
        computing: AtomicUsize::new(TASKS),
        running: Countdown::new(TASKS + 1),
    });
    let runtime = R::new(WORKERS);
    runtime.spawn(fan_out::<R>(load, board.clone()));
    runtime.finish(board.running.zero());
    let sum = board.sum.load(Ordering::Relaxed);
    if sum != load.sum {
        return Err(format!("the tasks gave {sum}, expected {}", load.sum));
    }
    let elapsed = board.elapsed.get();
    elapsed
        .copied()
        .ok_or_else(|| "no task stopped the clock".into())
}

/// What the tasks of a run share.
struct Board {
    started: OnceLock<Instant>,
    elapsed: OnceLock<Duration>,
    sum: AtomicU64,
    computing: AtomicUsize,
    running: Countdown,
}

/// The task that polls, starts the clock and spawns the others.
async fn fan_out<R: General>(load: Load, board: Arc<Board>) {
    for _ in 0..load.polls {
        yield_now().await;
    }
    board.started.set(Instant::now()).expect("one start");
    for seed in 1..=TASKS as u64 {
        R::spawn_inside(compute(seed, load.steps, board.clone()));
    }
    board.running.tick();
}

/// A task that computes. The last of them stops the clock.
async fn compute(seed: u64, steps: u64, board: Arc<Board>) {
    board.sum.fetch_add(churn(seed, steps), Ordering::Relaxed);
    if board.computing.fetch_sub(1, Ordering::AcqRel) == 1 {
        let started = board.started.get().expect("it was started");
        board.elapsed.set(started.elapsed()).expect("one last task");
    }
    board.running.tick();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runtime_ends_every_task() {
        let mut cells = cells(|_| true);
        measure(&mut cells, Load::new(10, Duration::from_micros(10)), 2);
        assert_eq!(cells.len(), 3);
        assert!(cells.iter().all(|cell| cell.times.len() == 2));
    }

    #[test]
    fn a_wrong_sum_is_an_error() {
        let mut load = Load::new(0, Duration::from_micros(1));
        load.sum ^= 1;
        assert!(run::<Tokio>(load).unwrap_err().contains("expected"));
    }
}
