//! The properties that every kind of bounded channel has. Each kind's test crate compiles these files
//! with its own `flavor`, so a test named here runs once for each.

mod abandoned;
pub(crate) mod auto_traits;
mod cancel;
mod capacity;
mod closing;
mod drops;
mod executors;
mod fifo;
mod forgotten;
mod futurelock;
mod in_place;
mod lapse;
mod limits;
mod many;
mod owned;
mod panics;
mod permits;
mod poll_sender;
mod races;
mod stress;
mod threads;
pub(crate) mod waker_drops;
mod wakers;

use crate::flavor::{Receiver, Sender, channel};

/// A channel with `capacity` messages in it, numbered from 0: the next send waits.
pub(crate) fn full(capacity: usize) -> (Sender<usize>, Receiver<usize>) {
    let (tx, rx) = channel(capacity);
    for i in 0..capacity {
        tx.try_send(i).expect("there is room up to the capacity");
    }
    (tx, rx)
}
