//! The line of waiting senders: nodes that live in their futures, linked under the channel's lock.
//!
//! | status | the node is | the message (of a send) is | who changes it |
//! |---|---|---|---|
//! | LINKED | in the line | in the node | under the lock only |
//! | DONE | out | in the ring (`position`), may be withdrawn | final |
//! | TAKEN | out | received | final |
//! | GRANTED | out | — (of a reserve: the permits are counted) | final |
//! | CLOSED | out | in the node | final |
//!
//! Whoever takes a node out stores its final status as the *last* touch: from then on its memory may
//! go at any moment. The future reads the status without the lock.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::task::Waker;

use wakerun::sync::UnsafeCell;
use wakerun::sync::atomic::{AtomicU32, Ordering};

/// What has become of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Linked,
    Done,
    Taken,
    Granted,
    Closed,
}

const LINKED: u32 = 0;
const DONE: u32 = 1;
const TAKEN: u32 = 2;
const GRANTED: u32 = 3;
const CLOSED: u32 = 4;

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// That its message is taken.
    Send,
    /// So many permits.
    Permits(u64),
}

impl Wants {
    /// How much capacity that takes.
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Send => 1,
            Self::Permits(count) => count,
        }
    }
}

/// The parts of a node that the line's lock guards while it is linked, and that are the future's
/// own before and after.
struct Links<T> {
    prev: Option<NonNull<Waiter<T>>>,
    next: Option<NonNull<Waiter<T>>>,
    waker: Option<Waker>,
    wants: Wants,
    /// Where the message was deposited; written before the status DONE.
    position: u64,
}

/// A node, in the future of a waiting sender.
///
/// Most futures never wait, so the links are filled only when the node is linked.
pub(crate) struct Waiter<T> {
    status: AtomicU32,
    links: UnsafeCell<MaybeUninit<Links<T>>>,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Waiter<T> {
    /// A node with a message.
    #[inline]
    pub(crate) fn with_value(value: T) -> Self {
        Self::new(MaybeUninit::new(value))
    }

    /// A node for permits.
    pub(crate) fn for_permits() -> Self {
        Self::new(MaybeUninit::uninit())
    }

    #[inline]
    fn new(value: MaybeUninit<T>) -> Self {
        Self {
            status: AtomicU32::new(LINKED),
            links: UnsafeCell::new(MaybeUninit::uninit()),
            value: UnsafeCell::new(value),
        }
    }

    /// The status; Acquire pairs with the last touch of whoever took the node out.
    #[inline]
    pub(crate) fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            LINKED => Status::Linked,
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
        let status = match status {
            Status::Linked => LINKED,
            Status::Done => DONE,
            Status::Taken => TAKEN,
            Status::Granted => GRANTED,
            Status::Closed => CLOSED,
        };
        // SAFETY: the future waits for this store before it lets go of its memory.
        let node = unsafe { node.as_ref() };
        node.status.store(status, Ordering::Release);
    }

    /// Moves the message out.
    ///
    /// # Safety
    /// The message is in the node, and the caller is the one whom the status allows to take it.
    #[inline]
    pub(crate) unsafe fn take_value(&self) -> T {
        // SAFETY: handed on.
        self.value
            .with(|value| unsafe { (*value).assume_init_read() })
    }

    /// Notes where the message was deposited.
    ///
    /// # Safety
    /// The node has been linked and taken out, and is the caller's.
    pub(crate) unsafe fn set_position(&self, position: u64) {
        // SAFETY: handed on; links once filled stay so.
        self.links
            .with_mut(|links| unsafe { (*links).assume_init_mut() }.position = position);
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
            position,
        };
        // SAFETY: nobody else knows the node.
        self.links
            .with_mut(|links| unsafe { (*links).write(filled) });
        self.status.store(DONE, Ordering::Relaxed);
    }

    /// Where the message was deposited.
    ///
    /// # Safety
    /// The status is DONE, as the caller has seen.
    pub(crate) unsafe fn position(&self) -> u64 {
        // SAFETY: nobody but the future touches a node that is out, and DONE means that the links
        // have been filled.
        self.links
            .with(|links| unsafe { (*links).assume_init_ref() }.position)
    }
}

