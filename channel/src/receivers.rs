//! Receivers that can be cloned: how they wait in a line of their own, and are woken.
//!
//! Used by every channel with many receivers, each of which says as a [`Source`] what there is to
//! receive, and how senders learn that somebody waits.
//!
//! | announced | the receivers' line |
//! |:-:|---|
//! | yes | somebody is marked waiting |
//! | no | nobody is |
//!
//! Each message that comes while it is announced wakes one receiver, the first that waits: it is marked
//! granted, keeps its place, and is passed over by the next wake. A wake is no message: whoever is
//! polled takes what is there. One that was woken and finds nothing waits again at its place, at the
//! front. One that finds a message that is still being written wakes itself, and counts as woken. One
//! that goes, or lets the wake lapse, passes it on if there is a message.
//!
//! So while somebody is marked waiting, as many are woken as there are messages, or more: a message that
//! comes wakes one; one that is taken leaves the count of messages; and a receiver begins to wait only
//! when there is none.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use wakerun::lock::LockGuard;
use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::{AtomicU32, Ordering};
use wakerun::wake::{Batch, Place, PollWatch, Poller};

use crate::line::{Line, show};
use crate::waiter::{Mark, Waiter};

/// What receivers are to be woken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// So many messages: wake as many receivers.
    Messages(usize),
    /// The channel is closed, or what comes may be its last: all have to look.
    End,
}

/// What a look at the queue found.
pub(crate) enum Taken<T> {
    Value(T),
    /// A message that its sender has withdrawn: to be dropped after the lock. Or a position that no message has
    /// come to.
    Withdrawn(Option<T>),
    /// Nothing, and more can come.
    Empty,
    /// A sender is between its claim and the end of its write.
    Unpublished,
    /// Nothing, and nothing can come any more.
    End,
}

/// What has become of the room that a message has left behind.
pub(crate) enum Room {
    /// Nobody was seen to wait for it.
    Free,
    /// It was given to this one, who is to be woken.
    Given(Waker),
    /// Somebody waits for it, in a line that is yet to be served.
    Wanted,
}

/// Copies of the line's counts, for looking at without the lock.
#[derive(Debug)]
pub(crate) struct Counts {
    granted: AtomicU32,
    own: AtomicU32,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            granted: AtomicU32::new(0),
            own: AtomicU32::new(0),
        }
    }

    pub(crate) fn copy(&self, line: &Line) {
        show(&self.granted, line.granted());
        show(&self.own, line.own());
    }
}

/// A channel as its receivers see it.
pub(crate) trait Source: PollWatch + Sized {
    type Item;
    /// What the receivers' lock guards, their line among it.
    type State;
    /// What is to be done when the lock is given back.
    type After: Default;

    fn lock(&self) -> LockGuard<'_, Self::State>;

    fn line(state: &mut Self::State) -> &mut Line;

    fn counts(&self) -> &Counts;

    /// Somebody begins to wait, and looks once more after this: a message that it does not see then is
    /// one whose sender sees this. Under the lock.
    fn announce(self: &Arc<Self>);

    /// The look after an announcement found nothing; without the lock.
    fn looked(self: &Arc<Self>) {}

    /// Nobody waits any more. Under the lock.
    fn retract(&self);

    /// Takes the next message and does all that is to be done for it, in the simplest case: it is there, and
    /// nobody but the caller has anything to do with it. `None` says nothing.
    #[inline(always)]
    fn take_simply(self: &Arc<Self>) -> Option<Self::Item> {
        None
    }

    /// Takes the next message, where that is all there is to be done under the lock, or all but giving its room to
    /// one sender. `None` says nothing.
    #[inline(always)]
    fn take_plainly(&self, _state: &mut Self::State) -> Option<(Self::Item, Room)> {
        None
    }

    /// Does what is to be done for the room of a message taken plainly, without the lock.
    fn settle_room(self: &Arc<Self>, room: Room) {
        if let Room::Given(waker) = room {
            wakerun::wake::wake_owned(waker, Place::Tail);
        }
    }

    /// Takes the next message, if it is there. Under the lock.
    fn take(&self, state: &mut Self::State, after: &mut Self::After) -> Taken<Self::Item>;

    /// Does what is to be done after the lock, with a message in hand, which a panic must not lose.
    fn settle(self: &Arc<Self>, after: &mut Self::After, value: Self::Item) -> Self::Item;

    /// Does what is to be done after the lock when no message was taken.
    fn settle_without_value(&self, after: &mut Self::After);

    /// Whether a message is to be had, by a look that may be old. Under the lock.
    fn has_message(&self, state: &Self::State) -> bool;

