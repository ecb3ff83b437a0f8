//! Many senders, one receiver, a bounded queue in between.
//!
//! - **Capacity is exact**: messages accepted and not yet received, permits held and permits granted
//!   but not yet claimed never exceed it.
//! - **Strict FIFO**: senders that wait stand in line, and nobody overtakes it: while a line waits,
//!   [`Sender::try_send`] says full and a new [`Sender::send`] goes to its end.
//! - **Deposit**: whatever frees a slot moves the first waiting sender's message into the queue at
//!   once. A [`Sender::send`] that is not polled again after it began to wait blocks nobody.
//! - **Cancel safety**: every future can be dropped at any time; those in [`future`] say what that
//!   does.
//! - **Fairness**: on wakerun a task that always finds messages or room yields after 128 operations
//!   a poll, or after ten microseconds where they are so short that 128 take less. On other executors
//!   there is no such limit.
//!
//! ```
//! use wakerun_channel::mpsc;
//!
//! wakerun::block_on(async {
//!     let (tx, mut rx) = mpsc::channel(1);
//!     let other = tx.clone();
//!     wakerun::spawn(async move { tx.send("one").await });
//!     wakerun::spawn(async move { other.send("two").await });
//!     let mut got = vec![rx.recv().await.unwrap(), rx.recv().await.unwrap()];
//!     got.sort();
//!     assert_eq!(got, ["one", "two"]);
//!     assert_eq!(rx.recv().await, None);
//! });
//! ```

mod closed;
mod permit;
mod receiver;
mod recv;
mod reserve;
mod send;
mod sender;
mod weak;

pub use crate::error;
pub use permit::Permit;
pub use receiver::Receiver;
pub use sender::Sender;
pub use weak::WeakSender;

use closed::Closed;
use recv::{Recv, RecvMany};
use reserve::Reserve;
use send::Send;

/// The futures of the handles' methods, by name. Apart, so that `mpsc::*` does not hide the prelude's
/// `Send`.
pub mod future {
    pub use super::closed::Closed;
    pub use super::recv::{Recv, RecvMany};
    pub use super::reserve::Reserve;
    pub use super::send::Send;
}

use crate::chan::Chan;

/// The largest capacity of a channel: 16,777,215 messages.
pub const MAX_CAPACITY: usize = crate::gate::MAX_CAPACITY;

/// A channel for `capacity` messages.
///
/// The queue's memory is for the next power of two of messages, and a byte for each; of a large one,
/// pages that are never touched cost no memory.
///
/// # Panics
/// If `capacity` is 0 or above [`MAX_CAPACITY`], or if the memory for so many messages of this size
/// is not to be had.
///
/// ```
/// let (tx, mut rx) = wakerun_channel::mpsc::channel(2);
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert!(tx.try_send(3).unwrap_err().is_full());
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "a channel needs a capacity of at least 1 message"
    );
    assert!(
        capacity <= MAX_CAPACITY,
        "a capacity of {capacity} messages is more than the maximum of {MAX_CAPACITY}"
    );
    let Some(chan) = Chan::new(capacity) else {
        panic!(
            "there is no memory for a channel of {capacity} messages of {} bytes",
            size_of::<T>()
        )
    };
    (Sender::new(chan.clone()), Receiver::new(chan))
}
