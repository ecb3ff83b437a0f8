//! Reserving room.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::reservation::Reservation;
use super::{OwnedPermit, Permit, PermitIterator, Sender};
use crate::error::{ReserveError, SendError};
use crate::flavor::{Flavor, Mpsc};

/// The future of [`Sender::reserve`].
///
/// # Cancel safety
/// Dropped before it is Ready, it leaves the line, or passes on the room that it has been granted
/// meanwhile.
///
/// One that is kept but not polled any more blocks nobody on a wakerun task, or in its `block_on`: when
/// a poll of the task that began after the grant is over and the future has not been polled in it, the
/// grant lapses. The room goes to the next in line, and this future keeps its place. (Where the future
/// has another waker than its task, as inside `FuturesUnordered`, and on other executors, it keeps what
/// it has been granted until it is polled or dropped.) See
/// [the guide](crate::guide::cancel_safety#futurelock).
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Reserve<'a, T, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    reservation: Reservation,
}

/// The future of [`Sender::reserve_many`].
///
/// # Cancel safety
/// As [`Reserve`].
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ReserveMany<'a, T, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    reservation: Reservation,
}

/// The future of [`Sender::reserve_owned`].
///
/// # Cancel safety
/// As [`Reserve`]; the sender that it holds is dropped with it.
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct ReserveOwned<T, F: Flavor = Mpsc> {
    /// Until it is ready.
    sender: Option<Sender<T, F>>,
    reservation: Reservation,
}

macro_rules! shared_traits {
    ($name:ident, $($lifetime:lifetime)?) => {
        // SAFETY: no message is in it; the waiter is reached by other threads under the line's lock
        // only.
        unsafe impl<T: Send, F: Flavor> Send for $name<$($lifetime,)? T, F> {}
        // SAFETY: `&self` gives no more than `Debug`, which reads the stage; all that write it hold the
        // future pinned and exclusively.
        unsafe impl<T: Send, F: Flavor> Sync for $name<$($lifetime,)? T, F> {}

        impl<T, F: Flavor> std::panic::UnwindSafe for $name<$($lifetime,)? T, F> {}
        impl<T, F: Flavor> std::panic::RefUnwindSafe for $name<$($lifetime,)? T, F> {}

        impl<T, F: Flavor> fmt::Debug for $name<$($lifetime,)? T, F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("stage", &self.reservation.stage())
                    .field("count", &self.reservation.count())
                    .finish_non_exhaustive()
            }
        }
    };
}

shared_traits!(Reserve, '_);
shared_traits!(ReserveMany, '_);
shared_traits!(ReserveOwned,);

impl<'a, T, F: Flavor> Reserve<'a, T, F> {
    #[inline]
    pub(super) fn new(sender: &'a Sender<T, F>) -> Self {
        Self {
            sender,
            reservation: Reservation::new(1),
        }
    }
}

impl<'a, T, F: Flavor> ReserveMany<'a, T, F> {
    pub(super) fn new(sender: &'a Sender<T, F>, count: usize) -> Self {
        Self {
            sender,
            reservation: Reservation::new(count as u64),
        }
    }
}

impl<T, F: Flavor> ReserveOwned<T, F> {
    pub(super) fn new(sender: Sender<T, F>) -> Self {
        Self {
            sender: Some(sender),
            reservation: Reservation::new(1),
        }
    }
}

impl<T, F: Flavor> ReserveOwned<T, F> {
    /// Whether the channel is closed, or this is over.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.as_ref().is_none_or(Sender::is_closed)
    }

    /// Gives up the place in line, or what has been granted; the sender comes back.
    pub(super) fn abandon(self: Pin<&mut Self>) -> Option<Sender<T, F>> {
        // SAFETY: the reservation is not moved out of the pinned future; the sender, which is, is
        // pinned by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        let sender = this.sender.take()?;
        this.reservation.cancel(sender.chan());
        Some(sender)
    }

    /// The poll of the future, by a name that needs no import.
    pub(super) fn poll_owned(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<OwnedPermit<T, F>, SendError<()>>> {
        Future::poll(self, cx)
    }
}

impl<'a, T, F: Flavor> Future for Reserve<'a, T, F> {
    type Output = Result<Permit<'a, T, F>, SendError<()>>;

    // Always, as that of a send.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        let chan = this.sender.chan();
        // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
        let reserved = std::task::ready!(unsafe { this.reservation.poll(chan, cx, "reserve") });
        Poll::Ready(match reserved {
            // SAFETY: the word counts a permit for this future.
            Ok(()) => Ok(unsafe { Permit::new(chan) }),
            Err(_) => Err(SendError(())),
        })
    }
}

impl<'a, T, F: Flavor> Future for ReserveMany<'a, T, F> {
    type Output = Result<PermitIterator<'a, T, F>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        let chan = this.sender.chan();
        let count = this.reservation.count();
        if count > chan.gate.capacity() {
            return Poll::Ready(Err(ReserveError::TooMany));
        }
        if count == 0 && !chan.is_closed() {
            // SAFETY: no permit needs to be counted.
            return Poll::Ready(Ok(unsafe { PermitIterator::new(chan, 0) }));
        }
        // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
        let reserved =
            std::task::ready!(unsafe { this.reservation.poll(chan, cx, "reserve_many") });
        Poll::Ready(match reserved {
            // SAFETY: the word counts the permits for this future.
            Ok(()) => Ok(unsafe { PermitIterator::new(chan, count) }),
            Err(_) => Err(ReserveError::Closed),
        })
    }
}

impl<T, F: Flavor> Future for ReserveOwned<T, F> {
    type Output = Result<OwnedPermit<T, F>, SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the reservation is not moved out of the pinned future; the sender, which is, is
        // pinned by nobody.
        let this = unsafe { self.get_unchecked_mut() };
        let Some(sender) = &this.sender else {
            panic!("a `reserve_owned` future was polled after it was ready");
        };
        let chan = sender.chan();
        // SAFETY: pinned with this future, which has one channel and cancels when it is dropped.
        let reserved =
            std::task::ready!(unsafe { this.reservation.poll(chan, cx, "reserve_owned") });
        let sender = this.sender.take();
        Poll::Ready(match (reserved, sender) {
            // SAFETY: the word counts a permit for this future.
            (Ok(()), Some(sender)) => Ok(unsafe { OwnedPermit::new(sender) }),
            _ => Err(SendError(())),
        })
    }
}

impl<T, F: Flavor> Drop for Reserve<'_, T, F> {
    #[inline]
    fn drop(&mut self) {
        self.reservation.cancel(self.sender.chan());
    }
}

impl<T, F: Flavor> Drop for ReserveMany<'_, T, F> {
    fn drop(&mut self) {
        self.reservation.cancel(self.sender.chan());
    }
}

impl<T, F: Flavor> Drop for ReserveOwned<T, F> {
    fn drop(&mut self) {
        if let Some(sender) = &self.sender {
            self.reservation.cancel(sender.chan());
        }
    }
}
