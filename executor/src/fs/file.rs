//! An open file.
//!
//! | state | what the pool does | what the next operation does first |
//! |---|---|---|
//! | idle | nothing | takes what is left in the buffer, or starts a job |
//! | busy | one job, with the buffer | waits for its end |
//!
//! A write is done with as soon as its bytes are in the buffer and the job is on its way. Its error, if
//! there is one, is told by the next operation that can fail with it: a write, a flush, a close, a seek.

use std::fmt;
use std::fs::{Metadata, Permissions};
use std::future::{Future, poll_fn};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};

use super::OpenOptions;
use crate::unblock::{Unblock, unblock};

/// The most that one job reads or writes: enough that the switch of threads does not matter, and not so
/// much that a file costs much memory.
const MAX_BUFFER: usize = 256 * 1024;

/// An open file, with the `futures-io` traits.
///
/// Reads and writes go through a buffer of the file, of the size of the caller's and at most 256 KiB;
/// there is no reading ahead. **What has been written must be flushed**: a write returns before the
/// system has taken the bytes, and its error is told by the next write or
/// [flush](AsyncWrite::poll_flush). A file that is dropped without a flush is still
/// written, but nobody hears of an error, and the end of `main` may come first.
///
/// # Cancel safety
/// A read whose future is dropped loses nothing: what it got is given to the next read. A write either
/// has taken its bytes or has done nothing. After a seek that was dropped the position is uncertain.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("wakerun-file-doc-{}", std::process::id()));
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use wakerun::fs::File;
///
/// wakerun::block_on(async {
///     let mut file = File::create(&path).await?;
///     file.write_all(b"some bytes").await?;
///     file.flush().await?;
///
///     let mut text = String::new();
///     File::open(&path).await?.read_to_string(&mut text).await?;
///     assert_eq!(text, "some bytes");
///     std::io::Result::Ok(())
/// })?;
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
pub struct File {
    file: Arc<std::fs::File>,
    state: State,
}

enum State {
    Idle(Buffer),
    Busy(Unblock<(Outcome, Buffer)>),
}

/// Bytes that were read and have not been taken: those from `start`.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

/// What a job was, and how it ended.
enum Outcome {
    Read(io::Result<()>),
    Written(io::Result<()>),
    Sought(SeekFrom, io::Result<u64>),
}

