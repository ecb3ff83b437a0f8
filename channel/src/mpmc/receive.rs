//! Many receivers: taking messages under one lock, and waiting in a line of their own.
//!
//! Whoever holds the receivers' lock is the one receiver of the protocols in `chan.rs` and `ring.rs`: it
//! alone moves the head, and PARKED changes only under it. The lock is held for a copy of the message;
//! if senders wait, their line is served in it, too (this lock first, then the line's).
//!
//! | PARKED | the receivers' line |
//! |:-:|---|
//! | 1 | somebody is marked waiting |
//! | 0 | nobody is |
//!
//! Each message that comes while PARKED is set wakes one receiver, the first that waits: it is marked
//! granted, keeps its place, and is passed over by the next wake. A wake is no message: whoever is
//! polled takes what is there. One that was woken and finds nothing waits again at its place, at the
//! front. One that goes, or lets the wake lapse, passes it on if there is a message.
//!
//! So while somebody is marked waiting, as many are woken as there are messages, or more: a message that
//! comes wakes one; one that is taken leaves the count of messages; and a receiver begins to wait only
//! when there is none.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use wakerun::lock::Lock;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicUsize, Ordering, fence};
use wakerun::wake::{Batch, Place, Poller};

use crate::chan::{Chan, Served};
use crate::flavor::{Mpmc, News};
use crate::gate::{CLOSED, POSITION_MASK};
use crate::line::{Line, Mark, Status, Waiter, Wants};
use crate::receive::{defer_fence, may_have_ended, wait_until};
use crate::ring::Message;

/// Where receivers are, and where they wait.
pub(crate) struct Receivers<T> {
    pub(super) state: Lock<State<T>>,
    /// Copies of the line's counts, for looking at without the lock.
    granted: AtomicUsize,
    own: AtomicUsize,
    /// Strong receivers.
    pub(super) strong: AtomicUsize,
    pub(super) weak: AtomicUsize,
}

/// What the receivers' lock guards.
pub(crate) struct State<T> {
    /// The next position; the head in the channel is a copy for the senders.
    pub(super) head: u64,
    /// Messages that were taken when a foreign waker panicked: they are received next.
    stash: VecDeque<T>,
    pub(super) line: Line<()>,
}

impl<T> Receivers<T> {
    pub(crate) fn new() -> Self {
        Self {
            state: Lock::new(State {
                head: 0,
                stash: VecDeque::new(),
                line: Line::new(),
            }),
            granted: AtomicUsize::new(0),
            own: AtomicUsize::new(0),
            strong: AtomicUsize::new(1),
            weak: AtomicUsize::new(0),
        }
    }
}

/// What a look at the queue found.
pub(super) enum Taken<T> {
    Value(T),
    /// A message that its sender has withdrawn: to be dropped after the lock.
    Withdrawn(T),
    /// Nothing, and more can come.
    Empty,
    /// A sender is between its claim and the end of its write.
    Unpublished,
    /// Nothing, and nothing can come any more.
    End,
}

/// What is to be done after the lock.
pub(super) struct After {
    served: Served,
    batch: Batch,
    /// A slot has become free, and the fence has not been made that makes "no line" the truth.
    owes_fence: bool,
}

impl After {
    pub(super) fn new() -> Self {
        Self {
            served: Served::default(),
            batch: Batch::new(Place::Tail),
            owes_fence: false,
        }
    }

    /// Whether the line of senders has been served, so that there is somebody to wake.
    pub(super) fn is_pressing(&self) -> bool {
        !self.batch.is_empty() || self.served.again || self.served.messages > 0
    }
}

