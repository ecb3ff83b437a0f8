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
        self.value.with(|value| {
            // SAFETY: handed on: nobody writes the value meanwhile.
            let value = unsafe { &*value };
            // SAFETY: handed on: it is there, and taken once.
            unsafe { value.assume_init_read() }
        })
    }

    /// Calls `f` with the links.
    ///
    /// # Safety
    /// The links have been filled, and are the caller's: the node is linked and the line's lock
    /// held, or it is out and the caller is its future, or has just taken it out. `f` reaches no
    /// other reference to them.
    #[inline]
    unsafe fn with_links<R>(&self, f: impl FnOnce(&mut Links<T>) -> R) -> R {
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
    unsafe fn fill(&self, filled: Links<T>) {
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
        // SAFETY: the head is linked.
        let (_, wants) = unsafe { self.look(head) };
        Some((head, wants))
    }

    /// The waiter behind `node`, and what `node` wants.
    ///
    /// # Safety
    /// `node` is linked in this line.
    #[inline]
    pub(crate) unsafe fn look(
        &self,
        node: NonNull<Waiter<T>>,
    ) -> (Option<NonNull<Waiter<T>>>, Wants) {
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| (links.next, links.wants)) }
    }

    /// Calls `f` with the links of a linked node.
    ///
    /// # Safety
    /// `node` is linked; `f` reaches no other reference to its links.
    #[inline]
    unsafe fn with<R>(node: NonNull<Waiter<T>>, f: impl FnOnce(&mut Links<T>) -> R) -> R {
        // SAFETY: a linked node is alive: its future takes it out before it goes.
        let node = unsafe { node.as_ref() };
        // SAFETY: the methods of the list are called under its lock; a linked node's are filled.
        unsafe { node.with_links(f) }
    }

    /// Puts a node at the end.
    ///
    /// # Safety
    /// The node has never been in a line, the caller is its future, it stays where it is, and is
    /// removed before it goes, unless its status tells that somebody else has.
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
        let waiter = unsafe { node.as_ref() };
        // SAFETY: handed on.
        unsafe { waiter.fill(filled) };
        match prev {
            None => self.head = Some(node),
            // SAFETY: the old end is linked.
            Some(prev) => unsafe { Self::with(prev, |links| links.next = Some(node)) },
        }
    }

    /// Takes a node out. The waker comes along, to be woken or dropped after the lock.
    ///
    /// # Safety
    /// `node` is linked in this line.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, node: NonNull<Waiter<T>>) -> Option<Waker> {
        // SAFETY: handed on.
        let (prev, next, waker) = unsafe {
            Self::with(node, |links| {
                (links.prev.take(), links.next.take(), links.waker.take())
            })
        };
        match prev {
            None => self.head = next,
            // SAFETY: a linked node's neighbours are linked.
            Some(prev) => unsafe { Self::with(prev, |links| links.next = next) },
        }
        match next {
            None => self.tail = prev,
            // SAFETY: as above.
            Some(next) => unsafe { Self::with(next, |links| links.prev = prev) },
        }
        waker
    }

    /// Exchanges the waker of a node for one that wakes the task that polled last. The one that is
    /// not needed comes back, to be dropped after the lock.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn set_waker(
        &mut self,
        node: NonNull<Waiter<T>>,
        waker: Waker,
    ) -> Option<Waker> {
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| links.waker.replace(waker)) }
    }

    /// Whether a node's waker wakes what `waker` wakes.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn will_wake(&self, node: NonNull<Waiter<T>>, waker: &Waker) -> bool {
        // SAFETY: handed on.
        unsafe {
            Self::with(node, |links| {
                links
                    .waker
                    .as_ref()
                    .is_some_and(|mine| mine.will_wake(waker))
            })
        }
    }
}
