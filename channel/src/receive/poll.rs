//! The receiver's polls: what comes before a message is taken, and the sleep when there is none.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use wakerun::sync::atomic::Ordering;
use wakerun::sync::spin_loop;
use wakerun::wake;

use super::{Cursor, SPINS, Took, may_have_ended};
use crate::chan::Chan;
use crate::flavor::Mpsc;
use crate::gate::{PARKED, Word};
use crate::out::Out;
use crate::ring::Found;

impl<T> Cursor<T> {
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if !wake::spend_budget_at_hand(false) {
            return self.poll_at_limit(chan, cx);
        }
        if self.slots.look(self.head) == Found::Message {
            // SAFETY: seen just now.
            return unsafe { self.receive(chan) };
        }
        self.poll_slowly(chan, cx)
    }

    /// No message, at the first look. Needs no frame where the receiver expects one soon, or goes to sleep as it did
    /// before.
    #[inline(never)]
    fn poll_slowly(&mut self, chan: &Arc<Chan<T, Mpsc>>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let word = chan.gate.load();
        // (With a stash, the head is no position, and so no tail.)
        if word.is_quiet(self.head) {
            let pending = if self.expecting {
                self.comes_again(cx.waker())
            } else {
                self.sleep_simply(chan, word, cx.waker())
            };
            if pending {
                wake::refund_budget();
                return Poll::Pending;
            }
        }
        self.poll_generally(chan, cx)
    }

    /// Has the task polled again, once, if it is one of ours.
    #[inline(always)]
    fn comes_again(&mut self, waker: &Waker) -> bool {
        let comes_again = wake::poll_again(waker);
        if comes_again {
            self.expecting = false;
        }
        comes_again
    }

    /// The short way to sleep, for a receiver whose waker still stands in the cell; `word` was quiet. `false`: nothing
    /// has been done.
    #[inline(always)]
    fn sleep_simply(&self, chan: &Arc<Chan<T, Mpsc>>, word: Word, waker: &Waker) -> bool {
        // An earlier sleep, of which PARKED is not left in the word, may still have its waker lent out.
        if word.has(PARKED) || !chan.rx.side.is_free() {
            return false;
        }
        // SAFETY: the receiver, and the cell is free.
        if !unsafe { chan.rx.side.holds(waker) } {
            return false;
        }
        chan.rx.side.begin_park();
        if !chan.gate.try_park(word) {
            chan.rx.side.acknowledge();
            return false;
        }
        // Nothing is looked at once more: what comes from now on finds PARKED. So does a sender that begins a line,
        // by an exchange of the same word, and it sees the head; so the receives of this poll owe no fence any more.
        wake::cancel_deferred(chan);
        true
    }

    #[inline(never)]
    fn poll_generally(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        let mut out = Poll::Pending;
        if self.poll_charged(chan, cx, &mut out) == Poll::Ready(Took::End) {
            out = Poll::Ready(None);
        }
        out
    }

    /// The budget has to be looked into.
    #[cold]
    #[inline(never)]
    fn poll_at_limit(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        let mut out = Poll::Pending;
        if self.poll_into(chan, cx, &mut out) == Poll::Ready(Took::End) {
            out = Poll::Ready(None);
        }
        out
    }

    /// Takes the next message into `out`; Ready with `Message` or `End`.
    pub(crate) fn poll_into<O: Out<T>>(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
        out: &mut O,
    ) -> Poll<Took> {
        if wake::spend_budget() {
            self.poll_charged(chan, cx, out)
        } else {
            self.poll_exhausted(chan, cx, out)
        }
    }

    /// [`poll_into`](Self::poll_into), for which the budget has been charged.
    #[inline(always)]
    fn poll_charged<O: Out<T>>(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
        out: &mut O,
    ) -> Poll<Took> {
        // (With a stash, the head is no position, and so no tail.)
        if chan.gate.load().is_quiet(self.head) {
            if self.expecting && self.comes_again(cx.waker()) {
                wake::refund_budget();
                return Poll::Pending;
            }
        } else {
            match self.take(chan, out) {
                Took::Empty | Took::Unpublished => {}
                took => return Poll::Ready(took),
            }
        }
        let polled = self.poll_empty(chan, cx, out, true);
        if polled.is_pending() {
            wake::refund_budget();
        }
        polled
    }

    /// The budget is used up: yields if there is something to receive, else sleeps as usual.
    #[cold]
    fn poll_exhausted<O: Out<T>>(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
        out: &mut O,
    ) -> Poll<Took> {
        if self.stash.is_some()
            || chan.ring.is_published(self.head)
            || chan.rx.waiting.load(Ordering::Relaxed)
            || may_have_ended(chan, chan.gate.load())
        {
            wake::force_yield(cx);
            return Poll::Pending;
        }
        self.poll_empty(chan, cx, out, false)
    }

    /// Nothing at the first look: prepares to sleep, and looks again. `charged`: the budget has been, for what may have
    /// come since; else this yields for it.
    #[inline]
    fn poll_empty<O: Out<T>>(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        cx: &mut Context<'_>,
        out: &mut O,
        charged: bool,
    ) -> Poll<Took> {
        // Also where a poll found what was no message: one that sleeps expects nothing, or the next poll would
        // leave this one's waker in the cell.
        self.expecting = false;
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
            // A reservation that finds too little room is served by who makes room. What becomes the first of the
            // line from now on finds PARKED.
            let line = chan.rx.waiting.load(Ordering::Relaxed)
                && !chan.waits_for_room(self.head, line_looked_at);
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
            if !charged {
                wake::force_yield(cx);
                return Poll::Pending;
            }
            match self.take(chan, out) {
                // Whoever cleared PARKED brings news, and wakes.
                Took::Empty | Took::Unpublished if !taken_back => return Poll::Pending,
                Took::Empty => line_looked_at = true,
                Took::Unpublished => {}
                took => return Poll::Ready(took),
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
}