impl<T> Chan<T, Mpmc> {
    /// Takes the next message, if it is there. Under the receivers' lock.
    pub(super) fn take(&self, state: &mut State<T>, after: &mut After) -> Taken<T> {
        // It was taken out of the ring before what is there now.
        if let Some(value) = state.stash.pop_front() {
            return Taken::Value(value);
        }
        loop {
            // SAFETY: whoever has the lock is the receiver, and the head moves on below.
            if let Some(message) = unsafe { self.ring.take(state.head) } {
                self.advance(state);
                if self.rx.waiting.load(Ordering::Relaxed) {
                    let mut line = self.line.lock();
                    let served = self.serve_as_receiver(&mut line, &mut after.batch);
                    after.served.and(served);
                } else {
                    after.owes_fence = true;
                }
                return match message {
                    Message::Value(value) => Taken::Value(value),
                    Message::Withdrawn(value) => Taken::Withdrawn(value),
                };
            }
            let word = self.gate.load();
            if word.tail() != state.head {
                if self.ring.is_published(state.head) {
                    continue;
                }
                return Taken::Unpublished;
            }
            if self.rx.waiting.load(Ordering::Relaxed)
                && let Some(value) = self.take_from_line(state, after)
            {
                return Taken::Value(value);
            }
            if self.gate.load().tail() != state.head {
                continue;
            }
            if !may_have_ended(self, word) {
                return Taken::Empty;
            }
            // Several things were looked at; if the word has not changed, they are of one moment.
            if self.gate.load() == word {
                return Taken::End;
            }
        }
    }

    pub(super) fn advance(&self, state: &mut State<T>) {
        state.head = state.head.wrapping_add(1) & POSITION_MASK;
        // Release: the slot has been read before a sender that sees this writes to it again.
        self.rx.head.store(state.head, Ordering::Release);
    }

    /// The ring is empty and senders wait: takes the message of the first one straight out of the
    /// line, and serves those behind it.
    fn take_from_line(&self, state: &State<T>, after: &mut After) -> Option<T> {
        let mut line = self.line.lock();
        if self.gate.load().tail() != state.head {
            return None;
        }
        let (node, wants) = line.first()?;
        let mut taken = None;
        if wants == Wants::Send {
            // SAFETY: linked, and alive until `take_out`.
            let waiter = unsafe { node.as_ref() };
            // SAFETY: a linked send's message is in its node, and leaves it here.
            taken = Some(unsafe { waiter.take_value() });
            // SAFETY: linked, and its message has been taken.
            unsafe { Self::take_out(&mut line, node, Status::Taken, &mut after.batch) };
        }
        let served = self.serve_as_receiver(&mut line, &mut after.batch);
        after.served.and(served);
        taken
    }

    /// Does what is to be done after the lock, with a message in hand, which a panicking waker must not
    /// lose.
    #[inline]
    pub(super) fn settle(self: &Arc<Self>, after: &mut After, value: T) -> T {
        if after.owes_fence && !after.is_pressing() {
            after.owes_fence = false;
            if defer_fence(self) {
                return value;
            }
            // Pairs with the locked instruction of a parking sender.
            fence(Ordering::SeqCst);
            if !self.rx.waiting.load(Ordering::Relaxed) {
                return value;
            }
            after.served.again = true;
        }
        self.settle_slowly(after, value)
    }

    #[inline(never)]
    fn settle_slowly(&self, after: &mut After, value: T) -> T {
        let in_hand = InHand {
            chan: self,
            value: Some(value),
        };
        self.settle_without_value(after);
        in_hand.into_value()
    }

    /// Drops wakers, whose destructors may be foreign code, with a message in hand.
    #[inline]
    pub(super) fn recycle(&self, wakers: impl IntoIterator<Item = Waker>, value: T) -> T {
        let mut wakers = wakers.into_iter().peekable();
        if wakers.peek().is_none() {
            return value;
        }
        let in_hand = InHand {
            chan: self,
            value: Some(value),
        };
        wakers.for_each(wakerun::wake::recycle);
        in_hand.into_value()
    }

