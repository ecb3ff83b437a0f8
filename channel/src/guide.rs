//! The guide: how to choose a channel, how to live with its bound, what can be cancelled when, and how to
//! move here from other channels.
//!
//! | page | its question |
//! |---|---|
//! | [`choosing`] | Which channel is for what, and which are elsewhere? |
//! | [`backpressure`] | What happens when a channel is full, and how are programs made of that? |
//! | [`cancel_safety`] | What does it do to drop each of the futures, or to keep one without polling it? |
//! | [`from_tokio`] | What do the names of `tokio::sync::mpsc` become? |
//! | [`from_async_channel`] | Those of `async-channel`? |
//! | [`from_flume`] | Those of `flume`? |
//!
//! All code on these pages is compiled and run with the tests.

pub mod choosing {
    #![doc = include_str!("../guide/choosing.md")]
}

pub mod backpressure {
    #![doc = include_str!("../guide/backpressure.md")]
}

pub mod cancel_safety {
    #![doc = include_str!("../guide/cancel_safety.md")]
}

pub mod from_tokio {
    #![doc = include_str!("../guide/from_tokio.md")]
}

pub mod from_async_channel {
    #![doc = include_str!("../guide/from_async_channel.md")]
}

pub mod from_flume {
    #![doc = include_str!("../guide/from_flume.md")]
}

/// The names that the tables promise are there.
///
/// ```
/// use std::future::Pending;
/// use wakerun_channel::error::{
///     RecvTimeoutError, ReserveError, SendError, SendTimeoutError, TryRecvError, TryReserveError,
///     TrySendError,
/// };
/// use wakerun_channel::{mpmc, mpsc, rendezvous, unbounded};
///
/// macro_rules! there_are {
///     ($type:ty: $($name:ident)*) => {
///         $(let _ = <$type>::$name;)*
///     };
/// }
///
/// macro_rules! sending_side {
///     ($flavor:ident) => {
///         there_are!($flavor::Sender<u8>: send try_send send_timeout send_deadline send_many blocking_send
///             blocking_send_timeout reserve try_reserve reserve_many try_reserve_many reserve_owned
///             try_reserve_owned closed is_closed capacity max_capacity len is_empty same_channel downgrade
///             strong_count weak_count clone);
///         let _ = $flavor::Sender::<u8>::send_or::<Pending<()>>;
///         there_are!($flavor::WeakSender<u8>: upgrade strong_count weak_count);
///         there_are!($flavor::Permit<'_, u8>: send release same_channel);
///         there_are!($flavor::OwnedPermit<u8>: send release same_channel same_channel_as_sender);
///         there_are!($flavor::PermitIterator<'_, u8>: next send_many);
///         there_are!($flavor::PollSender<u8>: new poll_reserve send_item abort_send close is_closed get_ref
///             into_inner);
///     };
/// }
/// sending_side!(mpsc);
/// sending_side!(mpmc);
/// there_are!(mpmc::Sender<u8>: force_send);
///
/// macro_rules! receiving_side {
///     ($type:ty) => {
///         there_are!($type: recv try_recv poll_recv blocking_recv blocking_recv_timeout recv_timeout
///             recv_deadline close is_closed);
///         let _ = <$type>::recv_or::<Pending<()>>;
///     };
/// }
/// receiving_side!(mpsc::Receiver<u8>);
/// receiving_side!(mpmc::Receiver<u8>);
/// receiving_side!(unbounded::Receiver<u8>);
/// receiving_side!(rendezvous::Receiver<u8>);
/// there_are!(mpsc::Receiver<u8>: recv_many poll_recv_many is_empty len capacity max_capacity
///     sender_strong_count sender_weak_count);
/// there_are!(mpmc::Receiver<u8>: recv_many poll_recv_many is_empty len capacity max_capacity
///     sender_strong_count sender_weak_count strong_count weak_count downgrade same_channel clone);
/// there_are!(unbounded::Receiver<u8>: recv_many is_empty len sender_strong_count sender_weak_count
///     strong_count weak_count downgrade same_channel clone);
/// there_are!(rendezvous::Receiver<u8>: sender_strong_count strong_count same_channel clone);
///
/// there_are!(unbounded::Sender<u8>: send closed is_closed is_empty len same_channel downgrade strong_count
///     weak_count);
/// there_are!(rendezvous::Sender<u8>: send send_timeout send_deadline blocking_send blocking_send_timeout
///     is_closed same_channel strong_count);
/// let _ = rendezvous::Sender::<u8>::send_or::<Pending<()>>;
/// ```
#[cfg(doctest)]
struct Names;
