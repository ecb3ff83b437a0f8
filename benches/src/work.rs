//! What is measured: a cell does so much work, and tells how long it took.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::ours;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// What the clock showed.
    pub time: Duration,
    /// How much was done in it.
    pub work: usize,
}

impl Sample {
    /// Work per microsecond.
    pub fn rate(&self) -> f64 {
        self.work as f64 / self.time.as_secs_f64() / 1e6
    }
}

/// Does so much work on a fresh runtime, checks its results, and measures.
pub type Run = Arc<dyn Fn(usize) -> Result<Sample, String> + Send + Sync>;

/// What takes part in a group: a channel on a runtime, a channel alone, or a runtime alone.
#[derive(Clone)]
pub struct Cell {
    /// The channel's name; none where runtimes are compared.
    pub channel: &'static str,
    /// The runtime's name; none where there is no runtime.
    pub runtime: &'static str,
    /// The packages behind them.
    pub packages: Vec<&'static str>,
    /// The runtime's workers; 0 without one.
    pub workers: usize,
    /// The measurement.
    pub run: Run,
}

impl Cell {
    /// Its name without the number of workers.
    pub fn entrant(&self) -> String {
        match (self.channel, self.runtime) {
            ("", runtime) => runtime.into(),
            (channel, "") => channel.into(),
            (channel, runtime) => format!("{channel} on {runtime}"),
        }
    }

    /// Its name within the group.
    pub fn name(&self) -> String {
        match self.workers {
            0 => self.entrant(),
            workers => format!("{} w{workers}", self.entrant()),
        }
    }

    /// Whether the channel, or the runtime where there is no channel, is ours.
    pub fn is_ours(&self) -> bool {
        let name = if self.channel.is_empty() {
            self.runtime
        } else {
            self.channel
        };
        name.starts_with(ours::NAME)
    }

    /// Whether it runs on our runtime, or on none.
    pub fn is_at_home(&self) -> bool {
        matches!(self.runtime, "" | ours::NAME)
    }

    /// Whether it is one to compare with: not ours, and not the harness alone.
    pub fn is_peer(&self) -> bool {
        !self.is_ours() && self.channel != HARNESS
    }

    /// Whether it is tokio's channel on tokio's multi-threaded runtime, or what there is of the two.
    pub fn is_tokio(&self) -> bool {
        matches!(
            (self.channel, self.runtime),
            ("tokio", "tokio" | "") | ("", "tokio")
        )
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// The name of the loop without anything in it.
pub const HARNESS: &str = "(the loop alone)";
