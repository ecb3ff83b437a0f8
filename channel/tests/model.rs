//! Random sequences of operations on the channels, checked step by step against a sequential model of
//! their contract; see `model/mod.rs`.
//!
//! `WAKERUN_MODEL_SEED` replays one sequence, `WAKERUN_MODEL_STEPS` sets how many steps are made in all.
#![cfg(not(wakerun_loom))]

mod common;
#[path = "model/mod.rs"]
mod model;

use std::env;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{LIMIT, Place, Rng, within_each, within_time};
use model::{Case, Input, Tally, Turns, random_ops, shrink};

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
    let default = if cfg!(miri) { 1_500 } else { 2_000_000 };
    number("WAKERUN_MODEL_STEPS").map_or(default, |steps| steps as usize)
}

/// Runs sequences until the steps are used up; shrinks and reports the first that fails.
async fn search(
    turns: Turns,
    steps: usize,
    first_seed: u64,
    tell: Arc<Told>,
) -> Result<Tally, String> {
    let replay = number("WAKERUN_MODEL_SEED");
    let mut done = 0;
    let mut seed = replay.unwrap_or(first_seed);
    let mut tally = Tally::default();
    while done < steps {
        tell.seed.store(seed, Ordering::Relaxed);
        tell.steps.fetch_add(1, Ordering::Relaxed);
        let mut rng = Rng::new(seed);
        let case = Case::random(&mut rng);
        let ops = random_ops(&mut rng, case.capacity, LENGTH);
        done += ops.len();
        match case.run(&ops, &turns).await {
            Ok(more) => tally.merge(more),
            Err(error) => {
                let (ops, last) = shrink(case, &turns, ops, error.clone(), &tell.steps).await;
                let list: Vec<_> = ops.iter().map(|op| format!("    {op:?}")).collect();
                return Err(format!(
                    "WAKERUN_MODEL_SEED={seed}: {error}\nshrunk to {case:?} and\n{}\n{last}",
                    list.join("\n"),
                ));
            }
        }
        if replay.is_some() {
            break;
        }
        seed += 1;
    }
    Ok(tally)
}

/// How far a search is.
struct Told {
    seed: AtomicU64,
    /// Sequences that were begun.
    steps: AtomicU64,
}

/// Says where it was when a search comes to no end.
struct LastSeed(Arc<Told>);

impl Drop for LastSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0.seed.load(Ordering::Relaxed);
            eprintln!("the last sequence was that of WAKERUN_MODEL_SEED={seed}");
        }
    }
}

fn agrees(place: Place, turns: Turns, percent: usize, seed: u64) {
    let steps = steps() * percent / 100;
    let in_task = !matches!(turns, Turns::Off);
    let last = LastSeed(Arc::new(Told {
        seed: AtomicU64::new(seed),
        steps: AtomicU64::new(0),
    }));
    let tell = Arc::clone(&last.0);
    let progress = || last.0.steps.load(Ordering::Relaxed);
    within_each("model", progress, move || {
        let tally = place
            .run(search(turns, steps, seed, tell))
            .unwrap_or_else(|report| panic!("{place:?}: {report}"));
        // A search that does not get anywhere finds nothing.
        if steps >= 100_000 && number("WAKERUN_MODEL_SEED").is_none() {
            let rare = tally.rarer_than(steps / 50_000, in_task);
            assert!(
                rare.is_empty(),
                "{place:?}: {rare:?} came up too rarely: {tally:?}"
            );
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn agrees_on_what_the_fuzzer_has_found() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/operations");
    within_time("corpus", LIMIT, move || {
        let files = fs::read_dir(corpus).expect("there is a corpus");
        let inputs: Vec<_> = files
            .map(|file| file.expect("the corpus can be listed").path())
            .filter_map(|path| {
                let bytes = fs::read(&path).expect("an input can be read");
                Some((path, Input::from_bytes(&bytes)?))
            })
            .collect();
        let (in_task, off): (Vec<_>, Vec<_>) =
            (inputs.into_iter()).partition(|(_, input)| input.in_task);
        let places = [
            (Place::Off, Turns::Off, off),
            (Place::Current, Turns::Rung(Arc::default()), in_task),
        ];
        for (place, turns, inputs) in places {
            assert!(!inputs.is_empty(), "there are inputs for {place:?}");
            place.run(async move {
                for (path, input) in inputs {
                    if let Err(error) = input.case.run(&input.ops, &turns).await {
                        panic!("{}: {error}", path.display());
                    }
                }
            });
        }
    });
}

#[test]
fn agrees_off_the_runtime() {
    agrees(Place::Off, Turns::Off, 25, 1_000_000);
}

#[test]
fn agrees_in_a_task_of_one_thread() {
    agrees(Place::Current, Turns::Rung(Arc::default()), 35, 2_000_000);
}

#[test]
fn agrees_in_a_task_of_a_worker() {
    agrees(
        Place::Workers(1),
        Turns::Rung(Arc::default()),
        25,
        3_000_000,
    );
}

#[test]
fn agrees_in_a_task_that_may_be_stolen() {
    agrees(Place::Workers(4), Turns::Free, 15, 4_000_000);
}
