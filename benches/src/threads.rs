//! The workload: one channel between plain threads, with the forms that block.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use crate::channel::Blocking;
use crate::funnel::Shape;
use crate::work::Sample;

/// Sends the shape's messages through one channel of `C`: the time from the first thread's start until the last
/// receiver saw the end.
///
/// # Errors
///
/// Says what the receivers got, where it is not what was sent.
///
/// # Panics
///
/// When one of the threads does.
pub fn run<C: Blocking>(shape: Shape) -> Result<Sample, String> {
    let (senders, receivers) = C::open(shape.capacity, shape.senders, shape.receivers);
    let gate = Arc::new(Barrier::new(shape.senders + shape.receivers));
    let mut sending = Vec::new();
    for (index, mut sender) in senders.into_iter().enumerate() {
        let gate = gate.clone();
        let first = index * shape.per_sender;
        sending.push(thread::spawn(move || {
            gate.wait();
            let started = Instant::now();
            for message in first..first + shape.per_sender {
                if !C::send(&mut sender, message) {
                    break;
                }
            }
            started
        }));
    }
    let mut receiving = Vec::new();
    for mut receiver in receivers {
        let gate = gate.clone();
        receiving.push(thread::spawn(move || {
            gate.wait();
            let (mut count, mut sum) = (0, 0usize);
            while let Some(message) = C::recv(&mut receiver) {
                count += 1;
                sum = sum.wrapping_add(message);
            }
            (count, sum, Instant::now())
        }));
    }
    let started = sending.into_iter().map(|thread| thread.join());
    let started = started.map(|started| started.expect("no sender panics"));
    let started = started.min().ok_or("no sender")?;
    let (mut count, mut sum, mut ended) = (0, 0usize, started);
    for thread in receiving {
        let (its_count, its_sum, its_end) = thread.join().expect("no receiver panics");
        count += its_count;
        sum = sum.wrapping_add(its_sum);
        ended = ended.max(its_end);
    }
    let work = shape.senders * shape.per_sender;
    let expected = work * work.saturating_sub(1) / 2;
    if (count, sum) != (work, expected) {
        return Err(format!(
            "got {count} messages with the sum {sum}, expected {work} with {expected}"
        ));
    }
    Ok(Sample {
        time: ended - started,
        work,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::threads;

    #[test]
    fn every_channel_delivers_every_message() {
        for channel in threads() {
            for (senders, receivers, capacity) in [(1, 1, 1), (4, 1, 64), (4, 4, 2)] {
                if receivers == 1 || !channel.one_receiver {
                    let shape = Shape {
                        channels: 1,
                        senders,
                        receivers,
                        capacity,
                        per_sender: 100,
                    };
                    let result = (channel.run)(shape);
                    assert!(result.is_ok(), "{}: {result:?}", channel.name);
                }
            }
        }
    }
}
