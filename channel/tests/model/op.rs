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
    /// With `true`, the message is moved out.
    TryRecvRef(usize, bool),
    PollRef(usize, With),
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

const KINDS: [Entry; 45] = [
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
    (12, |a, b| Op::TryRecvRef(a, b % 2 == 0)),
    (6, |a, b| Op::PollRef(a, with(b))),
];

/// What a sequence can have more or less of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// What brings messages or takes room.
    Sending,
    /// What takes messages without a future.
    Taking,
    /// What goes on with futures.
    GoingOn,
    Other,
}

impl Op {
    /// Any three bytes are an operation.
    pub(crate) fn from_bytes(bytes: [u8; 3]) -> Self {
        let [kind, a, b] = bytes.map(usize::from);
        KINDS[kind % KINDS.len()].1(a, b)
    }

    fn random(kind: usize, rng: &mut Rng) -> Self {
        Self::from_bytes([kind as u8, rng.below(64) as u8, rng.below(64) as u8])
    }

    fn group(self) -> Group {
        match self {
            Self::TrySend(_) | Self::ForceSend(_) | Self::TryReserve(..) | Self::Send(_) => {
                Group::Sending
            }
            Self::SendOr(_) | Self::SendMany(..) | Self::Reserve(..) | Self::PermitSend(..) => {
                Group::Sending
            }
            Self::TryRecv(_) | Self::PollReceiver(..) | Self::PollStream(..) => Group::Taking,
            Self::PollMany(..) | Self::TryRecvRef(..) | Self::PollRef(..) => Group::Taking,
            Self::Poll(..) | Self::Drop(..) => Group::GoingOn,
            _ => Group::Other,
        }
    }

    /// How often it comes up at least: nothing happens without polls, and their ends.
    fn least(self) -> u32 {
        match self {
            Self::Poll(Tx, ..) => 80,
            Self::Poll(Rx, ..) | Self::EndPoll(false) => 24,
            _ => 0,
        }
    }

    /// The poll that most futures get soon.
    fn first_poll(self, rng: &mut Rng) -> Option<Self> {
        let end = match self {
            Self::Send(_) | Self::SendOr(_) | Self::SendMany(..) | Self::Reserve(..) => Tx,
            Self::Recv(..) => Rx,
            _ => return None,
        };
        Some(Self::Poll(end, LAST, with(rng.below(3))))
    }
}

/// A sequence of about `length` operations. Each sequence has its own mood, which makes some kinds
/// frequent and others rare, so that full, empty, closing and crowded channels all come up.
pub(crate) fn random_ops(rng: &mut Rng, capacity: usize, length: usize) -> Vec<Op> {
    // Crowded with receivers, or with senders; or futures are left alone; or nothing of that.
    let moods = [Group::Sending, Group::Taking, Group::GoingOn, Group::Other];
    let rare = moods[rng.below(moods.len())];
    let weights = KINDS.map(|(weight, make)| {
        let weight = weight * [0, 1, 2, 2, 3, 6][rng.below(6)];
        let sample = make(0, 0);
        let weight = weight.max(sample.least());
        if rare != Group::Other && sample.group() == rare {
            weight.div_ceil(5)
        } else {
            weight
        }
    });
    let mut ops = beginning(rng, rare, capacity.min(length / 2));
    let total: u32 = weights.iter().sum();
    while ops.len() < length {
        let mut pick = rng.below(total as usize) as u32;
        let hit = weights.iter().position(|&weight| {
            let hit = pick < weight;
            pick = pick.saturating_sub(weight);
            hit
        });
        let op = Op::random(hit.expect("the pick is below the total"), rng);
        ops.push(op);
        if !rng.one_in(4) {
            ops.extend(op.first_poll(rng));
        }
    }
    if rng.one_in(3) {
        orphans(rng, &mut ops);
    }
    ops
}

/// Receivers that wait, or a channel near its bound, where it gets interesting; or nothing.
fn beginning(rng: &mut Rng, rare: Group, capacity: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    if rare == Group::Sending {
        for n in 0..rng.below(6) {
            let recv = Op::Recv(n, None);
            ops.push(recv);
            ops.extend(recv.first_poll(rng));
        }
    } else if rng.one_in(2) {
        let filler = [Op::TrySend(0), Op::TryReserve(0, Way::One)][rng.below(2)];
        let count = capacity.saturating_sub(rng.below(2));
        ops.extend(std::iter::repeat_n(filler, count));
    }
    ops
}

/// What is leaked outlives all senders.
fn orphans(rng: &mut Rng, ops: &mut Vec<Op>) {
    let send = Op::Send(0);
    ops.push(send);
    ops.extend(send.first_poll(rng));
    ops.extend([Op::Leak(Tx, LAST), Op::DropAll(Tx)]);
    for _ in 0..rng.below(12) {
        let (n, with) = (rng.below(64), with(rng.below(3)));
        ops.push(match rng.below(6) {
            0 => Op::Recv(n, None),
            1 | 2 => Op::Poll(Rx, n, with),
            3 => Op::TryRecv(n),
            4 => Op::PollReceiver(n, with),
            _ => Op::EndPoll(rng.one_in(2)),
        });
    }
}
