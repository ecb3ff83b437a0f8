//! The stages of the program, and the channels between them.
//!
//! Every channel is bounded, so a stage that is too fast waits for the next one. What is on its way
//! at any time is at most, however large the input is:
//!
//! - one chunk for each reader and for each parser, and [`CHUNKS`] waiting for each parser,
//! - one batch of counts for each parser, and [`BATCHES`] waiting for the aggregator.

use std::io;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wakerun_channel::mpsc::{self, Receiver, Sender};

use crate::args::Args;
use crate::chunks::{self, End};
use crate::console::Console;
use crate::report::{Bytes, Number};
use crate::walk::{Found, Source, Walk};
use crate::words::Counts;

/// Chunks that may wait for one parser: some work in hand while the readers wait for a disk.
const CHUNKS: usize = 8;

/// Batches that may wait for the aggregator.
const BATCHES: usize = 16;

/// A parser hands on its counts when it has this many different words …
const BATCH_WORDS: usize = 8 * 1024;

/// … or after this many chunks, so that the progress goes on when new words are rare.
const BATCH_CHUNKS: usize = 64;

/// What came out in the end.
pub(crate) struct Summary {
    pub(crate) counts: Counts,
    /// How many files were read to their end.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// How many files were skipped because they are binary.
    pub(crate) binary: u64,
    /// How many times something could not be read.
    pub(crate) failed: u64,
    pub(crate) elapsed: Duration,
}

/// Counts the words of all inputs.
///
/// # Errors
///
/// Fails if the runtime or a thread cannot be started. Whatever cannot be read is reported to the
/// console instead, and counted in the summary.
pub(crate) fn run(args: &Args, console: &Console) -> io::Result<Summary> {
    let start = Instant::now();
    let runtime = wakerun::Builder::new_multi_thread().build()?;
    let readers = Readers {
        walk: Mutex::new(Walk::new(args.inputs.clone())),
        accept_binary: args.accept_binary,
        console,
        tally: Tally::default(),
    };

    let counts = thread::scope(|scope| {
        let (batches_in, batches) = mpsc::channel(BATCHES);
        let mut parsers = Vec::new();
        let mut outlets = Vec::new();
        for _ in 0..args.parsers {
            let (chunks_in, chunks) = mpsc::channel(CHUNKS);
            outlets.push(chunks_in);
            parsers.push(runtime.spawn(parse(chunks, batches_in.clone())));
        }
        // The channels end with their senders: from here on only the stages have some.
        drop(batches_in);

        // Reading files blocks, and a task that blocks takes a worker away from all others. So the
        // readers are threads, which enter the asynchronous world by `blocking_send`.
        for reader in 0..args.readers {
            let outlets = Outlets::new(outlets.clone(), reader);
            thread::Builder::new()
                .name(format!("reader-{reader}"))
                .spawn_scoped(scope, || readers.read(outlets))?;
        }
        drop(outlets);

        runtime.block_on(async {
            let counts = aggregate(batches, |counts| {
                console.progress(|| readers.tally.progress(counts));
            })
            .await;
            for parser in parsers {
                // A parser that panicked has lost counts: do not show what is left.
                parser.await.expect("a parser panicked");
            }
            io::Result::Ok(counts)
        })
    })?;

    let tally = readers.tally;
    Ok(Summary {
        counts,
        files: tally.files.into_inner(),
        bytes: tally.bytes.into_inner(),
        binary: tally.binary.into_inner(),
        failed: tally.failed.into_inner(),
        elapsed: start.elapsed(),
    })
}

/// What the readers share.
struct Readers<'a> {
    /// Whoever is free takes the next file.
    walk: Mutex<Walk>,
    accept_binary: bool,
    console: &'a Console,
    tally: Tally,
}

/// What the readers have done so far.
///
/// These are plain statistics: nothing is read or written because of them, and the last look
/// comes after the threads have ended. So Relaxed is enough.
#[derive(Default)]
struct Tally {
    files: AtomicU64,
    bytes: AtomicU64,
    binary: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    fn progress(&self, counts: &Counts) -> String {
        format!(
            "read {} of {}, counted {} ({} distinct)",
            Bytes(self.bytes.load(Relaxed) as f64),
            Number(self.files.load(Relaxed), "file"),
            Number(counts.total(), "word"),
            counts.distinct(),
        )
    }
}

