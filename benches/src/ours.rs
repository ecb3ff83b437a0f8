//! The two crates that are benchmarked here, as one more channel and one more runtime.

use std::future::Future;

use crate::channels::channel;
use crate::pairs::Pair;
use crate::runtimes::{Inside, Runtime, Tokio};

/// Our name in tables, of the channel and of the runtime.
pub const NAME: &str = "wakerun";

channel! {
    /// Our mpsc channel.
    Mpsc = "wakerun" from "wakerun-channel",
    many senders wakerun_channel::mpsc::Sender<usize> => wakerun_channel::mpsc::Receiver<usize>,
    open |capacity| wakerun_channel::mpsc::channel(capacity),
    send |tx, message| tx.send(message).await.is_ok(),
    recv |rx| rx.recv().await,
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

impl<const TOGETHER: bool> Inside for Wakerun<TOGETHER> {
    fn spawn_inside(task: impl Future<Output = ()> + Send + 'static) {
        drop(wakerun::spawn(task));
    }
}

/// Our pairs: the channel on its own runtime, and as a guest.
pub(crate) fn pairs() -> Vec<Pair> {
    vec![Pair::of::<Mpsc, Wakerun>(), Pair::of::<Mpsc, Tokio>()]
}
