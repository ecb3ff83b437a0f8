//! The channels. To add one, describe it here by `channel!`, and pair it with runtimes in [`pairs`](crate::pairs).

use std::future::{Future, poll_fn};

/// A bounded channel of `usize`, with many senders and one receiver.
pub trait Channel: 'static {
    /// Its name in tables.
    const NAME: &'static str;
    /// The package whose version the report names.
    const PACKAGE: &'static str;
    /// Whether it takes one sender only.
    const ONE_SENDER: bool;
    /// The sending half.
    type Sender: Send + 'static;
    /// The receiving half.
    type Receiver: Send + 'static;

    /// A channel for `capacity` messages, with its `senders` senders.
    fn open(capacity: usize, senders: usize) -> (Vec<Self::Sender>, Self::Receiver);

    /// Sends one message; false once the channel is closed.
    fn send(sender: &mut Self::Sender, message: usize) -> impl Future<Output = bool> + Send;

    /// Receives one message; `None` once the senders are gone and the channel is empty.
    fn recv(receiver: &mut Self::Receiver) -> impl Future<Output = Option<usize>> + Send;
}

/// Describes a channel by its types and three expressions; `one` instead of `many` for a channel with one sender.
macro_rules! channel {
    (
        $(#[$doc:meta])*
        $tag:ident = $name:literal from $package:literal,
        $senders:ident senders $sender:ty => $receiver:ty,
        open |$capacity:ident| $open:expr,
        send |$tx:ident, $message:ident| $send:expr,
        recv |$rx:ident| $recv:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $tag;

        impl $crate::channels::Channel for $tag {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = $package;
            const ONE_SENDER: bool = channel!(@one $senders);
            type Sender = $sender;
            type Receiver = $receiver;

            fn open(capacity: usize, senders: usize) -> (Vec<$sender>, $receiver) {
                let $capacity = capacity;
                let (sender, receiver) = $open;
                (channel!(@senders $senders, sender, senders), receiver)
            }

            async fn send($tx: &mut $sender, $message: usize) -> bool {
                $send
            }

            async fn recv($rx: &mut $receiver) -> Option<usize> {
                $recv
            }
        }
    };
    (@one one) => { true };
    (@one many) => { false };
    (@senders many, $sender:ident, $count:ident) => { std::iter::repeat_n($sender, $count).collect() };
    (@senders one, $sender:ident, $count:ident) => {{
        assert_eq!($count, 1, "this channel has one sender");
        vec![$sender]
    }};
}
pub(crate) use channel;

channel! {
    /// tokio's mpsc. It takes part in tokio's cooperative budget.
    Tokio = "tokio" from "tokio",
    many senders tokio::sync::mpsc::Sender<usize> => tokio::sync::mpsc::Receiver<usize>,
    open |capacity| tokio::sync::mpsc::channel(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await,
}

channel! {
    /// tachyonix.
    Tachyonix = "tachyonix" from "tachyonix",
    many senders tachyonix::Sender<usize> => tachyonix::Receiver<usize>,
    open |capacity| tachyonix::channel(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// async-channel.
    AsyncChannel = "async-channel" from "async-channel",
    many senders async_channel::Sender<usize> => async_channel::Receiver<usize>,
    open |capacity| async_channel::bounded(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// flume.
    Flume = "flume" from "flume",
    many senders flume::Sender<usize> => flume::Receiver<usize>,
    open |capacity| flume::bounded(capacity),
    send |tx, message| tx.send_async(message).await.is_ok(),
    recv |rx| rx.recv_async().await.ok(),
}

channel! {
    /// kanal.
    Kanal = "kanal" from "kanal",
    many senders kanal::AsyncSender<usize> => kanal::AsyncReceiver<usize>,
    open |capacity| kanal::bounded_async(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// crossfire's mpsc. Below capacity 10 it spins before it parks.
    Crossfire = "crossfire" from "crossfire",
    many senders crossfire::MAsyncTx<crossfire::mpsc::Array<usize>> => crossfire::AsyncRx<crossfire::mpsc::Array<usize>>,
    open |capacity| crossfire::mpsc::bounded_async(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// crossfire's spsc, for the form with one sender.
    CrossfireSpsc = "crossfire spsc" from "crossfire",
    one senders crossfire::AsyncTx<crossfire::spsc::Array<usize>> => crossfire::AsyncRx<crossfire::spsc::Array<usize>>,
    open |capacity| crossfire::spsc::bounded_async(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// asyncband's mpsc.
    Asyncband = "asyncband" from "asyncband",
    many senders asyncband::mpsc::BoundedSender<usize> => asyncband::mpsc::BoundedReceiver<usize>,
    open |capacity| asyncband::mpsc::bounded(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
}

channel! {
    /// thingbuf's mpsc, by value.
    Thingbuf = "thingbuf" from "thingbuf",
    many senders thingbuf::mpsc::Sender<usize> => thingbuf::mpsc::Receiver<usize>,
    open |capacity| thingbuf::mpsc::channel(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await,
}

channel! {
    /// futures-channel. Every sender has a place of its own besides the capacity. A send here is
    /// `poll_ready` and `start_send`; `SinkExt::send` would also wait for the next free place.
    FuturesChannel = "futures-channel" from "futures-channel",
    many senders futures_channel::mpsc::Sender<usize> => futures_channel::mpsc::Receiver<usize>,
    open |capacity| futures_channel::mpsc::channel(capacity),
    send |tx, message| poll_fn(|cx| tx.poll_ready(cx)).await.is_ok() && tx.start_send(message).is_ok(),
    recv |rx| rx.recv().await.ok(),
}
