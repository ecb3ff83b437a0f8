//! The words that the contract is written in.

/// Names a future, or a receiver that is polled itself.
pub(crate) type Id = usize;

/// What a future waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// That its message, of this number, is accepted.
    Send(usize),
    /// So many permits.
    Reserve(usize),
    /// Room for each of the messages that it carries: an exact send, or one of many.
    Exact,
    /// `Sender::closed`.
    Closed,
    /// A message for it.
    Receive,
}

impl Kind {
    /// How many permits it waits for in line.
    pub(super) fn permits(self) -> Option<usize> {
        match self {
            Self::Reserve(count) => Some(count),
            Self::Exact => Some(1),
            Self::Send(_) | Self::Closed | Self::Receive => None,
        }
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// In no line: not polled yet, or a receiver that has got its message.
    New,
    /// In line.
    Waiting,
    /// A reservation whose permits are there to be claimed, or a receiver that was woken for a message:
    /// in line, but passed over. Since that epoch of the task.
    Granted(u64),
    /// A grant that the task did not come for: whoever wants it may have it.
    Due,
    /// It was taken back. In line, but passed over until it is polled again.
    Lapsed,
    /// A send whose message is in the queue, or was.
    Accepted,
    /// The channel closed while it waited.
    Refused,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// It was polled last with the own waker of the task.
    pub(crate) own: bool,
    /// The waker of its last poll must have been woken since.
    pub(crate) woken: bool,
}

/// What a poll or a try operation on the sending side comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Sent,
    Permits,
    Full,
    TooMany,
    Closed,
    /// It was told to give up.
    Cancelled,
}

/// What a receive comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Message(usize),
    Nothing,
    End,
}

pub(super) struct Slot {
    pub(super) message: usize,
    /// The future that waited with it, while it has not been told.
    pub(super) from: Option<Id>,
    pub(super) withdrawn: bool,
}
