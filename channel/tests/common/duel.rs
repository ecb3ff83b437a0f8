//! Two threads against each other, round by round, in step and slightly off.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use wakerun::Runtime;

use super::{LIMIT, Place, Rng, Watchdog, block_on, yield_once};

/// How far each side has come. A side that panics lets the other run free.
struct Pace([AtomicUsize; 2]);

impl Pace {
    /// Waits for the other side to reach the same round.
    fn meet(&self, me: usize, round: usize) {
        self.0[me].store(round + 1, Ordering::Release);
        let mut spins = 0;
        while self.0[1 - me].load(Ordering::Acquire) <= round {
            spins += 1;
            if spins % 64 == 0 {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
    }
}

struct Release<'a>(&'a AtomicUsize);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(usize::MAX, Ordering::Release);
    }
}

/// In each round makes a pair of things, gives one to each of two threads that start on them at
/// the same time (give or take a random moment), and checks what came out of both.
pub(crate) fn duel<A: Send, B, X: Send, Y>(
    what: &'static str,
    rounds: usize,
    make: impl FnMut(&mut Rng) -> (A, B),
    left: impl Fn(A) -> X + Sync,
    right: impl Fn(B) -> Y,
    check: impl FnMut(X, Y),
) {
    run(what, rounds, None, make, left, right, check);
}

/// The same with the right side on a runtime, in one poll a round: what the runtime puts off to the
/// end of a poll is done before the round is judged.
pub(crate) fn duel_in_polls<A: Send, B, X: Send, Y>(
    what: &'static str,
    rounds: usize,
    make: impl FnMut(&mut Rng) -> (A, B),
    left: impl Fn(A) -> X + Sync,
    right: impl Fn(B) -> Y,
    check: impl FnMut(X, Y),
) {
    let runtime = Place::Current.runtime();
    run(what, rounds, runtime, make, left, right, check);
}

fn run<A: Send, B, X: Send, Y>(
    what: &'static str,
    rounds: usize,
    runtime: Option<Runtime>,
    mut make: impl FnMut(&mut Rng) -> (A, B),
    left: impl Fn(A) -> X + Sync,
    right: impl Fn(B) -> Y,
    mut check: impl FnMut(X, Y),
) {
    const BATCH: usize = 256;
    // One duel at a time: two threads that spin for each other need a core each.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _dog = Watchdog::new(what, 3 * LIMIT, String::new);
    let mut rng = Rng::new(rounds as u64);
    let mut left_over = rounds;
    while left_over > 0 {
        let batch = left_over.min(BATCH);
        left_over -= batch;
        let (lefts, rights): (Vec<A>, Vec<B>) = (0..batch).map(|_| make(&mut rng)).unzip();
        let pace = &Pace([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let (mut rng_left, mut rng_right) = (Rng::new(rng.next()), Rng::new(rng.next()));
        let (xs, ys): (Vec<X>, Vec<Y>) = thread::scope(|s| {
            let left = &left;
            let thread = s.spawn(move || {
                let _release = Release(&pace.0[0]);
                let mut results = Vec::with_capacity(batch);
                for (round, thing) in lefts.into_iter().enumerate() {
                    pace.meet(0, round);
                    rng_left.jitter();
                    results.push(left(thing));
                }
                results
            });
            let release = Release(&pace.0[1]);
            let rounds = async {
                let mut results = Vec::with_capacity(batch);
                for (round, thing) in rights.into_iter().enumerate() {
                    pace.meet(1, round);
                    rng_right.jitter();
                    results.push(right(thing));
                    yield_once().await;
                }
                results
            };
            let results = match &runtime {
                None => block_on(rounds),
                Some(runtime) => runtime.block_on(rounds),
            };
            drop(release);
            (thread.join().unwrap(), results)
        });
        for (x, y) in xs.into_iter().zip(ys) {
            check(x, y);
        }
    }
}
