//! The entrants: what takes part, with its workloads already instantiated.

use crate::channel::{AnyPayload, Blocking, Channel, Permits};
use crate::funnel::{self, Shape};
use crate::latency::{self, Latencies};
use crate::memory::{self, Footprint};
use crate::micro::{self, Micro};
use crate::payload::{B16, B64, B256, Boxed, KiB, KiB4, Payload};
use crate::pinball::{self, Table};
use crate::runtime::{General, Runtime};
use crate::scheduling::{self, Scheduling};
use crate::threads;
use crate::work::Sample;

/// Which payload a workload carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// `usize`.
    Usize,
    /// 16 bytes.
    B16,
    /// 64 bytes.
    B64,
    /// 256 bytes.
    B256,
    /// 1 KiB.
    KiB,
    /// 4 KiB.
    KiB4,
    /// 1 KiB, boxed.
    Boxed,
}

impl Carried {
    /// All of them, by size.
    pub const ALL: [Self; 7] = [
        Self::Usize,
        Self::B16,
        Self::B64,
        Self::B256,
        Self::KiB,
        Self::KiB4,
        Self::Boxed,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usize => usize::NAME,
            Self::B16 => B16::NAME,
            Self::B64 => B64::NAME,
            Self::B256 => B256::NAME,
            Self::KiB => KiB::NAME,
            Self::KiB4 => KiB4::NAME,
            Self::Boxed => Boxed::NAME,
        }
    }

    /// Whether a message lies in its slot and is large, so that copies count.
    pub fn is_large(self) -> bool {
        matches!(self, Self::KiB | Self::KiB4)
    }
}

/// The workload [`funnel::run`] with one payload.
type Funnel = fn(Shape, usize) -> Result<Sample, String>;

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
    one_receiver: bool,
    one_worker: bool,
    only_mpmc: bool,
    only_large: bool,
    funnels: [Funnel; 7],
    pinball: fn(Table, usize) -> Result<Sample, String>,
    latencies: fn(Latencies, usize) -> Result<latency::Histogram, String>,
}

impl Pair {
    /// `C` on `R`.
    pub fn of<C: AnyPayload, R: Runtime>() -> Self {
        Self {
            channel: <C as Channel<usize>>::NAME,
            runtime: R::NAME,
            packages: [<C as Channel<usize>>::PACKAGE, R::PACKAGE],
            one_sender: <C as Channel<usize>>::ONE_SENDER,
            one_receiver: <C as Channel<usize>>::ONE_RECEIVER,
            one_worker: R::ONE_WORKER,
            only_mpmc: false,
            only_large: false,
            funnels: [
                funnel::run::<usize, C, R>,
                funnel::run::<B16, C, R>,
                funnel::run::<B64, C, R>,
                funnel::run::<B256, C, R>,
                funnel::run::<KiB, C, R>,
                funnel::run::<KiB4, C, R>,
                funnel::run::<Boxed, C, R>,
            ],
            pinball: pinball::run::<C, R>,
            latencies: latency::run::<C, R>,
        }
    }

    /// Takes part in `mpmc` only: elsewhere its package has a channel for one receiver.
    pub fn only_mpmc(self) -> Self {
        Self {
            only_mpmc: true,
            ..self
        }
    }

    /// Takes part with large messages only: it differs from its like in how it moves them.
    pub fn only_large(self) -> Self {
        Self {
            only_large: true,
            ..self
        }
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{} on {}", self.channel, self.runtime)
    }

    /// Whether the runtime takes so many workers.
    pub fn takes_workers(&self, workers: usize) -> bool {
        workers == 1 || !self.one_worker
    }

    /// Whether it takes part in a funnel of this shape with this payload.
    pub fn takes(&self, shape: &Shape, carried: Carried) -> bool {
        (shape.senders == 1 || !self.one_sender)
            && (shape.receivers == 1 || !self.one_receiver)
            && !self.only_mpmc
            && (carried.is_large() || !self.only_large)
    }

    /// Whether it takes part in the comparison of channels with many senders and receivers.
    pub fn takes_mpmc(&self) -> bool {
        !self.one_receiver
    }

    /// Runs one funnel; see [`funnel::run`].
    ///
    /// # Errors
    ///
    /// Where receivers got anything but their messages.
    pub fn funnel(&self, shape: Shape, carried: Carried, workers: usize) -> Result<Sample, String> {
        let index = Carried::ALL.iter().position(|one| *one == carried);
        (self.funnels[index.unwrap_or(0)])(shape, workers)
    }

