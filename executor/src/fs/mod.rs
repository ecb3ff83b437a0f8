//! Files and folders, on the pool for blocking work.
//!
//! Each function does what the one of the same name in [`std::fs`] does, on a thread of the pool that
//! [`task::spawn_blocking`](crate::task::spawn_blocking) uses, too. Systems have no other way that works
//! for all files. So a call costs a switch to another thread and back, some microseconds: many small
//! accesses are better done together, in one `spawn_blocking`.
//!
//! None of it needs a wakerun runtime; the futures can be awaited on any executor.
//!
//! # Cancel safety
//! An operation whose future is dropped before it has begun does not take place. One that has begun goes
//! on to its end.
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("wakerun-fs-doc-{}", std::process::id()));
//! wakerun::block_on(async {
//!     wakerun::fs::create_dir_all(&folder).await?;
//!     let path = folder.join("note");
//!     wakerun::fs::write(&path, "one line\n").await?;
//!     assert_eq!(wakerun::fs::read_to_string(&path).await?, "one line\n");
//!     wakerun::fs::remove_dir_all(&folder).await
//! })?;
//! # std::io::Result::Ok(())
//! ```

mod file;
mod open_options;
mod read_dir;

pub use file::File;
pub use open_options::OpenOptions;
pub use read_dir::{ReadDir, read_dir};

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use crate::unblock::unblock;

/// The path with all links resolved, and absolute.
///
/// # Errors
/// As [`std::fs::canonicalize`].
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::canonicalize(path)).await
}

/// Copies a file's content and permissions; gives the number of bytes.
///
/// # Errors
/// As [`std::fs::copy`].
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    unblock(move || fs::copy(from, to)).await
}

/// Makes a folder.
///
/// # Errors
/// As [`std::fs::create_dir`].
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::create_dir(path)).await
}

/// Makes a folder and those that it is to lie in, as far as they are missing.
///
/// # Errors
/// As [`std::fs::create_dir_all`].
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::create_dir_all(path)).await
}

/// Gives a file another name in addition.
///
/// # Errors
/// As [`std::fs::hard_link`].
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    unblock(move || fs::hard_link(original, link)).await
}

/// Size, times, permissions of what the path leads to.
///
/// # Errors
/// As [`std::fs::metadata`].
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::metadata(path)).await
}

/// A file's whole content.
///
/// # Errors
/// As [`std::fs::read`].
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::read(path)).await
}

/// What a symbolic link says.
///
/// # Errors
/// As [`std::fs::read_link`].
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::read_link(path)).await
}

/// A file's whole content as text.
///
/// # Errors
/// As [`std::fs::read_to_string`], among them content that is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::read_to_string(path)).await
}

/// Removes an empty folder.
///
/// # Errors
/// As [`std::fs::remove_dir`].
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::remove_dir(path)).await
}

/// Removes a folder with all that is in it.
///
/// # Errors
/// As [`std::fs::remove_dir_all`].
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::remove_dir_all(path)).await
}

/// Removes a file.
///
/// # Errors
/// As [`std::fs::remove_file`].
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::remove_file(path)).await
}

/// Renames a file or folder; a file of the new name is replaced.
///
/// # Errors
/// As [`std::fs::rename`].
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    unblock(move || fs::rename(from, to)).await
}

/// Sets the permissions of a file or folder.
///
/// # Errors
/// As [`std::fs::set_permissions`].
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::set_permissions(path, permissions)).await
}

/// Makes a symbolic link.
///
/// # Errors
/// As [`std::os::unix::fs::symlink`].
#[cfg(unix)]
pub async fn symlink(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (original.as_ref().to_owned(), link.as_ref().to_owned());
    unblock(move || std::os::unix::fs::symlink(original, link)).await
}

/// As [`metadata`], but of a link itself.
///
/// # Errors
/// As [`std::fs::symlink_metadata`].
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::symlink_metadata(path)).await
}

/// Whether the path leads to anything.
///
/// # Errors
/// If that cannot be said, for want of permission on the way.
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    unblock(move || fs::exists(path)).await
}

/// Makes `contents`, which is copied, the file's whole content.
///
/// # Errors
/// As [`std::fs::write`].
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref().to_owned(), contents.as_ref().to_owned());
    unblock(move || fs::write(path, contents)).await
}
