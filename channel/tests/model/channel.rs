//! The kinds of channel, as the model drives them: what one kind does not offer, it leaves out.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::lent::Lent;
use crate::common::Tracked;

/// How a future, or an attempt, on either side ended.
pub(crate) enum Ended<C: Channel> {
    Sent,
    Permits(Box<dyn Permits<C>>),
    Full(Option<Tracked>),
    TooMany,
    Closed(Option<Tracked>),
    /// No messages: the end.
    Received(Vec<Tracked>),
}

pub(crate) type Wait<C> = Pin<Box<dyn Future<Output = Ended<C>> + Send>>;

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

/// What a handle tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) len: usize,
    pub(crate) empty: bool,
    pub(crate) free: usize,
    pub(crate) closed: bool,
    pub(crate) senders: usize,
    pub(crate) weak_senders: usize,
    /// Strong and weak, where there can be several.
    pub(crate) receivers: Option<(usize, usize)>,
}

pub(crate) trait Channel: Sized + Send + Sync + 'static {
    /// Whether receivers can be cloned.
    const MANY: bool;

    type Tx: Clone + Send + Sync + 'static;
    type WeakTx: Send + 'static;
    type Rx: Send + Sync + 'static;
    type WeakRx: Send + 'static;

    fn new(capacity: usize) -> (Self::Tx, Self::Rx);

    fn try_send(tx: &Self::Tx, message: Tracked) -> Ended<Self>;
    /// The message that made way comes back. `Err`: there is no such way of sending.
    fn force_send(
        tx: &Self::Tx,
        message: Tracked,
    ) -> Result<(Ended<Self>, Option<Tracked>), Tracked>;
    fn send(tx: &'static Self::Tx, message: Tracked) -> Wait<Self>;
    /// `None`: permits cannot be reserved that way; here and below. A sender that is not borrowed is owned
    /// by the future.
    fn reserve(tx: &'static Self::Tx, way: Way) -> Option<Wait<Self>>;
    fn try_reserve(tx: &'static Self::Tx, way: Way) -> Option<Ended<Self>>;
    fn closed(tx: &'static Self::Tx) -> Wait<Self>;
    fn downgrade(tx: &Self::Tx) -> Self::WeakTx;
    fn upgrade(weak: &Self::WeakTx) -> Option<Self::Tx>;
    fn view(tx: &Self::Tx) -> View;

    /// `Full` with nothing: there is no message now.
    fn try_recv(rx: &mut Self::Rx) -> Ended<Self>;
    /// # Safety
    /// The future goes, or is forgotten, before `rx`, and nothing else uses `rx` meanwhile.
    unsafe fn recv(rx: &Lent<Self::Rx>) -> Wait<Self>;
    /// # Safety
    /// As [`recv`](Self::recv).
    unsafe fn recv_many(rx: &Lent<Self::Rx>, limit: usize) -> Wait<Self>;
    fn poll_recv(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>>;
    fn poll_next(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>>;
    fn poll_recv_many(rx: &mut Self::Rx, cx: &mut Context<'_>, limit: usize) -> Poll<Ended<Self>>;
    fn close(rx: &mut Self::Rx);
    fn clone_receiver(rx: &Self::Rx) -> Option<Self::Rx>;
    fn downgrade_receiver(rx: &Self::Rx) -> Option<Self::WeakRx>;
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
