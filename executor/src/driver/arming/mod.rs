//! How the poller is brought to tell of the next event of a source.
//!
//! With edge-triggered events it does so by itself, and nothing is left to do. Where those do not exist
//! (Windows), it tells once and has to be asked again. `--cfg wakerun_oneshot` takes that way on any
//! system, so that it can be tested.

#[cfg(not(any(windows, wakerun_oneshot)))]
mod edge;
#[cfg(any(windows, wakerun_oneshot, all(test, wakerun_loom)))]
pub(super) mod oneshot;

use polling::PollMode;

#[cfg(not(any(windows, wakerun_oneshot)))]
pub(super) use edge::Arming;
#[cfg(any(windows, wakerun_oneshot))]
pub(super) use oneshot::Arming;

pub(super) const MODE: PollMode = if cfg!(any(windows, wakerun_oneshot)) {
    PollMode::Oneshot
} else {
    PollMode::Edge
};
