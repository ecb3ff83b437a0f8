//! The receiver's side of the protocols: taking messages, sleeping, draining.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{Context, Poll};

use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{Ordering, fence};
use wakerun::sync::{spin_loop, thread};
use wakerun::wake::{self, Batch, Place};

use crate::chan::Chan;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::{CLOSED, POSITION_MASK, Word};
use crate::ring::{Message, NOWHERE};
use crate::waiter::{Status, Wants};

/// How often the receiver looks again for a message that is being written: a memcpy's time. Models
/// have no time, and each look costs them dear.
pub(crate) const SPINS: u32 = if cfg!(wakerun_loom) { 1 } else { 32 };

/// What a look at the queue found.
pub(crate) enum Take<T> {
    Value(T),
    /// Nothing, and more can come.
    Empty,
    /// A sender is between its claim and the end of its write.
    Unpublished,
    /// Nothing, and nothing can come any more.
    End,
}

/// Where the receiver is.
pub(crate) struct Cursor<T> {
    /// The next position, or [`NOWHERE`] while there is a stash; the head in the channel is a copy
    /// for the senders.
    head: u64,
    /// A message that was taken when a foreign waker panicked, and the position after it: it is
    /// received next.
    stash: Option<Box<(T, u64)>>,
    /// The only sender has been served since the last sleep: it runs soon, and will send. Then one
    /// more poll in vain, at the worst, is tried before the next sleep, since that and a wake cost more.
    expecting: bool,
}

