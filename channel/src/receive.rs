//! The receiver's side of the protocols: taking messages, draining; what its polls do around that is in `poll.rs`.

mod poll;

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use wakerun::lock::LockGuard;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{Ordering, fence};
use wakerun::sync::{spin_loop, thread};
use wakerun::wake::{self, Batch, Place};

use crate::chan::Chan;
use crate::error::TryRecvError;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::{CLOSED, POSITION_MASK, Word};
use crate::line::Line;
use crate::out::{InPlace, Out, Returned};
use crate::ring::{Found, NOWHERE, Ring, Slots};
use crate::waiter::{SendWaiter, Status, Wants};

/// How often the receiver looks again for a message that is being written: a memcpy's time. Models
/// have no time, and each look costs them dear.
pub(crate) const SPINS: u32 = if cfg!(wakerun_loom) { 1 } else { 32 };

/// What an attempt to take came to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// A message is where the caller wants it.
    Message,
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
    /// The slots that the next position is in, if anybody has needed any there; none while there is a stash.
    slots: Slots<T>,
    /// See [`Ring::edge_mask`].
    edge_mask: u64,
    /// A message that is received next, and has no slot.
    stash: Option<Box<Stash<T>>>,
    /// The only sender has been served since the last sleep: it runs soon, and will send. Then one
    /// more poll in vain, at the worst, is tried before the next sleep, since that and a wake cost more.
    expecting: bool,
}

/// A message that was taken when a foreign waker panicked, or one out of the line that is to be looked at.
struct Stash<T> {
    value: ManuallyDrop<T>,
    /// The position after it.
    head: u64,
}

impl<T> Cursor<T> {
    /// That of the receiver of a new channel.
    pub(crate) fn new(ring: &Ring<T>) -> Self {
        Self {
            head: 0,
            // SAFETY: the receiver's.
            slots: unsafe { ring.slots_at(0) },
            edge_mask: ring.edge_mask(),
            stash: None,
            expecting: false,
        }
    }

    /// Moves the message at the head out.
    ///
    /// # Safety
    /// It is there.
    #[inline(always)]
    unsafe fn receive<R: Returned<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> R {
        // The line is looked at before the head moves. That is no earlier than it would be otherwise: without a
        // fence, a look behind the head's store can come before it, too.
        if chan.rx.waiting.load(Ordering::Relaxed) || self.is_last() {
            // SAFETY: handed on.
            return unsafe { self.receive_slowly(chan) };
        }
        if defer_fence(chan) {
            // SAFETY: handed on.
            return unsafe { self.move_out::<R, false>(chan) };
        }
        // SAFETY: handed on.
        let mut received = unsafe { self.move_out::<R, false>(chan) };
        // As in `must_release`.
        fence(Ordering::SeqCst);
        if chan.rx.waiting.load(Ordering::Relaxed) {
            // What is small stays out of memory, and what is large is not copied once more.
            if size_of::<T>() <= 2 * size_of::<usize>() {
                received = self.release_with(chan, received);
            } else {
                self.release_before(chan, &mut received);
            }
        }
        received
    }

    // The long ways are calls at the end, so that the short one needs no frame.

    /// # Safety
    /// As [`receive`](Self::receive).
    #[inline(never)]
    unsafe fn receive_slowly<R: Returned<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> R {
        // Moved out before all else, and returned in one place: so it is copied once.
        // SAFETY: handed on.
        let mut received = unsafe { self.move_out::<R, true>(chan) };
        if self.must_release(chan) {
            self.release(chan, &mut received);
        }
        received
    }