    /// Whether there is nothing to receive, and no end. Under the lock; one that is about to wait may believe it as
    /// if [`take`](Self::take) had found nothing.
    fn is_quiet(&self, state: &Self::State) -> bool;

    /// Whether it is likely to be quiet; without the lock.
    fn looks_quiet(&self) -> bool;

    /// Whether each message may be the last one, so that all receivers have to look.
    fn is_closed(&self) -> bool;

    /// Waits for a message that is being written.
    fn wait_published(&self);

    /// Keeps a message that was taken when foreign code panicked: it is received next.
    fn put_back(&self, value: Self::Item);

    /// Has the channel look at the ends of the polls of the current task.
    fn watch_polls(self: &Arc<Self>) -> bool;

    // ---- what all have in common

    /// Puts a receiver's node into the line, or marks it waiting again, and makes it known. Under the
    /// lock; the caller looks for a message once more. `true`: it has been announced just now.
    #[inline(always)]
    fn begin_waiting(
        self: &Arc<Self>,
        state: &mut Self::State,
        change: impl FnOnce(&mut Line),
    ) -> bool {
        let line = Self::line(state);
        let nobody = line.is_empty();
        change(line);
        self.counts().copy(line);
        if nobody {
            self.announce();
        }
        nobody
    }

    /// Takes a node out of the line, under the lock. Its waker is to be dropped after it.
    ///
    /// # Safety
    /// The node is linked in this line.
    unsafe fn leave(&self, state: &mut Self::State, node: NonNull<Waiter>) -> Option<Waker> {
        let line = Self::line(state);
        let waited = !line.is_empty();
        // SAFETY: handed on.
        let waker = unsafe { line.remove(node) };
        self.end_waiting(line, waited);
        waker
    }

    /// A receiver that is being polled wakes itself: it counts as woken. Under the lock.
    ///
    /// # Safety
    /// The node is linked in this line, and marked waiting.
    unsafe fn grant_polled(&self, state: &mut Self::State, node: NonNull<Waiter>) {
        let line = Self::line(state);
        // SAFETY: handed on.
        unsafe { line.grant_polled(node) };
        self.end_waiting(line, true);
    }

    /// The line has changed: takes the announcement back if the last one that waited does not any more.
    fn end_waiting(&self, line: &Line, waited: bool) {
        if waited && line.is_empty() {
            self.retract();
        }
        self.counts().copy(line);
    }

    /// Takes the next message without waiting.
    #[inline]
    fn take_now(self: &Arc<Self>) -> Taken<Self::Item> {
        match self.take_simply() {
            Some(value) => Taken::Value(value),
            None => self.take_now_slowly(),
        }
    }

