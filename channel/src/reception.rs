//! Waiting for a message: what all futures that receive are made of.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use wakerun::panics::FirstPanic;
use wakerun::wake;

use crate::receivers::{Source, Taken, discard};
use crate::waiter::{Mark, Waiter, Wants};
use crate::watching::Watching;

/// A wait for a message: a place in the line of receivers, if need be.
pub(crate) struct Reception {
    /// Whether the waiter is in the line, marked in any way.
    linked: Cell<bool>,
    waiter: Waiter<()>,
    watching: Watching,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

impl Reception {
    pub(crate) fn new() -> Self {
        Self {
            linked: Cell::new(false),
            waiter: Waiter::without_value(),
            watching: Watching::new(),
            _pinned: PhantomPinned,
        }
    }

    fn node(&self) -> NonNull<Waiter<()>> {
        NonNull::from(&self.waiter)
    }

    /// Ready with `None`: the channel has come to its end. It may be polled again in any case.
    ///
    /// # Safety
    /// The reception is pinned, `source` is the same each time, and [`cancel`](Self::cancel) is called
    /// before it goes.
    #[inline]
    pub(crate) unsafe fn poll<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        if !wake::spend_budget() {
            if !source.is_quiet() {
                wake::force_yield(cx);
                return Poll::Pending;
            }
            // SAFETY: handed on.
            return unsafe { self.poll_empty(source, cx) };
        }
        loop {
            let mut after = S::After::default();
            let mut old = None;
            let taken = {
                let mut state = source.lock();
                let taken = source.take(&mut state, &mut after);
                if matches!(taken, Taken::Value(_) | Taken::End) && self.linked.replace(false) {
                    // SAFETY: linked.
                    old = unsafe { source.leave(&mut state, self.node()) };
                    self.watching.end(&**source);
                }
                taken
            };
            match taken {
                Taken::Value(value) => {
                    let value = source.settle(&mut after, value);
                    return Poll::Ready(Some(source.recycle(old, value)));
                }
                Taken::Withdrawn(value) => {
                    source.settle_without_value(&mut after);
                    drop(value);
                }
                Taken::End => {
                    source.settle_without_value(&mut after);
                    old.into_iter().for_each(wake::recycle);
                    return Poll::Ready(None);
                }
                Taken::Empty | Taken::Unpublished => {
                    wake::refund_budget();
                    source.settle_without_value(&mut after);
                    // SAFETY: handed on.
                    return unsafe { self.poll_empty(source, cx) };
                }
            }
        }
    }

    /// Nothing at the first look: waits in the line, and looks again.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn poll_empty<S: Source>(
        &self,
        source: &Arc<S>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<S::Item>> {
        loop {
            // Cloned outside the lock, since that may be foreign code.
            let waker = wake::clone_waker(cx.waker());
            let own = self.watching.begin(cx, &**source, || source.watch_polls());
            let mut after = S::After::default();
            let mut old = None;
            let mut unused = None;
            let announced;
            let taken = {
                let mut state = source.lock();
                let node = self.node();
                let linked = self.linked.replace(true);
                announced = source.begin_waiting(&mut state, |line| {
                    if !linked {
                        self.waiter.reset();
                        // SAFETY: in no line, pinned, and taken out before it goes.
                        unsafe { line.push(node, Wants::Message, waker, own) };
                        return;
                    }
                    // SAFETY: linked; here and below.
                    if unsafe { line.look(node) }.2 != Mark::Waiting {
                        // SAFETY: as above, and not marked waiting.
                        unsafe { line.wait_again(node) };
                    }
                    // SAFETY: as above.
                    old = unsafe { line.set_waker(node, waker, own) };
                });
                let taken = source.take(&mut state, &mut after);
                match taken {
                    Taken::Value(_) | Taken::End => {
                        self.linked.set(false);
                        // SAFETY: linked.
                        unused = unsafe { source.leave(&mut state, node) };
                        self.watching.end(&**source);
                    }
                    // There is a message, and this one wakes itself for it: it counts as woken. Were it to
                    // wait, the wake that has brought it here would be lost to the others.
                    // SAFETY: linked, and marked waiting.
                    Taken::Unpublished => unsafe { source.grant_polled(&mut state, node) },
                    Taken::Empty | Taken::Withdrawn(_) => {}
                }
                taken
            };
            let unneeded = old.into_iter().chain(unused);
            match taken {
                Taken::Value(value) => {
                    let value = source.settle(&mut after, value);
                    return Poll::Ready(Some(source.recycle(unneeded, value)));
                }
                Taken::Withdrawn(value) => {
                    source.settle_without_value(&mut after);
                    drop(value);
                }
                Taken::End => {
                    source.settle_without_value(&mut after);
                    discard(unneeded);
                    return Poll::Ready(None);
                }
                Taken::Unpublished => {
                    source.settle_without_value(&mut after);
                    // Never sleep here: the sender may have claimed before it could see PARKED.
                    wakerun::sync::spin_loop();
                    wake::force_yield(cx);
                    return Poll::Pending;
                }
                Taken::Empty => {
                    if announced {
                        source.looked();
                    }
                    source.settle_without_value(&mut after);
                    return Poll::Pending;
                }
            }
        }
    }

    /// The future goes: leaves the line, and passes on a wake that it has not used.
    pub(crate) fn cancel<S: Source>(&self, source: &S) {
        if !self.linked.replace(false) {
            return;
        }
        self.watching.end(source);
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
