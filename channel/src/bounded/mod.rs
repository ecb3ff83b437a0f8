//! The sending side that [`mpsc`](crate::mpsc) and [`mpmc`](crate::mpmc) share: both modules name its
//! types with their own flavor filled in, as in `mpsc::Sender<T>`.
//!
//! | to send | waits | tells for sure what has become of the message |
//! |---|---|---|
//! | [`send`](Sender::send) | in line | when it is ready; if it is dropped before, no |
//! | [`send_or`](Sender::send_or), [`send_timeout`](Sender::send_timeout), [`send_deadline`](Sender::send_deadline) | in line, until something else is ready | yes |
//! | [`reserve`](Sender::reserve), then [`Permit::send`] | in line, before there is a message | yes |
//! | [`send_many`](Sender::send_many) | in line, as often as the channel is full | yes: what was not sent is left |
//! | [`try_send`](Sender::try_send), [`try_reserve`](Sender::try_reserve) | no | yes |
//! | `force_send`, of [`mpmc`](crate::mpmc) | no: the oldest message makes way | yes |
//! | [`blocking_send`](Sender::blocking_send), [`blocking_send_timeout`](Sender::blocking_send_timeout) | in line, and blocks the thread | yes |

mod owned_permit;
mod permit;
mod permit_iter;
mod poll_sender;
mod reservation;
mod reserve;
mod send;
mod send_many;
mod send_or;
mod sender;
mod weak;

pub use crate::flavor::{Flavor, Mpmc, Mpsc};
pub use owned_permit::OwnedPermit;
pub use permit::Permit;
pub use permit_iter::PermitIterator;
pub use poll_sender::PollSender;
pub use reserve::{Reserve, ReserveMany, ReserveOwned};
pub use send::Send;
pub use send_many::SendMany;
pub use send_or::SendOr;
pub use sender::Sender;
pub use weak::WeakSender;

use std::sync::Arc;

use crate::chan::Chan;

/// The future of [`Sender::closed`]; see [`crate::Closed`].
pub type Closed<'a, T, F = Mpsc> = crate::Closed<'a, Sender<T, F>>;

/// The largest capacity of a channel: 16,777,215 messages.
pub const MAX_CAPACITY: usize = crate::gate::MAX_CAPACITY;

/// What a new channel's handles share.
///
/// # Panics
/// If the capacity is 0 or above [`MAX_CAPACITY`], or if there is no memory for it.
#[track_caller]
pub(crate) fn new_channel<T, F: Flavor>(capacity: usize) -> Arc<Chan<T, F>> {
    assert!(
        capacity > 0,
        "a channel needs a capacity of at least 1 message; `rendezvous::channel` hands over without one"
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
    chan
}
