//! The tests of mpmc channels: what holds of each kind, and what holds of this one only.
#![cfg(not(wakerun_loom))]
// The shared tests also serve the receiver of mpsc, which is received from as `&mut`.
#![allow(unused_mut)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../each/mod.rs"]
mod each;
mod ends;
mod force_send;
mod inline_wakers;
mod lapse;
mod races;
mod receivers;
mod stress;
mod waiting;

/// The kind that the shared tests are about.
pub(crate) use wakerun_channel::mpmc as flavor;
