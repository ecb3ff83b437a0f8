//! The channel that all handles share, and the protocols between its parts.
//!
//! | handshake | one side | other side |
//! |---|---|---|
//! | a message for a sleeping receiver | claim: one exchange moves the tail and clears PARKED; publish; wake | set PARKED (locked), then look at the tail again |
//! | room for a parking sender | set `waiting` and WAITING (locked), then look at the head again | move the head, fence (or a locked instruction), then look at `waiting` |
//! | room from a permit | the exchange that gives it back finds WAITING | the exchange that sets WAITING finds the permit back |
//! | end of the channel for a sleeping receiver | set CLOSED and clear PARKED in one exchange; wake | set PARKED, then look at CLOSED again |
//!
//! The receiver's fence is owed once: a receiver that goes to sleep has it in the instruction that
//! sets PARKED, and for one that does something else after a receive the worker makes it when the
//! poll is over.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use wakerun::lock::Lock;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use wakerun::wake::{Batch, Place, PollEnd, PollWatch, Poller};

use crate::closed::ClosedWaiters;
use crate::error::SendError;
use crate::flavor::Flavor;
use crate::gate::{CLOSED, Claim, Gate, PARKED, POSITION_MASK, WAITING, Word};
use crate::line::{Line, Mark, Status, Waiter, Wants};
use crate::receivers::News;
use crate::ring::Ring;

/// The receivers' cache line.
#[repr(align(64))]
pub(crate) struct RxSide<S> {
    /// The next position to be received; stored by the one receiver, or under the receivers' lock.
    pub(crate) head: AtomicU64,
    /// Whether there is a line; a copy of WAITING, so that the receiver need not touch the senders'
    /// cache line. Changed under the line's lock.
    pub(crate) waiting: AtomicBool,
    /// Where receivers wait.
    pub(crate) side: S,
}

