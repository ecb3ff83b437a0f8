//! Finds the files behind the names on the command line.

use std::fs::{self, File, ReadDir};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec;

use crate::args::Input;

/// All files that are named, or lie in a folder that is named.
///
/// It keeps one open folder for each level it is in, however many files there are. Symbolic links
/// in folders are not followed: no file is counted twice, and a link to a folder above leads
/// nowhere.
pub(crate) struct Walk {
    inputs: vec::IntoIter<Input>,
    folders: Vec<(PathBuf, ReadDir)>,
}

/// One step of a [`Walk`].
#[derive(Debug)]
pub(crate) enum Found {
    File(Source),
    /// Something that is neither a file nor a folder nor a link; opening it might wait for ever.
    Special(PathBuf),
    Unreadable(PathBuf, io::Error),
}

/// Something to read.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    StandardInput,
    File(PathBuf),
}

impl Source {
    /// Opens it for reading.
    ///
    /// # Errors
    ///
    /// Fails as opening a file does.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Source::StandardInput => Box::new(io::stdin().lock()),
            Source::File(path) => Box::new(File::open(path)?),
        })
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Source::StandardInput => Path::new("standard input"),
            Source::File(path) => path,
        }
    }
}

impl Walk {
    pub(crate) fn new(inputs: Vec<Input>) -> Self {
        Walk {
            inputs: inputs.into_iter(),
            folders: Vec::new(),
        }
    }

    /// Goes down into a folder.
    fn enter(&mut self, path: PathBuf) -> Option<Found> {
        match fs::read_dir(&path) {
            Ok(entries) => {
                self.folders.push((path, entries));
                None
            }
            Err(error) => Some(Found::Unreadable(path, error)),
        }
    }

    /// A name of the command line: links are followed, and anything that can be read is.
    fn named(&mut self, input: Input) -> Option<Found> {
        let path = match input {
            Input::StandardInput => return Some(Found::File(Source::StandardInput)),
            Input::Path(path) => path,
        };
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.enter(path),
            Ok(_) => Some(Found::File(Source::File(path))),
            Err(error) => Some(Found::Unreadable(path, error)),
        }
    }

    /// An entry of a folder.
    fn listed(&mut self, entry: &fs::DirEntry) -> Option<Found> {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => self.enter(path),
            Ok(kind) if kind.is_file() => Some(Found::File(Source::File(path))),
            Ok(kind) if kind.is_symlink() => None,
            Ok(_) => Some(Found::Special(path)),
            Err(error) => Some(Found::Unreadable(path, error)),
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let found = match self.folders.last_mut() {
                None => {
                    let input = self.inputs.next()?;
                    self.named(input)
                }
                Some((path, entries)) => match entries.next() {
                    Some(Ok(entry)) => self.listed(&entry),
                    Some(Err(error)) => {
                        // A folder that fails once may do so for ever: leave it.
                        let path = path.clone();
                        self.folders.pop();
                        Some(Found::Unreadable(path, error))
                    }
                    None => {
                        self.folders.pop();
                        None
                    }
                },
            };
            if found.is_some() {
                return found;
            }
        }
    }
}
