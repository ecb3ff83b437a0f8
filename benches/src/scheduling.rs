//! The workloads for runtimes alone: spawning, yielding, waking, spreading, timers.
//!
//! What the tasks wait for is made of wakers and locks of the standard library, so it costs the same everywhere.

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;

use crate::gate::Countdown;
use crate::runtime::General;
use crate::work::Sample;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A task spawns tasks that end at once.
    SpawnInside,
    /// The main thread does.
    SpawnOutside,
    /// So many tasks yield.
    Yield(usize),
    /// Two tasks wake each other in turn; each wake counts.
    PingPong,
    /// A task wakes so many others, and waits until all have run.
    Wake(usize),
    /// A task wakes a thousand others, each of which computes for some microseconds.
    Ramp,
    /// A timer is set, and dropped before its time.
    TimerCancel,
    /// As many timers as cycles, due within ten milliseconds, each in a task of its own; the wait is included.
    TimerFire,
}

impl Scheduling {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::SpawnInside,
        Self::SpawnOutside,
        Self::Yield(1),
        Self::Yield(100),
        Self::PingPong,
        Self::Wake(1),
        Self::Wake(10),
        Self::Wake(100),
        Self::Wake(1000),
        Self::Ramp,
        Self::TimerCancel,
        Self::TimerFire,
    ];

    /// The table that it stands in, and the column.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::SpawnInside => ("tasks", "spawn"),
            Self::SpawnOutside => ("tasks", "spawn from outside"),
            Self::Yield(1) => ("tasks", "yield, 1 task"),
            Self::Yield(_) => ("tasks", "yield, 100 tasks"),
            Self::PingPong => ("tasks", "ping-pong"),
            Self::Wake(1) => ("wake", "wake of 1"),
            Self::Wake(10) => ("wake", "of 10"),
            Self::Wake(100) => ("wake", "of 100"),
            Self::Wake(_) => ("wake", "of 1000"),
            Self::Ramp => ("wake", "steal ramp"),
            Self::TimerCancel => ("timers", "set and cancel"),
            Self::TimerFire => ("timers", "fire within 10 ms"),
        }
    }

    /// How often it is done in a full run: some tens of milliseconds.
    pub fn full(self) -> usize {
        match self {
            Self::SpawnInside | Self::SpawnOutside => 300_000,
            Self::Yield(_) | Self::PingPong | Self::Wake(_) => 1_000_000,
            Self::Ramp => 10_000,
            Self::TimerCancel => 500_000,
            Self::TimerFire => 100_000,
        }
    }
}

/// Tasks that are spawned before somebody waits for them.
const BATCH: usize = 1000;

/// Runs one workload, of so many cycles, on a fresh `R`.
///
/// # Errors
///
/// Where not everything was run.
pub fn run<R: General>(what: Scheduling, cycles: usize, workers: usize) -> Result<Sample, String> {
    let runtime = R::new(workers);
    let board = Arc::new(Board {
        sample: OnceLock::new(),
        runs: AtomicUsize::new(0),
        done: Countdown::new(1),
    });
    if what == Scheduling::SpawnOutside {
        let started = Instant::now();
        for _ in 0..cycles.div_ceil(BATCH) {
            let batch = Arc::new(Countdown::new(BATCH));
            for _ in 0..BATCH {
                runtime.spawn(spawned(batch.clone(), board.clone()));
            }
            runtime.block_on(batch.zero());
        }
        board.stop(started, cycles.div_ceil(BATCH) * BATCH);
        board.done.tick();
    } else {
        runtime.spawn(drive::<R>(what, cycles, board.clone()));
    }
    runtime.finish(board.done.zero());
    let sample = *board.sample.get().ok_or("nobody stopped the clock")?;
    let runs = board.runs.load(Ordering::Relaxed);
    if runs != sample.work {
        return Err(format!("{runs} runs, expected {}", sample.work));
    }
    Ok(sample)
}

/// What the tasks of a run share.
struct Board {
    sample: OnceLock<Sample>,
    /// What was really run.
    runs: AtomicUsize,
    done: Countdown,
}

impl Board {
    fn stop(&self, started: Instant, work: usize) {
        let time = started.elapsed();
        self.sample.set(Sample { time, work }).expect("one end");
    }
}

