//! The bounded channels of both flavors.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use wakerun_channel::bounded::{
    Flavor, Mpmc, Mpsc, OwnedPermit, Permit, PermitIterator, Sender, WeakSender,
};
use wakerun_channel::error::{
    ReserveError, SendError, SendTimeoutError, TryRecvError, TryReserveError, TrySendError,
};
use wakerun_channel::{mpmc, mpsc};

use super::channel::{Channel, Ended, Permits, View, Wait, Way, when};
use super::receivers::{cloning, polling_many, receiving};
use crate::common::Tracked;

type Tx<F> = Sender<Tracked, F>;

fn refused<C: Channel>(error: TrySendError<Tracked>) -> Ended<C> {
    match error {
        TrySendError::Full(message) => Ended::Full(vec![message]),
        TrySendError::Closed(message) => Ended::Closed(vec![message]),
    }
}

fn refused_permit<C: Channel, X>(error: TrySendError<X>) -> Ended<C> {
    match error {
        TrySendError::Full(_) => Ended::Full(Vec::new()),
        TrySendError::Closed(_) => Ended::Closed(Vec::new()),
    }
}

fn reserve<C: Channel<Tx = Tx<F>>, F: Flavor>(tx: &'static Tx<F>, way: Way) -> Wait<C> {
    match way {
        Way::One => {
            let reserve = tx.reserve();
            Box::pin(async move {
                match reserve.await {
                    Ok(permit) => Ended::Permits(Box::new(permit)),
                    Err(SendError(())) => Ended::Closed(Vec::new()),
                }
            })
        }
        Way::Owned => {
            let reserve = tx.clone().reserve_owned();
            Box::pin(async move {
                match reserve.await {
                    Ok(permit) => Ended::Permits(Box::new(permit)),
                    Err(SendError(())) => Ended::Closed(Vec::new()),
                }
            })
        }
        Way::Many(count) => {
            let reserve = tx.reserve_many(count);
            Box::pin(async move {
                match reserve.await {
                    Ok(permits) => Ended::Permits(Box::new(permits)),
                    Err(ReserveError::TooMany) => Ended::TooMany,
                    Err(ReserveError::Closed) => Ended::Closed(Vec::new()),
                }
            })
        }
    }
}

fn try_reserve<C: Channel<Tx = Tx<F>>, F: Flavor>(tx: &'static Tx<F>, way: Way) -> Ended<C> {
    match way {
        Way::One => match tx.try_reserve() {
            Ok(permit) => Ended::Permits(Box::new(permit)),
            Err(error) => refused_permit(error),
        },
        Way::Owned => match tx.clone().try_reserve_owned() {
            Ok(permit) => Ended::Permits(Box::new(permit)),
            Err(error) => refused_permit(error),
        },
        Way::Many(count) => match tx.try_reserve_many(count) {
            Ok(permits) => Ended::Permits(Box::new(permits)),
            Err(TryReserveError::TooMany) => Ended::TooMany,
            Err(TryReserveError::Full) => Ended::Full(Vec::new()),
            Err(TryReserveError::Closed) => Ended::Closed(Vec::new()),
        },
    }
}

/// The first message for one permit, and whether it was sent. Without a message it is given back.
fn send_one(
    messages: &mut Vec<Tracked>,
    send: impl FnOnce(Tracked) -> Result<(), Tracked>,
) -> bool {
    if messages.is_empty() {
        return true;
    }
    match send(messages.remove(0)) {
        Ok(()) => true,
        Err(message) => {
            messages.insert(0, message);
            false
        }
    }
}

impl<C: Channel, F: Flavor> Permits<C> for Permit<'static, Tracked, F> {
    fn count(&self) -> usize {
        1
    }

    fn next(&mut self) -> Option<Box<dyn Permits<C>>> {
        None
    }

    fn send(self: Box<Self>, messages: &mut Vec<Tracked>) -> bool {
        let permit = Cell::new(Some(*self));
        let permit = || permit.take().expect("it is used once");
        send_one(messages, |message| {
            send_or_build(
                message,
                |message| permit().send(message),
                |make| permit().send_with(make),
            )
        })
    }

    fn release(self: Box<Self>) {
        (*self).release();
    }
}

impl<C: Channel, F: Flavor> Permits<C> for OwnedPermit<Tracked, F> {
    fn count(&self) -> usize {
        1
    }

    fn next(&mut self) -> Option<Box<dyn Permits<C>>> {
        None
    }

    fn send(self: Box<Self>, messages: &mut Vec<Tracked>) -> bool {
        let permit = Cell::new(Some(*self));
        let permit = || permit.take().expect("it is used once");
        send_one(messages, |message| {
            send_or_build(
                message,
                |message| permit().send(message),
                |make| permit().send_with(make),
            )
        })
    }

    fn release(self: Box<Self>) {
        drop((*self).release());
    }
}

impl<C: Channel, F: Flavor> Permits<C> for PermitIterator<'static, Tracked, F> {
    fn count(&self) -> usize {
        self.len()
    }

    fn next(&mut self) -> Option<Box<dyn Permits<C>>> {
        Some(Box::new(Iterator::next(self)?))
    }

    fn send(self: Box<Self>, messages: &mut Vec<Tracked>) -> bool {
        let before = messages.len().min(self.len());
        let mut queue = VecDeque::from(std::mem::take(messages));
        let sent = (*self).send_many(&mut queue);
        *messages = queue.into();
        match sent {
            Ok(count) => {
                assert_eq!(count, before, "send_many sends what it can");
                true
            }
            Err(SendError(())) => false,
        }
    }

    fn release(self: Box<Self>) {
        drop(self);
    }
}

