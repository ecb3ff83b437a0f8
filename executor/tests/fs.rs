//! Files and folders: the functions of `std::fs`, and the traits of an open file.

mod common;

use std::future::Future;
use std::io::{self, ErrorKind, SeekFrom};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use common::each_kind;
use futures_lite::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, StreamExt};
use wakerun::fs::{self, File, OpenOptions};

/// An empty folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "wakerun-fs-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the test as a task on each kind of runtime.
#[track_caller]
fn each<F, Fut>(test: F)
where
    F: Fn(Folder) -> Fut + Send + 'static,
    Fut: Future<Output = io::Result<()>> + Send + 'static,
{
    each_kind(move |_, runtime| {
        let task = runtime.spawn(test(Folder::new()));
        runtime.block_on(task).unwrap().unwrap();
    });
}

#[test]
fn the_functions_do_what_those_of_std_do() {
    each(|folder| async move {
        let deep = folder.file("a/b/c");
        fs::create_dir_all(&deep).await?;
        assert!(fs::create_dir(&deep).await.is_err());
        let file = deep.join("file");
        fs::write(&file, b"12345").await?;
        assert_eq!(fs::read(&file).await?, b"12345");
        assert_eq!(fs::read_to_string(&file).await?, "12345");
        assert_eq!(fs::metadata(&file).await?.len(), 5);
        let copy = deep.join("copy");
        assert_eq!(fs::copy(&file, &copy).await?, 5);
        fs::rename(&copy, deep.join("renamed")).await?;
        assert!(!fs::try_exists(&copy).await?);
        fs::hard_link(&file, deep.join("hard")).await?;
        #[cfg(unix)]
        {
            let link = deep.join("link");
            fs::symlink(&file, &link).await?;
            assert_eq!(fs::read_link(&link).await?, file);
            assert!(fs::symlink_metadata(&link).await?.is_symlink());
            assert_eq!(
                fs::canonicalize(&link).await?,
                std::fs::canonicalize(&file)?
            );
        }
        let mut permissions = fs::metadata(&file).await?.permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).await?;
        assert!(fs::metadata(&file).await?.permissions().readonly());
        assert!(fs::remove_dir(&deep).await.is_err());
        fs::remove_file(deep.join("hard")).await?;
        fs::remove_dir_all(folder.file("a")).await?;
        assert!(!fs::try_exists(&deep).await?);
        fs::create_dir(folder.file("one")).await?;
        fs::remove_dir(folder.file("one")).await?;
        let error = fs::read(&file).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        Ok(())
    });
}

#[test]
fn a_folder_of_many_entries_is_listed_once_each() {
    each(|folder| async move {
        let mut expected: Vec<String> = (0..200).map(|n| format!("entry-{n}")).collect();
        for name in &expected {
            std::fs::write(folder.file(name), b"")?;
        }
        expected.sort();
        let mut listed = Vec::new();
        let mut entries = fs::read_dir(&folder.0).await?;
        while let Some(entry) = entries.next_entry().await? {
            listed.push(entry.file_name().into_string().unwrap());
        }
        assert!(entries.next_entry().await?.is_none(), "the end is final");
        listed.sort();
        assert_eq!(listed, expected);
        assert_eq!(fs::read_dir(&folder.0).await?.count().await, 200);
        Ok(())
    });
}

#[test]
fn a_file_is_written_and_read_in_pieces_of_any_size() {
    each(|folder| async move {
        let path = folder.file("data");
        let data: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut file = File::create(&path).await?;
        for (n, piece) in data.chunks(70_001).enumerate() {
            file.write_all(piece).await?;
            if n % 3 == 0 {
                file.flush().await?;
            }
        }
        file.close().await?;
        assert_eq!(std::fs::read(&path)?, data);

        let mut file = File::open(&path).await?;
        let mut read = vec![0; 3];
        file.read_exact(&mut read).await?;
        file.read_to_end(&mut read).await?;
        assert_eq!(read, data);
        assert_eq!(file.read(&mut [0; 8]).await?, 0, "the end stays the end");
        Ok(())
    });
}

#[test]
fn an_unread_rest_does_not_move_what_is_written_or_sought() {
    each(|folder| async move {
        let path = folder.file("data");
        fs::write(&path, b"0123456789").await?;
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).open(&path).await?;

        // A read that asks for eight bytes, is dropped when it has them, and is followed by a read
        // of two: six bytes stay in the buffer.
        abandoned_read(&mut file, 8).await;
        let mut two = [0; 2];
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"01");
        assert_eq!(file.seek(SeekFrom::Current(1)).await?, 3);
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"34");

        abandoned_read(&mut file, 4).await;
        file.write_all(b"X").await?;
        file.flush().await?;
        assert_eq!(fs::read(&path).await?, b"01234X6789");
        file.read_exact(&mut two).await?;
        assert_eq!(&two, b"67");

        abandoned_read(&mut file, 2).await;
        let mut std = file.into_std().await?;
        assert_eq!(std::io::Seek::stream_position(&mut std)?, 8);
        Ok(())
    });
}

