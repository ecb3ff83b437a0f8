//! Channels without a bound: a send never waits, and nothing holds a fast sender back.
//!
//! For what is bounded by other means, such as replies to requests of which there are only so many, and
//! for sending from where nothing can wait, such as a destructor. Everything else wants
//! [`mpsc`](crate::mpsc) or [`mpmc`](crate::mpmc): a queue without a bound grows until memory ends.
//!
//! Receivers are those of [`mpmc`](crate::mpmc): they can be cloned, each message goes to one of them, and
//! they are woken in line. Memory grows and shrinks in blocks with the queue.
//!
//! ```
//! use wakerun_channel::unbounded;
//!
//! wakerun::block_on(async {
//!     let (tx, rx) = unbounded::channel();
//!     let task = wakerun::spawn(async move {
//!         let mut sum = 0;
//!         while let Some(n) = rx.recv().await {
//!             sum += n;
//!         }
//!         sum
//!     });
//!     for n in 1..=1000 {
//!         tx.send(n).unwrap();
//!     }
//!     drop(tx);
//!     assert_eq!(task.await.unwrap(), 500_500);
//! });
//! ```

mod chan;
mod receiver;
mod sender;

pub use crate::error;
pub use receiver::{Receiver, WeakReceiver};
pub use sender::{Sender, WeakSender};

/// The futures of the handles' methods, by name.
pub mod future {
    use super::Sender;
    pub use super::receiver::{Recv, RecvMany};

    /// The future of [`Sender::closed`]; see [`crate::Closed`].
    pub type Closed<'a, T> = crate::Closed<'a, Sender<T>>;
}

use chan::Chan;

/// A channel for any number of messages.
///
/// ```
/// let (tx, rx) = wakerun_channel::unbounded::channel();
/// tx.send(1).unwrap();
/// tx.send(2).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// assert_eq!(rx.len(), 1);
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let chan = Chan::new();
    (Sender::new(chan.clone()), Receiver::new(chan))
}
