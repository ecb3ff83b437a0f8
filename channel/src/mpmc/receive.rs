//! Many receivers: taking messages under one lock.
//!
//! Whoever holds the receivers' lock is the one receiver of the protocols in `chan.rs` and `ring/`: it
//! alone moves the head, and PARKED, which here announces that somebody waits, changes only under it. The
//! lock is held for a copy of the message; if senders wait, their line is served in it, too (this lock
//! first, then the line's).

use std::collections::VecDeque;
use std::sync::Arc;

use wakerun::lock::{Lock, LockGuard};
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicU32, Ordering, fence};
use wakerun::wake::{self, Batch, Place};

use crate::chan::Chan;
use crate::flavor::Mpmc;
use crate::gate::{CLOSED, POSITION_MASK, WAITING};
use crate::line::Line;
use crate::receive::{defer_fence, may_have_ended, wait_until};
use crate::receivers::{Counts, InHand, Room, Source, Taken};
use crate::ring::{Found, Left, Message, Ring, Slots};
use crate::serving::Served;
use crate::waiter::{SendWaiter, Status, Wants};

/// Where receivers are, and where they wait. What each receive needs comes first.
#[repr(C)]
pub(crate) struct Receivers<T> {
    state: Lock<State<T>>,
    counts: Counts,
    /// Strong receivers.
    pub(super) strong: AtomicU32,
    pub(super) weak: AtomicU32,
}

/// What the receivers' lock guards.
#[repr(C)]
pub(crate) struct State<T> {
    /// The next position; the head in the channel is a copy for the senders.
    pub(super) head: u64,
    /// The slots that it is in, if anybody has needed any there.
    slots: Slots<T>,
    /// A position of which these bits are 0 is not for the short way: other slots begin there, or positions
    /// begin anew. None is while there is a stash.
    simple_mask: u64,
    /// Messages that were taken when a foreign waker panicked: they are received next.
    stash: VecDeque<T>,
    line: Line,
}

impl<T> Receivers<T> {
    pub(crate) fn new(ring: Ring<T>) -> Self {
        Self {
            state: Lock::new(State {
                head: 0,
                // SAFETY: the receivers'.
                slots: unsafe { ring.slots_at(0) },
                simple_mask: simple_mask(&ring),
                stash: VecDeque::new(),
                line: Line::new(),
            }),
            counts: Counts::new(),
            strong: AtomicU32::new(1),
            weak: AtomicU32::new(0),
        }
    }
}

/// The mask of a state without a stash.
fn simple_mask<T>(ring: &Ring<T>) -> u64 {
    ring.edge_mask() & POSITION_MASK
}

/// What is to be done after the lock.
pub(crate) struct After {
    served: Served,
    batch: Batch,
    /// A slot has become free, and the fence has not been made that makes "no line" the truth.
    owes_fence: bool,
}

impl Default for After {
    #[inline]
    fn default() -> Self {
        Self {
            served: Served::default(),
            batch: Batch::new(Place::Tail),
            owes_fence: false,
        }
    }
}

impl After {
    /// Whether the line of senders has been served, so that there is somebody to wake.
    fn is_pressing(&self) -> bool {
        !self.batch.is_empty() || self.served.again || self.served.messages > 0
    }
}

impl<T> Source for Chan<T, Mpmc> {
    type Item = T;
    type State = State<T>;
    type After = After;

