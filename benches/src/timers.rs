//! What timers cost: setting one and taking it back, among none and among a million, and sleeping tasks by the
//! hundred thousand; against tokio and async-io.

use std::fmt::Write;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::gate::{Countdown, Gate};
use crate::plan::Form;
use crate::watchdog::Watchdog;

/// How to call the benchmark `timers`.
pub const USAGE: &str = "\
cargo bench --bench timers -- [full | smoke] [FILTER] [options]

  full                   all workloads (the default, also for quick): about half a minute
  smoke, --test          every workload once, with few timers: checks, and measures nothing
  FILTER                 only workloads whose name contains it

  --list                 names the workloads and ends
  --rounds N             rounds of each workload (default: 7)
";

/// Rounds where nobody asks for another number.
const ROUNDS: usize = 7;
/// Threads that run the sleeping tasks.
const WORKERS: usize = 2;

/// A library's timers, with the executor that its users run them on.
trait Library {
    /// Its name in the table.
    const NAME: &'static str;

    /// Runs `main` where timers can be set.
    fn block_on<T>(main: impl Future<Output = T>) -> T;

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send;

    /// Spawns a task, in `main`.
    fn spawn(task: impl Future<Output = ()> + Send + 'static);
}

struct Wakerun;

impl Library for Wakerun {
    const NAME: &'static str = "wakerun";

    fn block_on<T>(main: impl Future<Output = T>) -> T {
        let runtime = wakerun::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .build();
        runtime.expect("wakerun starts").block_on(main)
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        wakerun::time::sleep(time)
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        drop(wakerun::spawn(task));
    }
}

struct Tokio;

impl Library for Tokio {
    const NAME: &'static str = "tokio";

    fn block_on<T>(main: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_time()
            .build();
        runtime.expect("tokio starts").block_on(main)
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }
}

/// async-io's timers, on async-executor.
struct AsyncIo;

static EXECUTOR: async_executor::Executor<'static> = async_executor::Executor::new();

impl Library for AsyncIo {
    const NAME: &'static str = "async-io";

    fn block_on<T>(main: impl Future<Output = T>) -> T {
        let gate = Arc::new(Gate::new(WORKERS));
        let threads: Vec<_> = (0..WORKERS)
            .map(|_| {
                let gate = Arc::clone(&gate);
                std::thread::spawn(move || async_io::block_on(EXECUTOR.run(gate.pass())))
            })
            .collect();
        let value = async_io::block_on(main);
        gate.open();
        for thread in threads {
            thread.join().expect("a worker ends");
        }
        value
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        let timer = async_io::Timer::after(time);
        async move {
            timer.await;
        }
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(task).detach();
    }
}

/// Something to measure: the time of one of many.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    /// How many times, in the full form.
    many: usize,
    /// The unit's name.
    per: &'static str,
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "set a timer and take it back",
        many: 1_000_000,
        per: "timer",
    },
    Workload {
        name: "the same beside a million that live",
        many: 1_000_000,
        per: "timer",
    },
    Workload {
        name: "set a million, then take all back",
        many: 1_000_000,
        per: "timer",
    },
    Workload {
        name: "100,000 tasks that sleep 1 to 100 ms, over 100 ms",
        many: 100_000,
        per: "task",
    },
    Workload {
        name: "sleep 1 ms, over 1 ms",
        many: 200,
        per: "sleep",
    },
];

/// The time between timers, so that they spread over the levels of a wheel.
fn far(n: usize) -> Duration {
    Duration::from_millis(60_000 + (n as u64 * 7919) % 3_600_000)
}

/// Polls once; a timer is set by that.
fn set(timer: Pin<&mut impl Future<Output = ()>>) {
    let done = timer.poll(&mut Context::from_waker(Waker::noop()));
    assert!(done.is_pending(), "a far timer is over");
}

/// Sets timers and takes each back at once.
fn churn<L: Library>(many: usize) -> Duration {
    let start = Instant::now();
    for n in 0..many {
        set(pin!(L::sleep(far(n))));
    }
    start.elapsed()
}

