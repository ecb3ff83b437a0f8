//! What a channel must tell the harness, and the macros that say it in a few lines.

use std::future::Future;
use std::ops::Range;

use crate::payload::{B16, B64, B256, Boxed, KiB, KiB4, Payload};

/// A bounded channel of `T`.
pub trait Channel<T: Payload>: 'static {
    /// Its name in tables.
    const NAME: &'static str;
    /// The package whose version the report names.
    const PACKAGE: &'static str;
    /// Whether it takes one sender only.
    const ONE_SENDER: bool;
    /// Whether it takes one receiver only.
    const ONE_RECEIVER: bool;
    /// The sending half.
    type Sender: Send + 'static;
    /// The receiving half.
    type Receiver: Send + 'static;

    /// A channel for `capacity` messages, with all its senders and receivers.
    fn open(
        capacity: usize,
        senders: usize,
        receivers: usize,
    ) -> (Vec<Self::Sender>, Vec<Self::Receiver>);

    /// Sends a message with this number; false once the channel is closed.
    fn send(sender: &mut Self::Sender, number: usize) -> impl Future<Output = bool> + Send;

    /// Receives a message, and tells its number; `None` once the senders are gone and the channel is empty.
    fn recv(receiver: &mut Self::Receiver) -> impl Future<Output = Option<usize>> + Send;

    /// Sends messages with these numbers, one after the other; false once the channel is closed.
    ///
    /// Written out for each channel, like [`recv_all`](Self::recv_all), as its users would write the loop: another
    /// future around each operation costs as much as the operation, and would hide what is compared.
    fn send_all(
        sender: &mut Self::Sender,
        numbers: Range<usize>,
    ) -> impl Future<Output = bool> + Send;

    /// Receives messages until the senders are gone and the channel is empty, and tells each one's number.
    fn recv_all(
        receiver: &mut Self::Receiver,
        each: impl FnMut(usize) + Send,
    ) -> impl Future<Output = ()> + Send;

    /// Receives messages until `each` or the channel ends it, and sends what `each` makes of their numbers on. Written
    /// out for each channel, too.
    fn forward_all(
        receiver: &mut Self::Receiver,
        senders: &mut [Self::Sender],
        each: impl FnMut(usize) -> Forward + Send,
    ) -> impl Future<Output = ()> + Send;

    /// Sends a message with this number if there is room.
    fn try_send(sender: &mut Self::Sender, number: usize) -> bool;

    /// Receives a message if there is one.
    fn try_recv(receiver: &mut Self::Receiver) -> Option<usize>;
}

/// What becomes of a message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// A message with this number goes to the sender with this index.
    To(usize, usize),
    /// Nothing is sent.
    Nowhere,
    /// Nothing is sent, and none is received any more.
    End,
}

/// A channel for all payloads that are measured.
pub trait AnyPayload:
    Channel<usize>
    + Channel<B16>
    + Channel<B64>
    + Channel<B256>
    + Channel<KiB>
    + Channel<KiB4>
    + Channel<Boxed>
{
}

impl<C> AnyPayload for C where
    C: Channel<usize>
        + Channel<B16>
        + Channel<B64>
        + Channel<B256>
        + Channel<KiB>
        + Channel<KiB4>
        + Channel<Boxed>
{
}

/// A channel whose room can be reserved.
pub trait Permits<T: Payload>: Channel<T> {
    /// Reserves, and sends with the permit.
    fn reserve_send(sender: &mut Self::Sender, number: usize) -> impl Future<Output = bool> + Send;

    /// Reserves, and drops the permit.
    fn reserve_drop(sender: &mut Self::Sender) -> impl Future<Output = bool> + Send;

    /// Reserves if there is room, and sends with the permit.
    fn try_reserve_send(sender: &mut Self::Sender, number: usize) -> bool;

    /// Reserves if there is room, and drops the permit.
    fn try_reserve_drop(sender: &mut Self::Sender) -> bool;
}

/// A channel between plain threads.
pub trait Blocking: 'static {
    /// Its name in tables.
    const NAME: &'static str;
    /// The package whose version the report names.
    const PACKAGE: &'static str;
    /// Whether it takes one receiver only.
    const ONE_RECEIVER: bool;
    /// The sending half.
    type Sender: Send + 'static;
    /// The receiving half.
    type Receiver: Send + 'static;

    /// A channel for `capacity` messages, with all its senders and receivers.
    fn open(
        capacity: usize,
        senders: usize,
        receivers: usize,
    ) -> (Vec<Self::Sender>, Vec<Self::Receiver>);

    /// Sends a message; false once the channel is closed.
    fn send(sender: &mut Self::Sender, message: usize) -> bool;

    /// Receives a message; `None` once the senders are gone and the channel is empty.
    fn recv(receiver: &mut Self::Receiver) -> Option<usize>;
}

/// What a permit's `send` returns.
pub(crate) trait Sent {
    /// Whether the message is in the channel.
    fn sent(self) -> bool;
}

impl Sent for () {
    fn sent(self) -> bool {
        true
    }
}

impl<E> Sent for Result<(), E> {
    fn sent(self) -> bool {
        self.is_ok()
    }
}

