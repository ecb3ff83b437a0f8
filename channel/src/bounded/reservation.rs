//! Waiting for room: what all futures that reserve are made of.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use wakerun::panics::FirstPanic;
use wakerun::wake;

use crate::chan::Chan;
use crate::flavor::Flavor;
use crate::gate::{Claim, Simply};
use crate::parking::Entered;
use crate::waiter::{Status, Waiter, Wants};
use crate::watching::Watching;

/// The channel is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChannelClosed;

/// A wait for permits: a place in the line of senders, if need be.
///
/// On a task of our own runtime a grant lapses that the task does not come for (the second table of
/// `waiter.rs`): the channel then looks at each end of a poll of the task while this waits.
///
/// It knows no channel, so that borrowed and owned handles can hold it; its methods are given the same
/// one each time.
pub(crate) struct Reservation {
    stage: Cell<Stage>,
    count: u64,
    waiter: Waiter,
    watching: Watching,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not polled yet: in no line.
    New,
    /// In the line, or taken out of it: the waiter's status tells.
    Waiting,
    /// Ready was returned.
    Over,
}

impl Reservation {
    /// For `count` permits, no more than the capacity.
    #[inline]
    pub(crate) fn new(count: u64) -> Self {
        Self {
            stage: Cell::new(Stage::New),
            count,
            waiter: Waiter::new(),
            watching: Watching::new(),
            _pinned: PhantomPinned,
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// After it was ready: another wait can begin.
    pub(crate) fn renew(&self) {
        debug_assert_ne!(self.stage.get(), Stage::Waiting, "it is in the line");
        self.waiter.reset();
        self.stage.set(Stage::New);
    }

    fn over(&self, output: Result<(), ChannelClosed>) -> Poll<Result<(), ChannelClosed>> {
        self.stage.set(Stage::Over);
        Poll::Ready(output)
    }

    /// The wait is over.
    fn waited<T, F: Flavor>(
        &self,
        chan: &Chan<T, F>,
        output: Result<(), ChannelClosed>,
    ) -> Poll<Result<(), ChannelClosed>> {
        self.watching.end(chan);
        self.over(output)
    }

    /// Ready with `Ok`: the word counts the permits for the caller.
    ///
    /// `name` is the future's, for the panic of one that is polled after it was ready.
    ///
    /// # Safety
    /// The reservation is pinned, `chan` is the same each time, and [`cancel`](Self::cancel) is called
    /// before it goes.
    #[track_caller]
    #[inline(always)]
    pub(crate) unsafe fn poll<T, F: Flavor>(
        &self,
        chan: &Arc<Chan<T, F>>,
        cx: &mut Context<'_>,
        name: &str,
    ) -> Poll<Result<(), ChannelClosed>> {
        match self.stage.get() {
            Stage::New => match self.claim_simply(chan) {
                Simply::Claimed { .. } => self.over(Ok(())),
                // SAFETY: handed on; here and below.
                Simply::Full => unsafe { self.enter_line(chan, cx) },
                // SAFETY: as above.
                Simply::Not => unsafe { self.poll_new(chan, cx) },
            },
            // Granted, and out of the line; and no task is watched for it.
            Stage::Waiting if self.waiter.is_granted() && self.watching.is_idle() => {
                // Charged, but never refused: the task has waited.
                let _ = wake::spend_budget_at_hand(false);
                self.over(Ok(()))
            }
            // SAFETY: as above.
            Stage::Waiting => unsafe { self.poll_waiting(chan, cx) },
            Stage::Over => polled_after_ready(name),
        }
    }

    /// The short way.
    #[inline(always)]
    fn claim_simply<T, F: Flavor>(&self, chan: &Chan<T, F>) -> Simply {
        if !wake::spend_budget_at_hand(true) {
            return Simply::Not;
        }
        let claim = chan.gate.claim_permits_simply(self.count, &chan.rx.head);
        if !matches!(claim, Simply::Claimed { .. }) {
            wake::refund_budget();
        }
        claim
    }

    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn poll_new<T, F: Flavor>(
        &self,
        chan: &Arc<Chan<T, F>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ChannelClosed>> {
        match chan.gate.claim_permits(self.count, &chan.rx.head) {
            Claim::Claimed { .. } if wake::spend_budget() => self.over(Ok(())),
            Claim::Claimed { .. } => {
                // The task has to yield, but keeps what it has got.
                let waiter = NonNull::from(&self.waiter);
                self.stage.set(Stage::Waiting);
                if self.watching.begin(cx, &**chan, || watch(chan)) {
                    // It lapses as other grants, if the task does not come for it.
                    let waker = wake::clone_waker(cx.waker());
                    // SAFETY: handed on; the waker is the task's own, and claimed just now.
                    unsafe { chan.enter_granted(waiter, Wants::Permits(self.count), waker) };
                } else {
                    // SAFETY: the waiter is in no line.
                    unsafe { Waiter::finish(waiter, Status::Granted) };
                }
                wake::force_yield(cx);
                Poll::Pending
            }
            Claim::Closed if wake::spend_budget() => self.over(Err(ChannelClosed)),
            Claim::Closed => {
                // Told at the next poll, or a task that tries on and on would never yield.
                wake::force_yield(cx);
                Poll::Pending
            }
            // SAFETY: handed on.
            Claim::Full => unsafe { self.enter_line(chan, cx) },
        }
    }

    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn enter_line<T, F: Flavor>(
        &self,
        chan: &Arc<Chan<T, F>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ChannelClosed>> {
        // Before the lock, since cloning a waker may be foreign code.
        let waker = wake::clone_waker(cx.waker());
        let waiter = NonNull::from(&self.waiter);
        let wants = Wants::Permits(self.count);
        let own = self.watching.begin(cx, &**chan, || watch(chan));
        // From here on the waiter may be in the line, also if a foreign waker panics.
        self.stage.set(Stage::Waiting);
        // SAFETY: handed on.
        match unsafe { chan.enter_line(waiter, wants, waker, own) } {
            Entered::Waiting => Poll::Pending,
            Entered::Claimed { waker, .. } => {
                // Kept also if the waker's destructor panics.
                // SAFETY: the waiter did not get into the line.
                unsafe { Waiter::finish(waiter, Status::Granted) };
                wake::recycle(waker);
                self.waited(chan, Ok(()))
            }
            Entered::Closed => self.waited(chan, Err(ChannelClosed)),
        }
    }

    /// # Safety
    /// As [`poll`](Self::poll).
    #[inline(never)]
    unsafe fn poll_waiting<T, F: Flavor>(
        &self,
        chan: &Arc<Chan<T, F>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ChannelClosed>> {
        let waiter = NonNull::from(&self.waiter);
        loop {
            let mut status = self.waiter.status();
            // SAFETY: this waiter, and it has entered the line.
            if status == Status::GrantedHere && unsafe { chan.claim_grant_simply(waiter) } {
                status = Status::Granted;
            } else if matches!(status, Status::GrantedHere | Status::Lapsed) {
                // SAFETY: this waiter, and it has entered the line.
                status = unsafe { chan.claim_grant(waiter) };
            }
            match status {
                Status::Granted => {
                    // Charged, but never refused: the task has waited.
                    let _ = wake::spend_budget();
                    return self.waited(chan, Ok(()));
                }
                Status::Closed => return self.waited(chan, Err(ChannelClosed)),
                _ => {
                    let own = self.watching.begin(cx, &**chan, || watch(chan));
                    // SAFETY: as above.
                    if unsafe { chan.renew_waker(waiter, cx.waker(), own) } {
                        return Poll::Pending;
                    }
                    // Granted, or taken out of the line, at this very moment.
                }
            }
        }
    }

    /// The future goes: if that is before it was ready, it leaves the line, and gives back what it has been granted.
    #[inline]
    pub(crate) fn cancel<T, F: Flavor>(&self, chan: &Chan<T, F>) {
        if self.stage.replace(Stage::Over) == Stage::Waiting {
            self.cancel_waiting(chan);
        }
    }

    #[cold]
    fn cancel_waiting<T, F: Flavor>(&self, chan: &Chan<T, F>) {
        self.watching.end(chan);
        let mut panics = FirstPanic::new();
        // SAFETY: this waiter, and it has entered the line.
        let status = unsafe { chan.leave_line(NonNull::from(&self.waiter), &mut panics) };
        if status == Status::Granted {
            panics.catch(|| chan.return_permits(self.count));
        }
        panics.resume("a waker");
    }
}

#[cold]
#[track_caller]
fn polled_after_ready(name: &str) -> ! {
    panic!("a `{name}` future was polled after it was ready");
}

/// Has the channel look at the ends of the polls of the current task.
fn watch<T, F: Flavor>(chan: &Arc<Chan<T, F>>) -> bool {
    // SAFETY: `poll_over` and the drop of a channel whose receivers are gone touch no message's borrowed
    // data; messages of a task of ours can be sent to its runtime's threads.
    unsafe { wake::watch_polls_unchecked(chan) }
}
