//! Waiting for a message: what all futures that receive are made of.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use wakerun::panics::FirstPanic;
use wakerun::sync::UnsafeCell;
use wakerun::wake;

use crate::line::Line;
use crate::receivers::{Source, Taken, discard};
use crate::waiter::{Mark, Waiter, Wants};
use crate::watching::Watching;

/// Whether a look at an empty queue has made the node wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// It lacks a waker.
    No,
    /// Others wait, too, as is known already.
    InLine,
    /// That somebody waits has become known just now: another look is due.
    Announced,
}

impl Waits {
    #[inline]
    fn after(announced: bool) -> Self {
        if announced {
            Self::Announced
        } else {
            Self::InLine
        }
    }
}

/// What a node gets to wait with: a waker, and whether it is the own one of the task that is being polled.
type Entry = (Waker, bool);

/// How far a wait is.
///
/// Not a byte, and the first value not zero: a new one is stored beside a place that is not there, and if all of it could
/// be one byte over and over, the compiler would fill the place with that, too.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Stage {
    /// The place has not been made.
    New = 1,
    /// The waiter is in no line.
    Out,
    /// The waiter is in the line, marked in any way.
    InLine,
}

/// A wait for a message: a place in the line of receivers, if need be.
///
/// Most receives find a message and never wait, so the place is made by the first wait.
pub(crate) struct Reception {
    stage: Cell<Stage>,
    place: UnsafeCell<MaybeUninit<Place>>,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

/// What a receiver waits with; nothing in it needs a drop.
struct Place {
    waiter: Waiter,
    watching: Watching,
}

impl Reception {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self {
            stage: Cell::new(Stage::New),
            place: UnsafeCell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }

    /// The place, which is made if it has not been yet.
    fn place(&self) -> &Place {
        if self.stage.get() == Stage::New {
            let made = Place {
                waiter: Waiter::new(),
                watching: Watching::new(),
            };
            // SAFETY: there is no reference to what has not been made, and `&self` is of this thread only.
            self.place.with_mut(|place| unsafe { (*place).write(made) });
            self.stage.set(Stage::Out);
        }
        self.place.with(|place| {
            // SAFETY: it is written above only, once; from then on there are shared references.
            let place = unsafe { &*place };
            // SAFETY: made, by now, and never taken out.
            unsafe { place.assume_init_ref() }
        })
    }

    fn node(&self) -> NonNull<Waiter> {
        NonNull::from(&self.place().waiter)
    }

    fn is_linked(&self) -> bool {
        self.stage.get() == Stage::InLine
    }

    /// The waiter has left the line, or is about to; whether it was in it.
    fn unlink(&self) -> bool {
        let linked = self.is_linked();
        if linked {
            self.stage.set(Stage::Out);
        }
        linked
    }

    /// Ready with `None`: the channel has come to its end. It may be polled again in any case.
    ///
    /// # Safety
    /// The reception is pinned, `source` is the same each time, and [`cancel`](Self::cancel) is called
    /// before it goes.
    #[inline(always)]
    pub(crate) unsafe fn poll<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        if !wake::spend_budget_at_hand(false) {
            // SAFETY: handed on.
            return unsafe { self.poll_at_limit(source, cx) };
        }
        if !self.is_linked()
            && let Some(value) = source.take_simply()
        {
            return Poll::Ready(Some(value));
        }
        // SAFETY: handed on.
        unsafe { self.poll_slowly(source, cx) }
    }