impl<T> Cursor<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: 0,
            stash: None,
            expecting: false,
        }
    }

    /// Takes the next message, if it is there.
    #[inline(always)]
    pub(crate) fn take(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> Take<T> {
        // SAFETY: the cursor is the receiver's, and moves on from each position it has taken.
        match unsafe { chan.ring.take(self.head) } {
            Some(Message::Value(value)) => Take::Value(self.taken(chan, value)),
            Some(Message::Withdrawn(value)) => self.discard(chan, value),
            None => self.take_beyond_ring(chan),
        }
    }

    /// A message has been taken out of the ring.
    #[inline(always)]
    fn taken(&mut self, chan: &Arc<Chan<T, Mpsc>>, value: T) -> T {
        self.advance(chan);
        if !chan.rx.waiting.load(Ordering::Relaxed) && defer_fence(chan) {
            return value;
        }
        self.after_take(chan, value)
    }

    #[inline(always)]
    fn advance(&mut self, chan: &Chan<T, Mpsc>) {
        self.head = self.head.wrapping_add(1) & POSITION_MASK;
        // Release: the slot has been read before a sender that sees this writes to it again.
        chan.rx.head.store(self.head, Ordering::Release);
    }

    /// A slot has become free, and there is a line, or nobody else will make the fence that makes
    /// "no line" the truth.
    #[inline(never)]
    fn after_take(&mut self, chan: &Chan<T, Mpsc>, value: T) -> T {
        // Pairs with the locked instruction of a parking sender. If the line has been seen already,
        // taking its lock is what it takes.
        if !chan.rx.waiting.load(Ordering::Relaxed) {
            fence(Ordering::SeqCst);
            if !chan.rx.waiting.load(Ordering::Relaxed) {
                return value;
            }
        }
        self.release(chan, value)
    }

    /// Serves the line with a message in hand, which a panicking waker must not lose.
    #[inline(always)]
    fn release(&mut self, chan: &Chan<T, Mpsc>, value: T) -> T {
        let in_hand = InHand::new(self, value);
        let mut line = chan.line.lock();
        if let Some(waker) = chan.serve_one_send(&mut line) {
            drop(line);
            in_hand.cursor.expecting = chan.senders.load(Ordering::Relaxed) == 1;
            wake::wake_owned(waker, Place::Tail);
        } else {
            drop(line);
            Self::serve_line(chan);
        }
        in_hand.into_value()
    }

    /// Serves a line of any kind.
    #[inline(never)]
    fn serve_line(chan: &Chan<T, Mpsc>) {
        let mut batch = Batch::new(Place::Tail);
        let served = chan.serve_as_receiver(&mut chan.line.lock(), &mut batch);
        chan.after_serving(served, &mut batch);
    }

    /// A message that its sender has withdrawn: its capacity comes back, and it is dropped.
    #[cold]
    #[inline(never)]
    fn discard(&mut self, chan: &Arc<Chan<T, Mpsc>>, value: T) -> Take<T> {
        let mut withdrawn = value;
        loop {
            self.advance(chan);
            chan.fence_and_release();
            drop(withdrawn);
            // SAFETY: as in `take`.
            match unsafe { chan.ring.take(self.head) } {
                Some(Message::Withdrawn(value)) => withdrawn = value,
                Some(Message::Value(value)) => {
                    self.advance(chan);
                    return Take::Value(self.after_take(chan, value));
                }
                None => return self.take_beyond_ring(chan),
            }
        }
    }

    /// The ring has nothing: looks at the stash and the line, then for the end.
    #[inline(never)]
    fn take_beyond_ring(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> Take<T> {
        if let Some(stash) = self.stash.take() {
            let (value, head) = *stash;
            self.head = head;
            return Take::Value(value);
        }
        loop {
            let word = chan.gate.load();
            if word.tail() != self.head {
                return if chan.ring.is_published(self.head) {
                    self.take(chan)
                } else {
                    Take::Unpublished
                };
            }
            if chan.rx.waiting.load(Ordering::Relaxed) {
                match self.take_from_line(chan) {
                    FromLine::Value(value) => return Take::Value(value),
                    FromLine::Again => continue,
                    FromLine::Nothing => {}
                }
            }
            if !may_have_ended(chan, word) {
                return Take::Empty;
            }
            // Several things were looked at. If the word has not changed meanwhile, they are of one
            // moment: what was sent before the last sender went would be seen in it (its Acquire
            // pairs with the senders' last decrement).
            if chan.gate.load() == word {
                return Take::End;
            }
        }
    }

    /// The ring is empty and senders wait: takes the message of the first one straight out of the
    /// line, and serves those behind it, in one critical section.
    fn take_from_line(&mut self, chan: &Chan<T, Mpsc>) -> FromLine<T> {
        let mut batch = Batch::new(Place::Tail);
        let mut line = chan.line.lock();
        let word = chan.gate.load();
        if word.tail() != self.head {
            // A message has come into the ring meanwhile.
            return FromLine::Again;
        }
        let Some((node, wants)) = line.first() else {
            return FromLine::Nothing;
        };
        let mut taken = None;
        if wants == Wants::Send {
            // SAFETY: linked, and alive until `take_out`.
            let waiter = unsafe { node.as_ref() };
            // SAFETY: a linked send's message is in its node, and leaves it here.
            taken = Some(InHand::new(self, unsafe { waiter.take_value() }));
            // SAFETY: linked, and its message has been taken.
            unsafe { Chan::<T, Mpsc>::take_out(&mut line, node, Status::Taken, &mut batch) };
        }
        let served = chan.serve_as_receiver(&mut line, &mut batch);
        drop(line);
        chan.after_serving(served, &mut batch);
        match taken {
            Some(in_hand) => FromLine::Value(in_hand.into_value()),
            None => FromLine::Nothing,
        }
    }

    /// Waits for the message that is being written at the head. Only a thread that has lost its core
    /// in the middle of a copy makes this long.
    pub(crate) fn wait_published(&self, chan: &Chan<T, Mpsc>) {
        wait_until(|| chan.ring.is_published(self.head));
    }

    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if !wake::spend_budget_at_hand(false) {
            return self.poll_at_limit(chan, cx);
        }
        // SAFETY: as in `take`.
        match unsafe { chan.ring.take(self.head) } {
            Some(Message::Value(value)) => {
                self.advance(chan);
                if chan.rx.waiting.load(Ordering::Relaxed) {
                    return self.poll_release(chan, value);
                }
                if !wake::is_deferred(chan) {
                    return self.poll_after_take(chan, value);
                }
                Poll::Ready(Some(value))
            }
            None => self.poll_beyond_ring(chan, cx),
            Some(Message::Withdrawn(value)) => self.poll_past(chan, value, cx),
        }
    }

    // The long ways are calls at the end, so that the short one needs no frame.

    #[inline(never)]
    fn poll_release(&mut self, chan: &Arc<Chan<T, Mpsc>>, value: T) -> Poll<Option<T>> {
        Poll::Ready(Some(self.release(chan, value)))
    }

    #[inline(never)]
    fn poll_after_take(&mut self, chan: &Arc<Chan<T, Mpsc>>, value: T) -> Poll<Option<T>> {
        Poll::Ready(Some(if defer_fence(chan) {
            value
        } else {
            self.after_take(chan, value)
        }))
    }

    /// The ring has nothing, at the first look.
    #[inline(never)]
    fn poll_beyond_ring(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if self.expecting {
            self.expecting = false;
            if chan.gate.load().is_quiet(self.head) && wake::poll_again(cx.waker()) {
                wake::refund_budget();
                return Poll::Pending;
            }
        }
        let take = self.take_beyond_ring(chan);
        self.poll_with(chan, take, cx)
    }

    /// A message that has been withdrawn is the first.
    #[cold]
    #[inline(never)]
    fn poll_past(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        withdrawn: T,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        let take = self.discard(chan, withdrawn);
        self.poll_with(chan, take, cx)
    }

    fn poll_with(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        take: Take<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        match take {
            Take::Value(value) => Poll::Ready(Some(value)),
            Take::End => Poll::Ready(None),
            Take::Empty | Take::Unpublished => {
                wake::refund_budget();
                self.poll_empty(chan, cx)
            }
        }
    }

    /// The budget has to be looked into.
    #[cold]
    #[inline(never)]
    fn poll_at_limit(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if !wake::spend_budget() {
            return self.poll_exhausted(chan, cx);
        }
        let take = self.take(chan);
        self.poll_with(chan, take, cx)
    }

    /// The budget is used up: yields if there is something to receive, else sleeps as usual.
    #[cold]
    #[inline(never)]
    fn poll_exhausted(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if self.stash.is_some()
            || chan.ring.is_published(self.head)
            || chan.rx.waiting.load(Ordering::Relaxed)
            || may_have_ended(chan, chan.gate.load())
        {
            wake::force_yield(cx);
            return Poll::Pending;
        }
        self.poll_empty(chan, cx)
    }

    /// Nothing at the first look: prepares to sleep, and looks again.
    #[inline(never)]
    fn poll_empty(&mut self, chan: &Arc<Chan<T, Mpsc>>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut line_looked_at = false;
        if !chan.rx.side.is_free() && chan.gate.take_parked() {
            // An earlier sleep that no news has ended.
            chan.rx.side.acknowledge();
        }
        loop {
            if !self.settle(chan) || !chan.rx.side.is_free() {
                // A sender that has lost its core holds a slot or the waker. Come again soon.
                spin_loop();
                wake::force_yield(cx);
                return Poll::Pending;
            }
            // SAFETY: the receiver, and the cell is free.
            let old = unsafe { chan.rx.side.set(cx.waker()) };
            drop(old);
            chan.rx.side.begin_park();
            let word = chan.gate.set_parked();
            // Pairs with the locked instruction of a parking sender: it sees the head, or this sees
            // `waiting`.
            wakerun::sync::fence_after_locked();
            // Of a line that has been looked at since the last receive, the first wants more room than
            // there is, and who makes room serves it; unless a message has become the first meanwhile.
            // What becomes the first from now on finds PARKED.
            let line = chan.rx.waiting.load(Ordering::Relaxed)
                && !(line_looked_at && chan.starts_with_permits());
            if word.tail() == self.head && !line && !may_have_ended(chan, word) {
                // So the receives of this poll owe no fence any more. (On the other ways out they may: of
                // a message that is being written, nobody has looked at the line.)
                wake::cancel_deferred(chan);
                return Poll::Pending;
            }
            let taken_back = chan.gate.take_parked();
            if taken_back {
                chan.rx.side.acknowledge();
            }
            match self.take(chan) {
                Take::Value(value) => return Poll::Ready(Some(value)),
                Take::End => return Poll::Ready(None),
                // Whoever cleared PARKED brings news, and wakes.
                Take::Empty | Take::Unpublished if !taken_back => return Poll::Pending,
                Take::Empty => line_looked_at = true,
                Take::Unpublished => {}
            }
        }
    }

    /// Waits a moment for a sender that is between its claim and the end of its write. `false`: it
    /// takes longer than a memcpy.
    fn settle(&self, chan: &Chan<T, Mpsc>) -> bool {
        for _ in 0..SPINS {
            if chan.gate.load().tail() == self.head || chan.ring.is_published(self.head) {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// The receiver is gone and the channel closed to all: drops what is queued, and the waker.
    pub(crate) fn drain(&mut self, chan: &Chan<T, Mpsc>, panics: &mut FirstPanic) {
        if let Some(stash) = self.stash.take() {
            let (value, head) = *stash;
            self.head = head;
            panics.catch(|| drop(value));
        }
        // Nobody claims any more; some may still write what they have claimed.
        let tail = chan.gate.load().tail();
        while self.head != tail {
            self.wait_published(chan);
            // SAFETY: as in `take`.
            let message = unsafe { chan.ring.take(self.head) };
            self.advance(chan);
            panics.catch(|| drop(message));
        }
        wait_until(|| chan.rx.side.is_free());
        // SAFETY: free, and this is the receiver.
        let waker = unsafe { chan.rx.side.take() };
        panics.catch(|| drop(waker));
    }
}

/// Waits for a sender that is a few instructions from what `done` asks for: spins, then lets it have
/// the core.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    let mut spins = 0;
    while !done() {
        if spins < SPINS {
            spins += 1;
            spin_loop();
        } else {
            thread::yield_now();
        }
    }
}

/// What a look at the line came to.
enum FromLine<T> {
    Value(T),
    /// A message has come into the ring meanwhile.
    Again,
    /// No message can be taken from the line now.
    Nothing,
}

/// Whether nothing more seems to come, for a word whose tail is at the head: closed, no permit out, no
/// line. When all senders are gone, permits that are still out have been leaked; and what stands in
/// the line are leaked sends, which are yet to be taken.
pub(crate) fn may_have_ended<T, F: Flavor>(chan: &Chan<T, F>, word: Word) -> bool {
    word.has(CLOSED)
        && (word.permits() == 0 || chan.senders.load(Ordering::Acquire) == 0)
        && !chan.rx.waiting.load(Ordering::Acquire)
}

/// Leaves the fence that a receive owes to the end of the poll. `false`: make it now.
#[inline(always)]
pub(crate) fn defer_fence<T, F: Flavor>(chan: &Arc<Chan<T, F>>) -> bool {
    // SAFETY: `poll_end` and the drop of `Chan` touch no message's borrowed data.
    unsafe { wake::defer_to_poll_end_unchecked(chan) }
}

/// A message on its way to the caller; if a foreign waker panics now, it is received next.
struct InHand<'a, T> {
    cursor: &'a mut Cursor<T>,
    value: ManuallyDrop<T>,
}

impl<'a, T> InHand<'a, T> {
    #[inline]
    fn new(cursor: &'a mut Cursor<T>, value: T) -> Self {
        Self {
            cursor,
            value: ManuallyDrop::new(value),
        }
    }

    #[inline]
    fn into_value(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once: `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.value) }
    }
}

impl<T> Drop for InHand<'_, T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: `into_value` has not been called, or this would not run.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        let head = std::mem::replace(&mut self.cursor.head, NOWHERE);
        self.cursor.stash = Some(Box::new((value, head)));
    }
}
