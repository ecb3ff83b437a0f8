//! Serving the line of senders: the one routine that everything which frees capacity ends in, and its
//! shorter form for the receiver.

use std::ptr::NonNull;
use std::task::Waker;

use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicBool, Ordering, fence};
use wakerun::wake::{Batch, Place, PollEnd};

use crate::chan::Chan;
use crate::flavor::Flavor;
use crate::gate::{PARKED, WAITING, Word};
use crate::line::{Line, show};
use crate::receivers::News;
use crate::waiter::{SendWaiter, Status, Waiter, Wants};

/// What a round of serving the line leaves to be done after the lock.
#[derive(Default)]
#[must_use]
pub(crate) struct Served {
    /// So many messages have come while PARKED was set: wake receivers.
    pub(crate) messages: u32,
    /// The channel has come to its end: wake receivers.
    pub(crate) ended: bool,
    /// The batch is full and there may be more: wake it and come again.
    pub(crate) again: bool,
}

impl Served {
    /// Both rounds.
    pub(crate) fn and(&mut self, more: Self) {
        self.messages += more.messages;
        self.ended |= more.ended;
        self.again |= more.again;
    }
}

impl<T, F: Flavor> Chan<T, F> {
    /// Serves waiters in their order while there is room for the first of them.
    pub(crate) fn serve(&self, line: &mut Line, batch: &mut Batch) -> Served {
        let mut served = Served::default();
        let head = self.rx.head.load(Ordering::Acquire);
        while let Some((node, wants)) = line.first() {
            if batch.is_full() {
                served.again = true;
                break;
            }
            let word = self.gate.load();
            if word.used(head) + wants.count() > self.gate.capacity() {
                served.messages += u32::from(self.nudge(line, word, head));
                break;
            }
            match wants {
                Wants::Send => {
                    let (position, wake) = self.gate.claim_in_line();
                    served.messages += u32::from(wake);
                    // SAFETY: the first of the line, and claimed for it.
                    unsafe { self.deposit_first(line, node, position, batch) };
                }
                Wants::Permits(count) => {
                    // Counted before the future can see it.
                    self.gate.grant_in_line(count);
                    // SAFETY: the first of the line.
                    unsafe { Self::grant_first(line, node, batch) };
                }
                Wants::Message => unreachable!("receivers stand in a line of their own"),
            }
        }
        if line.is_empty() {
            self.end_line();
        }
        self.copy_counts(line);
        served
    }

    /// The first of the line has no room, and the queue may be empty: permits hold the capacity. A
    /// receiver can take a message straight out of the line. `true`: one is to be woken for that.
    ///
    /// Once for each message: whoever was woken looks at the line, or passes the wake on.
    #[inline]
    pub(crate) fn nudge(&self, line: &mut Line, word: Word, head: u64) -> bool {
        matches!(line.first(), Some((_, Wants::Send)))
            && word.has(PARKED)
            && word.tail() == head
            && line.is_new_first()
            && (F::MANY || self.gate.take_parked())
    }

    /// Whether the first that waits wants permits for which there is no room: then the line has nothing for a receiver
    /// at `head`, nor this for the line. Whoever makes room from now on serves it. `looked_at`: the receiver has served
    /// it since its last receive, so that there is none, and what could lapse has.
    #[cold]
    pub(crate) fn waits_for_room(&self, head: u64, looked_at: bool) -> bool {
        let line = self.line.lock();
        let Some((_, wants @ Wants::Permits(_))) = line.first() else {
            return false;
        };
        let used = || self.gate.load().used(head);
        looked_at || (line.due() == 0 && used() + wants.count() > self.gate.capacity())
    }

    /// Grants the first waiter its permits, which the word counts already.
    ///
    /// # Safety
    /// `node` is the first waiter of the line, and wants permits; the batch is not full.
    unsafe fn grant_first(line: &mut Line, node: NonNull<Waiter>, batch: &mut Batch) {
        // SAFETY: handed on.
        match unsafe { line.grant_here(node, false) } {
            Some(waker) => waker.into_iter().for_each(|waker| batch.push(waker)),
            // SAFETY: linked, and there is nothing in it to take.
            None => unsafe { Self::take_out(line, node, Status::Granted, batch) },
        }
    }

    /// Shows the line's counts to those who look without the lock.
    #[inline]
    pub(crate) fn copy_counts(&self, line: &Line) {
        show(&self.rx.grants, line.granted());
        show(&self.rx.due, line.due());
        show(&self.rx.own, line.own());
    }