/// Runs one workload in one library.
fn run<L: Library>(workload: usize, many: usize) -> Duration {
    L::block_on(async {
        match workload {
            0 => churn::<L>(many),
            1 => {
                let mut live: Vec<_> = (0..many).map(|n| Box::pin(L::sleep(far(n)))).collect();
                live.iter_mut().for_each(|timer| set(timer.as_mut()));
                churn::<L>(many)
            }
            2 => {
                let start = Instant::now();
                let mut live: Vec<_> = (0..many).map(|n| Box::pin(L::sleep(far(n)))).collect();
                live.iter_mut().for_each(|timer| set(timer.as_mut()));
                drop(live);
                start.elapsed()
            }
            3 => {
                let asleep = Arc::new(Countdown::new(many));
                let start = Instant::now();
                for n in 0..many {
                    let asleep = Arc::clone(&asleep);
                    L::spawn(async move {
                        L::sleep(Duration::from_millis(1 + n as u64 % 100)).await;
                        asleep.tick();
                    });
                }
                asleep.zero().await;
                start.elapsed().saturating_sub(Duration::from_millis(100))
            }
            _ => {
                let wanted = Duration::from_millis(1);
                let mut late = Duration::ZERO;
                for _ in 0..many {
                    let start = Instant::now();
                    L::sleep(wanted).await;
                    late += start.elapsed().checked_sub(wanted).expect("never early");
                }
                late
            }
        }
    })
}

/// A library's run of a workload.
type Run = fn(usize, usize) -> Duration;

const LIBRARIES: [(&str, Run); 3] = [
    (Wakerun::NAME, run::<Wakerun>),
    (Tokio::NAME, run::<Tokio>),
    (AsyncIo::NAME, run::<AsyncIo>),
];

/// The names of the workloads that `wanted` takes.
pub fn names(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let names = WORKLOADS.iter().map(|workload| workload.name.to_owned());
    names.filter(|name| wanted(name)).collect()
}

/// Measures, and returns the table: medians, and how many times ours.
pub fn measure(form: Form, rounds: Option<usize>, wanted: impl Fn(&str) -> bool) -> String {
    let (default_rounds, thin) = match form {
        Form::Smoke => (1, 100),
        Form::Full | Form::Quick => (ROUNDS, 1),
    };
    let rounds = rounds.unwrap_or(default_rounds);
    let watchdog = Watchdog::start();
    let mut table = String::from("| ns each, median (least–most) |");
    for (name, _) in LIBRARIES {
        let _ = write!(table, " {name} |");
    }
    table += " tokio ÷ ours | async-io ÷ ours |\n|:--|--:|--:|--:|--:|--:|\n";
    for (index, workload) in WORKLOADS.iter().enumerate() {
        if !wanted(workload.name) {
            continue;
        }
        let many = (workload.many / thin).max(1);
        let mut times = [const { Vec::new() }; LIBRARIES.len()];
        for round in 0..rounds {
            for library in crate::rounds::order(LIBRARIES.len(), round, rounds) {
                let (name, run) = LIBRARIES[library];
                let name = format!("{}/{name}", workload.name);
                let time = watchdog.watch(name, || run(index, many));
                times[library].push(time.as_nanos() as f64 / many as f64);
            }
        }
        times
            .iter_mut()
            .for_each(|times| times.sort_by(f64::total_cmp));
        let median = |times: &[f64]| times[times.len() / 2];
        let _ = write!(table, "| {}, per {} |", workload.name, workload.per);
        for times in &times {
            let (least, most) = (times[0], times[times.len() - 1]);
            let _ = write!(table, " {:.0} ({least:.0}–{most:.0}) |", median(times));
        }
        for other in &times[1..] {
            let _ = write!(table, " {:.2} |", median(other) / median(&times[0]));
        }
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_runs_in_every_library() {
        for workload in 0..WORKLOADS.len() {
            for (_, run) in LIBRARIES {
                run(workload, 20);
            }
        }
    }
}
