//! The kinds of channel, as the model drives them: what one kind does not offer, it leaves out.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use super::lent::Lent;
use crate::common::Tracked;

/// How a future, or an attempt, on either side ended.
pub(crate) enum Ended<C: Channel> {
    Sent,
    Permits(Box<dyn Permits<C>>),
    /// Messages that were not sent come back; here and below.
    Full(Vec<Tracked>),
    TooMany,
    Closed(Vec<Tracked>),
    Cancelled(Tracked),
    /// No messages: the end.
    Received(Vec<Tracked>),
    /// A message with this number was there, and is gone.
    Seen(usize),
}

pub(crate) type Wait<C> = Pin<Box<dyn Future<Output = Ended<C>> + Send>>;

/// Ready when it is polled after `cancel` was set.
pub(crate) async fn when(cancel: Arc<AtomicBool>) {
    poll_fn(|_| {
        if cancel.load(Ordering::SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Which way permits are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    One,
    Owned,
    Many(usize),
}

impl Way {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::One | Self::Owned => 1,
            Self::Many(count) => count,
        }
    }
}

/// What a handle tells, if it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) len: Option<usize>,
    pub(crate) empty: Option<bool>,
    pub(crate) free: Option<usize>,
    pub(crate) closed: Option<bool>,
    pub(crate) senders: Option<usize>,
    pub(crate) weak_senders: Option<usize>,
    pub(crate) receivers: Option<usize>,
    pub(crate) weak_receivers: Option<usize>,
}

impl View {
    /// As much of it as another one tells.
    pub(crate) fn like(self, other: Self) -> Self {
        Self {
            len: self.len.filter(|_| other.len.is_some()),
            empty: self.empty.filter(|_| other.empty.is_some()),
            free: self.free.filter(|_| other.free.is_some()),
            closed: self.closed.filter(|_| other.closed.is_some()),
            senders: self.senders.filter(|_| other.senders.is_some()),
            weak_senders: self.weak_senders.filter(|_| other.weak_senders.is_some()),
            receivers: self.receivers.filter(|_| other.receivers.is_some()),
            weak_receivers: (self.weak_receivers).filter(|_| other.weak_receivers.is_some()),
        }
    }
}

pub(crate) trait Channel: Sized + Send + Sync + 'static {
    /// Whether receivers can be cloned.
    const MANY: bool;
    /// Whether there is [`poll_recv_many`](Self::poll_recv_many).
    const POLLS_MANY: bool = true;

    type Tx: Clone + Send + Sync + 'static;
    type WeakTx: Send + 'static;
    type Rx: Send + Sync + 'static;
    type WeakRx: Send + 'static;

    /// The capacity that the model has, for one that a test asks for.
    fn capacity(asked: usize) -> usize {
        asked
    }

    fn new(capacity: usize) -> (Self::Tx, Self::Rx);

    // What a kind of channel does not offer comes to `None`.

    fn try_send(tx: &Self::Tx, message: Tracked) -> Option<Ended<Self>>;
    fn send(_tx: &'static Self::Tx, _message: Tracked) -> Option<Wait<Self>> {
        None
    }
    /// Gives the message back when `cancel` is set.
    fn send_or(
        _tx: &'static Self::Tx,
        _message: Tracked,
        _cancel: Arc<AtomicBool>,
    ) -> Option<Wait<Self>> {
        None
    }
    fn send_many(_tx: &'static Self::Tx, _messages: VecDeque<Tracked>) -> Option<Wait<Self>> {
        None
    }
    /// The message that made way comes back.
    fn force_send(_tx: &Self::Tx, _message: Tracked) -> Option<(Ended<Self>, Option<Tracked>)> {
        None
    }
    /// What is [`Way::Owned`] has a sender of its own, and does not borrow this one.
    fn reserve(_tx: &'static Self::Tx, _way: Way) -> Option<Wait<Self>> {
        None
    }
    fn try_reserve(_tx: &'static Self::Tx, _way: Way) -> Option<Ended<Self>> {
        None
    }
    fn closed(_tx: &'static Self::Tx) -> Option<Wait<Self>> {
        None
    }
    fn downgrade(_tx: &Self::Tx) -> Option<Self::WeakTx> {
        None
    }
    fn upgrade(weak: &Self::WeakTx) -> Option<Self::Tx>;
    fn view(tx: &Self::Tx) -> View;

    /// `Full` with nothing: there is no message now.
    fn try_recv(rx: &mut Self::Rx) -> Ended<Self>;
    /// Up to so many messages, or one.
    ///
    /// # Safety
    /// The future goes, or is forgotten, before `rx`, and nothing else uses `rx` meanwhile.
    unsafe fn recv(rx: &Lent<Self::Rx>, limit: Option<usize>) -> Option<Wait<Self>>;
    fn poll_recv(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>>;
    fn poll_next(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>>;
    /// The message is looked at where it is; then it is moved out, or dropped there.
    fn try_recv_ref(_rx: &mut Self::Rx, _moved: bool) -> Option<Ended<Self>> {
        None
    }
    /// As [`poll_recv`](Self::poll_recv), for such a message.
    fn poll_recv_ref(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>> {
        Self::poll_recv(rx, cx)
    }
    fn poll_recv_many(rx: &mut Self::Rx, cx: &mut Context<'_>, limit: usize) -> Poll<Ended<Self>>;
    fn close(rx: &mut Self::Rx);
    fn clone_receiver(_rx: &Self::Rx) -> Option<Self::Rx> {
        None
    }
    fn downgrade_receiver(_rx: &Self::Rx) -> Option<Self::WeakRx> {
        None
    }
    fn upgrade_receiver(weak: &Self::WeakRx) -> Option<Self::Rx>;
    fn view_receiver(rx: &Self::Rx) -> View;
}

/// Permits in hand, of any kind. Dropping them gives them back.
pub(crate) trait Permits<C: Channel>: Send {
    fn count(&self) -> usize;
    /// Takes one out of many. `None`: these are not many, or none is left.
    fn next(&mut self) -> Option<Box<dyn Permits<C>>>;
    /// Sends as many messages as there are permits, and gives the others back. `false`: the receivers are
    /// gone.
    fn send(self: Box<Self>, messages: &mut Vec<Tracked>) -> bool;
    /// As dropping it, by name.
    fn release(self: Box<Self>);
}
