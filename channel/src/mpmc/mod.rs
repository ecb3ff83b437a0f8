//! Many senders, many receivers, a bounded queue in between: each message goes to one receiver.
//!
//! All that [`mpsc`](crate::mpsc) says of its senders holds here: exact capacity, strict FIFO, deposit,
//! cancel safety, fairness. Of receivers:
//!
//! - **Messages are taken in their order**, by whichever receiver comes first.
//! - **Waiting receivers are woken in theirs**, one for each message. A woken one that finds that another
//!   was faster waits again at the front of the line. One that is dropped, or on wakerun is polled no
//!   more, passes its wake on: an abandoned receiver holds no message.
//! - **The queue goes with the last receiver**: then what is queued is dropped, at once.
//!
//! With one receiver, take [`mpsc`](crate::mpsc): its receives need no lock.
//!
//! ```
//! use wakerun_channel::mpmc;
//!
//! wakerun::block_on(async {
//!     let (tx, rx) = mpmc::channel(4);
//!     let workers: Vec<_> = (0..3)
//!         .map(|_| {
//!             let rx = rx.clone();
//!             wakerun::spawn(async move {
//!                 let mut sum = 0;
//!                 while let Some(n) = rx.recv().await {
//!                     sum += n;
//!                 }
//!                 sum
//!             })
//!         })
//!         .collect();
//!     for n in 1..=100 {
//!         tx.send(n).await.unwrap();
//!     }
//!     drop(tx);
//!     let mut sum = 0;
//!     for worker in workers {
//!         sum += worker.await.unwrap();
//!     }
//!     assert_eq!(sum, 5050);
//! });
//! ```

mod force_send;
pub(crate) mod receive;
mod receiver;
mod recv;
mod sender;
mod weak;

pub use crate::bounded::MAX_CAPACITY;
pub use crate::error;
pub use receiver::Receiver;
pub use weak::WeakReceiver;

use recv::{Recv, RecvMany};

use crate::bounded::{self, Mpmc};

/// Sends messages into a channel; clone it for more senders. See [`bounded::Sender`].
pub type Sender<T> = bounded::Sender<T, Mpmc>;

/// Room for one message, in hand. See [`bounded::Permit`].
pub type Permit<'a, T> = bounded::Permit<'a, T, Mpmc>;

/// Room for one message, in hand, with its sender. See [`bounded::OwnedPermit`].
pub type OwnedPermit<T> = bounded::OwnedPermit<T, Mpmc>;

/// Room for several messages, in hand. See [`bounded::PermitIterator`].
pub type PermitIterator<'a, T> = bounded::PermitIterator<'a, T, Mpmc>;

/// A sender for code that polls. See [`bounded::PollSender`].
pub type PollSender<T> = bounded::PollSender<T, Mpmc>;

/// A sender that does not keep the channel open. See [`bounded::WeakSender`].
pub type WeakSender<T> = bounded::WeakSender<T, Mpmc>;

/// Sends into a channel without a bound. See [`unbounded::Sender`](crate::unbounded::Sender).
pub type UnboundedSender<T> = crate::unbounded::Sender<T>;

/// Receives from a channel without a bound. See [`unbounded::Receiver`](crate::unbounded::Receiver).
pub type UnboundedReceiver<T> = crate::unbounded::Receiver<T>;

/// A channel for any number of messages: that of [`unbounded`](crate::unbounded).
///
/// ```
/// let (tx, rx) = wakerun_channel::mpmc::unbounded();
/// tx.send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
pub fn unbounded<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    crate::unbounded::channel()
}

/// The futures of the handles' methods, by name. Apart, so that `mpmc::*` does not hide the prelude's
/// `Send`.
pub mod future {
    pub use super::recv::{Recv, RecvMany};
    use crate::bounded::{self, Mpmc};

    /// See [`bounded::Closed`].
    pub type Closed<'a, T> = bounded::Closed<'a, T, Mpmc>;
    /// See [`bounded::Reserve`].
    pub type Reserve<'a, T> = bounded::Reserve<'a, T, Mpmc>;
    /// See [`bounded::ReserveMany`].
    pub type ReserveMany<'a, T> = bounded::ReserveMany<'a, T, Mpmc>;
    /// See [`bounded::ReserveOwned`].
    pub type ReserveOwned<T> = bounded::ReserveOwned<T, Mpmc>;
    /// See [`bounded::Send`].
    pub type Send<'a, T> = bounded::Send<'a, T, Mpmc>;
    /// See [`bounded::SendMany`].
    pub type SendMany<'a, T> = bounded::SendMany<'a, T, Mpmc>;
    /// See [`bounded::SendOr`].
    pub type SendOr<'a, T, C> = bounded::SendOr<'a, T, C, Mpmc>;
}

/// A channel for `capacity` messages; see [`mpsc::channel`](crate::mpsc::channel).
///
/// # Panics
/// If `capacity` is 0 or above [`MAX_CAPACITY`], or if the memory that is needed at once is not to be had. (For capacity 0, see [`rendezvous`](crate::rendezvous).)
///
/// ```
/// let (tx, rx) = wakerun_channel::mpmc::channel(2);
/// let other = rx.clone();
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// assert_eq!(other.try_recv(), Ok(2));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let chan = bounded::new_channel(capacity);
    (Sender::new(chan.clone()), Receiver::new(chan))
}
