//! The two crates that are benchmarked here, as two more channels and one more runtime.

use std::future::Future;
use std::time::Duration;

use crate::channel::{blocking, channel, permits};
use crate::entrant::{BlockingEntrant, ChannelEntrant, Pair};
use crate::peers::Tokio;
use crate::runtime::{General, Runtime};

/// Our name in tables, of the channel and of the runtime.
pub const NAME: &str = "wakerun";

channel! {
    /// Our mpsc channel.
    Mpsc = "wakerun" from "wakerun-channel",
    many to one, wakerun_channel::mpsc::Sender<T> => wakerun_channel::mpsc::Receiver<T>,
    open |capacity| wakerun_channel::mpsc::channel(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await,
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}
permits!(Mpsc);

channel! {
    /// Our mpsc channel, in place: messages are built in their slots, and read there.
    MpscInPlace = "wakerun in place" from "wakerun-channel",
    many to one, wakerun_channel::mpsc::Sender<T> => wakerun_channel::mpsc::Receiver<T>,
    open |capacity| wakerun_channel::mpsc::channel(capacity),
    send |tx, number| tx.reserve().await.is_ok_and(|permit| permit.send_with(|| T::new(number)).is_ok()),
    recv |rx| rx.recv_ref().await,
    try_send |tx, number| tx.try_reserve().is_ok_and(|permit| permit.send_with(|| T::new(number)).is_ok()),
    try_recv |rx| rx.try_recv_ref().ok(),
}

channel! {
    /// Our mpmc channel.
    Mpmc = "wakerun mpmc" from "wakerun-channel",
    many to many, wakerun_channel::mpmc::Sender<T> => wakerun_channel::mpmc::Receiver<T>,
    open |capacity| wakerun_channel::mpmc::channel(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await,
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}
permits!(Mpmc);

blocking! {
    /// Our mpsc channel between threads.
    MpscSync = "wakerun" from "wakerun-channel",
    many to one, wakerun_channel::mpsc::Sender<usize> => wakerun_channel::mpsc::Receiver<usize>,
    open |capacity| wakerun_channel::mpsc::channel(capacity),
    send |tx, message| tx.blocking_send(message).is_ok(),
    recv |rx| rx.blocking_recv(),
}

blocking! {
    /// Our mpmc channel between threads.
    MpmcSync = "wakerun mpmc" from "wakerun-channel",
    many to many, wakerun_channel::mpmc::Sender<usize> => wakerun_channel::mpmc::Receiver<usize>,
    open |capacity| wakerun_channel::mpmc::channel(capacity),
    send |tx, message| tx.blocking_send(message).is_ok(),
    recv |rx| rx.blocking_recv(),
}

/// Our multi-threaded runtime, with or without its rule to keep talkers together.
#[derive(Debug)]
pub struct Wakerun<const TOGETHER: bool = true>(wakerun::Runtime);

/// Our runtime without the rule.
pub type Apart = Wakerun<false>;

impl<const TOGETHER: bool> Runtime for Wakerun<TOGETHER> {
    const NAME: &'static str = if TOGETHER { NAME } else { "wakerun apart" };
    const PACKAGE: &'static str = "wakerun";

    fn new(workers: usize) -> Self {
        let mut builder = wakerun::Builder::new_multi_thread();
        Self(
            builder
                .worker_threads(workers)
                .keep_talkers_together(TOGETHER)
                .build()
                .expect("wakerun starts"),
        )
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn finish(self, done: impl Future<Output = ()>) {
        self.0.block_on(done);
    }
}

impl<const TOGETHER: bool> General for Wakerun<TOGETHER> {
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static) {
        drop(wakerun::spawn(task));
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        wakerun::time::sleep(time)
    }

    fn block_on(&self, future: impl Future<Output = ()>) {
        self.0.block_on(future);
    }
}

/// Our pairs: the channels on their own runtime, and as guests.
pub(crate) fn pairs() -> Vec<Pair> {
    vec![
        Pair::of::<Mpsc, Wakerun>(),
        Pair::of::<Mpsc, Tokio>(),
        Pair::of::<MpscInPlace, Wakerun>().only_large(),
        Pair::of::<Mpmc, Wakerun>().only_mpmc(),
        Pair::of::<Mpmc, Tokio>().only_mpmc(),
    ]
}

/// Our channels, for the operations one by one.
pub(crate) fn channels() -> Vec<ChannelEntrant> {
    vec![
        ChannelEntrant::with_permits::<Mpsc>(),
        ChannelEntrant::of::<MpscInPlace>(),
        ChannelEntrant::with_permits::<Mpmc>(),
    ]
}

/// Our channels between threads.
pub(crate) fn threads() -> Vec<BlockingEntrant> {
    vec![
        BlockingEntrant::of::<MpscSync>(),
        BlockingEntrant::of::<MpmcSync>(),
    ]
}
