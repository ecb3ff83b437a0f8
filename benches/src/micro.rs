//! The workload: one operation of a channel after the other, on one thread, without a runtime.
//!
//! Futures are polled by hand, with a waker that costs nothing, so what is measured is the channel.

use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Instant;

use crate::channel::{Channel, Permits};
use crate::payload::Payload;
use crate::work::Sample;

/// One operation of one channel with one payload.
#[derive(Clone, Copy, Debug)]
pub struct Micro {
    /// The operation's name.
    pub operation: &'static str,
    /// The payload's name.
    pub payload: &'static str,
    /// Does it so many times.
    pub run: fn(usize) -> Result<Sample, String>,
}

/// `try_send`, `try_recv`.
pub const TRY: &str = "try_send, try_recv";
/// `send`, `recv`, both ready at once.
pub const READY: &str = "send, recv";
/// A `send` that waits, and a `try_recv` that wakes it.
pub const BLOCKED: &str = "blocked send";
/// `reserve`, ready at once, the permit's `send`, `try_recv`.
pub const RESERVE: &str = "reserve, send, try_recv";
/// `try_reserve`, the permit's `send`, `try_recv`.
pub const TRY_RESERVE: &str = "try_reserve, send, try_recv";
/// `try_reserve` without room.
pub const FULL: &str = "full try_reserve";
/// `reserve`, ready at once; the permit is dropped.
pub const DROPPED: &str = "reserve, drop";
/// A `reserve` that waits, a `try_recv` that wakes it, the permit's `send`.
pub const BLOCKED_RESERVE: &str = "blocked reserve";

/// All operations, in the order of the tables.
pub const OPERATIONS: [&str; 8] = [
    TRY,
    READY,
    BLOCKED,
    RESERVE,
    TRY_RESERVE,
    FULL,
    DROPPED,
    BLOCKED_RESERVE,
];

/// Room where there shall be enough.
const ROOMY: usize = 64;

/// What every channel can do.
pub(crate) fn common<T: Payload, C: Channel<T>>() -> Vec<Micro> {
    let micro = |operation, run| Micro {
        operation,
        payload: T::NAME,
        run,
    };
    vec![
        micro(TRY, try_pair::<T, C>),
        micro(READY, ready_pair::<T, C>),
        micro(BLOCKED, blocked::<T, C>),
    ]
}

/// What channels with permits can do.
pub(crate) fn permits<T: Payload, C: Permits<T>>() -> Vec<Micro> {
    let micro = |operation, run| Micro {
        operation,
        payload: T::NAME,
        run,
    };
    vec![
        micro(RESERVE, reserve::<T, C>),
        micro(TRY_RESERVE, try_reserve::<T, C>),
        micro(FULL, full::<T, C>),
        micro(DROPPED, dropped::<T, C>),
        micro(BLOCKED_RESERVE, blocked_reserve::<T, C>),
    ]
}

/// The loops alone: a message is made and looked at.
pub(crate) fn alone<T: Payload>() -> Micro {
    Micro {
        operation: TRY,
        payload: T::NAME,
        run: |cycles| {
            measure(cycles, |number| {
                (black_box(T::new(number)).number() == number).then_some(())
            })
        },
    }
}

/// Runs `cycle` so many times; it gives `None` where something was not as it must be.
fn measure(cycles: usize, mut cycle: impl FnMut(usize) -> Option<()>) -> Result<Sample, String> {
    let started = Instant::now();
    for number in 0..cycles {
        cycle(number).ok_or_else(|| format!("cycle {number} went wrong"))?;
    }
    Ok(Sample {
        time: started.elapsed(),
        work: cycles,
    })
}

/// One sender and one receiver.
fn open<T: Payload, C: Channel<T>>(capacity: usize) -> (C::Sender, C::Receiver) {
    let (mut senders, mut receivers) = C::open(capacity, 1, 1);
    (
        senders.pop().expect("one sender"),
        receivers.pop().expect("one receiver"),
    )
}

