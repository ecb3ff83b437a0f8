//! The benchmarks of `wakerun` and `wakerun-channel` against the channels and runtimes that people use.
//!
//! `cargo bench --bench funnel` measures every pair of a channel and a runtime in the list [`pairs`] on the workload
//! [`funnel`], in rounds in which all pairs take turns ([`rounds`]), and ends with a table ([`table`]), the goals
//! ([`goals`]), and the same as JSON ([`report`]) and as a chart ([`chart`]).
//!
//! `cargo bench --bench together` measures what the runtime's rule to keep talkers together brings and costs: one
//! channel on one runtime, and computation after tiny polls ([`fanout`]), with the rule on and off ([`together`]).
//!
//! `cargo bench --bench timers` measures what timers cost ([`timers`]), against tokio and async-io.
//!
//! Only ratios within one run mean anything: machines drift.

pub mod args;
pub mod channels;
pub mod chart;
pub mod facts;
pub mod fanout;
pub mod funnel;
pub mod gate;
pub mod goals;
pub mod ours;
pub mod pairs;
pub mod plan;
pub mod progress;
pub mod report;
pub mod results;
pub mod rounds;
pub mod runtimes;
pub mod table;
pub mod timers;
pub mod together;
pub mod watchdog;
