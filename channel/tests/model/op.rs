//! The operations, and random sequences of them.

use crate::common::Rng;

/// One operation. Indices are taken modulo the number of things there are; an operation for which
/// there is nothing is skipped, so that any part of a sequence is a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    TrySend(usize),
    /// Makes a future and does not poll it.
    Send(usize),
    Reserve(usize),
    Closed(usize),
    TryReserve(usize),
    /// Polls a future, with the waker of its last poll or with a fresh one.
    Poll(usize, Fresh),
    Drop(usize),
    /// Keeps a future and never polls it again.
    Forget(usize),
    /// As after `mem::forget`: its sender is never given back either.
    Leak(usize),
    PermitSend(usize),
    PermitDrop(usize),

    TryRecv,
    /// Makes a receive future and does not poll it.
    Recv,
    RecvMany(usize),
    PollRecv(Fresh),
    DropRecv,
    /// Polls the receiver itself, once.
    PollReceiver(Fresh),
    PollStream(Fresh),
    Close,
    DropReceiver,

    Clone(usize),
    DropSender(usize),
    Downgrade(usize),
    Upgrade(usize),
    DropWeak(usize),
}

/// Whether a poll comes with a new waker.
pub(crate) type Fresh = bool;

type Make = fn(&mut Rng) -> Op;

/// How often each kind comes up: usual weight of each.
const WEIGHTS: [(u32, Make); 25] = [
    (12, |r| Op::TrySend(r.below(8))),
    (16, |r| Op::Send(r.below(8))),
    (10, |r| Op::Reserve(r.below(8))),
    (2, |r| Op::Closed(r.below(8))),
    (5, |r| Op::TryReserve(r.below(8))),
    (50, |r| Op::Poll(r.below(16), r.one_in(3))),
    (10, |r| Op::Drop(r.below(16))),
    (2, |r| Op::Forget(r.below(16))),
    (1, |r| Op::Leak(r.below(16))),
    (8, |r| Op::PermitSend(r.below(8))),
    (5, |r| Op::PermitDrop(r.below(8))),
    (18, |_| Op::TryRecv),
    (10, |_| Op::Recv),
    (4, |r| Op::RecvMany(r.below(6))),
    (22, |r| Op::PollRecv(r.one_in(3))),
    (6, |_| Op::DropRecv),
    (6, |r| Op::PollReceiver(r.one_in(3))),
    (4, |r| Op::PollStream(r.one_in(3))),
    (1, |_| Op::Close),
    (1, |_| Op::DropReceiver),
    (4, |r| Op::Clone(r.below(8))),
    (4, |r| Op::DropSender(r.below(8))),
    (2, |r| Op::Downgrade(r.below(8))),
    (2, |r| Op::Upgrade(r.below(8))),
    (2, |r| Op::DropWeak(r.below(8))),
];

/// A sequence of about `length` operations. Each sequence has its own mood, which makes some kinds
/// frequent and others rare, so that full, empty, closing and crowded channels all come up.
pub(crate) fn random_ops(rng: &mut Rng, capacity: usize, length: usize) -> Vec<Op> {
    let mut mood: Vec<u32> = WEIGHTS
        .iter()
        .map(|&(weight, _)| weight * [0, 1, 2, 2, 6][rng.below(5)])
        .collect();
    // Nothing happens without polls.
    mood[5] = mood[5].max(40);
    mood[14] = mood[14].max(10);
    let total: u32 = mood.iter().sum();
    let mut ops = Vec::with_capacity(length);
    if rng.one_in(2) {
        // Start near the bound, where it gets interesting.
        let free = rng.below(2);
        ops.extend((0..capacity.saturating_sub(free)).map(|_| Op::TrySend(0)));
    }
    while ops.len() < length {
        let mut pick = rng.below(total as usize) as u32;
        let (_, make) = WEIGHTS
            .iter()
            .zip(&mood)
            .find(|&(_, &weight)| {
                let hit = pick < weight;
                pick = pick.saturating_sub(weight);
                hit
            })
            .map(|(entry, _)| *entry)
            .expect("the pick is below the total");
        ops.push(make(rng));
    }
    ops
}