    /// The budget has to be looked into.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[cold]
    #[inline(never)]
    unsafe fn poll_at_limit<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        if !wake::spend_budget() {
            // SAFETY: handed on.
            return unsafe { self.poll_exhausted(source, cx) };
        }
        if !self.is_linked()
            && let Some(value) = source.take_simply()
        {
            return Poll::Ready(Some(value));
        }
        // SAFETY: handed on.
        unsafe { self.poll_slowly(source, cx) }
    }

    /// The budget is used up: yields if there is something to receive, else waits as usual.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn poll_exhausted<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        if !source.is_quiet(&source.lock()) {
            wake::force_yield(cx);
            return Poll::Pending;
        }
        // SAFETY: handed on.
        unsafe { self.wait(source, cx, None) }
    }

    /// Not the simplest case: there may be nothing to receive, a sender may wait for the room, or the future has a
    /// place in the line. If that is all, it is dealt with here, in one section of the lock.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn poll_slowly<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        let mut entry =
            (!self.is_linked() && source.looks_quiet()).then(|| self.prepare(source, cx));
        let mut state = source.lock();
        if source.is_quiet(&state) {
            let waits = match entry.take() {
                // SAFETY: handed on; here and below.
                Some(entry) => unsafe { self.enter(source, &mut state, entry) },
                // SAFETY: as above.
                None => unsafe { self.go_on(source, &mut state, cx) },
            };
            match waits {
                Waits::No => {}
                Waits::InLine => {
                    wake::refund_budget();
                    return Poll::Pending;
                }
                // What came before the announcement is for us to see.
                Waits::Announced if source.is_quiet(&state) => {
                    drop(state);
                    source.looked();
                    wake::refund_budget();
                    return Poll::Pending;
                }
                Waits::Announced => {}
            }
        } else if entry.is_none()
            && let Some((value, room)) = source.take_plainly(&mut state)
        {
            let waker = self.end(&**source, &mut state);
            drop(state);
            let value = source.settle_plainly(value, room, waker);
            return Poll::Ready(Some(value));
        }
        drop(state);
        // SAFETY: handed on.
        let polled = unsafe { self.wait(source, cx, entry) };
        if polled.is_pending() {
            wake::refund_budget();
        }
        polled
    }

    /// The wait is over: the node leaves the line, if it is in it. Under the lock; its waker is to be dropped after it.
    #[inline]
    fn end<S: Source>(&self, source: &S, state: &mut S::State) -> Option<Waker> {
        if self.stage.get() == Stage::New {
            return None;
        }
        self.place().watching.end(source);
        // SAFETY: linked, if it is unlinked here.
        self.unlink()
            .then(|| unsafe { source.leave(state, self.node()) })
            .flatten()
    }

    /// What the node is to wait with. Without the lock, since cloning a waker may be foreign code.
    fn prepare<S: Source>(&self, source: &Arc<S>, cx: &Context<'_>) -> Entry {
        let waker = wake::clone_waker(cx.waker());
        let watching = &self.place().watching;
        let own = watching.begin(cx, &**source, || source.watch_polls());
        (waker, own)
    }

    /// Takes what is there, or waits for it in the line.
    ///
    /// Most need no `entry`: there is something to take, or the node stands in the line, with the waker that it needs.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn wait<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
        mut entry: Option<Entry>,
    ) -> Poll<Option<S::Item>> {
        loop {
            let mut after = S::After::default();
            let (mut old, mut left) = (None, None);
            let mut waits = Waits::No;
            let taken = {
                let mut state = source.lock();
                let mut taken = source.take(&mut state, &mut after);
                if matches!(taken, Taken::Empty | Taken::Unpublished) {
                    // SAFETY: handed on.
                    waits = unsafe { self.begin(source, &mut state, cx, &mut entry, &mut old) };
                    if waits == Waits::Announced {
                        // What came before the announcement is for us to see.
                        taken = source.take(&mut state, &mut after);
                    }
                }
                match taken {
                    Taken::Value(_) | Taken::End => left = self.end(&**source, &mut state),
                    // There is a message, and this one wakes itself for it: it counts as woken. Were it to
                    // wait, the wake that has brought it here would be lost to the others.
                    Taken::Unpublished if waits != Waits::No => {
                        // SAFETY: linked, and marked waiting.
                        unsafe { source.grant_polled(&mut state, self.node()) };
                    }
                    _ => {}
                }
                taken
            };
            match taken {
                Taken::Value(value) => {
                    let value = source.settle(&mut after, value);
                    let brought = entry.map(|(waker, _)| waker);
                    let unneeded = old.into_iter().chain(left).chain(brought);
                    return Poll::Ready(Some(source.recycle(unneeded, value)));
                }
                Taken::Withdrawn(value) => {
                    source.settle_without_value(&mut after);
                    drop(value);
                }
                Taken::End => {
                    source.settle_without_value(&mut after);
                    let brought = entry.map(|(waker, _)| waker);
                    discard(old.into_iter().chain(left).chain(brought));
                    return Poll::Ready(None);
                }
                Taken::Empty | Taken::Unpublished if waits == Waits::No => {
                    source.settle_without_value(&mut after);
                    entry = Some(self.prepare(source, cx));
                }
                Taken::Unpublished => {
                    source.settle_without_value(&mut after);
                    // Never sleep here: the sender may have claimed before it could see PARKED.
                    wakerun::sync::spin_loop();
                    wake::force_yield(cx);
                    discard(old);
                    return Poll::Pending;
                }
                Taken::Empty => {
                    if waits == Waits::Announced {
                        source.looked();
                    }
                    source.settle_without_value(&mut after);
                    discard(old);
                    return Poll::Pending;
                }
            }
            // A withdrawn message, after which the node may stand in the line.
            discard(old);
        }
    }

    /// The queue is empty: marks the node waiting, if it has the waker that it needs, or one is brought
    /// in `entry`. Under the lock; the one that it does not need any more goes to `old`.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    unsafe fn begin<S: Source>(
        &self,
        source: &Arc<S>,
        state: &mut S::State,
        cx: &Context<'_>,
        entry: &mut Option<Entry>,
        old: &mut Option<Waker>,
    ) -> Waits {
        match entry.take() {
            // SAFETY: handed on; here and below.
            Some(entry) if !self.is_linked() => unsafe { self.enter(source, state, entry) },
            Some((waker, own)) => {
                let line = S::line(state);
                // SAFETY: linked.
                *old = unsafe { line.set_waker(self.node(), waker, own) };
                source.counts().copy(line);
                // SAFETY: linked.
                unsafe { self.wait_again(source, state) }
            }
            // SAFETY: as above.
            None => unsafe { self.go_on(source, state, cx) },
        }
    }

    /// [`begin`](Self::begin) for a node that is in no line.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn enter<S: Source>(
        &self,
        source: &Arc<S>,
        state: &mut S::State,
        (waker, own): Entry,
    ) -> Waits {
        self.place().waiter.reset();
        self.stage.set(Stage::InLine);
        let node = self.node();
        // SAFETY: in no line, pinned, and taken out before it goes.
        let enter = |line: &mut Line| unsafe { line.push(node, Wants::Message, waker, own) };
        Waits::after(source.begin_waiting(state, enter))
    }

    /// [`begin`](Self::begin) for a node that has brought no waker: if it is in the line, and has the one that it needs.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn go_on<S: Source>(
        &self,
        source: &Arc<S>,
        state: &mut S::State,
        cx: &Context<'_>,
    ) -> Waits {
        let goes_on = self.is_linked()
            // SAFETY: linked.
            && unsafe { S::line(state).will_wake(self.node(), cx.waker()) }
            && self.place().watching.goes_on(&**source);
        if goes_on {
            // SAFETY: linked.
            unsafe { self.wait_again(source, state) }
        } else {
            Waits::No
        }
    }

    /// Marks the node waiting.
    ///
    /// # Safety
    /// As [`begin`](Self::begin); and the node is linked.
    #[inline(always)]
    unsafe fn wait_again<S: Source>(&self, source: &Arc<S>, state: &mut S::State) -> Waits {
        let node = self.node();
        // SAFETY: linked.
        if unsafe { S::line(state).look(node) }.2 == Mark::Waiting {
            return Waits::InLine;
        }
        // SAFETY: linked, and not marked waiting.
        let again = |line: &mut Line| unsafe { line.wait_again(node) };
        Waits::after(source.begin_waiting(state, again))
    }

    /// The future goes: leaves the line, and passes on a wake that it has not used.
    #[inline(always)]
    pub(crate) fn cancel<S: Source>(&self, source: &S) {
        if self.unlink() {
            self.leave_line(source);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_line<S: Source>(&self, source: &S) {
        self.place().watching.end(source);
        let (waker, was_woken) = {
            let mut state = source.lock();
            let node = self.node();
            // SAFETY: linked.
            let mark = unsafe { S::line(&mut state).look(node) }.2;
            // SAFETY: as above.
            let waker = unsafe { source.leave(&mut state, node) };
            (waker, matches!(mark, Mark::Granted { .. } | Mark::Due))
        };
        let mut panics = FirstPanic::new();
        if was_woken {
            panics.catch(|| source.pass_on(1));
        }
        if let Some(waker) = waker {
            panics.catch(|| wake::recycle(waker));
        }
        panics.resume("a waker");
    }
}