    /// [`serve`](Self::serve) for the receiver, WAITING being set, PARKED not (it may be left from a
    /// poll whose future is gone; then its waker is still to be woken), and no permit being out: then
    /// nobody else changes the word (see [`Gate::store_exclusive`]), and it is stored once, after
    /// all messages. A grant ends that, since its future may use it at once.
    ///
    /// Of many receivers, the one that holds their lock has the same right: PARKED changes under it.
    fn serve_exclusively(&self, line: &mut Line, batch: &mut Batch) -> Served {
        let mut word = self.gate.load();
        let mut served = Served::default();
        let head = self.rx.head.load(Ordering::Relaxed);
        while let Some((node, Wants::Send)) = line.first()
            && word.used(head) < self.gate.capacity()
            && !batch.is_full()
        {
            let position = word.tail();
            word = word.push();
            served.messages += u32::from(F::MANY && word.has(PARKED));
            // SAFETY: the first of the line, and the position is claimed by the store below.
            unsafe { self.deposit_first(line, node, position, batch) };
        }
        if line.is_empty() {
            self.end_line_exclusively(word, self.gate.limit(head));
        } else {
            self.gate.store_exclusive(word);
        }
        match line.first() {
            None | Some((_, Wants::Send)) if !batch.is_full() => {}
            _ => {
                let more = self.serve(line, batch);
                served.and(more);
            }
        }
        served
    }

    /// [`serve_as_receiver`](Self::serve_as_receiver) for the commonest case, one receiver that has made
    /// room for one, and a sender who waits for it: the same, less what only others need. Returns whom to
    /// wake after the lock; `None`: it is another case.
    ///
    /// `head` is the receiver's, as it has stored it.
    #[inline(always)]
    pub(crate) fn serve_one_send(&self, line: &mut Line, head: u64) -> Option<Waker> {
        let word = self.gate.load();
        if !word.has(WAITING) || word.has(PARKED) || word.permits() > 0 {
            return None;
        }
        let (node, next) = line.plain_first()?;
        let limit = self.gate.limit(head);
        if !word.has_room_below(limit, 1) || (next.is_some() && word.has_room_below(limit, 2)) {
            return None;
        }
        // SAFETY: that of a send, in the line of this channel.
        let place = unsafe { SendWaiter::value_of(node) };
        let position = word.tail();
        // SAFETY: the lock is held, and the position is claimed by the store below; a linked send's message is in its
        // node, and leaves it here: the node goes out.
        if !unsafe { self.ring.deposit_at_hand(position, place) } {
            return None;
        }
        // SAFETY: linked, hence alive.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: linked, under the lock.
        unsafe { waiter.set_position(position) };
        // SAFETY: found just now.
        let waker = unsafe { line.remove_plain(node, next) };
        if next.is_none() {
            self.end_line_exclusively(word.push(), limit);
        } else {
            self.gate.store_exclusive(word.push());
        }
        // Only now, so that the message counts when its sender learns that it is accepted.
        // SAFETY: out of the line; the last touch.
        unsafe { Waiter::finish(node, Status::Done) };
        waker
    }

    /// Moves the message of the first waiter into the ring, to a position claimed for it.
    ///
    /// # Safety
    /// `node` is linked in `line` and wants to send; the position is the caller's.
    #[inline]
    unsafe fn deposit_first(
        &self,
        line: &mut Line,
        node: NonNull<Waiter>,
        position: u64,
        batch: &mut Batch,
    ) {
        // SAFETY: handed on.
        unsafe { self.deposit(node, position) };
        // SAFETY: linked, and its message has been taken.
        unsafe { Self::take_out(line, node, Status::Done, batch) };
    }

    /// Moves the message of a waiter that wants to send into the ring; the node is to be taken out then, and done.
    ///
    /// # Safety
    /// `node` is linked in the line, whose lock is held, and wants to send; the position is claimed for it.
    #[inline(always)]
    unsafe fn deposit(&self, node: NonNull<Waiter>, position: u64) {
        // SAFETY: linked, hence alive.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: it is that of a send, in the line of this channel.
        let place = unsafe { SendWaiter::value_of(node) };
        // SAFETY: a linked send's message is in its node, and leaves it here: the node goes out. The rest is
        // handed on.
        unsafe { self.ring.deposit_from(position, place) };
        // SAFETY: linked, under the lock.
        unsafe { waiter.set_position(position) };
    }

