//! A place in a line: a node that lives in the future which waits, linked under the line's lock.
//!
//! Senders and reservations stand in one line of a channel, the receivers of an mpmc channel in
//! another.
//!
//! | status | mark | the node is | the message (of a send) is | who changes it |
//! |---|---|---|---|---|
//! | LINKED | waiting | in the line | in the node | under the lock only |
//! | GRANTED_HERE | granted, due | in the line, passed over | — | under the lock only |
//! | LAPSED | lapsed | in the line, passed over | — | under the lock only |
//! | DONE | | out | in the ring (`position`), may be withdrawn | final |
//! | TAKEN | | out | received | final |
//! | GRANTED | | out | — (of a reserve: the permits are counted) | final |
//! | CLOSED | | out | in the node | final |
//!
//! Whoever takes a node out stores its final status as the *last* touch: from then on its memory may
//! go at any moment. The future reads the status without the lock.
//!
//! **Grants that lapse.** What is granted to a reservation of a task of our own runtime can be taken
//! back while the task does not come for it, so its node keeps its place:
//!
//! | mark | what the node has | becomes |
//! |---|---|---|
//! | waiting | nothing | granted, in its turn; lapsed, when its task ends and somebody else has the future |
//! | granted | its permits, since epoch `g` of its task | claimed and out, when it is polled; due, when a poll of the task that began after `g` ends, or the task |
//! | due | its permits still, as long as nobody else wants them | claimed and out, when it is polled; lapsed, when somebody waits, or the channel is closed |
//! | lapsed | nothing, and is passed over | waiting at its old place, when it is polled; out, if the channel is closed |
//!
//! The first *waiting* node is remembered, so that those which are passed over cost nothing. Tickets
//! tell which of two nodes comes first.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::task::Waker;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicUsize, Ordering};

/// What has become of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Linked,
    GrantedHere,
    Lapsed,
    Done,
    Taken,
    Granted,
    Closed,
}

// No byte over and over: a compiler that sees one beside links that are not there fills them with it, too.
const LINKED: usize = 1;
const DONE: usize = 2;
const TAKEN: usize = 3;
const GRANTED: usize = 4;
const CLOSED: usize = 5;
const GRANTED_HERE: usize = 6;
const LAPSED: usize = 7;

/// How a linked node stands; the second table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Waiting,
    Granted { epoch: u64 },
    Due,
    Lapsed,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// That its message is taken.
    Send,
    /// So many permits.
    Permits(u64),
    /// A receiver: that there is a message for it. A grant is the wake for one.
    Message,
}

impl Wants {
    /// How much capacity that takes.
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Send | Self::Message => 1,
            Self::Permits(count) => count,
        }
    }
}

/// The parts of a node that the line's lock guards while it is linked, and that are the future's
/// own before and after.
pub(crate) struct Links {
    pub(crate) prev: Option<NonNull<Waiter>>,
    pub(crate) next: Option<NonNull<Waiter>>,
    pub(crate) waker: Option<Waker>,
    pub(crate) wants: Wants,
    pub(crate) mark: Mark,
    /// The waker is that of the task of ours that polls the future, so a grant can lapse.
    pub(crate) own: bool,
    /// Counts up along the line.
    pub(crate) ticket: u64,
    /// Where the message was deposited; written before the status DONE.
    pub(crate) position: u64,
}

/// A node, in the future that waits.
///
/// Most futures never wait, so the links are filled only when the node is linked.
#[repr(C)]
pub(crate) struct Waiter {
    links: UnsafeCell<MaybeUninit<Links>>,
    /// A whole word, between the links and a message that may follow: if there were a hole, or what is not filled yet
    /// beside the message, the compiler would not see that a large one need not be copied from one place on the stack
    /// to another.
    status: AtomicUsize,
}

