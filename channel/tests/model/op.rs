//! The operations, and random sequences of them.

use super::channel::Way;
use crate::common::Rng;

/// The index of the thing that was made last.
pub(crate) const LAST: usize = 255;

/// One operation. Indices are taken modulo the number of things there are; an operation for which
/// there is nothing is skipped, so that any part of a sequence is a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    TrySend(usize),
    ForceSend(usize),
    TryReserve(usize, Way),
    /// Makes a future and does not poll it; the next five, too.
    Send(usize),
    SendOr(usize),
    SendMany(usize, usize),
    Reserve(usize, Way),
    Closed(usize),
    Recv(usize, Option<usize>),

    Poll(End, usize, With),
    Drop(End, usize),
    /// What a send was told to wait for has come to pass.
    Cancel(usize),
    /// Keeps a future and never polls it again.
    Forget(End, usize),
    /// As after `mem::forget`; its handle goes.
    Leak(End, usize),

    /// Sends up to so many messages; permits that are left are given back.
    PermitSend(usize, usize),
    PermitNext(usize),
    PermitDrop(usize),
    PermitRelease(usize),
    PermitLeak(usize),

    TryRecv(usize),
    /// Polls the receiver itself, once.
    PollReceiver(usize, With),
    PollStream(usize, With),
    PollMany(usize, usize, With),
    Close(usize),

    Clone(End, usize),
    DropHandle(End, usize),
    /// All handles, futures and permits of one end, but those that were forgotten or leaked.
    DropAll(End),
    Downgrade(End, usize),
    Upgrade(End, usize),
    DropWeak(End, usize),

    /// The poll of the task ends here. With `true`, the next operation is done between two polls.
    EndPoll(bool),
}

/// Which end of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Tx,
    Rx,
}

/// The waker that a poll comes with: that of the last poll, a new one, or the task's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    Same,
    Fresh,
    Own,
}

use End::{Rx, Tx};

fn with(b: usize) -> With {
    [With::Same, With::Fresh, With::Own][b % 3]
}

/// None, some, or more than the smaller capacities.
fn way(b: usize) -> Way {
    [
        Way::One,
        Way::Owned,
        Way::One,
        Way::Many(2),
        Way::Many(b / 8 % 5),
        Way::Many(1),
        Way::Many(3),
        Way::Many(b / 8 * 2),
    ][b % 8]
}

/// How often each kind comes up, and what it is made of: two small numbers.
type Entry = (u32, fn(usize, usize) -> Op);

const KINDS: [Entry; 43] = [
    (20, |a, _| Op::TrySend(a)),
    (8, |a, _| Op::ForceSend(a)),
    (12, |a, b| Op::TryReserve(a, way(b))),
    (32, |a, _| Op::Send(a)),
    (28, |a, b| Op::Reserve(a, way(b))),
    (4, |a, _| Op::Closed(a)),
    (24, |a, _| Op::Recv(a, None)),
    (8, |a, b| Op::Recv(a, Some(b % 6))),
    (100, |a, b| Op::Poll(Tx, a, with(b))),
    (52, |a, b| Op::Poll(Rx, a, with(b))),
    (20, |a, _| Op::Drop(Tx, a)),
    (12, |a, _| Op::Drop(Rx, a)),
    (4, |a, _| Op::Forget(Tx, a)),
    (2, |a, _| Op::Forget(Rx, a)),
    (3, |a, _| Op::Leak(Tx, a)),
    (2, |a, _| Op::Leak(Rx, a)),
    (20, |a, b| Op::PermitSend(a, b % 4)),
    (6, |a, _| Op::PermitNext(a)),
    (8, |a, _| Op::PermitDrop(a)),
    (4, |a, _| Op::PermitRelease(a)),
    (2, |a, _| Op::PermitLeak(a)),
    (36, |a, _| Op::TryRecv(a)),
    (12, |a, b| Op::PollReceiver(a, with(b))),
    (6, |a, b| Op::PollStream(a, with(b))),
    (6, |a, b| Op::PollMany(a, b / 3 % 5, with(b))),
    (1, |a, _| Op::Close(a)),
    (6, |a, _| Op::Clone(Tx, a)),
    (6, |a, _| Op::Clone(Rx, a)),
    (2, |a, _| Op::DropHandle(Tx, a)),
    (2, |a, _| Op::DropHandle(Rx, a)),
    (4, |a, _| Op::Downgrade(Tx, a)),
    (4, |a, _| Op::Downgrade(Rx, a)),
    (4, |a, _| Op::Upgrade(Tx, a)),
    (4, |a, _| Op::Upgrade(Rx, a)),
    (2, |a, _| Op::DropWeak(Tx, a)),
    (2, |a, _| Op::DropWeak(Rx, a)),
    (48, |_, _| Op::EndPoll(false)),
    (16, |_, _| Op::EndPoll(true)),
    (10, |a, _| Op::SendOr(a)),
    (8, |a, b| Op::SendMany(a, b % 5)),
    (6, |a, _| Op::Cancel(a)),
    (2, |_, _| Op::DropAll(Tx)),
    (1, |_, _| Op::DropAll(Rx)),
];

