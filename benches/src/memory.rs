//! What channels, waiting senders and tasks take of memory, counted by an allocator. Nothing here is a matter of time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::task::{Context, Waker};

use crate::channel::Channel;
use crate::gate::{Countdown, Gate};
use crate::payload::Payload;
use crate::peers;
use crate::runtime::General;
use crate::table::markdown;

/// The system's allocator, which counts while somebody measures. A program that measures memory installs it:
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: wakerun_benches::memory::Counting = wakerun_benches::memory::Counting;
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: isize, allocations: usize) {
    // Relaxed: the one who measures has waited, with more than these, for what it measures.
    if ON.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(allocations, Ordering::Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator as it came, and its answer given back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the same promises to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize), 0);
        // SAFETY: the caller keeps the same promises to us, and the block came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the same promises to us.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize, 1);
        // SAFETY: the caller keeps the same promises to us, and the block came from `System`.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

/// Bytes that stay allocated, and allocations that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Bytes.
    pub bytes: f64,
    /// Allocations.
    pub allocations: f64,
}

impl Cost {
    /// The share of one of `count`.
    fn each(self, count: usize) -> Self {
        Self {
            bytes: self.bytes / count as f64,
            allocations: self.allocations / count as f64,
        }
    }

    /// `bytes (allocations)`.
    fn show(self) -> String {
        let allocations = (self.allocations * 100.0).round() / 100.0;
        format!("{} ({allocations})", thousands(self.bytes.round() as i64))
    }
}

/// With commas between groups of three digits.
fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// What `make` allocates, and what it makes.
fn counted<M>(make: impl FnOnce() -> M) -> (M, Cost) {
    let before = (
        LIVE.load(Ordering::Relaxed),
        ALLOCATIONS.load(Ordering::Relaxed),
    );
    ON.store(true, Ordering::Relaxed);
    let made = make();
    ON.store(false, Ordering::Relaxed);
    let cost = Cost {
        bytes: (LIVE.load(Ordering::Relaxed) - before.0) as f64,
        allocations: (ALLOCATIONS.load(Ordering::Relaxed) - before.1) as f64,
    };
    (made, cost)
}

/// Whether this program counts its allocations.
pub fn counts() -> bool {
    // Kept from being optimized away.
    counted(|| std::hint::black_box(Box::new(1))).1.allocations == 1.0
}

/// The capacities of the empty channels.
pub const CAPACITIES: [usize; 3] = [1, 64, 10_000];

/// What a channel takes with one payload.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The payload's name.
    pub payload: &'static str,
    /// An empty channel, by capacity.
    pub empty: [Cost; 3],
    /// One of many empty channels of capacity 1.
    pub of_many: Cost,
    /// The first send that waits, besides its future.
    pub blocked: Option<Cost>,
    /// One of many sends that wait, besides their futures.
    pub blocked_of_many: Option<Cost>,
    /// The future of a send, message included.
    pub future: usize,
}

/// Measures `C`: `many` is how many there are of many.
pub(crate) fn footprint<T: Payload, C: Channel<T>>(many: usize) -> Footprint {
    // The two vectors that the halves come in are the harness's.
    let halves = [size_of::<C::Sender>(), size_of::<C::Receiver>()];
    let vectors = halves.iter().filter(|size| **size > 0).count() as f64;
    let empty = CAPACITIES.map(|capacity| {
        let (_channel, cost) = counted(|| C::open(capacity, 1, 1));
        Cost {
            bytes: cost.bytes - halves.iter().sum::<usize>() as f64,
            allocations: cost.allocations - vectors,
        }
    });
    let mut kept = Vec::with_capacity(many);
    let ((), of_many) = counted(|| {
        for _ in 0..many {
            let (mut senders, mut receivers) = C::open(1, 1, 1);
            kept.push((senders.pop(), receivers.pop()));
        }
    });
    let of_many = of_many.each(many);
    let of_many = Cost {
        allocations: of_many.allocations - vectors,
        ..of_many
    };
    drop(kept);
    let (mut tx, _rx) = C::open(1, 1, 1);
    let future = size_of_val(&C::send(&mut tx[0], 0));
    Footprint {
        payload: T::NAME,
        empty,
        of_many,
        blocked: (!C::ONE_SENDER).then(|| blocked::<T, C>(1)),
        blocked_of_many: (!C::ONE_SENDER).then(|| blocked::<T, C>(many)),
        future,
    }
}