    fn lock(&self) -> LockGuard<'_, State<T>> {
        self.rx.side.state.lock()
    }

    fn line(state: &mut State<T>) -> &mut Line {
        &mut state.line
    }

    fn counts(&self) -> &Counts {
        &self.rx.side.counts
    }

    fn announce(self: &Arc<Self>) {
        let _ = self.gate.set_parked();
        // Pairs with the locked instruction of a parking sender, and of a claim: what came before it is
        // seen by the look that follows; who comes after it sees PARKED.
        wakerun::sync::fence_after_locked();
    }

    fn looked(self: &Arc<Self>) {
        // The line of senders was looked at, too: the receives of this poll owe no fence any more.
        wake::cancel_deferred(self);
    }

    fn retract(&self) {
        let _ = self.gate.take_parked();
    }

    #[inline(always)]
    fn take_simply(self: &Arc<Self>) -> Option<T> {
        if self.rx.waiting.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.rx.side.state.lock();
        let value = self.take_at_hand(&mut state)?;
        drop(state);
        if defer_fence(self) {
            Some(value)
        } else {
            Some(self.fence_with(value))
        }
    }

    #[inline(always)]
    fn take_plainly(&self, state: &mut State<T>) -> Option<(T, Room)> {
        let value = self.take_at_hand(state)?;
        if !self.rx.waiting.load(Ordering::Relaxed) {
            return Some((value, Room::Free));
        }
        let given = self.serve_one_send(&mut self.line.lock(), state.head);
        Some((value, given.map_or(Room::Wanted, Room::Given)))
    }

    #[inline(always)]
    fn settle_room(self: &Arc<Self>, room: Room) {
        match room {
            Room::Given(waker) => wake::wake_owned(waker, Place::Tail),
            Room::Free if defer_fence(self) => {}
            Room::Free => self.fence_and_release(),
            Room::Wanted => self.release(),
        }
    }

    fn take(&self, state: &mut State<T>, after: &mut After) -> Taken<T> {
        // What was taken before is older than what is queued.
        if let Some(value) = state.stash.pop_front() {
            if state.stash.is_empty() {
                state.simple_mask = simple_mask(&self.ring);
            }
            return Taken::Value(value);
        }
        self.enter_slots(state);
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
                    Message::Withdrawn(value) => Taken::Withdrawn(Some(value)),
                    Message::Void => Taken::Withdrawn(None),
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

    #[inline]
    fn settle(self: &Arc<Self>, after: &mut After, value: T) -> T {
        if after.owes_fence && !after.is_pressing() {
            after.owes_fence = false;
            if defer_fence(self) {
                return value;
            }
            return self.fence_with(value);
        }
        self.settle_slowly(after, value)
    }

    fn settle_without_value(&self, after: &mut After) {
        let served = std::mem::take(&mut after.served);
        self.after_serving(served, &mut after.batch);
        if std::mem::take(&mut after.owes_fence) {
            self.fence_and_release();
        }
    }

    fn has_message(&self, state: &State<T>) -> bool {
        self.gate.load().tail() != state.head
            || !state.stash.is_empty()
            || self.rx.waiting.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_quiet(&self, state: &State<T>) -> bool {
        // One value of the word says all that is in it for one moment: also, after `announce` has changed it, that
        // whoever brings news or enters the line from then on sees PARKED.
        let word = self.gate.load();
        word.tail() == state.head
            && !word.has(WAITING)
            && state.stash.is_empty()
            && !may_have_ended(self, word)
    }

    #[inline]
    fn looks_quiet(&self) -> bool {
        self.gate
            .load()
            .is_quiet(self.rx.head.load(Ordering::Relaxed))
    }

    fn is_closed(&self) -> bool {
        self.gate.load().has(CLOSED)
    }

    fn wait_published(&self) {
        wait_until(|| {
            // Under the lock, since a receiver that moves on may take a block with it that is looked at.
            let state = self.lock();
            self.gate.load().tail() == state.head || self.ring.is_published(state.head)
        });
    }

    fn put_back(&self, value: T) {
        let mut state = self.lock();
        state.stash.push_back(value);
        state.simple_mask = 0;
    }

    fn watch_polls(self: &Arc<Self>) -> bool {
        // SAFETY: as for reservations (`bounded/reservation.rs`).
        unsafe { wake::watch_polls_unchecked(self) }
    }
}

impl<T> Chan<T, Mpmc> {
    /// Takes the message at the head, if it is there, and nothing else is to be looked at for it.
    #[inline(always)]
    fn take_at_hand(&self, state: &mut State<T>) -> Option<T> {
        let (head, slots) = (state.head, state.slots);
        let next = head + 1;
        if next & state.simple_mask == 0 {
            return None;
        }
        if slots.look(head) != Found::Message {
            return None;
        }
        // SAFETY: found just now by the receiver, which is whoever has the lock; and the head moves on below.
        let value = slots.with(head, |from| unsafe { std::ptr::read(from) });
        slots.clear(head);
        state.head = next;
        // Release: the slot has been read before a sender that sees this writes to it again.
        self.rx.head.store(next, Ordering::Release);
        Some(value)
    }

    /// Makes the fence that a receive owes, and serves the line if there is one after all, with a message in
    /// hand, which a panic must not lose.
    #[inline]
    fn fence_with(&self, value: T) -> T {
        // Pairs with the locked instruction of a parking sender.
        fence(Ordering::SeqCst);
        if !self.rx.waiting.load(Ordering::Relaxed) {
            return value;
        }
        let mut after = After::default();
        after.served.again = true;
        self.settle_slowly(&mut after, value)
    }

    pub(super) fn advance(&self, state: &mut State<T>) {
        if self.advance_within_slots(state) {
            return;
        }
        // SAFETY: under the receivers' lock.
        unsafe { self.leave_slots(state.head) };
        // SAFETY: as above.
        state.slots = unsafe { self.ring.slots_at(state.head) };
    }

    /// Looks for slots where there were none when the head came there.
    fn enter_slots(&self, state: &mut State<T>) {
        if state.slots.is_vacant() {
            // SAFETY: under the receivers' lock.
            state.slots = unsafe { self.ring.slots_at(state.head) };
        }
    }

    /// [`advance`](Self::advance) under the line's lock, too. What comes back is for [`recycle`](Self::recycle),
    /// without the lock.
    pub(super) fn advance_in_line(&self, state: &mut State<T>, line: &mut Line) -> Option<Left<T>> {
        if self.advance_within_slots(state) {
            return None;
        }
        // SAFETY: under the receivers' lock.
        let left = unsafe { self.leave_slots_in_line(state.head, line) };
        // SAFETY: as above.
        state.slots = unsafe { self.ring.slots_at(state.head) };
        left
    }

    /// `false`: the state's head is where other slots begin, and that of the channel has not been moved.
    fn advance_within_slots(&self, state: &mut State<T>) -> bool {
        state.head = state.head.wrapping_add(1) & POSITION_MASK;
        if state.head & self.ring.edge_mask() == 0 {
            return false;
        }
        // Release: the slot has been read before a sender that sees this writes to it again.
        self.rx.head.store(state.head, Ordering::Release);
        true
    }

    /// The ring is empty and senders wait: takes the message of the first one straight out of the
    /// line, and serves those behind it.
    fn take_from_line(&self, state: &State<T>, after: &mut After) -> Option<T> {
        if after.batch.is_full() {
            after.served.again = true;
            return None;
        }
        let mut line = self.line.lock();
        if self.gate.load().tail() != state.head {
            return None;
        }
        let (node, wants) = line.first()?;
        let mut taken = None;
        if wants == Wants::Send {
            // SAFETY: linked, and alive until `take_out`; that of a send, in the line of this channel.
            let place = unsafe { SendWaiter::<T>::value_of(node) };
            // SAFETY: a linked send's message is in its node, and leaves it here.
            taken = Some(unsafe { std::ptr::read(place) });
            // SAFETY: linked, and its message has been taken.
            unsafe { Self::take_out(&mut line, node, Status::Taken, &mut after.batch) };
        }
        let served = self.serve_as_receiver(&mut line, &mut after.batch);
        after.served.and(served);
        taken
    }

    #[inline(never)]
    fn settle_slowly(&self, after: &mut After, value: T) -> T {
        let in_hand = InHand::new(self, value);
        self.settle_without_value(after);
        in_hand.into_value()
    }

    /// The last receiver is gone and the channel closed to all: drops what is queued.
    pub(super) fn drain(&self, panics: &mut FirstPanic) {
        loop {
            let mut after = After::default();
            let taken = self.take(&mut self.lock(), &mut after);
            match taken {
                Taken::Value(value) => panics.catch(|| drop(value)),
                Taken::Withdrawn(value) => panics.catch(|| drop(value)),
                // Nobody claims any more; some may still write what they have claimed.
                Taken::Unpublished => self.wait_published(),
                Taken::Empty | Taken::End => break,
            }
            panics.catch(|| self.settle_without_value(&mut after));
        }
    }
}