/// The task that does it, or has it done.
async fn drive<R: General>(what: Scheduling, cycles: usize, board: Arc<Board>) {
    match what {
        Scheduling::SpawnInside => {
            let started = Instant::now();
            for _ in 0..cycles.div_ceil(BATCH) {
                let batch = Arc::new(Countdown::new(BATCH));
                for _ in 0..BATCH {
                    R::spawn_inside(spawned(batch.clone(), board.clone()));
                }
                batch.zero().await;
            }
            board.stop(started, cycles.div_ceil(BATCH) * BATCH);
        }
        Scheduling::SpawnOutside => unreachable!("done by the main thread"),
        Scheduling::Yield(tasks) => {
            let each = cycles.div_ceil(tasks);
            let all = Arc::new(Countdown::new(tasks));
            let started = Instant::now();
            for _ in 0..tasks {
                R::spawn_inside(yields(each, all.clone(), board.clone()));
            }
            all.zero().await;
            board.stop(started, tasks * each);
        }
        Scheduling::PingPong => {
            let (ping, pong) = (Arc::new(Signal::default()), Arc::new(Signal::default()));
            let rounds = cycles.div_ceil(2);
            R::spawn_inside(pongs(rounds, ping.clone(), pong.clone(), board.clone()));
            let started = Instant::now();
            for _ in 0..rounds {
                ping.notify();
                pong.wait().await;
            }
            board.stop(started, 2 * rounds);
            board.runs.fetch_add(rounds, Ordering::Relaxed);
        }
        Scheduling::Wake(tasks) => wake::<R>(tasks, cycles, 0, &board).await,
        Scheduling::Ramp => wake::<R>(1000, cycles, RAMP_STEPS, &board).await,
        Scheduling::TimerCancel => {
            let started = Instant::now();
            for _ in 0..cycles {
                let mut sleep = pin!(R::sleep(Duration::from_secs(3600)));
                poll_fn(|cx| {
                    assert!(sleep.as_mut().poll(cx).is_pending(), "an hour is not over");
                    Poll::Ready(())
                })
                .await;
            }
            board.stop(started, cycles);
            board.runs.fetch_add(cycles, Ordering::Relaxed);
        }
        Scheduling::TimerFire => {
            let all = Arc::new(Countdown::new(cycles));
            let started = Instant::now();
            for index in 0..cycles {
                let time = Duration::from_micros(1 + (index * 7919 % 10_000) as u64);
                R::spawn_inside(sleeps::<R>(time, all.clone(), board.clone()));
            }
            all.zero().await;
            board.stop(started, cycles);
        }
    }
    board.done.tick();
}

async fn spawned(batch: Arc<Countdown>, board: Arc<Board>) {
    board.runs.fetch_add(1, Ordering::Relaxed);
    batch.tick();
}

async fn yields(each: usize, all: Arc<Countdown>, board: Arc<Board>) {
    for _ in 0..each {
        yield_now().await;
    }
    board.runs.fetch_add(each, Ordering::Relaxed);
    all.tick();
}

async fn pongs(rounds: usize, ping: Arc<Signal>, pong: Arc<Signal>, board: Arc<Board>) {
    // Counted first: after the last wake the other one looks.
    board.runs.fetch_add(rounds, Ordering::Relaxed);
    for _ in 0..rounds {
        ping.wait().await;
        pong.notify();
    }
}

async fn sleeps<R: General>(time: Duration, all: Arc<Countdown>, board: Arc<Board>) {
    let started = Instant::now();
    R::sleep(time).await;
    assert!(started.elapsed() >= time, "a timer fired too early");
    board.runs.fetch_add(1, Ordering::Relaxed);
    all.tick();
}

/// Wakes so many tasks again and again, each of which computes so many steps, and waits for them every time.
async fn wake<R: General>(tasks: usize, cycles: usize, steps: u64, board: &Arc<Board>) {
    let rounds = cycles.div_ceil(tasks);
    let round = Arc::new(Round::default());
    let sleepers: Vec<Arc<Signal>> = (0..tasks).map(|_| Arc::default()).collect();
    round.left.store(tasks, Ordering::Relaxed);
    for signal in &sleepers {
        R::spawn_inside(woken(
            rounds,
            steps,
            signal.clone(),
            round.clone(),
            board.clone(),
        ));
    }
    round.over.wait().await;
    let started = Instant::now();
    for _ in 0..rounds {
        round.left.store(tasks, Ordering::Relaxed);
        sleepers.iter().for_each(|signal| signal.notify());
        round.over.wait().await;
    }
    board.stop(started, rounds * tasks);
}

/// Steps of computation of a task of the ramp: some ten microseconds.
const RAMP_STEPS: u64 = 10_000;

async fn woken(
    rounds: usize,
    steps: u64,
    signal: Arc<Signal>,
    round: Arc<Round>,
    board: Arc<Board>,
) {
    round.tick();
    for _ in 0..rounds {
        signal.wait().await;
        black_box(crate::fanout::churn(1, steps));
        board.runs.fetch_add(1, Ordering::Relaxed);
        round.tick();
    }
}

/// Counts the tasks that have run.
#[derive(Default)]
struct Round {
    left: AtomicUsize,
    over: Signal,
}

impl Round {
    fn tick(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify();
        }
    }
}

/// A flag that one task waits for, again and again.
#[derive(Default)]
struct Signal {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    fn notify(&self) {
        let waker = {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            self.set.store(true, Ordering::Release);
            waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    async fn wait(&self) {
        poll_fn(|cx| {
            // Taken under the lock that `notify` holds for its store: no wake is lost.
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if self.set.swap(false, Ordering::Acquire) {
                return Poll::Ready(());
            }
            *waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::runtimes;

    #[test]
    fn every_runtime_does_everything() {
        for runtime in runtimes() {
            for what in Scheduling::ALL {
                for workers in [1, 2] {
                    let result = (runtime.run)(what, 200, workers);
                    assert!(result.is_ok(), "{} {what:?}: {result:?}", runtime.name);
                }
            }
        }
    }
}
