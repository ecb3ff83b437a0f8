//! The tests of mpsc channels: what holds of each kind, and what holds of this one only.
#![cfg(not(wakerun_loom))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../each/mod.rs"]
mod each;
mod expecting;
mod receiver;
mod recv_ref;

/// The kind that the shared tests are about.
pub(crate) use wakerun_channel::mpsc as flavor;
