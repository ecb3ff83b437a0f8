//! The word that every claim of capacity goes through, and its named transitions.
//!
//! | bits | what | set by | cleared by |
//! |---|---|---|---|
//! | 0 CLOSED | no new claims | close, last sender, receiver's drop | never |
//! | 1 RX_GONE | nor by permits | receiver's drop | never |
//! | 2 WAITING | a line of senders waits: claims go there | a sender, under the line's lock | whoever empties the line, under its lock |
//! | 3 PARKED | the receiver sleeps | the receiver | the claim (or close) that brings it news, or the receiver itself |
//! | — of many receivers | one of them waits | it, under the receivers' lock | whoever wakes the last one, under that lock |
//! | 4–27 | permits held and grants not yet claimed | reserve, grant | permit sent or dropped |
//! | 28–63 | tail: the position that the next message gets | every accepted message | |
//!
//! Who owns the receiver's waker cell is decided here: whoever clears PARKED.
//!
//! Positions are counted modulo 2³⁶. The exchange of a claim that was prepared against a word 2³⁶
//! messages old, with all flags and permits as they were, would succeed wrongly; at 60 million
//! messages a second that takes a thread that is preempted between a load and an exchange for 19
//! minutes and wakes up at the very message.

use std::marker::PhantomData;

use wakerun::sync::atomic::{AtomicU64, Ordering};

use crate::flavor::Flavor;

pub(crate) const CLOSED: u64 = 1;
pub(crate) const RX_GONE: u64 = 1 << 1;
pub(crate) const WAITING: u64 = 1 << 2;
pub(crate) const PARKED: u64 = 1 << 3;
const PERMIT_SHIFT: u32 = 4;
const PERMIT_BITS: u32 = 24;
const PERMIT_ONE: u64 = 1 << PERMIT_SHIFT;
const TAIL_SHIFT: u32 = PERMIT_SHIFT + PERMIT_BITS;
const TAIL_ONE: u64 = 1 << TAIL_SHIFT;
/// Positions are taken modulo this plus one.
pub(crate) const POSITION_MASK: u64 = u64::MAX >> TAIL_SHIFT;
/// The largest capacity: as many permits as the word can count.
pub(crate) const MAX_CAPACITY: usize = (1 << PERMIT_BITS) - 1;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    #[inline]
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    #[inline]
    pub(crate) fn tail(self) -> u64 {
        self.0 >> TAIL_SHIFT
    }

    #[inline]
    pub(crate) fn permits(self) -> u64 {
        (self.0 >> PERMIT_SHIFT) & ((1 << PERMIT_BITS) - 1)
    }

    /// Messages and permits that take capacity, if `head` is the next position to be received.
    #[inline]
    pub(crate) fn used(self, head: u64) -> u64 {
        (self.tail().wrapping_sub(head) & POSITION_MASK) + self.permits()
    }

    /// Whether there is room for `count` messages, for a head with this [limit](Gate::limit), and permits not counted.
    #[inline(always)]
    pub(crate) fn has_room_below(self, limit: u64, count: u64) -> bool {
        // Positions wrap, so their difference counts. What stands below them does not change it by one.
        limit.wrapping_sub(self.0) as i64 > ((count - 1) << TAIL_SHIFT) as i64
    }

    /// Whether there is no message behind `head`, none to come out of the line, and no end in sight.
    #[inline]
    pub(crate) fn is_quiet(self, head: u64) -> bool {
        self.tail() == head && !self.has(CLOSED | WAITING)
    }

    /// One message more.
    #[inline]
    pub(crate) fn push(self) -> Self {
        Self(self.0.wrapping_add(TAIL_ONE))
    }

    /// One message more, which the receiver is to be woken for if it sleeps: whoever makes this
    /// transition owns the wake.
    #[inline]
    fn bring<F: Flavor>(self) -> Self {
        self.push().with_news::<F>()
    }

    /// The one receiver is woken by whoever brings news; of many, each is told under their lock.
    #[inline]
    fn with_news<F: Flavor>(self) -> Self {
        if F::MANY { self } else { self.without(PARKED) }
    }

    /// `count` permits more.
    #[inline]
    pub(crate) fn grant(self, count: u64) -> Self {
        Self(self.0 + count * PERMIT_ONE)
    }

    #[inline]
    fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }
}

