//! What the tests of the channel share: wakers that count and misbehave, polling by hand, drop
//! ledgers, a seeded generator, a watchdog, and the places a test can run in.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]
#![allow(unused_imports)]

mod duel;
mod ledger;
mod place;
mod poll;
mod puppet;
mod rng;
mod waker;
mod watchdog;

pub(crate) use duel::{duel, duel_in_polls};
pub(crate) use ledger::{Ledger, Tracked};
pub(crate) use place::{CAPACITIES, Place, everywhere, runtimes, settle, yield_once};
pub(crate) use poll::{Polled, block_on, poll_once, polled};
pub(crate) use puppet::{Puppet, rest};
pub(crate) use rng::Rng;
pub(crate) use waker::{Counter, OnDrop, counter, noop, on_drop, on_wake};
pub(crate) use watchdog::{LIMIT, Watchdog, within, within_each, within_time};

/// Rounds of a race: many in release, fewer in debug, a handful under Miri. `WAKERUN_ROUNDS`
/// multiplies them.
pub(crate) fn rounds(release: usize) -> usize {
    let factor = std::env::var("WAKERUN_ROUNDS").map_or(1, |n| n.parse().expect("a number"));
    if cfg!(miri) {
        (release / 10_000).clamp(4, 50)
    } else if cfg!(debug_assertions) {
        (release / 20).max(100) * factor
    } else {
        release * factor
    }
}
