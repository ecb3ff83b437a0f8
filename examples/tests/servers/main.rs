//! Runs the example servers as processes of their own, with real sockets and many of them.
#![cfg(unix)]

mod chat;
mod echo;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/server.rs"]
mod server;

use std::sync::{Mutex, MutexGuard};

use program::example;
use server::Server;

/// Starts an example at a free port.
fn start(name: &str) -> Server {
    server::raise_descriptor_limit();
    let mut program = example(name);
    program.arg("127.0.0.1:0");
    Server::start(program)
}

/// The tests with a thousand connections run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs a future on a runtime of its own; it may take only so long.
fn run<F: Future>(future: F) -> F::Output {
    let runtime = wakerun::Runtime::new().unwrap();
    runtime.block_on(async {
        wakerun::time::timeout(server::LIMIT, future)
            .await
            .expect("the test hangs")
    })
}
