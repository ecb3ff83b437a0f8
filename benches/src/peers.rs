//! The peers: every channel and every runtime that ours are compared with, and the lists of who meets whom. This is
//! the one file to edit to add a channel or a runtime; ours are in [`ours`](crate::ours).
//!
//! A channel is described by [`channel!`](crate::channel), or [`blocking!`](crate::channel) between threads; a runtime
//! implements [`Runtime`]. Then each gets a line in the lists at the end.

use std::cell::OnceCell;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::channel::{blocking, channel, permits};
use crate::entrant::{BlockingEntrant, ChannelEntrant, Pair, RuntimeEntrant};
use crate::gate::Gate;
use crate::runtime::{General, Runtime};

// ---- channels -------------------------------------------------------------------------------------------------------

channel! {
    /// tokio's mpsc. It takes part in tokio's cooperative budget.
    TokioMpsc = "tokio" from "tokio",
    many to one, tokio::sync::mpsc::Sender<T> => tokio::sync::mpsc::Receiver<T>,
    open |capacity| tokio::sync::mpsc::channel(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await,
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}
permits!(TokioMpsc);

channel! {
    /// tachyonix.
    Tachyonix = "tachyonix" from "tachyonix",
    many to one, tachyonix::Sender<T> => tachyonix::Receiver<T>,
    open |capacity| tachyonix::channel(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// async-channel.
    AsyncChannel = "async-channel" from "async-channel",
    many to many, async_channel::Sender<T> => async_channel::Receiver<T>,
    open |capacity| async_channel::bounded(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// flume.
    Flume = "flume" from "flume",
    many to many, flume::Sender<T> => flume::Receiver<T>,
    open |capacity| flume::bounded(capacity),
    send |tx, number| tx.send_async(T::new(number)).await.is_ok(),
    recv |rx| rx.recv_async().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// kanal.
    Kanal = "kanal" from "kanal",
    many to many, kanal::AsyncSender<T> => kanal::AsyncReceiver<T>,
    open |capacity| kanal::bounded_async(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)) == Ok(true),
    try_recv |rx| rx.try_recv().ok().flatten(),
}

channel! {
    /// crossfire's mpsc. Below capacity 10 it spins before it parks.
    Crossfire = "crossfire" from "crossfire",
    many to one, crossfire::MAsyncTx<crossfire::mpsc::Array<T>> => crossfire::AsyncRx<crossfire::mpsc::Array<T>>,
    open |capacity| crossfire::mpsc::bounded_async(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// crossfire's spsc, for one sender.
    CrossfireSpsc = "crossfire spsc" from "crossfire",
    one to one, crossfire::AsyncTx<crossfire::spsc::Array<T>> => crossfire::AsyncRx<crossfire::spsc::Array<T>>,
    open |capacity| crossfire::spsc::bounded_async(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// crossfire's mpmc.
    CrossfireMpmc = "crossfire mpmc" from "crossfire",
    many to many, crossfire::MAsyncTx<crossfire::mpmc::Array<T>> => crossfire::MAsyncRx<crossfire::mpmc::Array<T>>,
    open |capacity| crossfire::mpmc::bounded_async(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// asyncband's mpsc.
    Asyncband = "asyncband" from "asyncband",
    many to one, asyncband::mpsc::BoundedSender<T> => asyncband::mpsc::BoundedReceiver<T>,
    open |capacity| asyncband::mpsc::bounded(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}
permits!(Asyncband);

channel! {
    /// asyncband's mpmc.
    AsyncbandMpmc = "asyncband mpmc" from "asyncband",
    many to many, asyncband::mpmc::BoundedSender<T> => asyncband::mpmc::BoundedReceiver<T>,
    open |capacity| asyncband::mpmc::bounded(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}
permits!(AsyncbandMpmc);

channel! {
    /// thingbuf's mpsc, by value.
    Thingbuf = "thingbuf" from "thingbuf",
    many to one, thingbuf::mpsc::Sender<T> => thingbuf::mpsc::Receiver<T>,
    open |capacity| thingbuf::mpsc::channel(capacity),
    send |tx, number| tx.send(T::new(number)).await.is_ok(),
    recv |rx| rx.recv().await,
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

channel! {
    /// thingbuf's mpsc, in place: messages are written into their slots, and read there.
    ThingbufRef = "thingbuf ref" from "thingbuf",
    many to one, thingbuf::mpsc::Sender<T> => thingbuf::mpsc::Receiver<T>,
    open |capacity| thingbuf::mpsc::channel(capacity),
    send |tx, number| tx.send_ref().await.map(|mut slot| slot.fill(number)).is_ok(),
    recv |rx| rx.recv_ref().await,
    try_send |tx, number| tx.try_send_ref().map(|mut slot| slot.fill(number)).is_ok(),
    try_recv |rx| rx.try_recv_ref().ok(),
}

channel! {
    /// futures-channel. Every sender has a place of its own besides the capacity. A send here is
    /// `poll_ready` and `start_send`; `SinkExt::send` would also wait for the next free place.
    FuturesChannel = "futures-channel" from "futures-channel",
    many to one, futures_channel::mpsc::Sender<T> => futures_channel::mpsc::Receiver<T>,
    open |capacity| futures_channel::mpsc::channel(capacity),
    send |tx, number| poll_fn(|cx| tx.poll_ready(cx)).await.is_ok() && tx.start_send(T::new(number)).is_ok(),
    recv |rx| rx.recv().await.ok(),
    try_send |tx, number| tx.try_send(T::new(number)).is_ok(),
    try_recv |rx| rx.try_recv().ok(),
}

// ---- channels between threads ---------------------------------------------------------------------------------------

blocking! {
    /// The standard library's.
    StdSync = "std" from "std",
    many to one, std::sync::mpsc::SyncSender<usize> => std::sync::mpsc::Receiver<usize>,
    open |capacity| std::sync::mpsc::sync_channel(capacity),
    send |tx, message| tx.send(message).is_ok(),
    recv |rx| rx.recv().ok(),
}

blocking! {
    /// crossbeam-channel.
    Crossbeam = "crossbeam-channel" from "crossbeam-channel",
    many to many, crossbeam_channel::Sender<usize> => crossbeam_channel::Receiver<usize>,
    open |capacity| crossbeam_channel::bounded(capacity),
    send |tx, message| tx.send(message).is_ok(),
    recv |rx| rx.recv().ok(),
}

blocking! {
    /// kanal's blocking form.
    KanalSync = "kanal" from "kanal",
    many to many, kanal::Sender<usize> => kanal::Receiver<usize>,
    open |capacity| kanal::bounded(capacity),
    send |tx, message| tx.send(message).is_ok(),
    recv |rx| rx.recv().ok(),
}

blocking! {
    /// flume's blocking form.
    FlumeSync = "flume" from "flume",
    many to many, flume::Sender<usize> => flume::Receiver<usize>,
    open |capacity| flume::bounded(capacity),
    send |tx, message| tx.send(message).is_ok(),
    recv |rx| rx.recv().ok(),
}

blocking! {
    /// tokio's blocking form.
    TokioSync = "tokio" from "tokio",
    many to one, tokio::sync::mpsc::Sender<usize> => tokio::sync::mpsc::Receiver<usize>,
    open |capacity| tokio::sync::mpsc::channel(capacity),
    send |tx, message| tx.blocking_send(message).is_ok(),
    recv |rx| rx.blocking_recv(),
}

blocking! {
    /// crossfire's blocking form.
    CrossfireSync = "crossfire mpmc" from "crossfire",
    many to many, crossfire::MTx<crossfire::mpmc::Array<usize>> => crossfire::MRx<crossfire::mpmc::Array<usize>>,
    open |capacity| crossfire::mpmc::bounded_blocking(capacity),
    send |tx, message| tx.send(message).is_ok(),
    recv |rx| rx.recv().ok(),
}

// ---- runtimes -------------------------------------------------------------------------------------------------------

/// tokio's multi-threaded runtime.
#[derive(Debug)]
pub struct Tokio(tokio::runtime::Runtime);

impl Runtime for Tokio {
    const NAME: &'static str = "tokio";
    const PACKAGE: &'static str = "tokio";

    fn new(workers: usize) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(
            builder
                .worker_threads(workers)
                .enable_time()
                .build()
                .expect("tokio starts"),
        )
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn finish(self, done: impl Future<Output = ()>) {
        self.0.block_on(done);
    }
}

impl General for Tokio {
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }

    fn sleep(time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }

    fn block_on(&self, future: impl Future<Output = ()>) {
        self.0.block_on(future);
    }
}

/// tokio's runtime for one thread.
#[derive(Debug)]
pub struct TokioCurrentThread(tokio::runtime::Runtime);

impl Runtime for TokioCurrentThread {
    const NAME: &'static str = "tokio current-thread";
    const PACKAGE: &'static str = "tokio";
    const ONE_WORKER: bool = true;

    fn new(workers: usize) -> Self {
        assert_eq!(workers, 1, "this runtime has one worker");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Self(runtime.expect("tokio starts"))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn finish(self, done: impl Future<Output = ()>) {
        self.0.block_on(done);
    }
}

/// The executor of the nexosim simulator, by its hooks for benchmarks. It starts no task before `finish`, and
/// runs until all tasks have ended or none can go on.
#[derive(Debug)]
pub struct Nexosim(nexosim::dev_hooks::Executor);

impl Runtime for Nexosim {
    const NAME: &'static str = "nexosim";
    const PACKAGE: &'static str = "nexosim";

    fn new(workers: usize) -> Self {
        Self(nexosim::dev_hooks::Executor::new(workers))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn_and_forget(task);
    }

    fn finish(mut self, _done: impl Future<Output = ()>) {
        self.0.run();
    }
}

/// async-executor, with a thread for each worker.
#[derive(Debug)]
pub struct AsyncExecutor {
    executor: Arc<async_executor::Executor<'static>>,
    stop: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
}

impl Runtime for AsyncExecutor {
    const NAME: &'static str = "async-executor";
    const PACKAGE: &'static str = "async-executor";

    fn new(workers: usize) -> Self {
        let executor = Arc::new(async_executor::Executor::new());
        let stop = Arc::new(Gate::new(workers));
        let work = || {
            let (executor, stop) = (executor.clone(), stop.clone());
            std::thread::spawn(move || {
                EXECUTOR.with(|current| current.set(executor.clone()).expect("a fresh thread"));
                futures_lite::future::block_on(executor.run(stop.pass()));
            })
        };
        let threads = (0..workers).map(|_| work()).collect();
        Self {
            executor,
            stop,
            threads,
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(task).detach();
    }

    fn finish(self, done: impl Future<Output = ()>) {
        futures_lite::future::block_on(done);
        self.stop.open();
        for thread in self.threads {
            thread.join().expect("no worker panics");
        }
    }
}

thread_local! {
    /// The executor that this thread works for; async-executor knows no current one.
    static EXECUTOR: OnceCell<Arc<async_executor::Executor<'static>>> = const { OnceCell::new() };
}

impl General for AsyncExecutor {
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.with(|executor| {
            let executor = executor.get().expect("called on a worker");
            executor.spawn(task).detach();
        });
    }

    async fn sleep(time: Duration) {
        async_io::Timer::after(time).await;
    }

    fn block_on(&self, future: impl Future<Output = ()>) {
        futures_lite::future::block_on(future);
    }
}

// ---- who meets whom -------------------------------------------------------------------------------------------------

/// The pairs of a channel and a runtime, ours first. Workloads with many receivers take those that can have them.
pub fn pairs() -> Vec<Pair> {
    let mut pairs = crate::ours::pairs();
    pairs.extend([
        Pair::of::<TokioMpsc, Tokio>(),
        Pair::of::<TokioMpsc, TokioCurrentThread>(),
        Pair::of::<Tachyonix, Tokio>(),
        Pair::of::<Tachyonix, Nexosim>(),
        Pair::of::<AsyncChannel, AsyncExecutor>(),
        Pair::of::<AsyncChannel, Tokio>(),
        Pair::of::<Flume, Tokio>(),
        Pair::of::<Kanal, Tokio>(),
        Pair::of::<Kanal, TokioCurrentThread>(),
        Pair::of::<Kanal, Nexosim>(),
        Pair::of::<Kanal, AsyncExecutor>(),
        Pair::of::<Crossfire, Tokio>(),
        Pair::of::<Crossfire, Nexosim>(),
        Pair::of::<CrossfireSpsc, Tokio>(),
        Pair::of::<CrossfireSpsc, Nexosim>(),
        Pair::of::<CrossfireMpmc, Tokio>().only_mpmc(),
        Pair::of::<Asyncband, Tokio>(),
        Pair::of::<AsyncbandMpmc, Tokio>().only_mpmc(),
        Pair::of::<Thingbuf, Tokio>(),
        Pair::of::<ThingbufRef, Tokio>().only_large(),
        Pair::of::<ThingbufRef, TokioCurrentThread>().only_large(),
        Pair::of::<FuturesChannel, Tokio>(),
    ]);
    pairs
}

/// The channels whose operations are measured one by one, on one thread.
pub fn channels() -> Vec<ChannelEntrant> {
    let mut channels = crate::ours::channels();
    channels.extend([
        ChannelEntrant::with_permits::<TokioMpsc>(),
        ChannelEntrant::with_permits::<Asyncband>(),
        ChannelEntrant::with_permits::<AsyncbandMpmc>(),
        ChannelEntrant::of::<Kanal>(),
        ChannelEntrant::of::<Tachyonix>(),
        ChannelEntrant::of::<Crossfire>(),
        ChannelEntrant::of::<CrossfireSpsc>(),
        ChannelEntrant::of::<Flume>(),
        ChannelEntrant::of::<AsyncChannel>(),
        ChannelEntrant::of::<Thingbuf>(),
        ChannelEntrant::of::<ThingbufRef>(),
        ChannelEntrant::of::<FuturesChannel>(),
    ]);
    channels
}

/// The channels between plain threads.
pub fn threads() -> Vec<BlockingEntrant> {
    let mut threads = crate::ours::threads();
    threads.extend([
        BlockingEntrant::of::<StdSync>(),
        BlockingEntrant::of::<Crossbeam>(),
        BlockingEntrant::of::<KanalSync>(),
        BlockingEntrant::of::<FlumeSync>(),
        BlockingEntrant::of::<TokioSync>(),
        BlockingEntrant::of::<CrossfireSync>(),
    ]);
    threads
}

/// The runtimes that are compared alone.
pub fn runtimes() -> Vec<RuntimeEntrant> {
    vec![
        RuntimeEntrant::of::<crate::ours::Wakerun>(),
        RuntimeEntrant::of::<Tokio>(),
        RuntimeEntrant::of::<AsyncExecutor>(),
    ]
}

/// What a reader must know to compare fairly, printed under the tables.
pub const NOTES: &[&str] = &[
    "futures-channel holds a message of each sender besides its capacity.",
    "tokio's channel takes part in tokio's cooperative budget.",
    "crossfire spins before it parks when the capacity is below 10.",
    "kanal's lock puts a worker to sleep when it is contended.",
];
