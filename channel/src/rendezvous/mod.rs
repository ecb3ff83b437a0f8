//! Channels without a queue: a send is done when a receiver has taken the message.
//!
//! Senders and receivers can be cloned, and each side waits in line. What a sender hands over has been
//! received when it is told so: there is no queue in which a message could be forgotten, and nothing is
//! accepted ahead of time. So there is no `try_send` and no `reserve`: there is no room to speak of
//! before a receiver comes.
//!
//! Both sides are cancel-safe: a [`Sender::send`] that is dropped takes its message back unless a receiver
//! has it; a [`Receiver::recv`] that is dropped has taken nothing.
//!
//! ```
//! use wakerun_channel::rendezvous;
//!
//! wakerun::block_on(async {
//!     let (tx, rx) = rendezvous::channel();
//!     let task = wakerun::spawn(async move {
//!         tx.send("one").await.unwrap();
//!         tx.send("two").await.unwrap();
//!     });
//!     assert_eq!(rx.recv().await, Some("one"));
//!     assert_eq!(rx.recv().await, Some("two"));
//!     assert_eq!(rx.recv().await, None);
//!     task.await.unwrap();
//! });
//! ```

mod chan;
mod receiver;
mod send;
mod sender;

pub use crate::error;
pub use receiver::Receiver;
pub use sender::Sender;

/// The futures of the handles' methods, by name.
pub mod future {
    use super::Sender;
    pub use super::receiver::Recv;
    pub use super::send::{Send, SendOr};

    /// The future of [`Sender::closed`]; see [`crate::Closed`].
    pub type Closed<'a, T> = crate::Closed<'a, Sender<T>>;
}

use chan::Chan;

/// A channel without a queue.
///
/// ```
/// let (tx, rx) = wakerun_channel::rendezvous::channel();
/// let thread = std::thread::spawn(move || tx.blocking_send(1));
/// assert_eq!(rx.blocking_recv(), Some(1));
/// assert_eq!(thread.join().unwrap(), Ok(()));
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let chan = Chan::new();
    (Sender::new(chan.clone()), Receiver::new(chan))
}