/// What nothing happens without: polls.
const ALWAYS: [(usize, u32); 3] = [(8, 80), (9, 24), (36, 24)];

/// What brings messages or takes room, what takes messages, and what goes on with futures.
const SENDING: [usize; 8] = [0, 1, 2, 3, 4, 16, 38, 39];
const TAKING: [usize; 4] = [21, 22, 23, 24];
const GOING_ON: [usize; 4] = [8, 9, 10, 11];

impl Op {
    /// Any three bytes are an operation.
    pub(crate) fn from_bytes(bytes: [u8; 3]) -> Self {
        let [kind, a, b] = bytes.map(usize::from);
        KINDS[kind % KINDS.len()].1(a, b)
    }
}

/// A sequence of about `length` operations. Each sequence has its own mood, which makes some kinds
/// frequent and others rare, so that full, empty, closing and crowded channels all come up.
pub(crate) fn random_ops(rng: &mut Rng, capacity: usize, length: usize) -> Vec<Op> {
    let mut mood: Vec<u32> = KINDS
        .iter()
        .map(|&(weight, _)| weight * [0, 1, 2, 2, 3, 6][rng.below(6)])
        .collect();
    for (kind, least) in ALWAYS {
        mood[kind] = mood[kind].max(least);
    }
    // Crowded with receivers, or with senders; or futures are left alone; or neither.
    let tilt = rng.below(4);
    let rare: &[usize] = [&[][..], &SENDING, &TAKING, &GOING_ON][tilt];
    for &kind in rare {
        mood[kind] = mood[kind].div_ceil(5);
    }
    let total: u32 = mood.iter().sum();
    let mut ops = Vec::with_capacity(length);
    if tilt == 1 {
        // Receivers that wait.
        for n in 0..rng.below(6) {
            ops.push(Op::Recv(n, None));
            ops.push(Op::Poll(Rx, LAST, with(rng.below(3))));
        }
    } else if rng.one_in(2) {
        // Start near the bound, where it gets interesting.
        let free = rng.below(2);
        let count = capacity.saturating_sub(free).min(length / 2);
        let filler = if rng.one_in(2) {
            Op::TrySend(0)
        } else {
            Op::TryReserve(0, Way::One)
        };
        ops.extend((0..count).map(|_| filler));
    }
    while ops.len() < length {
        let mut pick = rng.below(total as usize) as u32;
        let hit = mood.iter().position(|&weight| {
            let hit = pick < weight;
            pick = pick.saturating_sub(weight);
            hit
        });
        let kind = hit.expect("the pick is below the total") as u8;
        let op = Op::from_bytes([kind, rng.below(64) as u8, rng.below(64) as u8]);
        ops.push(op);
        // Most futures are polled soon.
        match op {
            Op::Send(_) | Op::SendOr(_) | Op::SendMany(..) | Op::Reserve(..) if !rng.one_in(4) => {
                ops.push(Op::Poll(Tx, LAST, with(rng.below(3))));
            }
            Op::Recv(..) if !rng.one_in(4) => {
                ops.push(Op::Poll(Rx, LAST, with(rng.below(3))));
            }
            _ => {}
        }
    }
    if rng.one_in(3) {
        // What is leaked outlives all senders.
        ops.extend([
            Op::Send(0),
            Op::Poll(Tx, LAST, with(rng.below(3))),
            Op::Leak(Tx, LAST),
            Op::DropAll(Tx),
        ]);
        for _ in 0..rng.below(12) {
            let kind = [6, 9, 9, 21, 22, 36, 37][rng.below(7)];
            ops.push(Op::from_bytes([
                kind,
                rng.below(64) as u8,
                rng.below(64) as u8,
            ]));
        }
    }
    ops
}