pub(crate) struct Chan<T, F: Flavor> {
    pub(crate) gate: Gate<F>,
    pub(crate) rx: RxSide<F::Side<T>>,
    pub(crate) ring: Ring<T>,
    pub(crate) line: Lock<Line<T>>,
    /// Copies of the line's counts of unclaimed grants, of due ones, and of nodes of tasks of ours,
    /// for looking at without the lock.
    pub(crate) grants: AtomicUsize,
    pub(crate) due: AtomicUsize,
    pub(crate) own: AtomicUsize,
    pub(crate) closed_waiters: ClosedWaiters,
    /// Strong senders.
    pub(crate) senders: AtomicUsize,
    pub(crate) weak_senders: AtomicUsize,
}

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
    /// `None`: the memory is not to be had.
    pub(crate) fn new(capacity: usize) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            gate: Gate::new(capacity as u64),
            rx: RxSide {
                head: AtomicU64::new(0),
                waiting: AtomicBool::new(false),
                side: F::side::<T>(),
            },
            ring: Ring::new(capacity)?,
            line: Lock::new(Line::new()),
            grants: AtomicUsize::new(0),
            due: AtomicUsize::new(0),
            own: AtomicUsize::new(0),
            closed_waiters: ClosedWaiters::new(),
            senders: AtomicUsize::new(1),
            weak_senders: AtomicUsize::new(0),
        }))
    }

    // ---- sending

    /// Claims a position for a message, if there is room and no line; see [`Gate::claim`].
    pub(crate) fn claim(&self) -> Claim {
        self.gate.claim(&self.rx.head)
    }

    /// Writes a claimed message, and wakes a receiver if the claim said so.
    ///
    /// # Safety
    /// `position` was claimed by the caller and `wake` came with it; this is called once for it.
    #[inline]
    pub(crate) unsafe fn publish(&self, position: u64, wake: bool, value: T) {
        // SAFETY: handed on.
        unsafe { self.ring.publish(position, value) };
        if wake {
            // SAFETY: the claim saw PARKED.
            unsafe { self.wake(News::Messages(1)) };
        }
    }

    /// Sends as many messages from the front as there is room for, unless a line waits. Returns how many.
    pub(crate) fn publish_some(&self, messages: &mut VecDeque<T>) -> usize {
        let (first, count, wake) = self.gate.claim_some(messages.len() as u64, &self.rx.head);
        for (step, value) in (0..count).zip(messages.drain(..count as usize)) {
            let position = first.wrapping_add(step) & POSITION_MASK;
            // SAFETY: claimed just now.
            unsafe { self.ring.publish(position, value) };
        }
        if wake && count > 0 {
            // SAFETY: the exchange saw PARKED.
            unsafe { self.wake(News::Messages(count as usize)) };
        }
        count as usize
    }

    /// Sends the first `count` of `messages` with as many of the caller's `permits`, gives the others
    /// back, and wakes as many receivers.
    ///
    /// # Errors
    /// If the receivers are gone; then the permits are still the caller's.
    ///
    /// # Safety
    /// The word counts the permits for the caller, who has no use for them any more if this succeeds.
    pub(crate) unsafe fn publish_many(
        &self,
        messages: &mut VecDeque<T>,
        count: u64,
        permits: u64,
    ) -> Result<(), SendError<()>> {
        let Some((first, before, after)) = self.gate.claim_with_permits(count, permits) else {
            return Err(SendError(()));
        };
        for (step, value) in (0..count).zip(messages.drain(..count as usize)) {
            let position = first.wrapping_add(step) & POSITION_MASK;
            // SAFETY: claimed just now.
            unsafe { self.ring.publish(position, value) };
        }
        let mut panics = FirstPanic::new();
        if before.has(PARKED) && count > 0 {
            // SAFETY: the exchange saw PARKED.
            panics.catch(|| unsafe { self.wake(News::Messages(count as usize)) });
        } else if before.has(PARKED) && after.has(CLOSED) && after.permits() == 0 {
            // SAFETY: as above.
            panics.catch(|| unsafe { self.wake(News::End) });
        }
        if after.has(WAITING) && permits > count {
            panics.catch(|| self.release());
        }
        panics.resume("a waker");
        Ok(())
    }

    /// Wakes receivers.
    ///
    /// # Safety
    /// The caller saw PARKED when it brought the news, and calls this once for it.
    #[inline]
    pub(crate) unsafe fn wake(&self, news: News) {
        // SAFETY: handed on: the transition that saw PARKED cleared it, if there is one receiver.
        unsafe { F::wake(self, news) };
    }

    /// Withdraws the message that was deposited at `position` and whose sender has not been told,
    /// unless it has been received.
    #[cold]
    pub(crate) fn withdraw(&self, position: u64) {
        let _line = self.line.lock();
        let head = self.rx.head.load(Ordering::Acquire);
        let ahead = position.wrapping_sub(head) & POSITION_MASK;
        if ahead < self.gate.capacity() {
            // SAFETY: the lock is held, and the head was not beyond the position since it is.
            unsafe { self.ring.withdraw(position) };
        }
    }

    // ---- the line

    /// Serves waiters in their order while there is room for the first of them.
    pub(crate) fn serve(&self, line: &mut Line<T>, batch: &mut Batch) -> Served {
        let mut served = Served::default();
        let head = self.rx.head.load(Ordering::Acquire);
        while let Some((node, wants)) = line.first() {
            if batch.is_full() {
                served.again = true;
                break;
            }
            let word = self.gate.load();
            if word.used(head) + wants.count() > self.gate.capacity() {
                served.messages += u32::from(self.nudge(word, head, wants));
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
    #[inline]
    pub(crate) fn nudge(&self, word: Word, head: u64, wants: Wants) -> bool {
        wants == Wants::Send
            && word.has(PARKED)
            && word.tail() == head
            && (F::MANY || self.gate.take_parked())
    }

    /// Whether the first that waits wants permits, so that there is no message to be taken from the line.
    #[cold]
    pub(crate) fn starts_with_permits(&self) -> bool {
        matches!(self.line.lock().first(), Some((_, Wants::Permits(_))))
    }

    /// Grants the first waiter its permits, which the word counts already.
    ///
    /// # Safety
    /// `node` is the first waiter of the line, and wants permits; the batch is not full.
    unsafe fn grant_first(line: &mut Line<T>, node: NonNull<Waiter<T>>, batch: &mut Batch) {
        // SAFETY: handed on.
        match unsafe { line.grant_here(node, false) } {
            Some(waker) => waker.into_iter().for_each(|waker| batch.push(waker)),
            // SAFETY: linked, and there is nothing in it to take.
            None => unsafe { Self::take_out(line, node, Status::Granted, batch) },
        }
    }

    /// Shows the line's counts to those who look without the lock.
    #[inline]
    pub(crate) fn copy_counts(&self, line: &Line<T>) {
        // A load is cheaper than making a line of the cache dirty; all changes are made under the lock.
        let copy = |to: &AtomicUsize, count: usize| {
            if to.load(Ordering::Relaxed) != count {
                to.store(count, Ordering::Release);
            }
        };
        copy(&self.grants, line.granted());
        copy(&self.due, line.due());
        copy(&self.own, line.own());
    }

    /// [`serve`](Self::serve) for the receiver, WAITING being set, PARKED not (it may be left from a
    /// poll whose future is gone; then its waker is still to be woken), and no permit being out: then
    /// nobody else changes the word (see [`Gate::store_exclusive`]), and it is stored once, after
    /// all messages. A grant ends that, since its future may use it at once.
    ///
    /// Of many receivers, the one that holds their lock has the same right: PARKED changes under it.
    fn serve_exclusively(&self, line: &mut Line<T>, batch: &mut Batch) -> Served {
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
        let empty = line.is_empty();
        if empty {
            self.rx.waiting.store(false, Ordering::Relaxed);
        }
        self.gate.store_exclusive(word, empty);
        match line.first() {
            None | Some((_, Wants::Send)) if !batch.is_full() => {}
            _ => {
                let more = self.serve(line, batch);
                served.and(more);
            }
        }
        served
    }

    /// Moves the message of the first waiter into the ring, to a position claimed for it.
    ///
    /// # Safety
    /// `node` is linked in `line` and wants to send; the position is the caller's.
    #[inline]
    unsafe fn deposit_first(
        &self,
        line: &mut Line<T>,
        node: NonNull<Waiter<T>>,
        position: u64,
        batch: &mut Batch,
    ) {
        // SAFETY: linked, and alive until `take_out`.
        let waiter = unsafe { node.as_ref() };
        // SAFETY: a linked send's message is in its node, and leaves it here: the node goes out.
        let value = unsafe { waiter.take_value() };
        // SAFETY: claimed by the caller, and the lock is held.
        unsafe { self.ring.deposit(position, value) };
        // SAFETY: linked, under the lock.
        unsafe { waiter.set_position(position) };
        // SAFETY: linked, and its message has been taken.
        unsafe { Self::take_out(line, node, Status::Done, batch) };
    }

    /// Takes a linked waiter out; its waker goes into the batch, which is not full.
    ///
    /// # Safety
    /// `node` is linked in `line`, and the status says where its message is.
    #[inline]
    pub(crate) unsafe fn take_out(
        line: &mut Line<T>,
        node: NonNull<Waiter<T>>,
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
    pub(crate) fn serve_as_receiver(&self, line: &mut Line<T>, batch: &mut Batch) -> Served {
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
            self.gate.clear_waiting();
        }
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

    // ---- grants that lapse

    /// Takes due grants back while somebody waits, and serves the line.
    pub(crate) fn lapse_due(&self, line: &mut Line<T>, batch: &mut Batch) -> Served {
        let mut ended = false;
        let mut next = line.front();
        while let Some(node) = next
            && line.due() > 0
        {
            // SAFETY: linked: found from the front on.
            let (behind, _, mark) = unsafe { line.look(node) };
            next = behind;
            if mark == Mark::Due {
                // SAFETY: linked, and due.
                let had = unsafe { line.lapse(node) };
                // Of a channel that was closed a moment ago it may have been the last one.
                ended |= self.gate.return_permits(had.count()).1;
            }
        }
        let mut served = self.serve(line, batch);
        served.ended |= ended;
        served
    }

    /// Room that is granted to somebody who does not come for it is to be had. `true`: some has been
    /// taken back, and nobody waits for it.
    #[cold]
    pub(crate) fn reclaim_due(&self) -> bool {
        if self.due.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut batch = Batch::new(Place::Tail);
        let mut line = self.line.lock();
        let some = line.due() > 0;
        let served = self.lapse_due(&mut line, &mut batch);
        let nobody = line.is_empty();
        drop(line);
        self.after_serving(served, &mut batch);
        some && nobody
    }

    /// A poll of a task is over, which may have left grants unclaimed.
    #[cold]
    fn look_for_due(&self, poller: &Poller<'_>) {
        let mut batch = Batch::new(Place::Tail);
        let mut line = self.line.lock();
        let mut left = line.granted();
        let mut next = line.front();
        while let Some(node) = next
            && left > 0
        {
            // SAFETY: linked: found from the front on.
            let (behind, _, mark) = unsafe { line.look(node) };
            next = behind;
            left -= usize::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
            // SAFETY: linked.
            let _ = unsafe { line.becomes_due(node, poller) };
        }
        let served = if line.is_empty() {
            // Nobody else wants it: it stays where it is.
            self.copy_counts(&line);
            Served::default()
        } else {
            self.lapse_due(&mut line, &mut batch)
        };
        drop(line);
        self.after_serving(served, &mut batch);
    }

    // ---- the end

    /// Closes: no new claims. `flags` may say that the receiver is gone, too. Waiters whose kind
    /// `ends` says yes to are told; each keeps its message.
    pub(crate) fn close(&self, flags: u64, ends: impl Fn(Wants) -> bool) {
        let mut batch = Batch::new(Place::Tail);
        let mut wake_receivers = false;
        let mut panics = FirstPanic::new();
        loop {
            let mut line = self.line.lock();
            // Under the lock, so that a parking sender sees it or is seen.
            wake_receivers |= self.gate.close(flags);
            let mut next = line.front();
            while let Some(node) = next
                && !batch.is_full()
            {
                // SAFETY: linked: found from the first on, and not taken out yet.
                let (behind, wants, mark) = unsafe { line.look(node) };
                next = behind;
                // A grant stays good, like a permit.
                if matches!(mark, Mark::Waiting | Mark::Lapsed) && ends(wants) {
                    // SAFETY: linked; the message stays in it.
                    unsafe { Self::take_out(&mut line, node, Status::Closed, &mut batch) };
                }
            }
            if line.is_empty() {
                self.end_line();
            }
            self.copy_counts(&line);
            drop(line);
            if std::mem::take(&mut wake_receivers) {
                // SAFETY: closing saw PARKED.
                panics.catch(|| unsafe { self.wake(News::End) });
            }
            panics.catch(|| batch.wake_all());
            if next.is_none() {
                break;
            }
        }
        panics.catch(|| self.closed_waiters.wake_all());
        panics.resume("a waker");
    }

    /// The last strong sender is gone.
    ///
    /// Messages of senders that still stand in the line (their futures were leaked, or they could
    /// not outlive their sender) are delivered; a leaked reservation would never send, and ends.
    #[cold]
    pub(crate) fn senders_gone(&self) {
        self.close(CLOSED, |wants| wants != Wants::Send);
    }

    // ---- looking

    /// Messages and permits that take capacity, of one moment.
    pub(crate) fn used(&self) -> (u64, u64) {
        let mut head = self.rx.head.load(Ordering::Acquire);
        loop {
            let word = self.gate.load();
            let again = self.rx.head.load(Ordering::Acquire);
            if head == again {
                let used = word.used(head);
                return (used - word.permits(), word.permits());
            }
            head = again;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate.load().has(CLOSED)
    }

    /// Free capacity: none while a line waits.
    pub(crate) fn free(&self) -> usize {
        let (messages, permits) = self.used();
        let capacity = self.gate.capacity();
        capacity.saturating_sub(messages + permits) as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.used().0.min(self.gate.capacity()) as usize
    }
}

impl<T, F: Flavor> PollEnd for Chan<T, F> {
    /// Touches no message but those it moves, unread, from the line into the ring.
    fn poll_end(&self) {
        self.fence_and_release();
    }
}

impl<T, F: Flavor> PollWatch for Chan<T, F> {
    /// Touches no message but those it moves, unread, from the line into the ring.
    fn poll_over(&self, poller: &Poller<'_>) -> bool {
        // The grant was made before the wake that led to this poll, or another poll follows; so a stale
        // count is looked at again.
        let senders = self.grants.load(Ordering::Acquire) > 0;
        let mut panics = FirstPanic::new();
        if senders {
            panics.catch(|| self.look_for_due(poller));
        }
        let mut receivers = true;
        panics.catch(|| receivers = F::poll_over(self, poller));
        panics.resume("a waker");
        self.own.load(Ordering::Relaxed) > 0 || receivers
    }
}
