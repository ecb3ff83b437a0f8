//! Misuse is refused at once, in words that help.
#![cfg(not(wakerun_loom))]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{Kind, each_kind, within};
use wakerun::task::{self, JoinSet};
use wakerun::{Builder, Handle};

/// The text of the panic that `f` ends in.
#[track_caller]
fn refusal<R>(f: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(f()))) else {
        panic!("was not refused");
    };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast_ref::<&str>().unwrap()).to_string(),
    }
}

#[test]
fn spawning_without_a_runtime_says_what_to_do() {
    for text in [
        refusal(|| wakerun::spawn(async {})),
        refusal(|| task::spawn(async {})),
        refusal(|| task::Builder::new().spawn(async {})),
        refusal(|| JoinSet::new().spawn(async {})),
        refusal(Handle::current),
        Handle::try_current().unwrap_err().to_string(),
    ] {
        assert!(
            text.contains("no wakerun runtime") && text.contains("enter"),
            "{text:?}"
        );
    }
}

#[test]
fn block_on_inside_a_task_says_what_to_do() {
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        let text = runtime.block_on(runtime.spawn(async move {
            let inner = refusal(|| handle.block_on(async {}));
            let quick = refusal(|| wakerun::block_on(async {}));
            let other = refusal(|| Kind::Current.build().block_on(async {}));
            [inner, quick, other]
        }));
        for text in text.unwrap() {
            assert!(
                text.contains("block_on") && text.contains("await"),
                "{text:?}"
            );
        }
        // The worker is as good as before.
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    });
}

#[test]
fn block_on_inside_block_on_says_what_to_do() {
    each_kind(|_, runtime| {
        let text = runtime.block_on(async {
            // On another runtime as well: the thread is taken.
            let other = Kind::Current.build();
            [
                refusal(|| runtime.block_on(async {})),
                refusal(|| other.block_on(async {})),
            ]
        });
        for text in text {
            assert!(text.contains("block_on"), "{text:?}");
        }
        assert_eq!(runtime.block_on(async { 1 }), 1);
    });
}

#[test]
fn a_runtime_without_workers_is_refused() {
    for workers in [0, usize::MAX] {
        let text = refusal(|| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(workers);
        });
        assert!(text.contains("worker thread"), "{text:?}");
    }
}

#[test]
fn the_id_of_no_task_is_refused() {
    let text = refusal(task::id);
    assert!(text.contains("outside a task"), "{text:?}");
    within("block_on", || {
        let text = wakerun::block_on(async { refusal(task::id) });
        assert!(text.contains("outside a task"), "{text:?}");
    });
}
