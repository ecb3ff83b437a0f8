//! What the receivers of all kinds of channel offer under the same names, though one does by `&mut self`
//! and the others by `&self`.

use super::channel::{Channel, Ended};
use crate::common::Tracked;

pub(crate) fn received<C: Channel>(message: Option<Tracked>) -> Ended<C> {
    Ended::Received(message.into_iter().collect())
}

macro_rules! receiving {
    // Of a kind without `recv_many`.
    (@many single, $rx:ident, $limit:ident) => {{
        let _ = $limit;
        None
    }};
    (@many many, $rx:ident, $limit:ident) => {
        Some(Box::pin(async move {
            let mut messages = Vec::new();
            let count = $rx.recv_many(&mut messages, $limit).await;
            assert_eq!(count, messages.len(), "recv_many counts");
            Ended::Received(messages)
        }))
    };
    ($borrow:ident, $many:ident) => {
        fn try_recv(rx: &mut Self::Rx) -> Ended<Self> {
            use wakerun_channel::error::TryRecvError;
            match rx.try_recv() {
                Ok(message) => Ended::Received(vec![message]),
                Err(TryRecvError::Empty) => Ended::Full(Vec::new()),
                Err(TryRecvError::Disconnected) => Ended::Received(Vec::new()),
            }
        }

        unsafe fn recv(
            rx: &crate::model::lent::Lent<Self::Rx>,
            limit: Option<usize>,
        ) -> Option<Wait<Self>> {
            // SAFETY: handed on.
            let rx = unsafe { rx.$borrow() };
            if let Some(limit) = limit {
                return receiving!(@many $many, rx, limit);
            }
            let recv = rx.recv();
            Some(Box::pin(async move {
                crate::model::receivers::received(recv.await)
            }))
        }

        fn poll_recv(
            rx: &mut Self::Rx,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Ended<Self>> {
            rx.poll_recv(cx).map(crate::model::receivers::received)
        }

        fn poll_next(
            rx: &mut Self::Rx,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Ended<Self>> {
            let next = futures_lite::Stream::poll_next(std::pin::Pin::new(rx), cx);
            next.map(crate::model::receivers::received)
        }

        fn close(rx: &mut Self::Rx) {
            rx.close();
        }
    };
}

macro_rules! polling_many {
    () => {
        fn poll_recv_many(
            rx: &mut Self::Rx,
            cx: &mut std::task::Context<'_>,
            limit: usize,
        ) -> std::task::Poll<Ended<Self>> {
            let mut messages = Vec::new();
            let count = std::task::ready!(rx.poll_recv_many(cx, &mut messages, limit));
            assert_eq!(count, messages.len(), "poll_recv_many counts");
            std::task::Poll::Ready(Ended::Received(messages))
        }
    };
}

macro_rules! cloning {
    () => {
        fn clone_receiver(rx: &Self::Rx) -> Option<Self::Rx> {
            Some(rx.clone())
        }

        fn downgrade_receiver(rx: &Self::Rx) -> Option<Self::WeakRx> {
            Some(rx.downgrade())
        }

        fn upgrade_receiver(weak: &Self::WeakRx) -> Option<Self::Rx> {
            weak.upgrade()
        }
    };
}

pub(crate) use {cloning, polling_many, receiving};
