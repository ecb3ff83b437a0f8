//! The list of what is compared: each channel with the runtimes it runs on, one line a pair.

use std::time::Duration;

use crate::channels::{
    AsyncChannel, Asyncband, Channel, Crossfire, CrossfireSpsc, Flume, FuturesChannel, Kanal,
    Tachyonix, Thingbuf, Tokio,
};
use crate::funnel::{self, Shape};
use crate::runtimes::{self, AsyncExecutor, Nexosim, Runtime, TokioCurrentThread};

/// One channel on one runtime.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The channel's name.
    pub channel: &'static str,
    /// The runtime's name.
    pub runtime: &'static str,
    /// The packages behind the two.
    pub packages: [&'static str; 2],
    one_sender: bool,
    one_worker: bool,
    funnel: fn(Shape, usize) -> Result<Duration, String>,
}

impl Pair {
    /// `C` on `R`.
    pub(crate) fn of<C: Channel, R: Runtime>() -> Self {
        Self {
            channel: C::NAME,
            runtime: R::NAME,
            packages: [C::PACKAGE, R::PACKAGE],
            one_sender: C::ONE_SENDER,
            one_worker: R::ONE_WORKER,
            funnel: funnel::run::<C, R>,
        }
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{} on {}", self.channel, self.runtime)
    }

    /// Whether the channel takes so many senders, and the runtime so many workers.
    pub fn supports(&self, senders: usize, workers: usize) -> bool {
        (senders == 1 || !self.one_sender) && (workers == 1 || !self.one_worker)
    }

    /// Runs one funnel; see [`funnel::run`].
    ///
    /// # Errors
    ///
    /// Where a receiver got anything but its messages.
    pub fn funnel(&self, shape: Shape, workers: usize) -> Result<Duration, String> {
        (self.funnel)(shape, workers)
    }
}

/// All pairs, ours first.
pub fn all() -> Vec<Pair> {
    let mut pairs = crate::ours::pairs();
    pairs.extend([
        Pair::of::<Tokio, runtimes::Tokio>(),
        Pair::of::<Tokio, TokioCurrentThread>(),
        Pair::of::<Tachyonix, runtimes::Tokio>(),
        Pair::of::<Tachyonix, Nexosim>(),
        Pair::of::<AsyncChannel, AsyncExecutor>(),
        Pair::of::<AsyncChannel, runtimes::Tokio>(),
        Pair::of::<Flume, runtimes::Tokio>(),
        Pair::of::<Kanal, runtimes::Tokio>(),
        Pair::of::<Kanal, TokioCurrentThread>(),
        Pair::of::<Kanal, Nexosim>(),
        Pair::of::<Kanal, AsyncExecutor>(),
        Pair::of::<Crossfire, runtimes::Tokio>(),
        Pair::of::<Crossfire, Nexosim>(),
        Pair::of::<CrossfireSpsc, runtimes::Tokio>(),
        Pair::of::<CrossfireSpsc, Nexosim>(),
        Pair::of::<Asyncband, runtimes::Tokio>(),
        Pair::of::<Thingbuf, runtimes::Tokio>(),
        Pair::of::<FuturesChannel, runtimes::Tokio>(),
    ]);
    pairs
}

/// What a reader must know to compare fairly, printed under the tables.
pub const NOTES: &[&str] = &[
    "futures-channel holds a message of each sender besides its capacity.",
    "tokio's channel takes part in tokio's cooperative budget.",
    "crossfire spins before it parks when the capacity is below 10.",
    "kanal's lock puts a worker to sleep when it is contended.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_delivers_every_message() {
        for pair in all() {
            for (senders, capacity, workers) in
                [(1, 1, 1), (3, 1, 1), (1, 10, 2), (3, 10, 2), (3, 1, 2)]
            {
                if pair.supports(senders, workers) {
                    let shape = Shape {
                        channels: 5,
                        senders,
                        capacity,
                        per_sender: 20,
                    };
                    let result = pair.funnel(shape, workers);
                    assert!(result.is_ok(), "{} with {shape:?}: {result:?}", pair.name());
                }
            }
        }
    }

    #[test]
    fn no_pair_is_listed_twice() {
        let mut names: Vec<_> = all().iter().map(Pair::name).collect();
        names.sort();
        let listed = names.len();
        names.dedup();
        assert_eq!(listed, names.len());
    }
}
