//! Bounded FIFO channels that share the wake queues of the [`wakerun`] runtime.
//!
//! ```
//! use wakerun_channel::mpsc;
//!
//! wakerun::block_on(async {
//!     let (tx, mut rx) = mpsc::channel(8);
//!     wakerun::spawn(async move {
//!         for n in 0..100 {
//!             tx.send(n).await.unwrap();
//!         }
//!     });
//!     let mut sum = 0;
//!     while let Some(n) = rx.recv().await {
//!         sum += n;
//!     }
//!     assert_eq!(sum, 4950);
//! });
//! ```
//!
//! The channels work on any executor and from plain threads. On wakerun they are faster: a woken
//! task goes straight into the worker's queue, and a receive that finds a message needs no locked
//! instruction.
#![warn(missing_docs)]

pub mod bounded;
mod chan;
mod closed;
pub mod error;
mod flavor;
mod gate;
mod handle;
mod line;
pub mod mpmc;
pub mod mpsc;
mod parking;
mod receive;
mod receivers;
mod reception;
mod recv;
pub mod rendezvous;
mod ring;
mod rx_cell;
mod timed;
pub mod unbounded;

#[cfg(all(test, wakerun_loom))]
mod loom_tests;

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