    /// Plays one game of pinball; see [`pinball::run`].
    ///
    /// # Errors
    ///
    /// Where balls were lost or multiplied.
    pub fn pinball(&self, table: Table, workers: usize) -> Result<Sample, String> {
        (self.pinball)(table, workers)
    }

    /// Measures how long messages take; see [`latency::run`].
    ///
    /// # Errors
    ///
    /// Where messages are missing.
    pub fn latencies(&self, load: Latencies, workers: usize) -> Result<latency::Histogram, String> {
        (self.latencies)(load, workers)
    }
}

/// A channel alone, on one thread, without a runtime.
#[derive(Clone, Debug)]
pub struct ChannelEntrant {
    /// Its name.
    pub name: &'static str,
    /// The package behind it.
    pub package: &'static str,
    /// What can be measured of it.
    pub micros: Vec<Micro>,
    /// What it takes of memory, by payload.
    pub footprints: [fn(usize) -> Footprint; 2],
}

impl ChannelEntrant {
    /// The operations that every channel has.
    pub fn of<C: AnyPayload>() -> Self {
        Self {
            name: <C as Channel<usize>>::NAME,
            package: <C as Channel<usize>>::PACKAGE,
            micros: [micro::common::<usize, C>(), micro::common::<KiB, C>()].concat(),
            footprints: [memory::footprint::<usize, C>, memory::footprint::<KiB, C>],
        }
    }

    /// Those, and those with permits.
    pub fn with_permits<C: AnyPayload + Permits<usize> + Permits<KiB>>() -> Self {
        let mut entrant = Self::of::<C>();
        entrant.micros.extend(micro::permits::<usize, C>());
        entrant.micros.extend(micro::permits::<KiB, C>());
        entrant
    }
}

/// A channel between plain threads.
#[derive(Clone, Copy, Debug)]
pub struct BlockingEntrant {
    /// Its name.
    pub name: &'static str,
    /// The package behind it.
    pub package: &'static str,
    /// Whether it takes one receiver only.
    pub one_receiver: bool,
    /// The workload.
    pub run: fn(Shape) -> Result<Sample, String>,
}

impl BlockingEntrant {
    /// `C`.
    pub fn of<C: Blocking>() -> Self {
        Self {
            name: C::NAME,
            package: C::PACKAGE,
            one_receiver: C::ONE_RECEIVER,
            run: threads::run::<C>,
        }
    }
}

/// A runtime alone.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeEntrant {
    /// Its name.
    pub name: &'static str,
    /// The package behind it.
    pub package: &'static str,
    /// The workloads.
    pub run: fn(Scheduling, usize, usize) -> Result<Sample, String>,
    /// What a task takes of memory, in bytes and allocations.
    pub task: fn(usize) -> memory::Cost,
}

impl RuntimeEntrant {
    /// `R`.
    pub fn of<R: General>() -> Self {
        Self {
            name: R::NAME,
            package: R::PACKAGE,
            run: scheduling::run::<R>,
            task: memory::task::<R>,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::pairs;

    #[test]
    fn every_pair_delivers_every_message() {
        for pair in pairs() {
            for (senders, receivers, capacity, workers) in [
                (1, 1, 1, 1),
                (3, 1, 1, 1),
                (1, 1, 10, 2),
                (3, 1, 10, 2),
                (3, 1, 1, 2),
                (2, 2, 4, 2),
            ] {
                let shape = Shape {
                    channels: 5,
                    senders,
                    receivers,
                    capacity,
                    per_sender: 20,
                };
                let mpmc = receivers > 1 && pair.takes_mpmc();
                for carried in Carried::ALL {
                    if (mpmc || pair.takes(&shape, carried)) && pair.takes_workers(workers) {
                        let result = pair.funnel(shape, carried, workers);
                        assert!(result.is_ok(), "{} with {shape:?}: {result:?}", pair.name());
                    }
                }
            }
        }
    }

    #[test]
    fn no_pair_is_listed_twice() {
        let mut names: Vec<_> = pairs().iter().map(Pair::name).collect();
        names.sort();
        let listed = names.len();
        names.dedup();
        assert_eq!(listed, names.len());
    }
}