/// What a claim came to.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The position is the caller's: write there, publish, and wake the receiver if so told.
    Claimed { position: u64, wake: bool },
    /// No room, or a line that comes first.
    Full,
    /// Closed to this kind of claim.
    Closed,
}

/// What the short way to a claim came to.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Simply {
    /// As [`Claim::Claimed`].
    Claimed { position: u64, wake: bool },
    /// No room, it seems, or a line that comes first; the channel was not closed.
    Full,
    /// Something else is in the way: go the long way.
    Not,
}

/// The word, with the senders' copy of the receiver's position beside it.
pub(crate) struct Gate<F> {
    word: AtomicU64,
    /// The position at which the channel is full, as a word with nothing else set, for a head that
    /// some sender has read. Old, it makes the channel look fuller than it is; then the true one is
    /// read. So the receiver's line is touched once in a bufferful.
    ///
    /// Nobody reads it while a line waits, which may be for any number of messages; half a turn of the positions
    /// later an old one would look like room. So whoever clears WAITING brings it up to date first.
    limit: AtomicU64,
    capacity: u32,
    _flavor: PhantomData<fn() -> F>,
}

/// What keeps a claim from the short way: flags that refuse it, and permits, which have to be counted.
const NOT_SIMPLE: u64 = (TAIL_ONE - 1) & !PARKED;

