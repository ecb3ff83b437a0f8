//! The sending side that [`mpsc`](crate::mpsc) and [`mpmc`](crate::mpmc) share: both modules name its
//! types with their own flavor filled in, as in `mpsc::Sender<T>`.

mod closed;
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
pub use closed::Closed;
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