    /// Does what is to be done after the lock when no message was taken.
    pub(super) fn settle_without_value(&self, after: &mut After) {
        let served = std::mem::take(&mut after.served);
        self.after_serving(served, &mut after.batch);
        if std::mem::take(&mut after.owes_fence) {
            self.fence_and_release();
        }
    }

    /// Waits for the message that is being written at the head.
    pub(super) fn wait_published(&self) {
        wait_until(|| {
            // A hint: another receiver may move on meanwhile.
            let head = self.rx.head.load(Ordering::Acquire);
            self.gate.load().tail() == head || self.ring.is_published(head)
        });
    }

    /// Takes the next message without waiting.
    pub(super) fn take_now(self: &Arc<Self>) -> Taken<T> {
        loop {
            let mut after = After::new();
            let taken = self.take(&mut self.rx.side.state.lock(), &mut after);
            match taken {
                Taken::Value(value) => return Taken::Value(self.settle(&mut after, value)),
                Taken::Withdrawn(value) => {
                    self.settle_without_value(&mut after);
                    drop(value);
                }
                other => {
                    self.settle_without_value(&mut after);
                    return other;
                }
            }
        }
    }

    /// Whether a message is to be had, by a look that may be old. Under the receivers' lock.
    fn has_message(&self, state: &State<T>) -> bool {
        self.gate.load().tail() != state.head
            || !state.stash.is_empty()
            || self.rx.waiting.load(Ordering::Relaxed)
    }

    /// Whether there is nothing to receive, and the channel has not ended.
    #[cold]
    pub(super) fn is_quiet(&self) -> bool {
        let state = self.rx.side.state.lock();
        !self.has_message(&state) && !may_have_ended(self, self.gate.load())
    }

    // ---- waiting

    /// Puts a receiver's node into the line, or marks it waiting again, and makes it known. Under the
    /// receivers' lock; the caller looks for a message once more.
    pub(super) fn begin_waiting(
        self: &Arc<Self>,
        state: &mut State<T>,
        change: impl FnOnce(&mut Line<()>),
    ) {
        let nobody = state.line.is_empty();
        change(&mut state.line);
        self.copy_receiver_counts(state);
        if nobody {
            let _ = self.gate.set_parked();
            // Pairs with the locked instruction of a parking sender, and of a claim: what came before
            // it is seen by the look that follows; who comes after it sees PARKED.
            wakerun::sync::fence_after_locked();
            // So the receives of this poll owe no fence any more.
            wakerun::wake::cancel_deferred(self);
        }
    }

    /// Takes a node out of the line, under the receivers' lock. Its waker is to be dropped after it.
    ///
    /// # Safety
    /// The node is linked in this line.
    pub(super) unsafe fn leave(
        &self,
        state: &mut State<T>,
        node: NonNull<Waiter<()>>,
    ) -> Option<Waker> {
        let waited = !state.line.is_empty();
        // SAFETY: handed on.
        let waker = unsafe { state.line.remove(node) };
        self.end_waiting(state, waited);
        waker
    }

    /// Clears PARKED, if the last one that waited does not any more.
    fn end_waiting(&self, state: &State<T>, waited: bool) {
        if waited && state.line.is_empty() {
            let _ = self.gate.take_parked();
        }
        self.copy_receiver_counts(state);
    }

    fn copy_receiver_counts(&self, state: &State<T>) {
        let side = &self.rx.side;
        let copy = |to: &AtomicUsize, count: usize| {
            if to.load(Ordering::Relaxed) != count {
                to.store(count, Ordering::Release);
            }
        };
        copy(&side.granted, state.line.granted());
        copy(&side.own, state.line.own());
    }

    /// A receiver goes that had been woken, or does not come: if there is a message, the next one is
    /// woken for it.
    pub(super) fn pass_on(&self, count: usize) {
        let some = {
            let state = self.rx.side.state.lock();
            !state.line.is_empty() && self.has_message(&state)
        };
        if some {
            self.wake_receivers(News::Messages(count));
        }
    }

