//! Sequences of operations on the channels and on the model of their contract, led by coverage.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;
#[allow(
    dead_code,
    unused_imports,
    reason = "each user of the model takes a part of it"
)]
#[path = "../../tests/model/mod.rs"]
mod model;

use std::sync::{Arc, OnceLock};

use common::block_on;
use libfuzzer_sys::fuzz_target;
use model::{Input, Turns};
use wakerun::{Builder, Runtime};

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_current_thread()
            .build()
            .expect("a runtime can be built")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some(Input { case, in_task, ops }) = Input::from_bytes(bytes) else {
        return;
    };
    let sequence = ops.clone();
    let result = if in_task {
        let turns = Turns::Rung(Arc::default());
        let runtime = runtime();
        let task = runtime.spawn(async move { case.run(&sequence, &turns).await });
        let done = runtime.block_on(task);
        done.expect("the model reports panics itself")
    } else {
        block_on(case.run(&sequence, &Turns::Off))
    };
    if let Err(error) = result {
        panic!("{case:?}, in a task: {in_task}, {ops:#?}: {error}");
    }
});