    #[inline(never)]
    fn take_now_slowly(self: &Arc<Self>) -> Taken<Self::Item> {
        loop {
            let mut after = Self::After::default();
            let taken = self.take(&mut self.lock(), &mut after);
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

    /// Takes up to `limit` messages that are there.
    fn take_more(self: &Arc<Self>, buffer: &mut Vec<Self::Item>, limit: usize) -> usize {
        let mut count = 0;
        while count < limit
            && let Taken::Value(value) = self.take_now()
        {
            buffer.push(value);
            count += 1;
        }
        count
    }

    /// Does what is to be done without the lock for a message taken plainly, and drops a waker.
    #[inline(always)]
    fn settle_plainly(
        self: &Arc<Self>,
        value: Self::Item,
        room: Room,
        unneeded: Option<Waker>,
    ) -> Self::Item {
        let in_hand = InHand::new(&**self, value);
        let mut panics = FirstPanic::new();
        panics.catch(|| self.settle_room(room));
        if let Some(waker) = unneeded {
            panics.catch(|| wakerun::wake::recycle(waker));
        }
        panics.resume("a waker");
        in_hand.into_value()
    }

    /// Drops wakers, whose destructors may be foreign code, with a message in hand.
    #[inline]
    fn recycle(&self, wakers: impl IntoIterator<Item = Waker>, value: Self::Item) -> Self::Item {
        let mut wakers = wakers.into_iter().peekable();
        if wakers.peek().is_none() {
            return value;
        }
        let in_hand = InHand::new(self, value);
        discard(wakers);
        in_hand.into_value()
    }

    /// Receivers go that had been woken, or do not come: if there is a message, others are woken for it.
    fn pass_on(&self, count: usize) {
        let some = {
            let mut state = self.lock();
            !Self::line(&mut state).is_empty() && self.has_message(&state)
        };
        if some {
            self.wake_receivers(News::Messages(count));
        }
    }

    /// Wakes waiting receivers in their order: as many as there are messages; all, if the channel is
    /// closed and each message may be the last one.
    fn wake_receivers(&self, news: News) {
        if news == News::Messages(1) && !self.is_closed() {
            self.wake_one();
        } else {
            self.wake_many(news);
        }
    }

    /// A message has come: wakes the first receiver that waits.
    fn wake_one(&self) {
        let told = {
            let mut state = self.lock();
            let line = Self::line(&mut state);
            let Some((node, _)) = line.first() else {
                return;
            };
            // SAFETY: found just now.
            unsafe { line.grant_first_here(node) };
            self.end_waiting(line, true);
            // After the counts: then the poll that this wake leads to finds them at its end.
            // SAFETY: linked still.
            unsafe { line.wakeup_of(node) }
        };
        told.wake(Place::Next);
    }

    #[cold]
    #[inline(never)]
    fn wake_many(&self, news: News) {
        let mut left = match news {
            News::Messages(count) if !self.is_closed() => count,
            _ => usize::MAX,
        };
        let place = if left == 1 { Place::Next } else { Place::Tail };
        let mut batch = Batch::new(place);
        let mut panics = FirstPanic::new();
        // Each is woken once, at most: whoever waits again, or begins to, looks after the news. Without
        // this bound, those at the front could keep the ones behind from their turn.
        let (mut passed, mut last) = (0, None);
        loop {
            let more = {
                let mut state = self.lock();
                let line = Self::line(&mut state);
                let waited = !line.is_empty();
                let last = *last.get_or_insert(line.last_ticket());
                while left > 0
                    && !batch.is_full()
                    && let Some((node, ticket)) = line.first_between(passed, last)
                {
                    left -= 1;
                    passed = ticket;
                    // SAFETY: linked, and waiting; always granted at its place.
                    let waker = unsafe { line.grant_here(node, true) };
                    if let Some(waker) = waker.flatten() {
                        batch.push(waker);
                    }
                }
                self.end_waiting(line, waited);
                left > 0 && line.first_between(passed, last).is_some()
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
    fn receivers_poll_over(&self, poller: &Poller<'_>) -> bool {
        let counts = self.counts();
        let unused = counts.granted.load(Ordering::Acquire) > 0;
        if unused || (poller.is_over() && counts.own.load(Ordering::Acquire) > 0) {
            let lapsed = {
                let mut state = self.lock();
                let line = Self::line(&mut state);
                let waited = !line.is_empty();
                let lapsed = lapse_wakes(line, poller);
                self.end_waiting(line, waited);
                lapsed
            };
            if lapsed > 0 {
                self.pass_on(lapsed);
            }
        }
        counts.own.load(Ordering::Relaxed) > 0
    }
}

/// Drops wakers, whose destructors may be foreign code: all of them, also if one panics.
pub(crate) fn discard(wakers: impl IntoIterator<Item = Waker>) {
    let mut panics = FirstPanic::new();
    for waker in wakers {
        panics.catch(|| wakerun::wake::recycle(waker));
    }
    panics.resume("dropping a waker");
}

/// Marks those lapsed that were woken before the last poll of their task, which is over and did not
/// come to them, and those whose task is over. Returns how many had been woken.
fn lapse_wakes(line: &mut Line, poller: &Poller<'_>) -> usize {
    let over = poller.is_over();
    let mut lapsed = 0;
    let mut left = if over { usize::MAX } else { line.granted() };
    let mut next = line.front();
    while let Some(node) = next
        && left > 0
    {
        // SAFETY: linked: found from the front on.
        let (behind, _, mark) = unsafe { line.look(node) };
        next = behind;
        left -= usize::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
        // SAFETY: linked.
        if unsafe { line.becomes_due(node, poller) } {
            // SAFETY: linked, and due.
            let _ = unsafe { line.lapse(node) };
            lapsed += 1;
        }
        if over {
            // SAFETY: linked.
            unsafe { line.abandon(node, poller) };
        }
    }
    lapsed
}

/// A message on its way to the caller; if foreign code panics now, it is received next.
pub(crate) struct InHand<'a, S: Source> {
    source: &'a S,
    value: Option<S::Item>,
}

impl<'a, S: Source> InHand<'a, S> {
    pub(crate) fn new(source: &'a S, value: S::Item) -> Self {
        Self {
            source,
            value: Some(value),
        }
    }

    pub(crate) fn into_value(self) -> S::Item {
        // There is nothing left for the destructor.
        match ManuallyDrop::new(self).value.take() {
            Some(value) => value,
            None => unreachable!("the value leaves once"),
        }
    }
}

impl<S: Source> Drop for InHand<'_, S> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.source.put_back(value);
            // A second panic would end the process.
            let mut panics = FirstPanic::new();
            panics.catch(|| self.source.pass_on(1));
        }
    }
}
