//! How a file is opened.

use std::io;
use std::path::Path;

use super::File;
use crate::unblock::unblock;

/// How a file is opened; as [`std::fs::OpenOptions`], from which it can be made where a system's own
/// options are wanted.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("wakerun-options-doc-{}", std::process::id()));
/// use futures_lite::AsyncWriteExt;
/// use wakerun::fs::OpenOptions;
///
/// wakerun::block_on(async {
///     let mut log = OpenOptions::new().append(true).create(true).open(&path).await?;
///     log.write_all(b"started\n").await?;
///     log.flush().await
/// })?;
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(std::fs::OpenOptions);

impl OpenOptions {
    /// Nothing allowed yet.
    pub fn new() -> Self {
        Self(std::fs::OpenOptions::new())
    }

    /// For reading.
    pub fn read(&mut self, read: bool) -> &mut Self {
        self.0.read(read);
        self
    }

    /// For writing.
    pub fn write(&mut self, write: bool) -> &mut Self {
        self.0.write(write);
        self
    }

    /// For writing at the end, wherever that is by then.
    pub fn append(&mut self, append: bool) -> &mut Self {
        self.0.append(append);
        self
    }

    /// With its old content removed.
    pub fn truncate(&mut self, truncate: bool) -> &mut Self {
        self.0.truncate(truncate);
        self
    }

    /// Made, if it is not there.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.0.create(create);
        self
    }

    /// Made, and an error if it is there.
    pub fn create_new(&mut self, create_new: bool) -> &mut Self {
        self.0.create_new(create_new);
        self
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`std::fs::OpenOptions::open`].
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.as_ref().to_owned());
        let file = unblock(move || options.open(path)).await?;
        Ok(File::from_std(file))
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> Self {
        Self(options)
    }
}