/// The message is looked at, and moved out or dropped.
fn received_ref<C: Channel>(message: mpsc::RecvRef<'_, Tracked>, moved: bool) -> Ended<C> {
    if moved {
        Ended::Received(vec![message.into_inner()])
    } else {
        Ended::Seen(message.id)
    }
}

/// Every other message is built in place: `build` is given what makes it.
fn send_or_build<S>(
    message: Tracked,
    send: impl FnOnce(Tracked) -> Result<S, SendError<Tracked>>,
    build: impl FnOnce(&mut dyn FnMut() -> Tracked) -> Result<S, SendError<()>>,
) -> Result<(), Tracked> {
    if message.id.is_multiple_of(2) {
        return send(message).map(drop).map_err(|error| error.0);
    }
    let mut message = Some(message);
    let sent = build(&mut || message.take().expect("it is built once")).map(drop);
    sent.map_err(|SendError(())| message.take().expect("it was not built"))
}

/// What both senders offer.
macro_rules! sending {
    ($flavor:ty) => {
        type Tx = Sender<Tracked, $flavor>;
        type WeakTx = WeakSender<Tracked, $flavor>;

        fn try_send(tx: &Self::Tx, message: Tracked) -> Option<Ended<Self>> {
            Some(match tx.try_send(message) {
                Ok(()) => Ended::Sent,
                Err(error) => refused(error),
            })
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

        fn send_many(tx: &'static Self::Tx, mut messages: VecDeque<Tracked>) -> Option<Wait<Self>> {
            Some(Box::pin(async move {
                match tx.send_many(&mut messages).await {
                    Ok(()) => Ended::Sent,
                    Err(SendError(())) => Ended::Closed(messages.into()),
                }
            }))
        }

        fn reserve(tx: &'static Self::Tx, way: Way) -> Option<Wait<Self>> {
            Some(reserve(tx, way))
        }

        fn try_reserve(tx: &'static Self::Tx, way: Way) -> Option<Ended<Self>> {
            Some(try_reserve(tx, way))
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
                free: Some(tx.capacity()),
                closed: Some(tx.is_closed()),
                senders: Some(tx.strong_count()),
                weak_senders: Some(tx.weak_count()),
                ..View::default()
            }
        }
    };
}

impl Channel for Mpsc {
    const MANY: bool = false;

    type Rx = mpsc::Receiver<Tracked>;
    type WeakRx = std::convert::Infallible;

    fn new(capacity: usize) -> (Self::Tx, Self::Rx) {
        mpsc::channel(capacity)
    }

    sending!(Mpsc);
    receiving!(borrow_mut, many);

    fn try_recv_ref(rx: &mut Self::Rx, moved: bool) -> Option<Ended<Self>> {
        Some(match rx.try_recv_ref() {
            Ok(message) => received_ref(message, moved),
            Err(TryRecvError::Empty) => Ended::Full(Vec::new()),
            Err(TryRecvError::Disconnected) => Ended::Received(Vec::new()),
        })
    }

    fn poll_recv_ref(rx: &mut Self::Rx, cx: &mut Context<'_>) -> Poll<Ended<Self>> {
        rx.poll_recv_ref(cx).map(|message| match message {
            Some(message) => received_ref(message, false),
            None => Ended::Received(Vec::new()),
        })
    }

    polling_many!();

    fn upgrade_receiver(weak: &Self::WeakRx) -> Option<Self::Rx> {
        match *weak {}
    }

    fn view_receiver(rx: &Self::Rx) -> View {
        View {
            len: Some(rx.len()),
            empty: Some(rx.is_empty()),
            free: Some(rx.capacity()),
            closed: Some(rx.is_closed()),
            senders: Some(rx.sender_strong_count()),
            weak_senders: Some(rx.sender_weak_count()),
            ..View::default()
        }
    }
}

impl Channel for Mpmc {
    const MANY: bool = true;

    type Rx = mpmc::Receiver<Tracked>;
    type WeakRx = mpmc::WeakReceiver<Tracked>;

    fn new(capacity: usize) -> (Self::Tx, Self::Rx) {
        mpmc::channel(capacity)
    }

    sending!(Mpmc);
    receiving!(borrow, many);
    polling_many!();
    cloning!();

    fn force_send(tx: &Self::Tx, message: Tracked) -> Option<(Ended<Self>, Option<Tracked>)> {
        Some(match tx.force_send(message) {
            Ok(oldest) => (Ended::Sent, oldest),
            Err(error) => (refused(error), None),
        })
    }

    fn view_receiver(rx: &Self::Rx) -> View {
        View {
            len: Some(rx.len()),
            empty: Some(rx.is_empty()),
            free: Some(rx.capacity()),
            closed: Some(rx.is_closed()),
            senders: Some(rx.sender_strong_count()),
            weak_senders: Some(rx.sender_weak_count()),
            receivers: Some(rx.strong_count()),
            weak_receivers: Some(rx.weak_count()),
        }
    }
}