/// Describes a channel of `T` by its types and five expressions. What `send` and `try_send` get is the number that
/// the message must carry; what `recv` and `try_recv` give is an `Option` of the message, or of what derefs to it.
/// `one` instead of `many` for the halves that cannot be cloned.
macro_rules! channel {
    (
        $(#[$doc:meta])*
        $tag:ident = $name:literal from $package:literal,
        $senders:ident to $receivers:ident, $sender:ty => $receiver:ty,
        open |$capacity:ident| $open:expr,
        send |$tx:ident, $number:ident| $send:expr,
        recv |$rx:ident| $recv:expr,
        try_send |$ttx:ident, $tnumber:ident| $try_send:expr,
        try_recv |$trx:ident| $try_recv:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $tag;

        impl<T: $crate::payload::Payload> $crate::channel::Channel<T> for $tag {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = $package;
            const ONE_SENDER: bool = $crate::channel::halves!(@is_one $senders);
            const ONE_RECEIVER: bool = $crate::channel::halves!(@is_one $receivers);
            type Sender = $sender;
            type Receiver = $receiver;

            fn open(capacity: usize, senders: usize, receivers: usize) -> (Vec<$sender>, Vec<$receiver>) {
                let $capacity = capacity;
                let (sender, receiver) = $open;
                (
                    $crate::channel::halves!(@all $senders, sender, senders),
                    $crate::channel::halves!(@all $receivers, receiver, receivers),
                )
            }

            async fn send($tx: &mut $sender, $number: usize) -> bool {
                $send
            }

            async fn recv($rx: &mut $receiver) -> Option<usize> {
                $recv.map(|message| message.number())
            }

            async fn send_all($tx: &mut $sender, numbers: std::ops::Range<usize>) -> bool {
                for $number in numbers {
                    if !$send {
                        return false;
                    }
                }
                true
            }

            async fn recv_all($rx: &mut $receiver, mut each: impl FnMut(usize) + Send) {
                while let Some(message) = $recv {
                    each(message.number());
                }
            }

            async fn forward_all(
                $rx: &mut $receiver,
                senders: &mut [$sender],
                mut each: impl FnMut(usize) -> $crate::channel::Forward + Send,
            ) {
                while let Some(message) = $recv {
                    let forward = each(message.number());
                    drop(message);
                    match forward {
                        $crate::channel::Forward::To(to, $number) => {
                            let $tx = &mut senders[to];
                            if !$send {
                                return;
                            }
                        }
                        $crate::channel::Forward::Nowhere => {}
                        $crate::channel::Forward::End => return,
                    }
                }
            }

            fn try_send($ttx: &mut $sender, $tnumber: usize) -> bool {
                $try_send
            }

            fn try_recv($trx: &mut $receiver) -> Option<usize> {
                $try_recv.map(|message| message.number())
            }
        }
    };
}
pub(crate) use channel;

/// Describes a channel between threads, in the same way.
macro_rules! blocking {
    (
        $(#[$doc:meta])*
        $tag:ident = $name:literal from $package:literal,
        $senders:ident to $receivers:ident, $sender:ty => $receiver:ty,
        open |$capacity:ident| $open:expr,
        send |$tx:ident, $message:ident| $send:expr,
        recv |$rx:ident| $recv:expr $(,)?
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $tag;

        impl $crate::channel::Blocking for $tag {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = $package;
            const ONE_RECEIVER: bool = $crate::channel::halves!(@is_one $receivers);
            type Sender = $sender;
            type Receiver = $receiver;

            fn open(capacity: usize, senders: usize, receivers: usize) -> (Vec<$sender>, Vec<$receiver>) {
                let $capacity = capacity;
                let (sender, receiver) = $open;
                (
                    $crate::channel::halves!(@all $senders, sender, senders),
                    $crate::channel::halves!(@all $receivers, receiver, receivers),
                )
            }

            fn send($tx: &mut $sender, $message: usize) -> bool {
                $send
            }

            fn recv($rx: &mut $receiver) -> Option<usize> {
                $recv
            }
        }
    };
}
pub(crate) use blocking;

/// One half or many clones of it.
macro_rules! halves {
    (@is_one one) => {
        true
    };
    (@is_one many) => {
        false
    };
    (@all many, $half:ident, $count:ident) => {
        std::iter::repeat_n($half, $count).collect()
    };
    (@all one, $half:ident, $count:ident) => {{
        assert_eq!($count, 1, "this half of the channel exists once");
        vec![$half]
    }};
}
pub(crate) use halves;

/// Says that a channel's senders have `reserve` and `try_reserve`.
macro_rules! permits {
    ($tag:ident) => {
        impl<T: $crate::payload::Payload> $crate::channel::Permits<T> for $tag {
            async fn reserve_send(sender: &mut Self::Sender, number: usize) -> bool {
                use $crate::channel::Sent as _;
                match sender.reserve().await {
                    Ok(permit) => permit.send(T::new(number)).sent(),
                    Err(_) => false,
                }
            }

            async fn reserve_drop(sender: &mut Self::Sender) -> bool {
                sender.reserve().await.is_ok()
            }

            fn try_reserve_send(sender: &mut Self::Sender, number: usize) -> bool {
                use $crate::channel::Sent as _;
                match sender.try_reserve() {
                    Ok(permit) => permit.send(T::new(number)).sent(),
                    Err(_) => false,
                }
            }

            fn try_reserve_drop(sender: &mut Self::Sender) -> bool {
                sender.try_reserve().is_ok()
            }
        }
    };
}
pub(crate) use permits;
