//! Random sequences of operations on the channel and on a sequential model of its contract; the two
//! must agree at every step: in results, in queries, and in who was woken.
//!
//! `WAKERUN_MODEL_SEED` replays one sequence, `WAKERUN_MODEL_STEPS` sets how many steps are made.
#![cfg(not(wakerun_loom))]

mod common;
#[path = "model/op.rs"]
mod op;
#[path = "model/real.rs"]
mod real;
#[path = "model/shrink.rs"]
mod shrink;
#[path = "model/spec.rs"]
mod spec;

use std::env;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use common::{CAPACITIES, LIMIT, Place, Rng, within_time};
use op::{Op, random_ops};

/// Operations on one channel before the next one is made.
const LENGTH: usize = 150;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

fn steps() -> usize {
    let default = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 1_500,
        (_, true) => 200_000,
        _ => 1_200_000,
    };
    number("WAKERUN_MODEL_STEPS").map_or(default, |steps| steps as usize)
}

/// A sequence that fails by panic fails by message.
struct Caught<F>(Pin<Box<F>>);

impl<F: Future<Output = Result<(), String>>> Future for Caught<F> {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(payload) => {
                let text = payload
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| payload.downcast_ref::<&str>().copied());
                Poll::Ready(Err(format!("panic: {}", text.unwrap_or("?"))))
            }
        }
    }
}

async fn run(capacity: usize, ops: Vec<Op>) -> Result<(), String> {
    Caught(Box::pin(real::run(capacity, ops))).await
}

/// Runs sequences until the steps are used up; shrinks and reports the first that fails.
async fn search(steps: usize, first_seed: u64, tell: Arc<AtomicU64>) -> Result<(), String> {
    let replay = number("WAKERUN_MODEL_SEED");
    let mut done = 0;
    let mut seed = replay.unwrap_or(first_seed);
    while done < steps {
        tell.store(seed, Ordering::Relaxed);
        let mut rng = Rng::new(seed);
        let capacity = CAPACITIES[rng.below(CAPACITIES.len())];
        let ops = random_ops(&mut rng, capacity, LENGTH);
        done += ops.len();
        if let Err(error) = run(capacity, ops.clone()).await {
            let (ops, last) = shrink::shrink(capacity, ops, error.clone()).await;
            let list: Vec<_> = ops.iter().map(|op| format!("    {op:?}")).collect();
            return Err(format!(
                "WAKERUN_MODEL_SEED={seed}: {error}\nshrunk to capacity {capacity} and\n{}\n{last}",
                list.join("\n"),
            ));
        }
        if replay.is_some() {
            break;
        }
        seed += 1;
    }
    Ok(())
}

/// Says where it was when a search comes to no end.
struct LastSeed(Arc<AtomicU64>);

impl Drop for LastSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0.load(Ordering::Relaxed);
            eprintln!("the last sequence was that of WAKERUN_MODEL_SEED={seed}");
        }
    }
}

fn agrees(place: Place, share: usize, seed: u64) {
    let steps = steps() * share / 100;
    let limit = LIMIT + Duration::from_secs(steps as u64 / 20_000);
    let last = LastSeed(Arc::new(AtomicU64::new(seed)));
    let tell = Arc::clone(&last.0);
    within_time("model", limit, move || {
        if let Err(report) = place.run(search(steps, seed, tell)) {
            panic!("{place:?}: {report}");
        }
    });
}

#[test]
fn agrees_off_the_runtime() {
    agrees(Place::Off, 70, 1_000_000);
}

#[test]
fn agrees_in_a_task_of_one_thread() {
    agrees(Place::Current, 15, 2_000_000);
}

#[test]
fn agrees_in_a_task_of_a_worker() {
    agrees(Place::Workers(1), 15, 3_000_000);
}

#[test]
fn agrees_in_a_task_that_may_be_stolen() {
    agrees(Place::Workers(4), 10, 4_000_000);
}
