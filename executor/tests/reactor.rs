//! Sources: readiness, waiters, registration.
#![cfg(all(not(wakerun_loom), unix))]

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use common::each_kind;
use wakerun::io::Async;

fn pair() -> (Async<UnixStream>, Async<UnixStream>) {
    let (one, other) = UnixStream::pair().unwrap();
    (Async::new(one).unwrap(), Async::new(other).unwrap())
}

#[test]
fn bytes_go_to_and_fro_between_tasks() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let (one, other) = pair();
            let echo = wakerun::spawn(async move {
                for _ in 0..1000 {
                    let mut byte = [0];
                    let n = other.read_with(|mut io| io.read(&mut byte)).await.unwrap();
                    assert_eq!(n, 1);
                    other.write_with(|mut io| io.write(&byte)).await.unwrap();
                }
            });
            for round in 0..1000_u32 {
                let byte = [round as u8];
                one.write_with(|mut io| io.write(&byte)).await.unwrap();
                let mut answer = [0];
                one.read_with(|mut io| io.read(&mut answer)).await.unwrap();
                assert_eq!(answer, byte);
            }
            echo.await.unwrap();
        });
    });
}