    /// [`receive`](Self::receive) into `out`.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn receive_into<O: Out<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>, out: &mut O) {
        // SAFETY: handed on; the head moves on.
        self.slots.with(self.head, |from| unsafe { out.fill(from) });
        self.advance_and_release(chan, out);
    }

    /// The message at the head is in `out`, or gone: moves the head on, and sees to those who wait for its slot.
    #[inline(always)]
    fn advance_and_release<O: Out<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>, out: &mut O) {
        self.advance(chan);
        if self.must_release(chan) {
            self.release(chan, out);
        }
    }

    /// The head has moved on: whether somebody waits for that. If not now, the end of the poll may have to look again.
    #[inline(always)]
    fn must_release(&self, chan: &Arc<Chan<T, Mpsc>>) -> bool {
        let waits = || chan.rx.waiting.load(Ordering::Relaxed);
        waits()
            || !defer_fence(chan) && {
                // Pairs with the locked instruction of a parking sender. If the line has been seen already,
                // taking its lock is what it takes.
                fence(Ordering::SeqCst);
                waits()
            }
    }

    /// Moves the message at the head out, and the head on. With `EDGE`, other slots may begin behind it.
    ///
    /// # Safety
    /// It is there; without `EDGE` the next position is in the same slots.
    #[inline(always)]
    unsafe fn move_out<R: Returned<T>, const EDGE: bool>(&mut self, chan: &Chan<T, Mpsc>) -> R {
        let (head, slots) = (self.head, self.slots);
        // The head moves when the result has been written: at its final place, since nothing comes between. A
        // value that is kept until afterwards would be copied twice.
        let _after = AdvanceOnDrop::<T, EDGE> { cursor: self, chan };
        // SAFETY: handed on; the head moves on.
        slots.with(head, |from| unsafe { R::of(from) })
    }

    /// Takes the next message into `out`, if it is there.
    pub(crate) fn take<O: Out<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>, out: &mut O) -> Took {
        loop {
            match self.slots.look(self.head) {
                Found::Message if O::STAYS => return Took::Message,
                Found::Message => {
                    // SAFETY: seen just now.
                    unsafe { self.receive_into(chan, out) };
                    return Took::Message;
                }
                // SAFETY: seen just now.
                Found::Withdrawn => unsafe { self.discard(chan) },
                Found::Void => {
                    self.advance(chan);
                    chan.fence_and_release();
                }
                Found::Nothing if self.enter_slots(chan) => {}
                Found::Nothing => {
                    if let Some(took) = self.take_beyond_ring(chan, out) {
                        return took;
                    }
                }
            }
        }
    }

    /// The next message, if it is there; waits for one that is being written.
    #[inline(always)]
    pub(crate) fn try_recv(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> Result<T, TryRecvError> {
        if self.slots.look(self.head) == Found::Message {
            // SAFETY: seen just now.
            return unsafe { self.receive(chan) };
        }
        self.try_recv_slowly(chan)
    }

    #[inline(never)]
    fn try_recv_slowly(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> Result<T, TryRecvError> {
        let mut out = Err(TryRecvError::Empty);
        if self.take_now(chan, &mut out) == Took::End {
            out = Err(TryRecvError::Disconnected);
        }
        out
    }

    /// [`take`](Self::take), but waits for a message that is being written.
    pub(crate) fn take_now<O: Out<T>>(&mut self, chan: &Arc<Chan<T, Mpsc>>, out: &mut O) -> Took {
        loop {
            match self.take(chan, out) {
                Took::Unpublished => self.wait_published(chan),
                took => return took,
            }
        }
    }

    /// Whether other slots begin behind the head.
    #[inline(always)]
    fn is_last(&self) -> bool {
        self.head.wrapping_add(1) & self.edge_mask == 0
    }

    #[inline(always)]
    fn advance(&mut self, chan: &Chan<T, Mpsc>) {
        if self.is_last() {
            self.leave_slots(chan);
        } else {
            self.advance_within_slots(chan);
        }
    }

    #[inline(always)]
    fn advance_within_slots(&mut self, chan: &Chan<T, Mpsc>) {
        self.slots.clear(self.head);
        self.head = self.head.wrapping_add(1) & POSITION_MASK;
        // Release: the slot has been read before a sender that sees this writes to it again.
        chan.rx.head.store(self.head, Ordering::Release);
    }

    /// The head comes to where other slots begin.
    #[cold]
    #[inline(never)]
    fn leave_slots(&mut self, chan: &Chan<T, Mpsc>) {
        self.slots.clear(self.head);
        self.head = self.head.wrapping_add(1) & POSITION_MASK;
        // SAFETY: the receiver, which does not take the line's lock before it has received.
        unsafe { chan.leave_slots(self.head) };
        // SAFETY: the receiver's.
        self.slots = unsafe { chan.ring.slots_at(self.head) };
    }

    /// Whether there are slots where there were none when the receiver came.
    #[inline(always)]
    fn enter_slots(&mut self, chan: &Chan<T, Mpsc>) -> bool {
        self.slots.is_vacant() && self.head != NOWHERE && {
            // SAFETY: the receiver's.
            self.slots = unsafe { chan.ring.slots_at(self.head) };
            !self.slots.is_vacant()
        }
    }

    /// Serves the line with a message in `out`, which a panicking waker must not keep from the caller.
    #[inline(always)]
    fn release<O: Out<T>>(&mut self, chan: &Chan<T, Mpsc>, out: &mut O) {
        let mut line = chan.line.lock();
        let Some(waker) = chan.serve_one_send(&mut line, self.head) else {
            return self.release_any(chan, line, out);
        };
        drop(line);
        let in_hand = InHand {
            cursor: self,
            chan,
            out,
        };
        in_hand.cursor.expecting = chan.senders.load(Ordering::Relaxed) == 1;
        wake::wake_owned(waker, Place::Tail);
        in_hand.arrived();
    }

    /// [`release`](Self::release) of what is not one send.
    #[inline(always)]
    fn release_any<O: Out<T>>(
        &mut self,
        chan: &Chan<T, Mpsc>,
        line: LockGuard<'_, Line>,
        out: &mut O,
    ) {
        let in_hand = InHand {
            cursor: self,
            chan,
            out,
        };
        if Self::serve_line(chan, line) {
            in_hand.cursor.expecting = chan.senders.load(Ordering::Relaxed) == 1;
        }
        in_hand.arrived();
    }

    /// [`release`](Self::release) with what is to be returned.
    #[inline(never)]
    fn release_with<R: Returned<T>>(&mut self, chan: &Chan<T, Mpsc>, mut received: R) -> R {
        self.release(chan, &mut received);
        received
    }

    /// [`release`](Self::release), without a frame for it around.
    #[inline(never)]
    fn release_before<R: Returned<T>>(&mut self, chan: &Chan<T, Mpsc>, received: &mut R) {
        self.release(chan, received);
    }

    /// Serves a line of any kind. Whether that was one reservation, and no more.
    #[inline(never)]
    fn serve_line(chan: &Chan<T, Mpsc>, mut line: LockGuard<'_, Line>) -> bool {
        if let Some(told) = chan.serve_one_reservation(&mut line) {
            drop(line);
            told.wake(Place::Tail);
            return true;
        }
        Self::serve_any_line(chan, line);
        false
    }

    #[inline(never)]
    fn serve_any_line(chan: &Chan<T, Mpsc>, mut line: LockGuard<'_, Line>) {
        let mut batch = Batch::new(Place::Tail);
        let served = chan.serve_as_receiver(&mut line, &mut batch);
        drop(line);
        chan.after_serving(served, &mut batch);
    }

    /// A message that its sender has withdrawn: its capacity comes back, and it is dropped.
    ///
    /// # Safety
    /// There is one at the head.
    #[cold]
    #[inline(never)]
    unsafe fn discard(&mut self, chan: &Chan<T, Mpsc>) {
        // SAFETY: handed on; the head moves on.
        let withdrawn = self
            .slots
            .with(self.head, |from| unsafe { ptr::read(from) });
        self.advance(chan);
        chan.fence_and_release();
        drop(withdrawn);
    }

    /// The ring has nothing: looks at the stash and the line, then for the end. `None`: the ring has something
    /// now.
    #[inline(never)]
    fn take_beyond_ring<O: Out<T>>(
        &mut self,
        chan: &Arc<Chan<T, Mpsc>>,
        out: &mut O,
    ) -> Option<Took> {
        if let Some(stash) = &self.stash {
            if !O::STAYS {
                // SAFETY: it leaves the stash here.
                unsafe { out.fill(&raw const *stash.value) };
                // Forgets the message, and frees its memory.
                let _ = self.take_stash(chan);
            }
            return Some(Took::Message);
        }
        loop {
            let word = chan.gate.load();
            if word.tail() != self.head {
                return if chan.ring.is_published(self.head) {
                    None
                } else {
                    Some(Took::Unpublished)
                };
            }
            if chan.rx.waiting.load(Ordering::Relaxed) {
                match self.take_from_line(chan, out) {
                    FromLine::Message => return Some(Took::Message),
                    FromLine::Again => continue,
                    FromLine::Nothing => {}
                }
            }
            if !may_have_ended(chan, word) {
                return Some(Took::Empty);
            }
            // Several things were looked at. If the word has not changed meanwhile, they are of one
            // moment: what was sent before the last sender went would be seen in it (its Acquire
            // pairs with the senders' last decrement).
            if chan.gate.load() == word {
                return Some(Took::End);
            }
        }
    }

    /// The ring is empty and senders wait: takes the message of the first one straight out of the
    /// line, and serves those behind it, in one critical section.
    fn take_from_line<O: Out<T>>(&mut self, chan: &Chan<T, Mpsc>, out: &mut O) -> FromLine {
        let mut batch = Batch::new(Place::Tail);
        // Memory is to be had before the lock.
        let mut stash = O::STAYS.then(Box::<Stash<T>>::new_uninit);
        let mut line = chan.line.lock();
        let word = chan.gate.load();
        if word.tail() != self.head {
            // A message has come into the ring meanwhile.
            return FromLine::Again;
        }
        let Some((node, wants)) = line.first() else {
            return FromLine::Nothing;
        };
        if word.used(self.head) + wants.count() > chan.gate.capacity()
            && matches!(wants, Wants::Permits(_))
        {
            // Whoever makes room for it serves it.
            return FromLine::Nothing;
        }
        let mut in_hand = None;
        if wants == Wants::Send {
            // SAFETY: linked, and alive until `take_out`; that of a send, in the line of this channel.
            let place = unsafe { SendWaiter::value_of(node) };
            if let Some(mut stash) = stash.take() {
                // SAFETY: a linked send's message is in its node, and leaves it here.
                let value = unsafe { ptr::read(place) };
                let value = ManuallyDrop::new(value);
                stash.write(Stash {
                    value,
                    head: self.head,
                });
                // SAFETY: written just now.
                self.set_stash(chan, unsafe { stash.assume_init() });
            } else {
                // SAFETY: as above.
                unsafe { out.fill(place) };
            }
            in_hand = Some(InHand {
                cursor: self,
                chan,
                out,
            });
            // SAFETY: linked, and its message has been taken.
            unsafe { Chan::<T, Mpsc>::take_out(&mut line, node, Status::Taken, &mut batch) };
        }
        let served = chan.serve_as_receiver(&mut line, &mut batch);
        drop(line);
        chan.after_serving(served, &mut batch);
        match in_hand {
            Some(in_hand) => {
                in_hand.arrived();
                FromLine::Message
            }
            None => FromLine::Nothing,
        }
    }

    /// A message that is received next, before what the ring has.
    fn set_stash(&mut self, chan: &Chan<T, Mpsc>, stash: Box<Stash<T>>) {
        self.head = NOWHERE;
        self.slots = Slots::vacant(&chan.rx.nothing);
        self.stash = Some(stash);
    }

    /// Takes the stash, with what is in it, and looks at the ring again.
    fn take_stash(&mut self, chan: &Chan<T, Mpsc>) -> Option<Box<Stash<T>>> {
        let stash = self.stash.take()?;
        self.head = stash.head;
        // SAFETY: the receiver's.
        self.slots = unsafe { chan.ring.slots_at(self.head) };
        Some(stash)
    }

    /// Where the message is that [`take`](Self::take) has found with [`InPlace`](crate::out::InPlace), to be looked at.
    pub(crate) fn front(&self) -> *const T {
        match &self.stash {
            Some(stash) => (&raw const stash.value).cast(),
            None => self.slots.with(self.head, |place| place),
        }
    }

    /// [`front`](Self::front), to be changed. Not by way of that: what a shared reference to the stash leads to may
    /// not be written.
    pub(crate) fn front_mut(&mut self) -> *mut T {
        match &mut self.stash {
            Some(stash) => (&raw mut stash.value).cast(),
            None => self.slots.with(self.head, <*const T>::cast_mut),
        }
    }

    /// Moves it out.
    ///
    /// # Safety
    /// It is there: that was the last that was done with the cursor.
    pub(crate) unsafe fn take_front(&mut self, chan: &Arc<Chan<T, Mpsc>>) -> T {
        let mut out = None;
        if self.stash.is_some() {
            let _ = self.take_beyond_ring(chan, &mut out);
        } else {
            // SAFETY: handed on. (It may have been withdrawn meanwhile, but has been received already.)
            unsafe { self.receive_into(chan, &mut out) };
        }
        match out {
            Some(value) => value,
            None => unreachable!("it was there"),
        }
    }

    /// Drops it where it is.
    ///
    /// # Safety
    /// As [`take_front`](Self::take_front).
    pub(crate) unsafe fn drop_front(&mut self, chan: &Arc<Chan<T, Mpsc>>) {
        let mut panics = FirstPanic::new();
        let front = self.front_mut();
        // SAFETY: handed on; it is passed, or forgotten, below.
        panics.catch(|| unsafe { ptr::drop_in_place(front) });
        // The message in it has been dropped.
        if self.take_stash(chan).is_none() {
            panics.catch(|| self.advance_and_release(chan, &mut InPlace));
        }
        panics.resume("dropping a message");
    }

    /// Waits for the message that is being written at the head. Only a thread that has lost its core
    /// in the middle of a copy makes this long.
    pub(crate) fn wait_published(&self, chan: &Chan<T, Mpsc>) {
        wait_until(|| chan.ring.is_published(self.head));
    }

    /// The receiver is gone and the channel closed to all: drops what is queued, and the waker.
    pub(crate) fn drain(&mut self, chan: &Chan<T, Mpsc>, panics: &mut FirstPanic) {
        if let Some(stash) = self.take_stash(chan) {
            panics.catch(|| drop(ManuallyDrop::into_inner(stash.value)));
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
enum FromLine {
    Message,
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
struct InHand<'a, T, O: Out<T>> {
    cursor: &'a mut Cursor<T>,
    chan: &'a Chan<T, Mpsc>,
    out: &'a mut O,
}

impl<T, O: Out<T>> InHand<'_, T, O> {
    #[inline]
    fn arrived(self) {
        std::mem::forget(self);
    }
}

impl<T, O: Out<T>> Drop for InHand<'_, T, O> {
    #[cold]
    fn drop(&mut self) {
        if let Some(value) = self.out.take_back() {
            let value = ManuallyDrop::new(value);
            let head = self.cursor.head;
            self.cursor
                .set_stash(self.chan, Box::new(Stash { value, head }));
        }
    }
}

/// The message at the head has been read: the head moves on.
struct AdvanceOnDrop<'a, T, const EDGE: bool> {
    cursor: &'a mut Cursor<T>,
    chan: &'a Chan<T, Mpsc>,
}

impl<T, const EDGE: bool> Drop for AdvanceOnDrop<'_, T, EDGE> {
    #[inline(always)]
    fn drop(&mut self) {
        if EDGE {
            self.cursor.advance(self.chan);
        } else {
            self.cursor.advance_within_slots(self.chan);
        }
    }
}