    /// Wakes waiting receivers in their order: as many as there are messages; all, if the channel is
    /// closed and each message may be the last one.
    pub(crate) fn wake_receivers(&self, news: News) {
        let mut left = match news {
            News::Messages(count) if !self.gate.load().has(CLOSED) => count,
            _ => usize::MAX,
        };
        let place = if left == 1 { Place::Next } else { Place::Tail };
        let mut batch = Batch::new(place);
        let mut panics = FirstPanic::new();
        loop {
            let more = {
                let mut state = self.rx.side.state.lock();
                let waited = !state.line.is_empty();
                while left > 0
                    && !batch.is_full()
                    && let Some((node, _)) = state.line.first()
                {
                    left -= 1;
                    // SAFETY: the first of the line; always granted at its place.
                    let waker = unsafe { state.line.grant_here(node, true) };
                    waker
                        .flatten()
                        .into_iter()
                        .for_each(|waker| batch.push(waker));
                }
                self.end_waiting(&state, waited);
                left > 0 && !state.line.is_empty()
            };
            panics.catch(|| batch.wake_all());
            if !more {
                break;
            }
        }
        panics.resume("a waker");
    }

    /// A poll of a task is over: wakes that it has not used go to others; and if the task is over, too,
    /// no wake goes to receives of it that others may have. Whether receivers of tasks of ours still wait.
    pub(crate) fn receivers_poll_over(&self, poller: &Poller<'_>) -> bool {
        let side = &self.rx.side;
        let over = poller.is_over();
        let unused = side.granted.load(Ordering::Acquire) > 0;
        if unused || (over && side.own.load(Ordering::Acquire) > 0) {
            let mut lapsed = 0;
            {
                let mut state = side.state.lock();
                let waited = !state.line.is_empty();
                let mut left = if over {
                    usize::MAX
                } else {
                    state.line.granted()
                };
                let mut next = state.line.front();
                while let Some(node) = next
                    && left > 0
                {
                    // SAFETY: linked: found from the front on.
                    let (behind, _, mark) = unsafe { state.line.look(node) };
                    next = behind;
                    left -= usize::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
                    // SAFETY: linked.
                    if unsafe { state.line.becomes_due(node, poller) } {
                        // SAFETY: linked, and due.
                        let _ = unsafe { state.line.lapse(node) };
                        lapsed += 1;
                    }
                    if over {
                        // SAFETY: linked.
                        unsafe { state.line.abandon(node, poller) };
                    }
                }
                self.end_waiting(&state, waited);
            }
            if lapsed > 0 {
                self.pass_on(lapsed);
            }
        }
        side.own.load(Ordering::Relaxed) > 0
    }

    // ---- the end

    /// The last receiver is gone and the channel closed to all: drops what is queued.
    pub(super) fn drain(&self, panics: &mut FirstPanic) {
        loop {
            let mut after = After::new();
            let taken = self.take(&mut self.rx.side.state.lock(), &mut after);
            match taken {
                Taken::Value(value) | Taken::Withdrawn(value) => panics.catch(|| drop(value)),
                // Nobody claims any more; some may still write what they have claimed.
                Taken::Unpublished => self.wait_published(),
                Taken::Empty | Taken::End => break,
            }
            panics.catch(|| self.settle_without_value(&mut after));
        }
    }
}

/// A message on its way to the caller; if a foreign waker panics now, it is received next.
struct InHand<'a, T> {
    chan: &'a Chan<T, Mpmc>,
    value: Option<T>,
}

impl<T> InHand<'_, T> {
    fn into_value(mut self) -> T {
        match self.value.take() {
            Some(value) => value,
            None => unreachable!("the value leaves once"),
        }
    }
}

impl<T> Drop for InHand<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.chan.rx.side.state.lock().stash.push_back(value);
            // A second panic would end the process.
            let mut panics = FirstPanic::new();
            panics.catch(|| self.chan.pass_on(1));
        }
    }
}
