//! Waiting for a message: what all futures that receive are made of.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use wakerun::panics::FirstPanic;
use wakerun::wake;

use super::receive::{After, Taken};
use crate::chan::Chan;
use crate::flavor::Mpmc;
use crate::line::{Mark, Waiter, Wants};

/// A wait for a message: a place in the line of receivers, if need be.
pub(crate) struct Reception {
    /// Whether the waiter is in the line, marked in any way.
    linked: Cell<bool>,
    waiter: Waiter<()>,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

impl Reception {
    pub(super) fn new() -> Self {
        Self {
            linked: Cell::new(false),
            waiter: Waiter::without_value(),
            _pinned: PhantomPinned,
        }
    }

    fn node(&self) -> NonNull<Waiter<()>> {
        NonNull::from(&self.waiter)
    }

    /// Ready with `None`: the channel has come to its end. It may be polled again in any case.
    ///
    /// # Safety
    /// The reception is pinned, `chan` is the same each time, and [`cancel`](Self::cancel) is called
    /// before it goes.
    #[inline]
    pub(super) unsafe fn poll<T>(
        &self,
        chan: &Arc<Chan<T, Mpmc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        if !wake::spend_budget() {
            if !chan.is_quiet() {
                wake::force_yield(cx);
                return Poll::Pending;
            }
            // SAFETY: handed on.
            return unsafe { self.poll_empty(chan, cx) };
        }
        loop {
            let mut after = After::new();
            let mut old = None;
            let taken = {
                let mut state = chan.rx.side.state.lock();
                let taken = chan.take(&mut state, &mut after);
                if matches!(taken, Taken::Value(_) | Taken::End) && self.linked.replace(false) {
                    // SAFETY: linked.
                    old = unsafe { chan.leave(&mut state, self.node()) };
                }
                taken
            };
            match taken {
                Taken::Value(value) => {
                    let value = chan.settle(&mut after, value);
                    return Poll::Ready(Some(chan.recycle(old, value)));
                }
                Taken::Withdrawn(value) => {
                    chan.settle_without_value(&mut after);
                    drop(value);
                }
                Taken::End => {
                    chan.settle_without_value(&mut after);
                    old.into_iter().for_each(wake::recycle);
                    return Poll::Ready(None);
                }
                Taken::Empty | Taken::Unpublished => {
                    wake::refund_budget();
                    chan.settle_without_value(&mut after);
                    // SAFETY: handed on.
                    return unsafe { self.poll_empty(chan, cx) };
                }
            }
        }
    }

    /// Nothing at the first look: waits in the line, and looks again.
    ///
    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn poll_empty<T>(
        &self,
        chan: &Arc<Chan<T, Mpmc>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<T>> {
        loop {
            // Cloned outside the lock, since that may be foreign code.
            let waker = wake::clone_waker(cx.waker());
            let own = watch(chan, cx);
            let mut after = After::new();
            let mut old = None;
            let mut unused = None;
            let taken = {
                let mut state = chan.rx.side.state.lock();
                let node = self.node();
                let linked = self.linked.replace(true);
                chan.begin_waiting(&mut state, |line| {
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
                let taken = chan.take(&mut state, &mut after);
                if matches!(taken, Taken::Value(_) | Taken::End) {
                    self.linked.set(false);
                    // SAFETY: linked.
                    unused = unsafe { chan.leave(&mut state, node) };
                }
                taken
            };
            let unneeded = old.into_iter().chain(unused);
            match taken {
                Taken::Value(value) => {
                    let value = chan.settle(&mut after, value);
                    return Poll::Ready(Some(chan.recycle(unneeded, value)));
                }
                Taken::Withdrawn(value) => {
                    chan.settle_without_value(&mut after);
                    drop(value);
                }
                Taken::End => {
                    chan.settle_without_value(&mut after);
                    return Poll::Ready(None);
                }
                Taken::Unpublished => {
                    chan.settle_without_value(&mut after);
                    // Never sleep here: the sender may have claimed before it could see PARKED.
                    wakerun::sync::spin_loop();
                    wake::force_yield(cx);
                    return Poll::Pending;
                }
                Taken::Empty => {
                    chan.settle_without_value(&mut after);
                    return Poll::Pending;
                }
            }
        }
    }

    /// The future goes: leaves the line, and passes on a wake that it has not used.
    pub(super) fn cancel<T>(&self, chan: &Chan<T, Mpmc>) {
        if !self.linked.replace(false) {
            return;
        }
        let (waker, was_woken) = {
            let mut state = chan.rx.side.state.lock();
            let node = self.node();
            // SAFETY: linked.
            let mark = unsafe { state.line.look(node) }.2;
            // SAFETY: as above.
            let waker = unsafe { chan.leave(&mut state, node) };
            (waker, matches!(mark, Mark::Granted { .. } | Mark::Due))
        };
        let mut panics = FirstPanic::new();
        if was_woken {
            panics.catch(|| chan.pass_on(1));
        }
        if let Some(waker) = waker {
            panics.catch(|| wake::recycle(waker));
        }
        panics.resume("a waker");
    }
}

/// Whether the polling task is one of ours and waits with its own waker; then the channel looks at the
/// ends of its polls from now on.
fn watch<T>(chan: &Arc<Chan<T, Mpmc>>, cx: &Context<'_>) -> bool {
    wake::is_own_waker(cx.waker())
        // SAFETY: as for reservations (`bounded/reservation.rs`).
        && unsafe { wake::watch_polls_unchecked(chan) }
}
