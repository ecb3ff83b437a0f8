//! The benchmarks of `wakerun` and `wakerun-channel` against the channels and runtimes that people use.
//!
//! Each benchmark is a [`suite`]: groups of cells that do the same work, in rounds in which all take turns
//! ([`rounds`]). `cargo bench --bench NAME` ([`mod@bench`]) measures one, hands the samples to criterion, and ends with
//! tables ([`table`]), the goals ([`goals`]), and the same as JSON ([`report`]). The program `report` runs all or some
//! of them and makes one page with charts of it ([`page`]).
//!
//! - What takes part is listed in [`peers`], and ours in [`ours`].
//! - What is done is in [`funnel`] (also `tasks`, `mpmc` and `backpressure`), [`pinball`], [`micro`], [`scheduling`]
//!   (`runtime`), [`threads`], [`latency`] and [`memory`].
//! - `cargo bench --bench together` measures what the runtime's rule to keep talkers together brings and costs: one
//!   channel on one runtime, and computation after tiny polls ([`fanout`]), with the rule on and off ([`together`]).
//! - `cargo bench --bench timers` measures what timers cost among none and among a million ([`timers`]).
//!
//! Only ratios within one run mean anything: machines drift.

pub mod args;
pub mod bench;
pub mod channel;
pub mod chart;
pub mod entrant;
pub mod facts;
pub mod fanout;
pub mod funnel;
pub mod gate;
pub mod goals;
pub mod latency;
pub mod memory;
pub mod micro;
pub mod ours;
pub mod page;
pub mod payload;
pub mod peers;
pub mod pinball;
pub mod plan;
pub mod progress;
pub mod report;
pub mod results;
pub mod rounds;
pub mod runtime;
pub mod scheduling;
pub mod suite;
pub mod svg;
pub mod table;
pub mod threads;
pub mod timers;
pub mod together;
pub mod watchdog;
pub mod work;