    /// Takes a linked waiter out; its waker goes into the batch, which is not full.
    ///
    /// # Safety
    /// `node` is linked in `line`, and the status says where its message is.
    #[inline]
    pub(crate) unsafe fn take_out(
        line: &mut Line,
        node: NonNull<Waiter>,
        status: Status,
        batch: &mut Batch,
    ) {
        // SAFETY: handed on.
        let waker = unsafe { line.remove(node) };
        // SAFETY: out of the line; the last touch.
        unsafe { Waiter::finish(node, status) };
        if let Some(waker) = waker {
            batch.push(waker);
        }
    }

    /// [`serve`](Self::serve) for the receiver.
    pub(crate) fn serve_as_receiver(&self, line: &mut Line, batch: &mut Batch) -> Served {
        let word = self.gate.load();
        if !word.has(WAITING) {
            // The line that was seen has been served, or its only sender has found room. The word
            // is everybody's again.
            Served::default()
        } else if word.permits() == 0 && (F::MANY || !word.has(PARKED)) {
            self.serve_exclusively(line, batch)
        } else {
            self.serve(line, batch)
        }
    }

    /// The fence that a receive owes, and the look at the line that it is for.
    pub(crate) fn fence_and_release(&self) {
        // Pairs with the locked instruction of a parking sender.
        fence(Ordering::SeqCst);
        if self.rx.waiting.load(Ordering::Relaxed) {
            self.release();
        }
    }

    /// The line has become empty; under its lock.
    pub(crate) fn end_line(&self) {
        if self.rx.waiting.load(Ordering::Relaxed) {
            self.rx.waiting.store(false, Ordering::Relaxed);
            self.gate.clear_waiting(&self.rx.head);
        }
    }

    /// [`end_line`](Self::end_line) for the receiver; see [`Gate::store_exclusive`](crate::gate::Gate::store_exclusive).
    #[inline(always)]
    fn end_line_exclusively(&self, word: Word, limit: u64) {
        self.rx.waiting.store(false, Ordering::Relaxed);
        self.gate.end_line_exclusively(word, limit);
    }

    /// The one routine that everything which frees capacity ends in: serves the line and wakes whom
    /// it served. Works from any thread, without a lock held.
    #[cold]
    pub(crate) fn release(&self) {
        let mut batch = Batch::new(Place::Tail);
        let served = self.serve(&mut self.line.lock(), &mut batch);
        self.after_serving(served, &mut batch);
    }

    /// What is to be done after the lock when a round of serving is over; serves on, if need be.
    #[inline]
    pub(crate) fn after_serving(&self, served: Served, batch: &mut Batch) {
        if served.messages > 0 || served.again || served.ended {
            self.serve_on(served, batch);
        } else {
            batch.wake_all();
        }
    }

    #[cold]
    fn serve_on(&self, mut served: Served, batch: &mut Batch) {
        let mut panics = FirstPanic::new();
        loop {
            if served.messages > 0 || served.ended {
                let news = match served.ended {
                    false => News::Messages(served.messages as usize),
                    true => News::End,
                };
                // SAFETY: serving saw PARKED.
                panics.catch(|| unsafe { self.wake(news) });
            }
            panics.catch(|| batch.wake_all());
            if !served.again {
                break;
            }
            served = self.serve(&mut self.line.lock(), batch);
        }
        panics.resume("a waker");
    }

    /// Gives permits back.
    #[inline]
    pub(crate) fn return_permits(&self, count: u64) {
        if !self.gate.return_permits_simply(count) {
            self.return_permits_slowly(count);
        }
    }

    #[inline(never)]
    fn return_permits_slowly(&self, count: u64) {
        let (word, wake) = self.gate.return_permits(count);
        let mut panics = FirstPanic::new();
        if wake {
            // SAFETY: the exchange saw PARKED.
            panics.catch(|| unsafe { self.wake(News::End) });
        }
        if word.has(WAITING) {
            panics.catch(|| self.release());
        }
        panics.resume("a waker");
    }
}

impl<T, F: Flavor> PollEnd for Chan<T, F> {
    /// Touches no message but those it moves, unread, from the line into the ring.
    fn poll_end(&self) {
        // The runtime has made the fence that pairs with the locked instruction of a parking sender.
        if self.rx.waiting.load(Ordering::Relaxed) {
            self.release();
        }
    }

    fn flag(&self) -> Option<&AtomicBool> {
        Some(&self.rx.waiting)
    }
}