/// A full channel, and how many messages it holds.
fn full_channel<T: Payload, C: Channel<T>>() -> (C::Sender, C::Receiver, usize) {
    let (mut tx, rx) = open::<T, C>(1);
    let mut held = 0;
    while C::try_send(&mut tx, held) {
        held += 1;
    }
    (tx, rx, held)
}

fn try_pair<T: Payload, C: Channel<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx) = open::<T, C>(ROOMY);
    measure(cycles, |number| {
        let sent = C::try_send(&mut tx, number);
        (sent && C::try_recv(&mut rx) == Some(number)).then_some(())
    })
}

fn ready_pair<T: Payload, C: Channel<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx) = open::<T, C>(ROOMY);
    measure(cycles, |number| {
        let sent = now(C::send(&mut tx, number))?;
        (sent && now(C::recv(&mut rx))? == Some(number)).then_some(())
    })
}

fn blocked<T: Payload, C: Channel<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx, held) = full_channel::<T, C>();
    measure(cycles, |number| {
        wait(C::send(&mut tx, held + number), || {
            C::try_recv(&mut rx) == Some(number)
        })
    })
}

fn reserve<T: Payload, C: Permits<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx) = open::<T, C>(ROOMY);
    measure(cycles, |number| {
        let sent = now(C::reserve_send(&mut tx, number))?;
        (sent && C::try_recv(&mut rx) == Some(number)).then_some(())
    })
}

fn try_reserve<T: Payload, C: Permits<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx) = open::<T, C>(ROOMY);
    measure(cycles, |number| {
        let sent = C::try_reserve_send(&mut tx, number);
        (sent && C::try_recv(&mut rx) == Some(number)).then_some(())
    })
}

fn full<T: Payload, C: Permits<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, _rx, _) = full_channel::<T, C>();
    measure(cycles, |_| (!C::try_reserve_drop(&mut tx)).then_some(()))
}

fn dropped<T: Payload, C: Permits<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, _rx) = open::<T, C>(ROOMY);
    measure(cycles, |_| now(C::reserve_drop(&mut tx))?.then_some(()))
}

fn blocked_reserve<T: Payload, C: Permits<T>>(cycles: usize) -> Result<Sample, String> {
    let (mut tx, mut rx, held) = full_channel::<T, C>();
    measure(cycles, |number| {
        wait(C::reserve_send(&mut tx, held + number), || {
            C::try_recv(&mut rx) == Some(number)
        })
    })
}

/// Polls a future that must be ready.
fn now<O>(future: impl Future<Output = O>) -> Option<O> {
    match poll(pin!(future)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Polls a future that must not be ready, does what shall wake it, and polls it again.
fn wait(future: impl Future<Output = bool>, wake: impl FnOnce() -> bool) -> Option<()> {
    let mut future = pin!(future);
    let waits = poll(future.as_mut()).is_pending();
    RUNG.store(false, Ordering::Relaxed);
    let woken = wake() && RUNG.load(Ordering::Relaxed);
    (waits && woken && poll(future) == Poll::Ready(true)).then_some(())
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    // SAFETY: none of the functions uses the data pointer, and all may be called from any thread.
    let waker = unsafe { Waker::from_raw(BELL) };
    future.poll(&mut Context::from_waker(&waker))
}

/// Whether the bell was rung. Cells are measured one at a time.
static RUNG: AtomicBool = AtomicBool::new(false);

/// A waker that costs one store to wake and nothing to clone.
const BELL: RawWaker = RawWaker::new(
    std::ptr::null(),
    &RawWakerVTable::new(
        |_| BELL,
        |_| RUNG.store(true, Ordering::Relaxed),
        |_| RUNG.store(true, Ordering::Relaxed),
        |_| {},
    ),
);

#[cfg(test)]
mod tests {
    use crate::peers::channels;

    #[test]
    fn every_operation_of_every_channel_does_what_its_name_says() {
        for channel in channels() {
            for micro in &channel.micros {
                let result = (micro.run)(300);
                let name = (channel.name, micro.operation, micro.payload);
                assert!(result.is_ok(), "{name:?}: {result:?}");
            }
        }
    }
}
