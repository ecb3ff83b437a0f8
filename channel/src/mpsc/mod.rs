//! Many senders, one receiver, a bounded queue in between.
//!
//! - **Capacity is exact**: messages accepted and not yet received, permits held and permits granted
//!   but not yet claimed never exceed it.
//! - **Strict FIFO**: senders that wait stand in line, and nobody overtakes it: while a line waits,
//!   [`Sender::try_send`] says full and a new [`Sender::send`] goes to its end.
//! - **Deposit**: whatever frees a slot moves the first waiting sender's message into the queue at
//!   once. A [`Sender::send`] that is not polled again after it began to wait blocks nobody.
//! - **Cancel safety**: every future can be dropped at any time;
//!   [a page of the guide](crate::guide::cancel_safety) and those in [`future`] say what that does.
//! - **No futurelock**: a [`Sender::reserve`] that is not polled any more does not keep what it has been
//!   granted, on wakerun.
//! - **Large messages** are moved twice on their way, or not at all: [`Permit::send_with`] builds one in its
//!   slot, and [`Receiver::recv_ref`] hands it out there.
//! - **Fairness**: on wakerun a task that always finds messages or room, or a closed channel, yields after 128
//!   operations a poll, or after ten microseconds where they are so short that 128 take less. On other executors
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

mod receiver;
mod recv;
mod recv_ref;

pub use crate::bounded::MAX_CAPACITY;
pub use crate::error;
pub use receiver::Receiver;
pub use recv_ref::RecvRef;

use recv::{Recv, RecvMany};

use crate::bounded::{self, Mpsc};

/// Sends messages into a channel; clone it for more senders. See [`bounded::Sender`].
pub type Sender<T> = bounded::Sender<T, Mpsc>;

/// Room for one message, in hand. See [`bounded::Permit`].
pub type Permit<'a, T> = bounded::Permit<'a, T, Mpsc>;

/// Room for one message, in hand, with its sender. See [`bounded::OwnedPermit`].
pub type OwnedPermit<T> = bounded::OwnedPermit<T, Mpsc>;

/// Room for several messages, in hand. See [`bounded::PermitIterator`].
pub type PermitIterator<'a, T> = bounded::PermitIterator<'a, T, Mpsc>;

/// A sender for code that polls. See [`bounded::PollSender`].
pub type PollSender<T> = bounded::PollSender<T, Mpsc>;

/// A sender that does not keep the channel open. See [`bounded::WeakSender`].
pub type WeakSender<T> = bounded::WeakSender<T, Mpsc>;

/// Sends into a channel without a bound. See [`unbounded::Sender`](crate::unbounded::Sender).
pub type UnboundedSender<T> = crate::unbounded::Sender<T>;

/// Receives from a channel without a bound. See [`unbounded::Receiver`](crate::unbounded::Receiver).
pub type UnboundedReceiver<T> = crate::unbounded::Receiver<T>;

/// A channel for any number of messages: that of [`unbounded`](crate::unbounded).
///
/// ```
/// let (tx, rx) = wakerun_channel::mpsc::unbounded();
/// tx.send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
pub fn unbounded<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    crate::unbounded::channel()
}

/// The futures of the handles' methods, by name. Apart, so that `mpsc::*` does not hide the prelude's
/// `Send`.
pub mod future {
    pub use super::recv::{Recv, RecvMany};
    use crate::bounded::{self, Mpsc};

    /// See [`bounded::Closed`].
    pub type Closed<'a, T> = bounded::Closed<'a, T, Mpsc>;
    /// See [`bounded::Reserve`].
    pub type Reserve<'a, T> = bounded::Reserve<'a, T, Mpsc>;
    /// See [`bounded::ReserveMany`].
    pub type ReserveMany<'a, T> = bounded::ReserveMany<'a, T, Mpsc>;
    /// See [`bounded::ReserveOwned`].
    pub type ReserveOwned<T> = bounded::ReserveOwned<T, Mpsc>;
    /// See [`bounded::Send`].
    pub type Send<'a, T> = bounded::Send<'a, T, Mpsc>;
    /// See [`bounded::SendMany`].
    pub type SendMany<'a, T> = bounded::SendMany<'a, T, Mpsc>;
    /// See [`bounded::SendOr`].
    pub type SendOr<'a, T, C> = bounded::SendOr<'a, T, C, Mpsc>;
}

/// A channel for `capacity` messages.
///
/// The queue's memory is for the next power of two of messages, and a byte for each. A large one, for more than 64 to
/// 1024 messages, depending on their size, has it in blocks that come as messages need them and go when these have
/// been received; if there is no memory for one then, the process ends as it does when a `Box` finds none.
///
/// # Panics
/// If `capacity` is 0 or above [`MAX_CAPACITY`], or if the memory that is needed at once is not to be had.
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
    let chan = bounded::new_channel(capacity);
    (Sender::new(chan.clone()), Receiver::new(chan))
}