/// Whether the future is ready at its first and only poll.
fn polled_once(future: impl Future) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut cx).is_ready()
}

/// Starts a read of `n` bytes and drops its future.
async fn abandoned_read(file: &mut File, n: usize) {
    let mut buffer = vec![0; n];
    // The pool may be done with it at once; then once more.
    while polled_once(file.read(&mut buffer)) {
        file.seek(SeekFrom::Current(-(n as i64))).await.unwrap();
    }
}

#[test]
fn the_error_of_a_write_is_told_by_the_next_operation() {
    each(|folder| async move {
        let path = folder.file("data");
        fs::write(&path, b"0123456789").await?;
        // Opened for reading only: the system refuses each write, in the pool.
        let mut file = File::open(&path).await?;
        assert_eq!(file.write(b"x").await?, 1);
        assert!(file.flush().await.is_err());
        assert!(file.flush().await.is_ok(), "an error is told once");
        assert_eq!(file.write(b"x").await?, 1);
        assert!(file.write(b"y").await.is_err());
        assert_eq!(file.write(b"x").await?, 1);
        assert!(file.sync_all().await.is_err());
        assert_eq!(file.write(b"x").await?, 1);
        assert!(file.seek(SeekFrom::Start(0)).await.is_err());
        let mut all = Vec::new();
        file.read_to_end(&mut all).await?;
        assert_eq!(all, b"0123456789");
        Ok(())
    });
}

#[test]
fn a_file_that_is_dropped_without_a_flush_is_written() {
    each(|folder| async move {
        let path = folder.file("data");
        let mut file = File::create(&path).await?;
        file.write_all(b"last words").await?;
        drop(file);
        // The job may not have begun yet.
        while fs::read(&path).await? != b"last words" {
            wakerun::task::yield_now().await;
        }
        Ok(())
    });
}

#[test]
fn options_lengths_clones_and_metadata() {
    each(|folder| async move {
        let path = folder.file("data");
        let mut file = File::create_new(&path).await?;
        assert_eq!(
            File::create_new(&path).await.unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        file.write_all(b"0123456789").await?;
        file.set_len(4).await?;
        assert_eq!(file.metadata().await?.len(), 4);
        file.sync_data().await?;
        file.seek(SeekFrom::Start(1)).await?;
        let mut clone = file.try_clone().await?;
        let mut rest = String::new();
        clone.read_to_string(&mut rest).await?;
        assert_eq!(rest, "123");
        let mut log = OpenOptions::new().append(true).open(&path).await?;
        log.write_all(b"-end").await?;
        log.flush().await?;
        assert_eq!(fs::read(&path).await?, b"0123-end");
        assert!(OpenOptions::new().open(&path).await.is_err());
        Ok(())
    });
}

#[test]
fn an_empty_read_gives_nothing_and_waits_for_nothing() {
    each(|folder| async move {
        fs::write(folder.file("data"), b"x").await?;
        let mut file = File::open(folder.file("data")).await?;
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut file).poll_read(&mut cx, &mut []).is_ready());
        Ok(())
    });
}

#[test]
fn files_need_no_runtime() {
    let folder = Folder::new();
    common::block_on(async {
        fs::write(folder.file("data"), b"x").await.unwrap();
        let mut file = File::open(folder.file("data")).await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "x");
    });
}

#[test]
fn a_paused_clock_waits_for_files_and_names() {
    common::within("a paused clock", || {
        let mut builder = wakerun::Builder::new_current_thread();
        let runtime = builder.start_paused(true).build().unwrap();
        let folder = Folder::new();
        runtime.block_on(async {
            let limit = std::time::Duration::from_secs(1);
            for n in 0..200 {
                let work = async {
                    let mut file = File::create(folder.file("data")).await?;
                    file.write_all(format!("{n}").as_bytes()).await?;
                    file.flush().await?;
                    assert_eq!(
                        fs::read_to_string(folder.file("data")).await?,
                        format!("{n}")
                    );
                    wakerun::net::lookup_host("localhost:1").await?.count();
                    io::Result::Ok(())
                };
                // Would be over at once if the clock ran ahead while nothing else is to be done.
                wakerun::time::timeout(limit, work).await.unwrap().unwrap();
            }
            // And a file that has been written to does not stop the clock for ever.
            let mut file = File::create(folder.file("data")).await.unwrap();
            file.write_all(b"x").await.unwrap();
            wakerun::time::sleep(limit).await;
        });
    });
}

#[test]
fn a_write_that_has_begun_survives_its_runtime() {
    each_kind(|_, runtime| {
        let folder = Folder::new();
        runtime.block_on(async {
            let mut file = File::create(folder.file("data")).await.unwrap();
            file.write_all(b"last words").await.unwrap();
            drop(file);
        });
        drop(runtime);
        while std::fs::read(folder.file("data")).unwrap() != b"last words" {
            std::thread::yield_now();
        }
    });
}