impl Buffer {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// How far the file's position is before the one that the reader has seen, as a seek.
    fn step_back(&self) -> i64 {
        // A buffer holds at most `MAX_BUFFER` bytes.
        -(self.rest().len() as i64)
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`std::fs::File::open`].
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Makes a file for writing; if there is one, its content is removed.
    ///
    /// # Errors
    /// As [`std::fs::File::create`].
    pub async fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .await
    }

    /// Makes a file for reading and writing that is not there yet.
    ///
    /// # Errors
    /// As [`std::fs::File::create_new`].
    pub async fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .await
    }

    /// Takes over an open file of `std`.
    pub fn from_std(file: std::fs::File) -> Self {
        Self {
            file: Arc::new(file),
            state: State::Idle(Buffer::default()),
        }
    }

    /// Gives the file of `std`, with all writes done and the position that the last read has seen.
    ///
    /// # Errors
    /// If a write under way fails, or the system has no descriptor left where one is needed.
    pub async fn into_std(mut self) -> io::Result<std::fs::File> {
        self.settle().await?;
        // A type with a destructor cannot be taken apart; a duplicate is as good.
        self.file.try_clone()
    }

    /// Another handle of the same open file, which shares its position.
    ///
    /// # Errors
    /// If a write under way fails, and as [`std::fs::File::try_clone`].
    pub async fn try_clone(&mut self) -> io::Result<Self> {
        self.settle().await?;
        Ok(Self::from_std(self.file.try_clone()?))
    }

    /// Waits until all writes have reached the disk, with what is known about the file.
    ///
    /// # Errors
    /// If a write under way fails, and as [`std::fs::File::sync_all`].
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.settle().await?;
        let file = self.file.clone();
        unblock(move || file.sync_all()).await
    }

    /// Waits until all writes have reached the disk, but perhaps not the file's times.
    ///
    /// # Errors
    /// If a write under way fails, and as [`std::fs::File::sync_data`].
    pub async fn sync_data(&mut self) -> io::Result<()> {
        self.settle().await?;
        let file = self.file.clone();
        unblock(move || file.sync_data()).await
    }

    /// Cuts the file off, or extends it with zeros.
    ///
    /// # Errors
    /// If a write under way fails, and as [`std::fs::File::set_len`].
    pub async fn set_len(&mut self, size: u64) -> io::Result<()> {
        self.settle().await?;
        let file = self.file.clone();
        unblock(move || file.set_len(size)).await
    }

    /// Size, times, permissions. Does not wait for a write under way.
    ///
    /// # Errors
    /// As [`std::fs::File::metadata`].
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let file = self.file.clone();
        unblock(move || file.metadata()).await
    }

    /// Sets the permissions.
    ///
    /// # Errors
    /// As [`std::fs::File::set_permissions`].
    pub async fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        let file = self.file.clone();
        unblock(move || file.set_permissions(permissions)).await
    }

    /// Waits for a write under way, and makes the file's position the one that the reader has seen.
    async fn settle(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_written(cx)).await?;
        let left = match &self.state {
            State::Idle(buffer) => buffer.rest().len(),
            State::Busy(_) => 0,
        };
        if left > 0 {
            poll_fn(|cx| Pin::new(&mut *self).poll_seek(cx, SeekFrom::Current(0))).await?;
        }
        Ok(())
    }

    /// Waits until no job is under way. Gives the outcome of the one that was.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<(Option<Outcome>, &mut Buffer)> {
        let mut outcome = None;
        if let State::Busy(task) = &mut self.state {
            let (done, buffer) = ready!(Pin::new(task).poll(cx));
            outcome = Some(done);
            self.state = State::Idle(buffer);
        }
        match &mut self.state {
            State::Idle(buffer) => Poll::Ready((outcome, buffer)),
            State::Busy(_) => unreachable!("the state was made idle above"),
        }
    }

    /// Waits for a job under way and tells the error of a write. What a read that nobody waits for any
    /// more has found stays in the buffer; its error is forgotten with it.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.poll_idle(cx)).0 {
            Some(Outcome::Written(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Starts a job; only in the idle state.
    fn start(&mut self, job: impl FnOnce(&std::fs::File, &mut Buffer) -> Outcome + Send + 'static) {
        let State::Idle(buffer) = &mut self.state else {
            unreachable!("a job is started when none is under way")
        };
        let (file, mut buffer) = (self.file.clone(), std::mem::take(buffer));
        self.state = State::Busy(unblock(move || {
            let outcome = job(&file, &mut buffer);
            (outcome, buffer)
        }));
    }
}

impl AsyncRead for File {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if out.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let (outcome, buffer) = ready!(this.poll_idle(cx));
            match outcome {
                Some(Outcome::Read(Err(error)) | Outcome::Written(Err(error))) => {
                    return Poll::Ready(Err(error));
                }
                // Nothing was there: the end of the file, for now.
                Some(Outcome::Read(Ok(()))) if buffer.rest().is_empty() => {
                    return Poll::Ready(Ok(0));
                }
                _ => {}
            }
            let rest = buffer.rest();
            if !rest.is_empty() {
                let n = rest.len().min(out.len());
                out[..n].copy_from_slice(&rest[..n]);
                buffer.start += n;
                return Poll::Ready(Ok(n));
            }
            let most = out.len().min(MAX_BUFFER);
            this.start(move |mut file, buffer| {
                buffer.start = 0;
                buffer.bytes.resize(most, 0);
                let read = retry(|| file.read(&mut buffer.bytes));
                buffer.bytes.truncate(*read.as_ref().unwrap_or(&0));
                Outcome::Read(read.map(|_| ()))
            });
        }
    }
}

impl AsyncWrite for File {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Err(error) = ready!(this.poll_written(cx)) {
            return Poll::Ready(Err(error));
        }
        let State::Idle(buffer) = &mut this.state else {
            unreachable!("no job is under way")
        };
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let back = buffer.step_back();
        let n = bytes.len().min(MAX_BUFFER);
        buffer.clear();
        buffer.bytes.extend_from_slice(&bytes[..n]);
        this.start(move |mut file, buffer| {
            let written = step(file, back).and_then(|()| file.write_all(&buffer.bytes));
            buffer.clear();
            Outcome::Written(written)
        });
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_written(cx)
    }

    /// Flushes. The descriptor is closed when the file is dropped.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncSeek for File {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        loop {
            let (outcome, buffer) = ready!(this.poll_idle(cx));
            match outcome {
                Some(Outcome::Sought(asked, result)) if asked == to => return Poll::Ready(result),
                Some(Outcome::Written(Err(error))) => return Poll::Ready(Err(error)),
                _ => {}
            }
            let back = buffer.step_back();
            buffer.clear();
            this.start(move |mut file, _| {
                // Two steps, since their sum may be out of range where the second is not.
                let sought = step(file, back).and_then(|()| file.seek(to));
                Outcome::Sought(to, sought)
            });
        }
    }
}

/// Moves the position by `by`, if it is not 0: not all files can seek.
fn step(mut file: &std::fs::File, by: i64) -> io::Result<()> {
    if by != 0 {
        file.seek(SeekFrom::Current(by))?;
    }
    Ok(())
}

/// Repeats what a signal has interrupted.
fn retry<R>(mut op: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match op() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let idle = State::Idle(Buffer::default());
        if let State::Busy(task) = std::mem::replace(&mut self.state, idle) {
            // It may be a write that has not begun: it takes place although nobody waits for it.
            task.detach();
        }
    }
}

impl From<std::fs::File> for File {
    fn from(file: std::fs::File) -> Self {
        Self::from_std(file)
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for File {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsHandle for File {
    fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
        self.file.as_handle()
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