/// What a waiting send allocates, one of `many`.
fn blocked<T: Payload, C: Channel<T>>(many: usize) -> Cost {
    let (mut senders, mut receivers) = C::open(1, many, 1);
    let receiver = &mut receivers[0];
    // Some channels have a place for each sender.
    for sender in &mut senders {
        while C::try_send(sender, 0) {}
    }
    let mut sends: Vec<Pin<Box<_>>> = senders
        .iter_mut()
        .map(|sender| Box::pin(C::send(sender, 1)))
        .collect();
    let mut context = Context::from_waker(Waker::noop());
    let ((), cost) = counted(|| {
        for send in &mut sends {
            let waits = send.as_mut().poll(&mut context).is_pending();
            assert!(waits, "{} has room where it must not", C::NAME);
        }
    });
    // In the order of the line, since some channels search it when a future is dropped.
    for mut send in sends {
        for _ in 0..4 {
            let _ = C::try_recv(receiver);
            if send.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
    }
    cost.each(many)
}

/// What a task takes that waits, one of `many`.
pub(crate) fn task<R: General>(many: usize) -> Cost {
    let runtime = R::new(1);
    // The first task finds everything new, and is not counted.
    waiting_tasks(&runtime, 1);
    let cost = waiting_tasks(&runtime, many);
    runtime.finish(async {});
    cost.each(many)
}

/// What so many tasks take that wait.
fn waiting_tasks<R: General>(runtime: &R, count: usize) -> Cost {
    let gate = Arc::new(Gate::new(count));
    let ended = Arc::new(Countdown::new(count));
    let ((), cost) = counted(|| {
        for _ in 0..count {
            runtime.spawn(waits(gate.clone(), ended.clone()));
        }
        runtime.block_on(gate.gathered());
    });
    gate.open();
    runtime.block_on(ended.zero());
    cost
}

async fn waits(gate: Arc<Gate>, ended: Arc<Countdown>) {
    gate.pass().await;
    ended.tick();
}

/// How many there are of many in the full form.
pub const MANY: usize = 100_000;

/// What was counted.
#[derive(Clone, Debug)]
pub struct Memory {
    /// How many there were of many.
    pub many: usize,
    /// By channel.
    pub channels: Vec<(&'static str, Vec<Footprint>)>,
    /// By runtime: a task, and one of many.
    pub tasks: Vec<(&'static str, [Cost; 2])>,
}

/// Counts everything whose name is wanted.
pub fn measure(many: usize, wanted: impl Fn(&str) -> bool) -> Memory {
    let mut entrants = peers::channels();
    entrants.retain(|entrant| wanted(entrant.name));
    let channels = entrants.iter().map(|entrant| {
        eprintln!("memory: {}", entrant.name);
        let footprints = entrant.footprints.iter().map(|footprint| footprint(many));
        (entrant.name, footprints.collect())
    });
    let channels = channels.collect();
    let mut runtimes = peers::runtimes();
    runtimes.retain(|runtime| wanted(runtime.name));
    let tasks = runtimes.iter().map(|runtime| {
        eprintln!("memory: tasks of {}", runtime.name);
        (runtime.name, [(runtime.task)(1), (runtime.task)(many)])
    });
    Memory {
        many,
        channels,
        tasks: tasks.collect(),
    }
}

impl Memory {
    /// The tables: each a title, and lines of cells with a header.
    pub fn tables(&self) -> Vec<(String, Vec<Vec<String>>)> {
        let many = thousands(self.many as i64);
        let mut tables = Vec::new();
        for index in 0..2 {
            let Some((_, footprints)) = self.channels.first() else {
                continue;
            };
            let payload = footprints[index].payload;
            let capacities = CAPACITIES.map(|capacity| format!("cap {capacity}"));
            let mut lines = vec![
                [
                    vec!["channel".to_string()],
                    capacities.into(),
                    vec![
                        format!("cap 1, of {many}"),
                        "waiting send".into(),
                        format!("waiting, of {many}"),
                        "future of send".into(),
                    ],
                ]
                .concat(),
            ];
            for (name, footprints) in &self.channels {
                let footprint = &footprints[index];
                let optional = |cost: Option<Cost>| cost.map_or("–".into(), Cost::show);
                lines.push(
                    [
                        vec![name.to_string()],
                        footprint.empty.map(Cost::show).into(),
                        vec![
                            footprint.of_many.show(),
                            optional(footprint.blocked),
                            optional(footprint.blocked_of_many),
                            thousands(footprint.future as i64),
                        ],
                    ]
                    .concat(),
                );
            }
            tables.push((
                format!(
                    "Bytes (allocations) of channels of {payload}, empty, and of sends that wait"
                ),
                lines,
            ));
        }
        if !self.tasks.is_empty() {
            let mut lines = vec![vec![
                "runtime".to_string(),
                "a task".into(),
                format!("one of {many}"),
            ]];
            for (name, costs) in &self.tasks {
                lines.push([vec![name.to_string()], costs.map(Cost::show).into()].concat());
            }
            tables.push((
                "Bytes (allocations) of a task that waits at a gate".into(),
                lines,
            ));
        }
        tables
    }

    /// The tables in Markdown.
    pub fn markdown(&self) -> String {
        let table = |(title, lines): &(String, Vec<Vec<String>>)| {
            format!("{title}\n\n{}\n", markdown(lines))
        };
        self.tables().iter().map(table).collect()
    }

    /// What a channel takes with a payload.
    pub fn of(&self, channel: &str, payload: &str) -> Option<&Footprint> {
        let (_, footprints) = self.channels.iter().find(|(name, _)| *name == channel)?;
        footprints
            .iter()
            .find(|footprint| footprint.payload == payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_numbers_are_told_in_groups() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(-1000), "-1,000");
    }

    #[test]
    fn every_channel_and_runtime_can_be_looked_at() {
        let memory = measure(3, |_| true);
        let tables = memory.tables();
        assert_eq!(tables.len(), 3);
        for (_, lines) in &tables {
            assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        }
        assert!(memory.of("tokio", "usize").is_some());
    }
}
