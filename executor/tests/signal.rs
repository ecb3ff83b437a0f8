//! Signals, which this process sends itself. Each test uses one of its own.
#![cfg(unix)]

mod common;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::{Context, Waker};

use common::each_kind;
use futures_lite::StreamExt;
use rustix::process::{Signal as Number, getpid, kill_process};
use wakerun::signal::unix::{Signal, SignalKind, signal};

fn send(kind: SignalKind) {
    let number = Number::from_named_raw(kind.as_raw_value()).unwrap();
    kill_process(getpid(), number).unwrap();
}

/// Whether a signal has been told at once.
fn told(listener: &mut Signal) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    listener.poll_recv(&mut cx).is_ready()
}

#[test]
fn each_listener_hears_of_each_signal() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let kind = SignalKind::user_defined1();
            let mut one = signal(kind).unwrap();
            let mut two = signal(kind).unwrap();
            let other = wakerun::spawn(async move {
                for _ in 0..3 {
                    two.recv().await.unwrap();
                }
                two
            });
            for _ in 0..3 {
                send(kind);
                one.recv().await.unwrap();
                // Until the other one has heard, too, signals may count as one.
                wakerun::task::yield_now().await;
            }
            drop(one);
            while !other.is_finished() {
                send(kind);
                wakerun::task::yield_now().await;
            }
            other.await.unwrap();
        });
    });
}

#[test]
fn signals_that_nobody_waited_for_count_as_one() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let kind = SignalKind::user_defined2();
            let mut listener = signal(kind).unwrap();
            assert!(!told(&mut listener));
            // Far more than the socket in between holds.
            for _ in 0..2000 {
                send(kind);
            }
            listener.recv().await.unwrap();
            assert!(!told(&mut listener));
            send(kind);
            assert_eq!(listener.next().await, Some(()));
        });
    });
}

#[test]
fn a_signal_before_the_wait_is_not_lost() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let kind = SignalKind::window_change();
            let mut listener = signal(kind).unwrap();
            send(kind);
            listener.recv().await.unwrap();
            {
                let mut dropped = pin!(listener.recv());
                let mut cx = Context::from_waker(Waker::noop());
                assert!(dropped.as_mut().poll(&mut cx).is_pending());
                send(kind);
            }
            listener.recv().await.unwrap();
        });
    });
}

#[test]
fn ctrl_c_ends_the_wait_and_not_the_process() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let mut wait = pin!(wakerun::signal::ctrl_c());
            let mut cx = Context::from_waker(Waker::noop());
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            send(SignalKind::interrupt());
            wait.await.unwrap();
            // Nor later, with nobody to wait.
            send(SignalKind::interrupt());
        });
    });
}

#[test]
fn what_cannot_be_caught_is_told() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            for kind in [
                Number::KILL,
                Number::STOP,
                Number::SEGV,
                Number::ILL,
                Number::FPE,
            ] {
                let error = signal(SignalKind::from_raw(kind.as_raw())).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
            }
            assert!(signal(SignalKind::from_raw(1000)).is_err());
            assert!(signal(SignalKind::from_raw(-1)).is_err());
        });
    });
}

#[test]
fn outside_a_runtime_is_told() {
    let error: io::Error = signal(SignalKind::hangup()).unwrap_err();
    assert!(error.to_string().contains("no wakerun runtime"), "{error}");
}

#[test]
fn the_end_of_the_runtime_ends_the_wait() {
    each_kind(|_, runtime| {
        let kind = SignalKind::alarm();
        let mut listener = runtime.block_on(async { signal(kind) }).unwrap();
        drop(runtime);
        send(kind);
        // What has come in may still be told; then comes the end.
        while common::block_on(listener.recv()).is_some() {}
        drop(listener);
    });
}

#[test]
fn listeners_leave_no_descriptors_behind() {
    each_kind(|_, runtime| {
        runtime.block_on(async {
            let kind = SignalKind::pipe();
            for _ in 0..2000 {
                // Would use up all descriptors.
                signal(kind).unwrap();
            }
            send(kind);
        });
    });
}
