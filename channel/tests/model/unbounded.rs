//! Channels without a bound.

use wakerun_channel::error::SendError;
use wakerun_channel::unbounded::{self, Receiver, Sender, WeakReceiver, WeakSender};

use super::channel::{Channel, Ended, View, Wait};
use super::receivers::{cloning, receiving};
use crate::common::Tracked;

pub(crate) struct Unbounded;

impl Channel for Unbounded {
    const MANY: bool = true;
    const POLLS_MANY: bool = false;

    type Tx = Sender<Tracked>;
    type WeakTx = WeakSender<Tracked>;
    type Rx = Receiver<Tracked>;
    type WeakRx = WeakReceiver<Tracked>;

    fn capacity(_asked: usize) -> usize {
        usize::MAX
    }

    fn new(_capacity: usize) -> (Self::Tx, Self::Rx) {
        unbounded::channel()
    }

    receiving!(borrow, many);
    cloning!();

    fn poll_recv_many(
        _rx: &mut Self::Rx,
        _cx: &mut std::task::Context<'_>,
        _limit: usize,
    ) -> std::task::Poll<Ended<Self>> {
        unreachable!("not offered")
    }

    fn try_send(tx: &Self::Tx, message: Tracked) -> Option<Ended<Self>> {
        Some(match tx.send(message) {
            Ok(()) => Ended::Sent,
            Err(SendError(message)) => Ended::Closed(vec![message]),
        })
    }

    fn closed(tx: &'static Self::Tx) -> Option<Wait<Self>> {
        let closed = tx.closed();
        Some(Box::pin(async move {
            closed.await;
            Ended::Closed(Vec::new())
        }))
    }

    fn downgrade(tx: &Self::Tx) -> Option<Self::WeakTx> {
        Some(tx.downgrade())
    }

    fn upgrade(weak: &Self::WeakTx) -> Option<Self::Tx> {
        weak.upgrade()
    }

    fn view(tx: &Self::Tx) -> View {
        View {
            len: Some(tx.len()),
            empty: Some(tx.is_empty()),
            closed: Some(tx.is_closed()),
            senders: Some(tx.strong_count()),
            weak_senders: Some(tx.weak_count()),
            ..View::default()
        }
    }

    fn view_receiver(rx: &Self::Rx) -> View {
        View {
            len: Some(rx.len()),
            empty: Some(rx.is_empty()),
            free: None,
            closed: Some(rx.is_closed()),
            senders: Some(rx.sender_strong_count()),
            weak_senders: Some(rx.sender_weak_count()),
            receivers: Some(rx.strong_count()),
            weak_receivers: Some(rx.weak_count()),
        }
    }
}
