//! FIFO channels that share the wake queues of the [`wakerun`] runtime: bounded ones with many senders and
//! one or many receivers, and two that have no bound or no queue.
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
//! | module | capacity | receivers |
//! |---|---|---|
//! | [`mpsc`] | bounded | one |
//! | [`mpmc`] | bounded | many; each message goes to one of them |
//! | [`rendezvous`] | none: messages go from hand to hand | many |
//! | [`unbounded`] | without end | many |
//!
//! What they promise:
//!
//! - **The capacity is exact**: messages queued, permits held and permits granted never exceed it.
//! - **Strict order**: whoever waits stands in line, and nobody overtakes it.
//! - **A freed slot is filled at once** with the message of the first sender that waits, whether or not
//!   its future is polled.
//! - **Every future can be dropped at any time**; one that is kept and not polled any more blocks nobody, on
//!   wakerun not even with what it has been granted.
//!
//! The channels work on any executor and from plain threads. On wakerun they are faster: a woken
//! task goes straight into the worker's queue, and the one receiver of an [`mpsc`] channel needs no
//! locked instruction where it finds a message.
//!
//! The [guide] has a page each on [choosing a channel](guide::choosing),
//! [backpressure](guide::backpressure), [cancel safety](guide::cancel_safety), and moving from
//! [tokio](guide::from_tokio), [async-channel](guide::from_async_channel) and [flume](guide::from_flume).
#![warn(missing_docs)]

pub mod bounded;
mod chan;
mod closed;
pub mod error;
mod flavor;
mod gate;
mod granting;
pub mod guide;
mod handle;
mod lapse;
mod line;
pub mod mpmc;
pub mod mpsc;
mod out;
mod parking;
mod receive;
mod receivers;
mod reception;
mod recv;
pub mod rendezvous;
mod ring;
mod rx_cell;
mod serving;
mod timed;
pub mod unbounded;
mod waiter;
mod watching;

pub use closed::Closed;

#[cfg(all(test, wakerun_loom))]
mod loom_tests;

/// The README's example is compiled and run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
