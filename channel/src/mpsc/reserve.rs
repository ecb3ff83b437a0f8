//! Waiting for room.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use wakerun::panics::FirstPanic;
use wakerun::wake;

use super::{Permit, Sender};
use crate::error::SendError;
use crate::gate::Claim;
use crate::line::{Status, Waiter, Wants};
use crate::parking::Entered;

/// The future of [`Sender::reserve`].
///
/// # Cancel safety
/// Dropped before it is Ready, it leaves the line, or passes on the room that it has been granted
/// meanwhile. A future that is kept but not polled any more keeps what it has been granted.
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Reserve<'a, T> {
    sender: &'a Sender<T>,
    stage: Cell<Stage>,
    waiter: Waiter<T>,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    /// In the line, or taken out of it: the waiter's status tells.
    Waiting,
    /// Ready was returned.
    Over,
}

// SAFETY: no message is in it; the waiter is reached by other threads under the line's lock only.
unsafe impl<T: Send> Send for Reserve<'_, T> {}
// SAFETY: `&Reserve` gives no more than `Debug`, which reads the stage; all that write it hold the
// future pinned and exclusively.
unsafe impl<T: Send> Sync for Reserve<'_, T> {}

impl<T> std::panic::UnwindSafe for Reserve<'_, T> {}
impl<T> std::panic::RefUnwindSafe for Reserve<'_, T> {}

impl<'a, T> Reserve<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>) -> Self {
        Self {
            sender,
            stage: Cell::new(Stage::New),
            waiter: Waiter::for_permits(),
            _pinned: PhantomPinned,
        }
    }

    fn over(
        &self,
        output: Result<Permit<'a, T>, SendError<()>>,
    ) -> Poll<Result<Permit<'a, T>, SendError<()>>> {
        self.stage.set(Stage::Over);
        Poll::Ready(output)
    }

    /// # Safety
    /// The word counts a permit for this future.
    unsafe fn granted(&self) -> Poll<Result<Permit<'a, T>, SendError<()>>> {
        // SAFETY: handed on.
        self.over(Ok(unsafe { Permit::new(self.sender.chan()) }))
    }

    fn poll_new(&self, cx: &mut Context<'_>) -> Poll<Result<Permit<'a, T>, SendError<()>>> {
        let chan = self.sender.chan();
        match chan.gate.claim_permits(1, &chan.rx.head) {
            Claim::Claimed { .. } if wake::spend_budget() => {
                // SAFETY: claimed just now.
                unsafe { self.granted() }
            }
            Claim::Claimed { .. } => {
                // The task has to yield, but keeps what it has got.
                self.stage.set(Stage::Waiting);
                // SAFETY: the waiter is in no line.
                unsafe { Waiter::finish(NonNull::from(&self.waiter), Status::Granted) };
                wake::force_yield(cx);
                Poll::Pending
            }
            Claim::Closed => self.over(Err(SendError(()))),
            Claim::Full => {
                let waker = wake::clone_waker(cx.waker());
                let waiter = NonNull::from(&self.waiter);
                // SAFETY: the waiter is pinned with this future, which takes it out when dropped.
                match unsafe { chan.enter_line(waiter, Wants::Permits(1), waker) } {
                    Entered::Waiting => {
                        self.stage.set(Stage::Waiting);
                        Poll::Pending
                    }
                    Entered::Claimed { waker, .. } => {
                        // SAFETY: claimed just now.
                        let granted = unsafe { self.granted() };
                        wake::recycle(waker);
                        granted
                    }
                    Entered::Closed => self.over(Err(SendError(()))),
                }
            }
        }
    }

    fn poll_waiting(&self, cx: &mut Context<'_>) -> Poll<Result<Permit<'a, T>, SendError<()>>> {
        match self.waiter.status() {
            Status::Granted => {
                let _ = wake::spend_budget();
                // SAFETY: the status says so, and is read once.
                unsafe { self.granted() }
            }
            Status::Closed => self.over(Err(SendError(()))),
            Status::Linked | Status::Done | Status::Taken => {
                let waiter = NonNull::from(&self.waiter);
                // SAFETY: this future's waiter, and it has entered the line.
                if unsafe { self.sender.chan().renew_waker(waiter, cx.waker()) } {
                    Poll::Pending
                } else {
                    // Taken out of the line at this very moment.
                    self.poll_waiting(cx)
                }
            }
        }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<Permit<'a, T>, SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        match this.stage.get() {
            Stage::New => this.poll_new(cx),
            Stage::Waiting => this.poll_waiting(cx),
            Stage::Over => panic!("a `reserve` future was polled after it was ready"),
        }
    }
}

impl<T> Drop for Reserve<'_, T> {
    fn drop(&mut self) {
        if self.stage.get() != Stage::Waiting {
            return;
        }
        let chan = self.sender.chan();
        let mut panics = FirstPanic::new();
        // SAFETY: this future's waiter, and it has entered the line.
        let status = unsafe { chan.leave_line(NonNull::from(&self.waiter), &mut panics) };
        if status == Status::Granted {
            panics.catch(|| chan.return_permits(1));
        }
        panics.resume("a waker");
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve")
            .field("stage", &self.stage.get())
            .finish_non_exhaustive()
    }
}
