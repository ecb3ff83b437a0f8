//! The two crates that are benchmarked here, as one more channel and one more runtime.

use std::future::Future;

use crate::channels::channel;
use crate::pairs::Pair;
use crate::runtimes::{Runtime, Tokio};

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

/// Our multi-threaded runtime.
#[derive(Debug)]
pub struct Wakerun(wakerun::Runtime);

impl Runtime for Wakerun {
    const NAME: &'static str = NAME;
    const PACKAGE: &'static str = "wakerun";

    fn new(workers: usize) -> Self {
        let mut builder = wakerun::Builder::new_multi_thread();
        Self(
            builder
                .worker_threads(workers)
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

/// Our pairs: the channel on its own runtime, and as a guest.
pub(crate) fn pairs() -> Vec<Pair> {
    vec![Pair::of::<Mpsc, Wakerun>(), Pair::of::<Mpsc, Tokio>()]
}