impl Readers<'_> {
    /// The life of a reader: takes files until there are none, or nobody wants their chunks.
    fn read(&self, mut outlets: Outlets<Vec<u8>>) {
        while let Some(found) = self.next() {
            let more = match found {
                Found::File(source) => self.read_file(&source, &mut outlets),
                Found::Special(path) => {
                    let path = path.display();
                    self.console
                        .warn(format_args!("{path}: not a regular file, skipped"));
                    true
                }
                Found::Unreadable(path, error) => {
                    self.fail(&path, &error);
                    true
                }
            };
            if !more {
                return;
            }
        }
    }

    fn next(&self) -> Option<Found> {
        // A reader that panicked makes the program fail anyway: the others may as well go on.
        self.walk
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    }

    /// Reads one file; `false` if nobody wants its chunks.
    fn read_file(&self, source: &Source, outlets: &mut Outlets<Vec<u8>>) -> bool {
        let end = source.open().and_then(|file| {
            chunks::read(file, self.accept_binary, |chunk| {
                self.tally.bytes.fetch_add(chunk.len() as u64, Relaxed);
                outlets.blocking_send(chunk)
            })
        });
        match end {
            Ok(End::Complete) => {
                self.tally.files.fetch_add(1, Relaxed);
            }
            Ok(End::Binary) => {
                self.tally.binary.fetch_add(1, Relaxed);
                let name = source.name().display();
                self.console.warn(format_args!("{name}: binary, skipped"));
            }
            Ok(End::Refused) => return false,
            Err(error) => self.fail(source.name(), &error),
        }
        true
    }

    fn fail(&self, path: &Path, error: &io::Error) {
        self.tally.failed.fetch_add(1, Relaxed);
        self.console
            .warn(format_args!("{}: {error}", path.display()));
    }
}

/// Senders to several receivers of which any will do: an mpsc channel has only one.
struct Outlets<T> {
    senders: Vec<Sender<T>>,
    /// Where to look first, so that idle receivers take turns.
    next: usize,
}

impl<T> Outlets<T> {
    fn new(senders: Vec<Sender<T>>, first: usize) -> Self {
        Outlets {
            senders,
            next: first,
        }
    }

    /// Sends to whoever has least to do, and waits if even that one has too much; `false` if it is
    /// gone.
    fn blocking_send(&mut self, message: T) -> bool {
        let count = self.senders.len();
        let least = (self.next..self.next + count)
            .map(|index| index % count)
            .min_by_key(|&index| self.senders[index].len())
            .expect("there is a parser");
        self.next = (least + 1) % count;
        self.senders[least].blocking_send(message).is_ok()
    }
}

/// The life of a parser: counts the words of chunks.
async fn parse(mut chunks: Receiver<Vec<u8>>, batches: Sender<Counts>) {
    let mut counts = Counts::default();
    let mut chunks_counted = 0;
    while let Some(mut chunk) = chunks.recv().await {
        counts.add_text(&mut chunk);
        chunks_counted += 1;
        if counts.distinct() >= BATCH_WORDS || chunks_counted == BATCH_CHUNKS {
            chunks_counted = 0;
            if batches.send(mem::take(&mut counts)).await.is_err() {
                // The aggregator is gone. The readers will notice that this channel is closed.
                return;
            }
        }
    }
    // Nobody to send to is the same as nothing to send: the result is lost already.
    let _ = batches.send(counts).await;
}

/// Adds up all batches, and tells after each how far it is.
async fn aggregate(mut batches: Receiver<Counts>, progress: impl Fn(&Counts)) -> Counts {
    let mut sum = Counts::default();
    while let Some(batch) = batches.recv().await {
        sum.merge(batch);
        progress(&sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlets_take_turns_while_all_are_idle() {
        let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel(2)).unzip();
        let mut outlets = Outlets::new(senders, 1);
        for message in 0..6 {
            assert!(outlets.blocking_send(message));
        }
        let received = receivers
            .iter_mut()
            .map(|receiver| [(); 2].map(|()| receiver.blocking_recv().unwrap()));
        assert!(received.eq([[2, 5], [0, 3], [1, 4]]));
    }

    #[test]
    fn outlets_prefer_whoever_has_least_to_do() {
        let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel(2)).unzip();
        senders[0].blocking_send(0).unwrap();
        let mut outlets = Outlets::new(senders, 0);
        assert!(outlets.blocking_send(1));
        assert_eq!(receivers[1].blocking_recv(), Some(1));
    }

    #[test]
    fn outlets_notice_that_nobody_is_there() {
        let (sender, receiver) = mpsc::channel(1);
        drop(receiver);
        assert!(!Outlets::new(vec![sender], 0).blocking_send(()));
    }
}
