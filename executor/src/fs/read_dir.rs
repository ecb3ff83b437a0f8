//! What is in a folder.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, DirEntry};
use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::unblock::{Unblock, unblock};

/// Entries that are fetched at a time, so that a switch of threads is paid by many.
const CHUNK: usize = 64;

/// The entries of a folder, in no particular order.
///
/// # Errors
/// As [`std::fs::read_dir`].
///
/// ```
/// wakerun::block_on(async {
///     let mut entries = wakerun::fs::read_dir("src").await?;
///     let mut found = false;
///     while let Some(entry) = entries.next_entry().await? {
///         found |= entry.file_name() == "lib.rs";
///     }
///     assert!(found);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    let source = unblock(move || fs::read_dir(path)).await?;
    Ok(ReadDir {
        fetched: VecDeque::new(),
        state: State::Idle(source),
    })
}

/// The stream of a folder's entries; see [`read_dir`].
///
/// The entries are those of `std`. What they know without asking the system (name and path, and on most
/// systems the type) can be asked anywhere; for the rest there is [`metadata`](super::metadata).
pub struct ReadDir {
    fetched: VecDeque<io::Result<DirEntry>>,
    state: State,
}

enum State {
    Idle(fs::ReadDir),
    Fetching(Unblock<(VecDeque<io::Result<DirEntry>>, fs::ReadDir)>),
    End,
}

impl ReadDir {
    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// As the items of [`std::fs::ReadDir`]; the entries after that can still be had.
    ///
    /// # Cancel safety
    /// Dropping the future loses no entry.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| self.poll_entry(cx)).await.transpose()
    }

    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<DirEntry>>> {
        loop {
            if let Some(entry) = self.fetched.pop_front() {
                return Poll::Ready(Some(entry));
            }
            match std::mem::replace(&mut self.state, State::End) {
                State::End => return Poll::Ready(None),
                State::Idle(mut source) => {
                    self.state = State::Fetching(unblock(move || {
                        let chunk = source.by_ref().take(CHUNK).collect();
                        (chunk, source)
                    }));
                }
                State::Fetching(mut task) => {
                    let Poll::Ready((chunk, source)) = Pin::new(&mut task).poll(cx) else {
                        self.state = State::Fetching(task);
                        return Poll::Pending;
                    };
                    if !chunk.is_empty() {
                        self.state = State::Idle(source);
                    }
                    self.fetched = chunk;
                }
            }
        }
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_entry(cx)
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").finish_non_exhaustive()
    }
}
