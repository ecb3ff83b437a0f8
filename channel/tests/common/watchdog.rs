//! A test that hangs must fail and say where.

use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a test may take before it counts as hung. Far above what any takes on a loaded machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 600 } else { 60 });

/// Runs `f` on a thread of its own; panics if it has not returned within [`LIMIT`].
#[track_caller]
pub(crate) fn within<R: Send + 'static>(what: &str, f: impl FnOnce() -> R + Send + 'static) -> R {
    within_time(what, LIMIT, f)
}

/// The same with another limit.
#[track_caller]
pub(crate) fn within_time<R: Send + 'static>(
    what: &str,
    limit: Duration,
    f: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, wait) = mpsc::channel();
    let thread = spawn(what, done, f);
    match wait.recv_timeout(limit) {
        Ok(()) => finish(thread),
        Err(_) => panic!("{what}: no end within {limit:?}"),
    }
}

/// The same for work in steps, which `progress` counts: the limit is for each of them, since how long all take
/// says more of what else the machine does.
#[track_caller]
pub(crate) fn within_each<R: Send + 'static>(
    what: &str,
    progress: impl Fn() -> u64,
    f: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, wait) = mpsc::channel();
    let thread = spawn(what, done, f);
    let mut seen = progress();
    loop {
        match wait.recv_timeout(LIMIT) {
            Ok(()) => return finish(thread),
            Err(_) => {
                let now = progress();
                assert!(now != seen, "{what}: nothing happens within {LIMIT:?}");
                seen = now;
            }
        }
    }
}

type Thread<R> = thread::JoinHandle<thread::Result<R>>;

fn spawn<R: Send + 'static>(
    what: &str,
    done: mpsc::Sender<()>,
    f: impl FnOnce() -> R + Send + 'static,
) -> Thread<R> {
    thread::Builder::new()
        .name(what.to_string())
        .spawn(move || {
            let result = panic::catch_unwind(panic::AssertUnwindSafe(f));
            let _ = done.send(());
            result
        })
        .unwrap()
}

fn finish<R>(thread: Thread<R>) -> R {
    match thread.join() {
        Ok(Ok(result)) => result,
        Ok(Err(payload)) | Err(payload) => panic::resume_unwind(payload),
    }
}

/// Prints `state()` and ends the process if it is not dropped within the limit. For tests whose
/// threads borrow, so that there is nowhere to return to from a hang.
pub(crate) struct Watchdog {
    disarm: mpsc::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn new(
        what: &str,
        limit: Duration,
        state: impl Fn() -> String + Send + 'static,
    ) -> Self {
        let what = what.to_string();
        let (disarm, wait) = mpsc::channel();
        let thread = thread::spawn(move || {
            if let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(limit) {
                eprintln!("{what}: no end within {limit:?}\n{}", state());
                std::process::abort();
            }
        });
        Self {
            disarm,
            thread: Some(thread),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.disarm.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
