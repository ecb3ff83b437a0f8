//! A sender for code that polls: a [`Sink`].

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_sink::Sink;

use super::{OwnedPermit, ReserveOwned, Sender};
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};

/// Wraps a [`Sender`] for use in poll functions, and as a [`Sink`].
///
/// First [`poll_reserve`](Self::poll_reserve) until it is ready, then [`send_item`](Self::send_item): it
/// takes its place in the line of senders, and keeps it from poll to poll.
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Poll, Waker};
/// use wakerun_channel::mpsc::{self, PollSender};
///
/// let (tx, mut rx) = mpsc::channel(1);
/// let mut sink = PollSender::new(tx);
/// let mut cx = Context::from_waker(Waker::noop());
/// assert_eq!(sink.poll_reserve(&mut cx), Poll::Ready(Ok(())));
/// sink.send_item(1).unwrap();
/// assert_eq!(sink.poll_reserve(&mut cx), Poll::Pending);
/// assert_eq!(rx.try_recv(), Ok(1));
/// assert_eq!(sink.poll_reserve(&mut cx), Poll::Ready(Ok(())));
/// ```
pub struct PollSender<T, F: Flavor = Mpsc> {
    state: State<T, F>,
    /// The wait in line; made when it is needed.
    reserving: Option<Place<T, F>>,
}

type Place<T, F> = Pin<Box<Option<ReserveOwned<T, F>>>>;

enum State<T, F: Flavor> {
    Idle(Sender<T, F>),
    Reserving,
    Reserved(OwnedPermit<T, F>),
    Closed,
}

impl<T, F: Flavor> Unpin for PollSender<T, F> {}

impl<T, F: Flavor> PollSender<T, F> {
    /// A sender for polling.
    pub fn new(sender: Sender<T, F>) -> Self {
        Self {
            state: State::Idle(sender),
            reserving: None,
        }
    }

    /// Reserves room for one message, waiting in line for it. Ready at once if there is room reserved.
    ///
    /// # Errors
    /// If the channel is closed, or this sender.
    pub fn poll_reserve(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => return Poll::Ready(Err(SendError(()))),
            State::Reserved(permit) => {
                self.state = State::Reserved(permit);
                return Poll::Ready(Ok(()));
            }
            State::Reserving => {}
            State::Idle(sender) => {
                self.reserving
                    .get_or_insert_with(|| Box::pin(None))
                    .as_mut()
                    .set(Some(sender.reserve_owned()));
            }
        }
        let reserving = self.reserving.as_mut().map(Pin::as_mut);
        let Some(reserve) = reserving.and_then(Option::as_pin_mut) else {
            return Poll::Ready(Err(SendError(())));
        };
        self.state = State::Reserving;
        let reserved = ready!(reserve.poll_owned(cx));
        if let Some(place) = &mut self.reserving {
            place.set(None);
        }
        match reserved {
            Ok(permit) => {
                self.state = State::Reserved(permit);
                Poll::Ready(Ok(()))
            }
            Err(error) => {
                self.state = State::Closed;
                Poll::Ready(Err(error))
            }
        }
    }

    /// Sends a message into the room that was reserved.
    ///
    /// # Errors
    /// If the receivers are gone, or this sender was closed; the message comes back.
    ///
    /// # Panics
    /// If no room was reserved: [`poll_reserve`](Self::poll_reserve) was not ready since the last message.
    #[track_caller]
    pub fn send_item(&mut self, value: T) -> Result<(), SendError<T>> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Reserved(permit) => {
                self.state = State::Idle(permit.send(value)?);
                Ok(())
            }
            State::Closed => Err(SendError(value)),
            other => {
                self.state = other;
                panic!("`send_item` was called without room: call `poll_reserve` until it is ready")
            }
        }
    }

    /// Gives up the place in line, or the room reserved. `true`: there was one.
    pub fn abort_send(&mut self) -> bool {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Reserving => {
                let sender = self.reserving.as_mut().and_then(|place| {
                    let sender = place.as_mut().as_pin_mut()?.abandon();
                    place.set(None);
                    sender
                });
                self.state = sender.map_or(State::Closed, State::Idle);
                true
            }
            State::Reserved(permit) => {
                self.state = State::Idle(permit.release());
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// Closes this sender, not the channel, which other senders may keep open. Room that is reserved can
    /// still be used.
    pub fn close(&mut self) {
        match self.state {
            State::Reserved(_) | State::Closed => {}
            State::Idle(_) => self.state = State::Closed,
            State::Reserving => {
                let _ = self.abort_send();
                self.state = State::Closed;
            }
        }
    }

    /// Whether this sender is closed, or its channel. Room that is reserved may still be good.
    ///
    /// ```
    /// use wakerun_channel::mpsc::{self, PollSender};
    /// use std::task::{Context, Waker};
    ///
    /// let (tx, rx) = mpsc::channel::<u8>(1);
    /// let mut sink = PollSender::new(tx);
    /// assert!(sink.poll_reserve(&mut Context::from_waker(Waker::noop())).is_ready());
    /// assert!(!sink.is_closed());
    /// drop(rx);
    /// assert!(sink.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        match &self.state {
            State::Idle(sender) => sender.is_closed(),
            State::Reserving => {
                let reserving = self.reserving.as_ref().map(|place| place.as_ref());
                let reserve = reserving.and_then(Option::as_pin_ref);
                reserve.is_none_or(|reserve| reserve.get_ref().is_closed())
            }
            State::Reserved(permit) => permit.is_closed(),
            State::Closed => true,
        }
    }

    /// The wrapped sender, while it does not wait in line and holds no room.
    pub fn get_ref(&self) -> Option<&Sender<T, F>> {
        match &self.state {
            State::Idle(sender) => Some(sender),
            _ => None,
        }
    }

    /// The wrapped sender; gives up what is reserved. `None` if this sender is closed.
    pub fn into_inner(mut self) -> Option<Sender<T, F>> {
        let _ = self.abort_send();
        match self.state {
            State::Idle(sender) => Some(sender),
            _ => None,
        }
    }
}

impl<T, F: Flavor> Sink<T> for PollSender<T, F> {
    /// The message, if it is one's that could not be sent.
    type Error = SendError<Option<T>>;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.poll_reserve(cx).map_err(|_| SendError(None))
    }

    fn start_send(mut self: Pin<&mut Self>, value: T) -> Result<(), Self::Error> {
        self.send_item(value)
            .map_err(|SendError(value)| SendError(Some(value)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // What is sent is in the channel.
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let _ = self.abort_send();
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl<T, F: Flavor> fmt::Debug for PollSender<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Idle(_) => "idle",
            State::Reserving => "reserving",
            State::Reserved(_) => "reserved",
            State::Closed => "closed",
        };
        f.debug_struct("PollSender")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
