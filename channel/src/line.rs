//! The list of those who wait: nodes that live in their futures (`waiter.rs`), linked under a lock.

use std::ptr::NonNull;
use std::task::Waker;

use wakerun::sync::atomic::{AtomicU32, Ordering};
use wakerun::wake::{self, Place, Wakeup};

use crate::waiter::{Links, Mark, Status, Waiter, Wants};

/// Shows a count of a line to those who look without the lock, which the caller has.
///
/// A load is cheaper than making a line of the cache dirty; all changes are made under the lock.
#[inline]
pub(crate) fn show(to: &AtomicU32, count: usize) {
    let count = count as u32;
    if to.load(Ordering::Relaxed) != count {
        to.store(count, Ordering::Release);
    }
}

/// A node, and the one behind it.
type PlainFirst = (NonNull<Waiter>, Option<NonNull<Waiter>>);

/// A node that wants so many permits, and the waiter behind it.
type FirstReservation = (NonNull<Waiter>, u64, Option<NonNull<Waiter>>);

/// Whom a waiter that has been granted something at its place wakes.
#[must_use]
pub(crate) enum Told {
    /// A task of ours, whose waker stays in the node.
    Own(Wakeup),
    Other(Waker),
    Nobody,
}

impl Told {
    /// Wakes, without a lock held.
    #[inline]
    pub(crate) fn wake(self, place: Place) {
        match self {
            Self::Own(wakeup) => wakeup.fire(place),
            Self::Other(waker) => wake::wake_owned(waker, place),
            Self::Nobody => {}
        }
    }
}

/// The list, whose methods are called under its lock.
pub(crate) struct Line {
    head: Option<NonNull<Waiter>>,
    tail: Option<NonNull<Waiter>>,
    /// The first node that is marked waiting.
    first: Option<NonNull<Waiter>>,
    next_ticket: u64,
    /// The ticket of the first waiter that [`is_new_first`](Self::is_new_first) was last asked about.
    seen_first: u64,
    /// Nodes marked granted or due.
    granted: u32,
    /// Nodes marked due.
    due: u32,
    lapsed: u32,
    /// Nodes of tasks of ours.
    own: u32,
}

// SAFETY: the nodes hold wakers, which may move between threads; they are reached under the lock only. (The messages
// beside them are reached by who may move them: a channel is shared by threads only if its messages may be.)
unsafe impl Send for Line {}

impl Line {
    pub(crate) const fn new() -> Self {
        Self {
            head: None,
            tail: None,
            first: None,
            next_ticket: 0,
            seen_first: 0,
            granted: 0,
            due: 0,
            lapsed: 0,
            own: 0,
        }
    }

    /// Whether nobody waits; nodes that are passed over do not count.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many grants are unclaimed here.
    pub(crate) fn granted(&self) -> usize {
        self.granted as usize
    }

    /// How many of them anybody may have who wants them.
    pub(crate) fn due(&self) -> usize {
        self.due as usize
    }

    /// How many nodes belong to tasks of ours.
    pub(crate) fn own(&self) -> usize {
        self.own as usize
    }

    /// The first waiter and what it wants.
    #[inline]
    pub(crate) fn first(&self) -> Option<(NonNull<Waiter>, Wants)> {
        let first = self.first?;
        // SAFETY: the first is linked.
        let wants = unsafe { Self::with(first, |links| links.wants) };
        Some((first, wants))
    }

    /// Whether another waiter is the first than when this was last asked.
    pub(crate) fn is_new_first(&mut self) -> bool {
        let Some(first) = self.first else {
            return false;
        };
        // SAFETY: the first is linked.
        let ticket = unsafe { Self::with(first, |links| links.ticket) };
        std::mem::replace(&mut self.seen_first, ticket) != ticket
    }