/// The list, whose methods are called under the channel's lock.
pub(crate) struct Line<T> {
    head: Option<NonNull<Waiter<T>>>,
    tail: Option<NonNull<Waiter<T>>>,
}

// SAFETY: the nodes hold messages and wakers, which may move between threads; they are reached
// under the lock only.
unsafe impl<T: Send> Send for Line<T> {}

impl<T> Line<T> {
    pub(crate) const fn new() -> Self {
        Self {
            head: None,
            tail: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// The first waiter and what it wants.
    #[inline]
    pub(crate) fn first(&self) -> Option<(NonNull<Waiter<T>>, Wants)> {
        let head = self.head?;
        Some((head, Self::links(head).wants))
    }

    /// The waiter behind `node`, which is linked.
    pub(crate) fn after(&self, node: NonNull<Waiter<T>>) -> Option<NonNull<Waiter<T>>> {
        Self::links(node).next
    }

    /// What a linked waiter wants.
    pub(crate) fn wants(&self, node: NonNull<Waiter<T>>) -> Wants {
        Self::links(node).wants
    }

    /// A copy of the plain part of a linked node.
    #[inline]
    fn links(node: NonNull<Waiter<T>>) -> Plain<T> {
        // SAFETY: a linked node is alive: its future takes it out before it goes.
        let node = unsafe { node.as_ref() };
        node.links.with(|links| {
            // SAFETY: the lock is held (these are methods of the locked list), and a linked node's
            // links are filled.
            let links = unsafe { (*links).assume_init_ref() };
            Plain {
                next: links.next,
                wants: links.wants,
            }
        })
    }

    #[inline]
    fn with_links<R>(node: NonNull<Waiter<T>>, f: impl FnOnce(&mut Links<T>) -> R) -> R {
        // SAFETY: alive, as in `links`, or about to be linked by its future.
        let node = unsafe { node.as_ref() };
        // SAFETY: the lock is held, `f` reaches no other reference to these links, and a linked
        // node's links are filled.
        node.links
            .with_mut(|links| f(unsafe { (*links).assume_init_mut() }))
    }

    /// Puts a node at the end.
    ///
    /// # Safety
    /// The node is in no line, stays where it is, and its owner removes it before it goes, unless
    /// its status tells that somebody else has.
    pub(crate) unsafe fn push(&mut self, node: NonNull<Waiter<T>>, wants: Wants, waker: Waker) {
        let prev = self.tail.replace(node);
        let filled = Links {
            prev,
            next: None,
            waker: Some(waker),
            wants,
            position: 0,
        };
        // SAFETY: alive: its future is about to wait.
        let links = unsafe { &node.as_ref().links };
        // SAFETY: not linked yet, so the links are its future's, which has called this.
        links.with_mut(|links| unsafe { (*links).write(filled) });
        match prev {
            None => self.head = Some(node),
            Some(prev) => Self::with_links(prev, |links| links.next = Some(node)),
        }
    }

    /// Takes a linked node out. The waker comes along, to be woken or dropped after the lock.
    #[inline]
    pub(crate) fn remove(&mut self, node: NonNull<Waiter<T>>) -> Option<Waker> {
        let (prev, next, waker) = Self::with_links(node, |links| {
            (links.prev.take(), links.next.take(), links.waker.take())
        });
        match prev {
            None => self.head = next,
            Some(prev) => Self::with_links(prev, |links| links.next = next),
        }
        match next {
            None => self.tail = prev,
            Some(next) => Self::with_links(next, |links| links.prev = prev),
        }
        waker
    }

    /// Exchanges the waker of a linked node for one that wakes the task that polled last. The one
    /// that is not needed comes back, to be dropped after the lock.
    pub(crate) fn set_waker(&mut self, node: NonNull<Waiter<T>>, waker: Waker) -> Option<Waker> {
        Self::with_links(node, |links| links.waker.replace(waker))
    }

    /// Whether a linked node's waker wakes what `waker` wakes.
    pub(crate) fn will_wake(&self, node: NonNull<Waiter<T>>, waker: &Waker) -> bool {
        Self::with_links(node, |links| {
            links
                .waker
                .as_ref()
                .is_some_and(|mine| mine.will_wake(waker))
        })
    }
}

/// What [`Line::links`] copies.
struct Plain<T> {
    next: Option<NonNull<Waiter<T>>>,
    wants: Wants,
}
