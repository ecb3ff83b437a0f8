//! Random sequences of operations on a channel and on a sequential model of its contract; the two must
//! agree at every step: in results, in queries, and in who was woken.
//!
//! [`spec`] is the contract, [`op`] the operations, [`real`] does them on both, [`channel`] says what a kind
//! of channel has to offer for that, and [`turns`] where the polls of the task end.

mod bounded;
mod channel;
mod lent;
mod op;
mod real;
mod receivers;
mod rendezvous;
mod shrink;
mod spec;
mod tally;
mod turns;
mod unbounded;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};

use wakerun_channel::bounded::{Mpmc, Mpsc};

use crate::common::{CAPACITIES, Rng};
use channel::Channel;
pub(crate) use op::{Op, random_ops};
use real::Sides;
use rendezvous::Rendezvous;
pub(crate) use shrink::shrink;
pub(crate) use tally::Tally;
pub(crate) use turns::Turns;
use unbounded::Unbounded;

/// A kind of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    Mpsc,
    Mpmc,
    /// Without a bound.
    Unbounded,
    /// Without a queue.
    Rendezvous,
}

/// A channel to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) flavor: Flavor,
    pub(crate) capacity: usize,
}

/// The bounded ones have most states.
const FLAVORS: [Flavor; 8] = [
    Flavor::Mpsc,
    Flavor::Mpmc,
    Flavor::Unbounded,
    Flavor::Rendezvous,
    Flavor::Mpsc,
    Flavor::Mpmc,
    Flavor::Mpsc,
    Flavor::Mpmc,
];

impl Case {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        Self::from_byte(rng.below(256) as u8)
    }

    pub(crate) fn from_byte(byte: u8) -> Self {
        let byte = usize::from(byte);
        Self {
            flavor: FLAVORS[byte % FLAVORS.len()],
            capacity: CAPACITIES[byte / FLAVORS.len() % CAPACITIES.len()],
        }
    }

    /// Does the operations on such a channel, in a task of its own where there are tasks.
    pub(crate) async fn run(self, ops: &[Op], turns: &Turns) -> Result<Tally, String> {
        match self.flavor {
            Flavor::Mpsc => sequence::<Mpsc>(self.capacity, ops, turns).await,
            Flavor::Mpmc => sequence::<Mpmc>(self.capacity, ops, turns).await,
            Flavor::Unbounded => sequence::<Unbounded>(self.capacity, ops, turns).await,
            Flavor::Rendezvous => sequence::<Rendezvous>(self.capacity, ops, turns).await,
        }
    }
}

/// A sequence as the fuzzer makes it.
pub(crate) struct Input {
    pub(crate) case: Case,
    pub(crate) in_task: bool,
    pub(crate) ops: Vec<Op>,
}

impl Input {
    /// More operations tell no more, and cost time.
    const LENGTH: usize = 200;

    /// The first byte says which channel, the second one where it runs, and each three after them are an
    /// operation.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[case, place], rest) = bytes.split_first_chunk()?;
        let (triples, _) = rest.as_chunks();
        let ops = triples.iter().map(|&op| Op::from_bytes(op));
        Some(Self {
            case: Case::from_byte(case),
            in_task: !place.is_multiple_of(4),
            ops: ops.take(Self::LENGTH).collect(),
        })
    }
}

/// Operations in a poll at the most: well below the budget, which would end it.
const POLL: usize = 60;

async fn sequence<C: Channel>(capacity: usize, ops: &[Op], turns: &Turns) -> Result<Tally, String> {
    let (ops, in_turns) = (ops.to_vec(), turns.clone());
    let sequence = async move {
        let sides = Arc::new(Mutex::new(Sides::<C>::new(capacity)));
        let receivers_first = ops.len().is_multiple_of(2);
        if let Err(error) = steps(&sides, ops, &in_turns).await {
            // What is broken may not survive its end.
            std::mem::forget(sides);
            return Err(error);
        }
        let sides = Arc::into_inner(sides).and_then(|sides| sides.into_inner().ok());
        let sides = sides.expect("it is nobody else's any more");
        let end = sides.end(receivers_first);
        end.map_err(|error| format!("at the end: {error}"))
    };
    turns.run(sequence).await
}

async fn steps<C: Channel>(
    sides: &Arc<Mutex<Sides<C>>>,
    ops: Vec<Op>,
    turns: &Turns,
) -> Result<(), String> {
    let lock = |sides: &Arc<Mutex<Sides<C>>>, f: &mut dyn FnMut(&mut Sides<C>)| {
        f(&mut sides.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let mut ops = ops.into_iter().enumerate().peekable();
    let mut in_poll = 0;
    while let Some((step, op)) = ops.next() {
        let at = |error| format!("step {step}, {op:?}: {error}");
        in_poll += 1;
        if !matches!(op, Op::EndPoll(_)) {
            let mut result = Ok(());
            std::future::poll_fn(|cx| {
                lock(sides, &mut |sides| result = sides.step(op, turns.task(cx)));
                std::task::Poll::Ready(())
            })
            .await;
            result.map_err(at)?;
            if in_poll < POLL {
                continue;
            }
        }
        in_poll = 0;
        let between = match op {
            Op::EndPoll(true) if turns.has_between() => {
                ops.next_if(|(_, next)| !matches!(next, Op::EndPoll(_)))
            }
            _ => None,
        };
        let result = Arc::new(Mutex::new(Ok(())));
        let job = {
            let (sides, result) = (Arc::clone(sides), Arc::clone(&result));
            move || {
                let mut sides = sides.lock().unwrap_or_else(PoisonError::into_inner);
                sides.spec.end_poll();
                let mut done = sides.compare();
                if let (Ok(()), Some((_, op))) = (&done, between) {
                    done = sides
                        .step(op, None)
                        .map_err(|error| format!("{op:?} between two polls: {error}"));
                }
                *result.lock().unwrap() = done;
            }
        };
        let woken = turns.end_poll(Box::new(job)).await;
        let done = std::mem::replace(&mut *result.lock().unwrap(), Ok(()));
        done.map_err(at)?;
        let mut model = false;
        lock(sides, &mut |sides| {
            model = sides.spec.task_woken;
            sides.spec.begin_poll();
        });
        if let Some(woken) = woken
            && woken != model
        {
            let (real, model) = (if woken { "was" } else { "was not" }, model);
            return Err(at(format!("the task {real} woken, the model says {model}")));
        }
    }
    Ok(())
}