    /// The first waiter whose ticket is behind `passed` and not behind `last`, and its ticket.
    pub(crate) fn first_between(&self, passed: u64, last: u64) -> Option<(NonNull<Waiter>, u64)> {
        let mut node = self.first;
        while let Some(at) = node {
            // SAFETY: linked: found from the first on.
            let (ticket, next) = unsafe { Self::with(at, |links| (links.ticket, links.next)) };
            if ticket > last {
                return None;
            }
            if ticket > passed {
                return Some((at, ticket));
            }
            // SAFETY: the neighbour of a linked node is linked.
            node = unsafe { self.waiting_from(next) };
        }
        None
    }

    /// The ticket of the last node that was put in.
    pub(crate) fn last_ticket(&self) -> u64 {
        self.next_ticket
    }

    /// The first node of all, those that are passed over among them.
    pub(crate) fn front(&self) -> Option<NonNull<Waiter>> {
        self.head
    }

    /// The node behind `node`, what `node` wants, and its mark.
    ///
    /// # Safety
    /// `node` is linked in this line.
    #[inline]
    pub(crate) unsafe fn look(
        &self,
        node: NonNull<Waiter>,
    ) -> (Option<NonNull<Waiter>>, Wants, Mark) {
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| (links.next, links.wants, links.mark)) }
    }

    /// Calls `f` with the links of a linked node.
    ///
    /// # Safety
    /// `node` is linked; `f` reaches no other reference to its links.
    #[inline]
    unsafe fn with<R>(node: NonNull<Waiter>, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: a linked node is alive: its future takes it out before it goes.
        let node = unsafe { node.as_ref() };
        // SAFETY: the methods of the list are called under its lock; a linked node's are filled.
        unsafe { node.with_links(f) }
    }

    /// Puts a node at the end. `own`: the waker is that of the task of ours that is being polled.
    ///
    /// # Safety
    /// The node is in no line, the caller is its future, it stays where it is, and is removed before
    /// it goes, unless its status tells that somebody else has.
    #[inline]
    pub(crate) unsafe fn push(
        &mut self,
        node: NonNull<Waiter>,
        wants: Wants,
        waker: Waker,
        own: bool,
    ) {
        let prev = self.tail.replace(node);
        self.next_ticket += 1;
        self.own += u32::from(own);
        let filled = Links {
            prev,
            next: None,
            waker: Some(waker),
            wants,
            mark: Mark::Waiting,
            own,
            ticket: self.next_ticket,
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
        if self.first.is_none() {
            self.first = Some(node);
        }
    }

    /// Puts a node at the end that has been granted already what it wants, during a poll of its task.
    ///
    /// # Safety
    /// As [`push`](Self::push); and the waker is that of the task of ours that is being polled.
    pub(crate) unsafe fn push_granted(
        &mut self,
        node: NonNull<Waiter>,
        wants: Wants,
        waker: Waker,
    ) {
        // SAFETY: handed on.
        unsafe { self.push(node, wants, waker, true) };
        // SAFETY: linked just now.
        unsafe { self.grant_polled(node) };
    }

    /// Marks a node granted whose future is being polled, and wakes itself.
    ///
    /// # Safety
    /// `node` is linked in this line, and not marked granted.
    pub(crate) unsafe fn grant_polled(&mut self, node: NonNull<Waiter>) {
        // SAFETY: handed on.
        let epoch =
            unsafe { Self::with(node, |links| links.waker.as_ref().and_then(wake::epoch_of)) };
        let epoch = epoch.unwrap_or(0);
        // SAFETY: handed on.
        unsafe { self.pass_over(node, Mark::Granted { epoch }) };
    }

    /// The first waiter and the one behind it, if the first is a send, its task is none of those that are
    /// watched, and nobody in the line is passed over.
    #[inline]
    pub(crate) fn plain_first(&self) -> Option<PlainFirst> {
        let first = self.first?;
        if self.granted + self.lapsed > 0 {
            return None;
        }
        // SAFETY: the first is linked.
        let (wants, own, next) =
            unsafe { Self::with(first, |links| (links.wants, links.own, links.next)) };
        (wants == Wants::Send && !own).then_some((first, next))
    }

    /// [`remove`](Self::remove) for what [`plain_first`](Self::plain_first) has found.
    ///
    /// # Safety
    /// As said, and nothing has been changed since; or the same is true of one that wants permits.
    #[inline]
    pub(crate) unsafe fn remove_plain(
        &mut self,
        node: NonNull<Waiter>,
        next: Option<NonNull<Waiter>>,
    ) -> Option<Waker> {
        // Nobody is passed over, so the first waiter is the first of all.
        self.head = next;
        self.first = next;
        match next {
            None => self.tail = None,
            // SAFETY: the neighbour of a linked node is linked.
            Some(next) => unsafe { Self::with(next, |links| links.prev = None) },
        }
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| links.waker.take()) }
    }

    /// The first waiter, how many permits it wants, and the waiter behind it, if it wants permits.
    #[inline]
    pub(crate) fn first_reservation(&self) -> Option<FirstReservation> {
        let first = self.first?;
        // SAFETY: the first is linked.
        let (wants, mut next) = unsafe { Self::with(first, |links| (links.wants, links.next)) };
        let Wants::Permits(count) = wants else {
            return None;
        };
        if self.granted + self.lapsed > 0 {
            // SAFETY: the neighbour of a linked node is linked.
            next = unsafe { self.waiting_from(next) };
        }
        Some((first, count, next))
    }

    /// [`grant_first_here`](Self::grant_first_here), if the grant can lapse. `false`: it is to be taken out.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(crate) unsafe fn grant_first(&mut self, node: NonNull<Waiter>) -> bool {
        // SAFETY: the first is linked.
        let own = unsafe { Self::with(node, |links| links.own) };
        if own {
            // SAFETY: handed on.
            unsafe { self.grant_first_here(node) };
        }
        own
    }

    /// [`remove`](Self::remove) for the first waiter that is not of a task of ours.
    ///
    /// # Safety
    /// `node` is the first waiter, for which [`grant_first`](Self::grant_first) has said `false`, and `next` the one
    /// behind it.
    #[inline]
    pub(crate) unsafe fn remove_first(
        &mut self,
        node: NonNull<Waiter>,
        next: Option<NonNull<Waiter>>,
    ) -> Option<Waker> {
        if self.granted + self.lapsed > 0 {
            // SAFETY: handed on.
            return unsafe { self.remove(node) };
        }
        // SAFETY: the first is linked; nobody is passed over.
        unsafe { self.remove_plain(node, next) }
    }

    /// The wake of a node that has been granted something, to be made when the lock has been given back. A waker of
    /// ours stays in it, and another one is taken out.
    ///
    /// A task of ours counts as woken from here on, and one that is queued already, or polled by another thread, is
    /// polled without waiting for more: so the line's counts are shown before, or that poll would end without a look
    /// at the grant, and there may be no other.
    ///
    /// # Safety
    /// `node` is linked in this line.
    #[inline]
    pub(crate) unsafe fn wakeup_of(&mut self, node: NonNull<Waiter>) -> Told {
        // SAFETY: handed on.
        unsafe {
            Self::with(node, |links| match &links.waker {
                Some(waker) if links.own => Told::Own(Wakeup::of(waker)),
                _ => links.waker.take().map_or(Told::Nobody, Told::Other),
            })
        }
    }

    /// Takes a node out. The waker comes along, to be woken or dropped after the lock.
    ///
    /// # Safety
    /// `node` is linked in this line.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, node: NonNull<Waiter>) -> Option<Waker> {
        // SAFETY: handed on.
        let (prev, next, waker, mark, own) = unsafe {
            Self::with(node, |links| {
                let neighbours = (links.prev, links.next);
                let waker = links.waker.take();
                (neighbours.0, neighbours.1, waker, links.mark, links.own)
            })
        };
        if own {
            self.own -= 1;
            self.uncount(mark);
        } else if mark != Mark::Waiting {
            self.uncount(mark);
        }
        if self.first == Some(node) {
            // Those that are passed over stand before the first waiter, but for rare cases.
            self.first = next;
            if self.granted + self.lapsed > 0 {
                // SAFETY: the neighbour of a linked node is linked.
                self.first = unsafe { self.waiting_from(next) };
            }
        }
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

    /// The first waiting node from `node` on.
    ///
    /// # Safety
    /// `node` is linked in this line, if there is one.
    #[inline]
    unsafe fn waiting_from(&self, mut node: Option<NonNull<Waiter>>) -> Option<NonNull<Waiter>> {
        while let Some(at) = node {
            // SAFETY: handed on, or the neighbour of a linked node, which is linked.
            let (behind, _, mark) = unsafe { self.look(at) };
            if mark == Mark::Waiting {
                break;
            }
            node = behind;
        }
        node
    }

    fn count(&mut self, mark: Mark) {
        self.granted += u32::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
        self.due += u32::from(mark == Mark::Due);
        self.lapsed += u32::from(mark == Mark::Lapsed);
    }

    fn uncount(&mut self, mark: Mark) {
        self.granted -= u32::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
        self.due -= u32::from(mark == Mark::Due);
        self.lapsed -= u32::from(mark == Mark::Lapsed);
    }

    /// Changes the mark of a node, and the status that its future reads.
    ///
    /// # Safety
    /// `node` is linked in this line.
    unsafe fn set_mark(&mut self, node: NonNull<Waiter>, mark: Mark) {
        // SAFETY: handed on.
        let old = unsafe { Self::with(node, |links| std::mem::replace(&mut links.mark, mark)) };
        self.uncount(old);
        self.count(mark);
        let status = match mark {
            Mark::Waiting => Status::Linked,
            Mark::Granted { .. } | Mark::Due => Status::GrantedHere,
            Mark::Lapsed => Status::Lapsed,
        };
        // SAFETY: linked, hence alive.
        unsafe { node.as_ref() }.set_status(status);
    }

    /// Gives a node a mark other than waiting: it is passed over from now on.
    ///
    /// # Safety
    /// `node` is linked in this line.
    unsafe fn pass_over(&mut self, node: NonNull<Waiter>, mark: Mark) {
        // SAFETY: handed on.
        unsafe { self.set_mark(node, mark) };
        if self.first == Some(node) {
            // SAFETY: handed on.
            self.first = unsafe { self.waiting_from(Some(node)) };
        }
    }

    /// Grants a waiter what it wants, at its place, if that can lapse or `always` says so.
    /// Returns the waker to be woken. `None`: it cannot lapse, and is to be taken out.
    ///
    /// A waker of ours is cloned, which runs no foreign code; the node keeps it, and with it the
    /// task's memory. Another one is taken out; the next poll of the future brings a new one.
    ///
    /// # Safety
    /// `node` is linked in this line, and marked waiting.
    pub(crate) unsafe fn grant_here(
        &mut self,
        node: NonNull<Waiter>,
        always: bool,
    ) -> Option<Option<Waker>> {
        // SAFETY: handed on.
        let (waker, epoch) = unsafe {
            Self::with(node, |links| {
                if links.own {
                    let waker = links.waker.clone();
                    let epoch = waker.as_ref().and_then(wake::epoch_of);
                    Some((waker, epoch.unwrap_or(0)))
                } else {
                    always.then(|| (links.waker.take(), 0))
                }
            })
        }?;
        // SAFETY: handed on.
        unsafe { self.pass_over(node, Mark::Granted { epoch }) };
        Some(waker)
    }

    /// [`grant_here`](Self::grant_here), always, for the first waiter, which [`wakeup_of`](Self::wakeup_of) is to wake:
    /// a waker of ours is not cloned for it.
    ///
    /// # Safety
    /// `node` is the first waiter of this line.
    #[inline]
    pub(crate) unsafe fn grant_first_here(&mut self, node: NonNull<Waiter>) {
        // SAFETY: the first is linked.
        let next = unsafe {
            Self::with(node, |links| {
                let own = links.waker.as_ref().filter(|_| links.own);
                let epoch = own.and_then(wake::epoch_of).unwrap_or(0);
                links.mark = Mark::Granted { epoch };
                links.next
            })
        };
        self.granted += 1;
        // SAFETY: linked, hence alive.
        unsafe { node.as_ref() }.set_status(Status::GrantedHere);
        // SAFETY: the neighbour of a linked node is linked.
        self.first = unsafe { self.waiting_from(next) };
    }

    /// Whether a grant of this node's is unclaimed though a poll of its task that began after the
    /// grant is over, or the task is, at the end of a poll of `poller`. The mark says so from now on.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn becomes_due(
        &mut self,
        node: NonNull<Waiter>,
        poller: &wake::Poller<'_>,
    ) -> bool {
        // SAFETY: handed on.
        let due = unsafe {
            Self::with(node, |links| {
                let Mark::Granted { epoch } = links.mark else {
                    return false;
                };
                // Even: granted between two polls, and the next one is over. Odd: granted during a
                // poll, which may have passed the future already; the one after it is over.
                let polls = poller.epoch().wrapping_sub(epoch);
                links.own
                    && (polls >= 2 + (epoch & 1) || poller.is_over())
                    && links.waker.as_ref().is_some_and(|waker| poller.owns(waker))
            })
        };
        if due {
            // SAFETY: handed on.
            unsafe { self.set_mark(node, Mark::Due) };
        }
        due
    }

    /// Passes over a node that waits, if its task is `poller`, which is over: a grant would wake nobody.
    /// The future has outlived the task; whoever polls it gives it its place back.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn abandon(&mut self, node: NonNull<Waiter>, poller: &wake::Poller<'_>) {
        // SAFETY: handed on.
        let abandoned = unsafe {
            Self::with(node, |links| {
                links.own
                    && links.mark == Mark::Waiting
                    && links.waker.as_ref().is_some_and(|waker| poller.owns(waker))
            })
        };
        if abandoned {
            // SAFETY: handed on.
            unsafe { self.pass_over(node, Mark::Lapsed) };
        }
    }

    /// A due grant is taken back: the node keeps its place, and is passed over. Returns what it had.
    ///
    /// # Safety
    /// `node` is linked in this line, and its grant is due.
    pub(crate) unsafe fn lapse(&mut self, node: NonNull<Waiter>) -> Wants {
        // SAFETY: handed on.
        unsafe { self.set_mark(node, Mark::Lapsed) };
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| links.wants) }
    }

    /// The node waits again, at its old place.
    ///
    /// # Safety
    /// `node` is linked in this line, and not marked waiting.
    pub(crate) unsafe fn wait_again(&mut self, node: NonNull<Waiter>) {
        // SAFETY: handed on.
        unsafe { self.set_mark(node, Mark::Waiting) };
        // SAFETY: linked; here and below.
        let ticket = |node| unsafe { Self::with(node, |links| links.ticket) };
        if self.first.is_none_or(|first| ticket(node) < ticket(first)) {
            self.first = Some(node);
            // The one behind it will come to be the first anew, and whoever was told of it may have found
            // this one instead.
            self.seen_first = 0;
        }
    }

    /// Exchanges the waker of a node for one that wakes the task that polled last. The one that is
    /// not needed comes back, to be dropped after the lock.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn set_waker(
        &mut self,
        node: NonNull<Waiter>,
        waker: Waker,
        own: bool,
    ) -> Option<Waker> {
        // SAFETY: handed on.
        unsafe { self.set_own(node, own) };
        // SAFETY: handed on.
        unsafe { Self::with(node, |links| links.waker.replace(waker)) }
    }

    /// The waker of a node is found to be, or not to be, the own one of the task that polled last.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn set_own(&mut self, node: NonNull<Waiter>, own: bool) {
        // SAFETY: handed on.
        let was_own = unsafe { Self::with(node, |links| std::mem::replace(&mut links.own, own)) };
        self.own -= u32::from(was_own);
        self.own += u32::from(own);
    }

    /// Whether a node's waker wakes what `waker` wakes.
    ///
    /// # Safety
    /// `node` is linked in this line.
    pub(crate) unsafe fn will_wake(&self, node: NonNull<Waiter>, waker: &Waker) -> bool {
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
