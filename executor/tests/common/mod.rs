//! What the tests of the runtime share: runtimes of each kind, an event, drop flags, wakers,
//! polling by hand, a watchdog.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]
#![allow(unused_imports)]

mod event;
mod poll;
mod watchdog;

pub(crate) use event::{DropFlag, Event};
pub(crate) use poll::{Counter, block_on, counter, on_drop, on_wake, poll_once};
pub(crate) use watchdog::{LIMIT, within};

use wakerun::{Builder, Runtime};

/// A kind of runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Current,
    Workers(usize),
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [
        Self::Current,
        Self::Workers(1),
        Self::Workers(2),
        Self::Workers(4),
    ];

    pub(crate) fn builder(self) -> Builder {
        match self {
            Self::Current => Builder::new_current_thread(),
            Self::Workers(n) => {
                let mut builder = Builder::new_multi_thread();
                builder.worker_threads(n);
                builder
            }
        }
    }

    pub(crate) fn build(self) -> Runtime {
        self.builder().build().unwrap()
    }
}

/// Runs the test on each kind of runtime.
#[track_caller]
pub(crate) fn each_kind(test: impl Fn(Kind, Runtime) + Send + 'static) {
    within("each kind", move || {
        for kind in Kind::ALL {
            let _label = Label(kind);
            test(kind, kind.build());
        }
    });
}

/// Runs the test on runtimes with 1, 2 and 4 worker threads.
#[track_caller]
pub(crate) fn each_pool(test: impl Fn(usize, Runtime) + Send + 'static) {
    each_kind(move |kind, runtime| {
        if let Kind::Workers(n) = kind {
            test(n, runtime);
        }
    });
}

/// Says where it was when a test fails.
struct Label(Kind);

impl Drop for Label {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed on {:?}", self.0);
        }
    }
}

/// Rounds of a race: many in release, fewer in debug, a handful under Miri. `WAKERUN_ROUNDS`
/// multiplies them.
pub(crate) fn rounds(release: usize) -> usize {
    let factor = std::env::var("WAKERUN_ROUNDS").map_or(1, |n| n.parse().expect("a number"));
    if cfg!(miri) {
        (release / 10_000).clamp(4, 50)
    } else if cfg!(debug_assertions) {
        (release / 20).max(100) * factor
    } else {
        release * factor
    }
}