impl<F: Flavor> Gate<F> {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            word: AtomicU64::new(0),
            limit: AtomicU64::new(capacity << TAIL_SHIFT),
            capacity: capacity as u32,
            _flavor: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        u64::from(self.capacity)
    }

    /// Acquire: whoever sees a flag or a count sees what was done before it was set.
    #[inline]
    pub(crate) fn load(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// The one loop that changes the word: `next` gives the new value, or `None` to leave it.
    /// Returns the value before, and whether it was changed.
    #[inline(always)]
    fn update(&self, mut next: impl FnMut(Word) -> Option<Word>) -> (Word, bool) {
        let mut now = self.word.load(Ordering::Acquire);
        loop {
            let Some(new) = next(Word(now)) else {
                return (Word(now), false);
            };
            // Release: a grant, a flag or a park is seen with what came before it. Acquire: the
            // receiver's waker, written before PARKED, is read after this clears it.
            match self
                .word
                .compare_exchange_weak(now, new.0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return (Word(now), true),
                Err(found) => now = found,
            }
        }
    }

    /// How many more fit into a channel whose word is `word`. Reads the receiver's head, which may be
    /// newer than the word, even beyond its tail: then there seems to be none.
    fn room(&self, word: Word, head: &AtomicU64) -> u64 {
        self.capacity()
            .saturating_sub(word.used(self.see_limit(head).0))
    }

    /// Looks where the receiver is, and how far a tail can go: as a word with nothing else set.
    #[inline(always)]
    fn see_limit(&self, head: &AtomicU64) -> (u64, u64) {
        // Acquire pairs with the receiver's Release store of its head: the slots behind it are done
        // with before they are written again.
        let head = head.load(Ordering::Acquire);
        (head, self.set_limit(head))
    }

    /// Notes how far a tail can go for this head; returns that.
    #[inline(always)]
    fn set_limit(&self, head: u64) -> u64 {
        let limit = self.limit(head);
        // Release hands the slots on to the senders that only read this.
        self.limit.store(limit, Ordering::Release);
        limit
    }

    /// How far a tail can go for this head.
    #[inline(always)]
    pub(crate) fn limit(&self, head: u64) -> u64 {
        head.wrapping_add(self.capacity()) << TAIL_SHIFT
    }

    fn has_room(&self, word: Word, count: u64, head: &AtomicU64) -> bool {
        count <= self.room(word, head)
    }

    /// Claims room for `count`, if there seems to be some and there is no line.
    ///
    /// `Full` may be a mixture of two moments: the head may have moved on while the word was read.
    /// It is good enough for a caller that goes to the line, where it is looked at again.
    #[inline]
    fn claim_or_line(&self, count: u64, head: &AtomicU64, take: impl Fn(Word) -> Word) -> Claim {
        let (before, changed) = self.update(|word| {
            (!word.has(CLOSED | WAITING) && self.has_room(word, count, head)).then(|| take(word))
        });
        if changed {
            Claim::Claimed {
                position: before.tail(),
                wake: before.has(PARKED),
            }
        } else if before.has(CLOSED) {
            Claim::Closed
        } else {
            Claim::Full
        }
    }

    /// Whether there is no room for `count` at one moment, or a line that comes first. `false`: there may be room, or
    /// the channel is closed.
    #[inline]
    fn is_surely_full(&self, count: u64, head: &AtomicU64) -> bool {
        let seen = head.load(Ordering::Acquire);
        let word = self.load();
        // The word as it was while the head stood still.
        !word.has(CLOSED)
            && (word.has(WAITING) || word.used(seen) + count > self.capacity())
            && head.load(Ordering::Acquire) == seen
    }

    /// As [`claim_or_line`](Self::claim_or_line), but `Full` is the truth of one moment.
    fn claim_exactly(&self, count: u64, head: &AtomicU64, take: impl Fn(Word) -> Word) -> Claim {
        loop {
            if self.is_surely_full(count, head) {
                return Claim::Full;
            }
            let claim = self.claim_or_line(count, head, &take);
            if claim != Claim::Full {
                return claim;
            }
        }
    }

    /// The short way to a position for a message. Clears PARKED, so that one sender owns the wake.
    #[inline(always)]
    pub(crate) fn claim_simply(&self, head: &AtomicU64) -> Simply {
        // Acquire: of a line that is over, the limit is seen that it has left.
        let word = self.word.load(Ordering::Acquire);
        if word & NOT_SIMPLE != 0 {
            return match Word(word).has(WAITING) && !Word(word).has(CLOSED) {
                true => Simply::Full,
                false => Simply::Not,
            };
        }
        // Positions wrap, so their difference counts, not their order.
        let is_full = |limit: u64| (limit.wrapping_sub(word) as i64) <= PARKED as i64;
        // Acquire pairs with the Release in `see_limit`. A head newer than the word makes room that the
        // exchange below does not find.
        if is_full(self.limit.load(Ordering::Acquire)) && is_full(self.see_limit(head).1) {
            return Simply::Full;
        }
        let new = Word(word).bring::<F>();
        // Orderings as in `update`.
        let exchanged =
            self.word
                .compare_exchange(word, new.0, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_err() {
            return Simply::Not;
        }
        Simply::Claimed {
            position: Word(word).tail(),
            wake: word & PARKED != 0,
        }
    }

    /// The short way to `count` permits.
    #[inline(always)]
    pub(crate) fn claim_permits_simply(&self, count: u64, head: &AtomicU64) -> Simply {
        // Acquire as in `claim_simply`.
        let word = self.load();
        if word.has(CLOSED | WAITING) {
            return match word.has(CLOSED) {
                true => Simply::Not,
                false => Simply::Full,
            };
        }
        // Positions wrap, so their difference counts. What stands below them does not change it by one.
        let room =
            |limit: u64| (limit.wrapping_sub(word.tail() << TAIL_SHIFT) as i64) >> TAIL_SHIFT;
        let wanted = (word.permits() + count) as i64;
        // Acquire as in `claim_simply`.
        if room(self.limit.load(Ordering::Acquire)) < wanted
            && room(self.see_limit(head).1) < wanted
        {
            return Simply::Full;
        }
        // Orderings as in `update`.
        let new = word.grant(count);
        let exchanged =
            self.word
                .compare_exchange(word.0, new.0, Ordering::AcqRel, Ordering::Relaxed);
        if exchanged.is_err() {
            return Simply::Not;
        }
        Simply::Claimed {
            position: word.tail(),
            wake: false,
        }
    }

    /// The long way to a position for a message, for a caller that goes to the line if there is none.
    pub(crate) fn claim(&self, head: &AtomicU64) -> Claim {
        self.claim_or_line(1, head, Word::bring::<F>)
    }

    /// The long way to a position for a message, for a caller that reports `Full`.
    #[cold]
    pub(crate) fn try_claim(&self, head: &AtomicU64) -> Claim {
        self.claim_exactly(1, head, Word::bring::<F>)
    }

    /// Claims positions for as many of `count` messages as there is room for, for a caller that goes to the
    /// line if there is none. Returns the first position, their number, and whether to wake.
    pub(crate) fn claim_some(&self, count: u64, head: &AtomicU64) -> (u64, u64, bool) {
        let mut taken = 0;
        let (before, changed) = self.update(|word| {
            if word.has(CLOSED | WAITING) {
                return None;
            }
            taken = count.min(self.room(word, head));
            if taken == 0 {
                return None;
            }
            let pushed = Word(word.0.wrapping_add(taken * TAIL_ONE));
            Some(pushed.with_news::<F>())
        });
        let taken = if changed { taken } else { 0 };
        (before.tail(), taken, before.has(PARKED))
    }

    /// Claims `count` permits, for a caller that goes to the line if there is no room; brings no
    /// message, so the receiver sleeps on.
    pub(crate) fn claim_permits(&self, count: u64, head: &AtomicU64) -> Claim {
        self.claim_or_line(count, head, |word| word.grant(count))
    }

    /// Claims `count` permits, for a caller that reports `Full`.
    pub(crate) fn try_claim_permits(&self, count: u64, head: &AtomicU64) -> Claim {
        self.claim_exactly(count, head, |word| word.grant(count))
    }

    /// The short way to turn a permit into a position: with whether to wake. `None`: go the long way.
    #[inline(always)]
    pub(crate) fn claim_with_permit_simply(&self) -> Option<(u64, bool)> {
        let word = Word(self.word.load(Ordering::Relaxed));
        if word.has(CLOSED | RX_GONE) {
            return None;
        }
        let new = word.bring::<F>().0 - PERMIT_ONE;
        // Orderings as in `update`.
        self.word
            .compare_exchange(word.0, new, Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        Some((word.tail(), word.has(PARKED)))
    }

    /// Turns a permit into a position. Refused only when the receiver is gone.
    #[inline(never)]
    pub(crate) fn claim_with_permit(&self) -> Claim {
        let (before, changed) = self
            .update(|word| (!word.has(RX_GONE)).then(|| Word(word.bring::<F>().0 - PERMIT_ONE)));
        if changed {
            Claim::Claimed {
                position: before.tail(),
                wake: before.has(PARKED),
            }
        } else {
            Claim::Closed
        }
    }

    /// Turns as many of `permits` permits into positions as there are `messages`, and gives the rest
    /// back: one exchange for all. Refused only when the receiver is gone.
    ///
    /// Returns the first position, the word before and the word afterwards.
    pub(crate) fn claim_with_permits(
        &self,
        messages: u64,
        permits: u64,
    ) -> Option<(u64, Word, Word)> {
        let next = |word: Word| {
            let mut new = Word(word.0.wrapping_add(messages * TAIL_ONE) - permits * PERMIT_ONE);
            if messages > 0 || (new.has(CLOSED) && new.permits() == 0) {
                new = new.with_news::<F>();
            }
            new
        };
        let (before, changed) = self.update(|word| (!word.has(RX_GONE)).then(|| next(word)));
        changed.then(|| (before.tail(), before, next(before)))
    }

    /// The short way to give `count` permits back, where nobody has to be told. `false`: go the long way.
    #[inline(always)]
    pub(crate) fn return_permits_simply(&self, count: u64) -> bool {
        let word = Word(self.word.load(Ordering::Relaxed));
        // Orderings as in `update`.
        !word.has(CLOSED | WAITING)
            && self
                .word
                .compare_exchange(
                    word.0,
                    word.0 - count * PERMIT_ONE,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Gives `count` permits back. Returns the word afterwards: WAITING asks for a release; if
    /// `wake` is set the channel was closed and has just become idle, and the receiver is the
    /// caller's to wake.
    #[inline]
    pub(crate) fn return_permits(&self, count: u64) -> (Word, bool) {
        let ends = |new: Word| new.has(CLOSED) && new.permits() == 0;
        let next = |word: Word| {
            let new = Word(word.0 - count * PERMIT_ONE);
            if ends(new) { new.with_news::<F>() } else { new }
        };
        let (before, _) = self.update(|word| Some(next(word)));
        let after = next(before);
        (after, before.has(PARKED) && ends(after))
    }

    /// Sets WAITING, which is not set; under the line's lock. Returns the word as it is then.
    pub(crate) fn set_waiting(&self) -> Word {
        // A locked instruction, hence on x86-64 the fence of the handshake with the receiver. Added, not or-ed: that
        // is one instruction there, and not a loop, where the old value is wanted.
        let before = Word(self.word.fetch_add(WAITING, Ordering::SeqCst));
        debug_assert!(!before.has(WAITING));
        Word(before.0 | WAITING)
    }

    /// Clears WAITING; under the line's lock, with the line empty.
    pub(crate) fn clear_waiting(&self, head: &AtomicU64) {
        let _ = self.see_limit(head);
        self.word.fetch_and(!WAITING, Ordering::AcqRel);
    }

    /// A claim under the line's lock, past WAITING, of room that the caller has found. For a
    /// message; `wake` as in [`Claim::Claimed`].
    pub(crate) fn claim_in_line(&self) -> (u64, bool) {
        let (before, _) = self.update(|word| Some(word.bring::<F>()));
        (before.tail(), before.has(PARKED))
    }

    /// Grants permits under the line's lock, of room that the caller has found.
    pub(crate) fn grant_in_line(&self, count: u64) {
        self.word.fetch_add(count * PERMIT_ONE, Ordering::AcqRel);
    }

    /// Grants permits to the first of the line, of room that the caller has found for a receiver at `head`; under
    /// the line's lock, with WAITING set, which is cleared if the line is empty then.
    pub(crate) fn grant_to_first(&self, count: u64, head: u64, line_is_empty: bool) {
        let mut change = count * PERMIT_ONE;
        if line_is_empty {
            let _ = self.set_limit(head);
            // It is set, so this borrows from no other field.
            change = change.wrapping_sub(WAITING);
        }
        let before = Word(self.word.fetch_add(change, Ordering::AcqRel));
        debug_assert!(before.has(WAITING));
    }

    /// Stores the word without an exchange: for the receiver, under the line's lock, while WAITING is set and no
    /// permit is out.
    ///
    /// Then nobody else changes the word: claims are refused by WAITING (and a claim prepared before
    /// it was set fails on it), permits do not exist, parking senders and closers take the lock, and
    /// PARKED is the receiver's own.
    #[inline]
    pub(crate) fn store_exclusive(&self, word: Word) {
        self.word.store(word.0, Ordering::Release);
    }

    /// [`store_exclusive`](Self::store_exclusive), and the line is empty; `limit` is that for the receiver's head.
    #[inline]
    pub(crate) fn end_line_exclusively(&self, word: Word, limit: u64) {
        self.limit.store(limit, Ordering::Release);
        self.store_exclusive(word.without(WAITING));
    }

    /// The receiver goes to sleep. Returns the word as it is then.
    #[inline]
    pub(crate) fn set_parked(&self) -> Word {
        // Release: the waker in the cell is seen by whoever clears PARKED. A locked instruction,
        // hence on x86-64 the fence of the handshake with parking senders.
        Word(self.word.fetch_or(PARKED, Ordering::SeqCst) | PARKED)
    }

    /// The receiver goes to sleep, if the word is still `quiet`, as it has seen it. `false`: something has come, or the
    /// exchange has failed by chance.
    ///
    /// The word has no WAITING, so this is also the receiver's part of the handshake with a parking sender: the
    /// exchange that sets WAITING comes behind this one, and its sender sees the head and PARKED.
    #[inline]
    pub(crate) fn try_park(&self, quiet: Word) -> bool {
        debug_assert!(!quiet.has(CLOSED | WAITING | PARKED));
        // Release: the waker in the cell is seen by whoever clears PARKED, and the head by whoever sets WAITING.
        // Relaxed otherwise: nothing is read for it.
        self.word
            .compare_exchange_weak(
                quiet.0,
                quiet.0 | PARKED,
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Clears PARKED: the receiver takes it back, or somebody brings it news without a claim. `true`: the
    /// waker cell is the caller's; else somebody was faster, and owns the cell until it acknowledges.
    #[inline]
    pub(crate) fn take_parked(&self) -> bool {
        Word(self.word.fetch_and(!PARKED, Ordering::AcqRel)).has(PARKED)
    }

    /// Sets CLOSED (and RX_GONE, if so told); under the line's lock. `true`: PARKED was set, and the
    /// wake is the caller's.
    pub(crate) fn close(&self, flags: u64) -> bool {
        let (before, _) = self.update(|word| Some(Word(word.0 | flags).with_news::<F>()));
        before.has(PARKED)
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests;
