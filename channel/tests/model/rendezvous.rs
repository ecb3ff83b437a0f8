//! Channels without a queue.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wakerun_channel::error::{SendError, SendTimeoutError};
use wakerun_channel::rendezvous::{self, Receiver, Sender};

use super::channel::{Channel, Ended, View, Wait, when};
use super::receivers::receiving;
use crate::common::Tracked;

pub(crate) struct Rendezvous;

impl Channel for Rendezvous {
    const MANY: bool = true;
    const POLLS_MANY: bool = false;

    type Tx = Sender<Tracked>;
    type WeakTx = Infallible;
    type Rx = Receiver<Tracked>;
    type WeakRx = Infallible;

    fn capacity(_asked: usize) -> usize {
        0
    }

    fn new(_capacity: usize) -> (Self::Tx, Self::Rx) {
        rendezvous::channel()
    }

    receiving!(borrow, single);

    fn poll_recv_many(
        _rx: &mut Self::Rx,
        _cx: &mut std::task::Context<'_>,
        _limit: usize,
    ) -> std::task::Poll<Ended<Self>> {
        unreachable!("not offered")
    }

    fn try_send(_tx: &Self::Tx, _message: Tracked) -> Option<Ended<Self>> {
        None
    }

    fn send(tx: &'static Self::Tx, message: Tracked) -> Option<Wait<Self>> {
        let send = tx.send(message);
        Some(Box::pin(async move {
            match send.await {
                Ok(()) => Ended::Sent,
                Err(SendError(message)) => Ended::Closed(vec![message]),
            }
        }))
    }

    fn send_or(
        tx: &'static Self::Tx,
        message: Tracked,
        cancel: Arc<AtomicBool>,
    ) -> Option<Wait<Self>> {
        let send = tx.send_or(when(cancel), message);
        Some(Box::pin(async move {
            match send.await {
                Ok(()) => Ended::Sent,
                Err(SendTimeoutError::Timeout(message)) => Ended::Cancelled(message),
                Err(SendTimeoutError::Closed(message)) => Ended::Closed(vec![message]),
            }
        }))
    }

    fn upgrade(weak: &Self::WeakTx) -> Option<Self::Tx> {
        match *weak {}
    }

    fn clone_receiver(rx: &Self::Rx) -> Option<Self::Rx> {
        Some(rx.clone())
    }

    fn upgrade_receiver(weak: &Self::WeakRx) -> Option<Self::Rx> {
        match *weak {}
    }

    fn view(tx: &Self::Tx) -> View {
        View {
            closed: Some(tx.is_closed()),
            senders: Some(tx.strong_count()),
            ..View::default()
        }
    }

    fn view_receiver(rx: &Self::Rx) -> View {
        View {
            closed: Some(rx.is_closed()),
            senders: Some(rx.sender_strong_count()),
            receivers: Some(rx.strong_count()),
            ..View::default()
        }
    }
}