impl Waiter {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            links: UnsafeCell::new(MaybeUninit::uninit()),
            status: AtomicUsize::new(LINKED),
        }
    }

    /// Makes a node that has left its line ready for another time in it.
    ///
    /// For receivers: their future calls it, and no other thread knows the node.
    pub(crate) fn reset(&self) {
        self.status.store(LINKED, Ordering::Relaxed);
    }

    /// Whether this is a send whose message has been accepted.
    #[inline]
    pub(crate) fn is_accepted(&self) -> bool {
        // Acquire as in `status`.
        matches!(self.status.load(Ordering::Acquire), DONE | TAKEN)
    }

    /// Whether this is a reservation that is out of the line with its permits.
    #[inline]
    pub(crate) fn is_granted(&self) -> bool {
        // Acquire as in `status`.
        self.status.load(Ordering::Acquire) == GRANTED
    }

    /// The status; Acquire pairs with the last touch of whoever took the node out.
    #[inline]
    pub(crate) fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            LINKED => Status::Linked,
            GRANTED_HERE => Status::GrantedHere,
            LAPSED => Status::Lapsed,
            DONE => Status::Done,
            TAKEN => Status::Taken,
            GRANTED => Status::Granted,
            _ => Status::Closed,
        }
    }

    /// The last touch of a node that has been taken out.
    ///
    /// # Safety
    /// The caller has taken the node out of the line, and does not touch it again.
    pub(crate) unsafe fn finish(node: NonNull<Self>, status: Status) {
        // SAFETY: the future waits for this store before it lets go of its memory.
        unsafe { node.as_ref() }.set_status(status);
    }

    /// Release: what was done for the waiter is seen by its future.
    pub(crate) fn set_status(&self, status: Status) {
        let status = match status {
            Status::Linked => LINKED,
            Status::GrantedHere => GRANTED_HERE,
            Status::Lapsed => LAPSED,
            Status::Done => DONE,
            Status::Taken => TAKEN,
            Status::Granted => GRANTED,
            Status::Closed => CLOSED,
        };
        self.status.store(status, Ordering::Release);
    }

    /// Calls `f` with the links.
    ///
    /// # Safety
    /// The links have been filled, and are the caller's: the node is linked and the line's lock
    /// held, or it is out and the caller is its future, or has just taken it out. `f` reaches no
    /// other reference to them.
    #[inline]
    pub(crate) unsafe fn with_links<R>(&self, f: impl FnOnce(&mut Links) -> R) -> R {
        self.links.with_mut(|links| {
            // SAFETY: handed on: nobody else has a reference.
            let links = unsafe { &mut *links };
            // SAFETY: handed on: they have been filled.
            f(unsafe { links.assume_init_mut() })
        })
    }

    /// Fills the links.
    ///
    /// # Safety
    /// The node is in no line, and the caller is its future.
    pub(crate) unsafe fn fill(&self, filled: Links) {
        self.links.with_mut(|links| {
            // SAFETY: handed on: nobody else knows the node.
            let links = unsafe { &mut *links };
            links.write(filled);
        });
    }

    /// Notes where the message was deposited.
    ///
    /// # Safety
    /// The node is linked, under the lock.
    pub(crate) unsafe fn set_position(&self, position: u64) {
        // SAFETY: handed on.
        unsafe { self.with_links(|links| links.position = position) };
    }

    /// Turns a node that has never been linked into one whose message was deposited.
    ///
    /// # Safety
    /// The node has never been linked, and the caller is its future.
    pub(crate) unsafe fn finish_deposited(&self, position: u64) {
        let filled = Links {
            prev: None,
            next: None,
            waker: None,
            wants: Wants::Send,
            mark: Mark::Waiting,
            own: false,
            ticket: 0,
            position,
        };
        // SAFETY: handed on.
        unsafe { self.fill(filled) };
        self.status.store(DONE, Ordering::Relaxed);
    }

    /// Where the message was deposited.
    ///
    /// # Safety
    /// The status is DONE, as the caller, its future, has seen: so the links have been filled, and
    /// nobody else touches them any more.
    pub(crate) unsafe fn position(&self) -> u64 {
        // SAFETY: handed on.
        unsafe { self.with_links(|links| links.position) }
    }
}

/// A node with a message: that of a send.
#[repr(C)]
pub(crate) struct SendWaiter<T> {
    /// First, so that a pointer to the one is a pointer to the other.
    waiter: Waiter,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> SendWaiter<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self {
            waiter: Waiter::new(),
            value: UnsafeCell::new(MaybeUninit::new(value)),
        }
    }

    /// The node, to be linked: the message can be reached by it, with [`value_of`](Self::value_of).
    #[inline]
    pub(crate) fn node(&self) -> NonNull<Waiter> {
        NonNull::from(self).cast()
    }

    /// Where the message of a node is, to be moved out of there in one copy, under the rules of
    /// [`take_value`](Self::take_value).
    ///
    /// # Safety
    /// The node is alive, and comes from [`node`](Self::node) of a wait for a message of this type: it wants
    /// [`Send`](Wants::Send), in a line of a channel of such messages.
    #[inline(always)]
    pub(crate) unsafe fn value_of(node: NonNull<Waiter>) -> *const T {
        // SAFETY: handed on: the node is the beginning of one of these.
        unsafe { node.cast::<Self>().as_ref() }.value_place()
    }

    /// Moves the message out.
    ///
    /// # Safety
    /// The message is in the node, and the caller is the one whom the status allows to take it.
    #[inline]
    pub(crate) unsafe fn take_value(&self) -> T {
        // SAFETY: handed on: it is there, and taken once.
        unsafe { std::ptr::read(self.value_place()) }
    }

    /// Where the message is, to be moved out of there in one copy, under the rules of
    /// [`take_value`](Self::take_value).
    #[inline(always)]
    pub(crate) fn value_place(&self) -> *const T {
        self.value.with(|value| value.cast())
    }
}

impl<T> std::ops::Deref for SendWaiter<T> {
    type Target = Waiter;

    #[inline(always)]
    fn deref(&self) -> &Waiter {
        &self.waiter
    }
}
