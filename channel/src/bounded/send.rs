//! Sending one message.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use wakerun::panics::FirstPanic;
use wakerun::wake;

use super::Sender;
use crate::chan::Chan;
use crate::error::SendError;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::{Claim, Simply};
use crate::parking::Entered;
use crate::receivers::News;
use crate::waiter::{SendWaiter, Status, Wants};

/// The future of [`Sender::send`].
///
/// # Cancel safety
/// Dropped before it is Ready, it withdraws its message, unless a receiver has it already: one
/// that still waits leaves the line; one that has been accepted meanwhile and is still queued is
/// marked and discarded by the receiver, which gives its capacity back when it passes it. Who must
/// know which, or wants the message back, uses [`send_or`](Sender::send_or), or
/// `reserve().await?.send(v)`.
///
/// One that is kept but not polled any more blocks nobody: its message is accepted in its turn, and
/// delivered.
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Send<'a, T, F: Flavor = Mpsc> {
    sender: &'a Sender<T, F>,
    stage: Cell<Stage>,
    waiter: SendWaiter<T>,
    /// The line points to the waiter.
    _pinned: PhantomPinned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not polled yet: the message is in the waiter, which is in no line.
    New,
    /// In the line, or taken out of it: the waiter's status tells.
    Waiting,
    /// Ready was returned: the message is gone.
    Over,
}

// SAFETY: a message on its way, which `T: Send` allows to be anywhere; the waiter is reached by
// other threads under the line's lock only.
unsafe impl<T: std::marker::Send, F: Flavor> std::marker::Send for Send<'_, T, F> {}
// SAFETY: `&Send` gives no more than `Debug`, which reads the stage; all that write it hold the
// future pinned and exclusively.
unsafe impl<T: std::marker::Send, F: Flavor> Sync for Send<'_, T, F> {}

impl<T, F: Flavor> std::panic::UnwindSafe for Send<'_, T, F> {}
impl<T, F: Flavor> std::panic::RefUnwindSafe for Send<'_, T, F> {}

impl<'a, T, F: Flavor> Send<'a, T, F> {
    #[inline(always)]
    pub(super) fn new(sender: &'a Sender<T, F>, value: T) -> Self {
        Self {
            sender,
            stage: Cell::new(Stage::New),
            waiter: SendWaiter::new(value),
            _pinned: PhantomPinned,
        }
    }

    /// Takes the message out of the waiter: the send is over.
    ///
    /// # Safety
    /// The message is in the waiter and nobody else will take it.
    #[inline]
    unsafe fn finish(&self) -> T {
        self.stage.set(Stage::Over);
        // SAFETY: handed on.
        unsafe { self.waiter.take_value() }
    }

    /// Publishes the message at a claimed position.
    ///
    /// # Safety
    /// The message is in the waiter, which is in no line, and the claim is the caller's.
    #[inline(always)]
    unsafe fn publish(
        &self,
        chan: &Chan<T, F>,
        position: u64,
        wake: bool,
    ) -> Poll<Result<(), SendError<T>>> {
        self.stage.set(Stage::Over);
        // SAFETY: handed on; the message leaves the waiter.
        unsafe { chan.publish_from(position, wake, self.waiter.value_place()) };
        Poll::Ready(Ok(()))
    }

    #[inline(always)]
    fn poll_new(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        if !wake::spend_budget_at_hand(true) {
            return self.poll_at_limit(cx);
        }
        // Looked up once: behind an exchange, the compiler would do it again.
        let chan = &**self.sender.chan();
        match chan.claim_simply() {
            // SAFETY: claimed just now; a new send's message is in its waiter.
            Simply::Claimed { position, wake } => unsafe { self.publish(chan, position, wake) },
            Simply::Full => self.enter_line(cx),
            Simply::Not => self.poll_slowly(cx),
        }
    }

    #[inline(never)]
    fn poll_slowly(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let chan = &**self.sender.chan();
        match chan.claim() {
            // SAFETY: claimed just now; a new send's message is in its waiter.
            Claim::Claimed { position, wake } => unsafe { self.publish(chan, position, wake) },
            // SAFETY: as above.
            Claim::Closed => Poll::Ready(Err(SendError(unsafe { self.finish() }))),
            Claim::Full => self.enter_line(cx),
        }
    }

    /// The budget has to be looked into.
    #[cold]
    #[inline(never)]
    fn poll_at_limit(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        if wake::spend_budget_but_last() {
            self.poll_slowly(cx)
        } else {
            self.poll_exhausted(cx)
        }
    }

    /// The last operation of the budget: the task has to yield, but not to lose its place. The
    /// message is accepted now, as if it had waited in line, and Ready is told at the next poll.
    #[cold]
    fn poll_exhausted(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let chan = self.sender.chan();
        // Deposits are made under the lock.
        let line = chan.line.lock();
        match chan.claim() {
            Claim::Claimed { position, wake } => {
                self.stage.set(Stage::Waiting);
                // SAFETY: a new send's waiter has never been in a line.
                unsafe { self.waiter.finish_deposited(position) };
                // SAFETY: claimed just now, and the lock is held; a new send's message is in its waiter, and
                // leaves it.
                unsafe { chan.ring.deposit_from(position, self.waiter.value_place()) };
                drop(line);
                if wake {
                    // SAFETY: the claim saw PARKED.
                    unsafe { chan.wake(News::Messages(1)) };
                }
                wake::force_yield(cx);
                Poll::Pending
            }
            // Told at the next poll, too, or a task that sends on and on would never yield.
            Claim::Closed => {
                drop(line);
                wake::force_yield(cx);
                Poll::Pending
            }
            Claim::Full => {
                drop(line);
                self.enter_line(cx)
            }
        }
    }

    // In steps that need no frame, each a call at the end of the one before.

    #[inline(never)]
    fn enter_line(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        // Before the lock, since cloning a waker may be foreign code.
        self.enter_line_with(wake::clone_waker(cx.waker()))
    }

    #[inline(never)]
    fn enter_line_with(&self, waker: Waker) -> Poll<Result<(), SendError<T>>> {
        // From here on the waiter may be in the line, also if a foreign waker panics.
        self.stage.set(Stage::Waiting);
        let waiter = self.waiter.node();
        // SAFETY: the waiter is pinned with this future, which takes it out when it is dropped.
        match unsafe { self.sender.chan().enter_line_simply(waiter, waker) } {
            Ok(()) => Poll::Pending,
            Err(waker) => self.enter_line_slowly(waker),
        }
    }

    #[inline(never)]
    fn enter_line_slowly(&self, waker: Waker) -> Poll<Result<(), SendError<T>>> {
        let chan = self.sender.chan();
        let waiter = self.waiter.node();
        // SAFETY: as above; it has not got into the line.
        match unsafe { chan.enter_line(waiter, Wants::Send, waker, false) } {
            Entered::Waiting => Poll::Pending,
            Entered::Claimed {
                position,
                wake,
                waker,
            } => {
                let mut panics = FirstPanic::new();
                // SAFETY: claimed just now; the waiter did not get into the line.
                panics.catch(|| _ = unsafe { self.publish(chan, position, wake) });
                panics.catch(|| wake::recycle(waker));
                panics.resume("a waker");
                Poll::Ready(Ok(()))
            }
            // SAFETY: as above.
            Entered::Closed => Poll::Ready(Err(SendError(unsafe { self.finish() }))),
        }
    }

    #[inline(always)]
    fn poll_waiting(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        if self.waiter.is_accepted() {
            self.stage.set(Stage::Over);
            // Charged, but never refused: the task has waited.
            let _ = wake::spend_budget_at_hand(false);
            return Poll::Ready(Ok(()));
        }
        self.poll_waiting_still(cx)
    }

    #[inline(never)]
    fn poll_waiting_still(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        match self.waiter.status() {
            Status::Done | Status::Taken => self.poll_waiting(cx),
            // SAFETY: a closed send keeps its message.
            Status::Closed => Poll::Ready(Err(SendError(unsafe { self.finish() }))),
            _ => {
                let waiter = self.waiter.node();
                // SAFETY: this future's waiter, and it has entered the line.
                if unsafe { self.sender.chan().renew_waker(waiter, cx.waker(), false) } {
                    Poll::Pending
                } else {
                    // Taken out of the line at this very moment.
                    self.poll_waiting(cx)
                }
            }
        }
    }
}

impl<T, F: Flavor> Future for Send<'_, T, F> {
    type Output = Result<(), SendError<T>>;

    // Always: in a program with many sends the compiler would not, and the short way is shorter than a call and what it
    // takes to look at its result.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.into_ref().get_ref();
        match this.stage.get() {
            Stage::New => this.poll_new(cx),
            Stage::Waiting => this.poll_waiting(cx),
            Stage::Over => panic!("a `send` future was polled after it was ready"),
        }
    }
}

impl<T, F: Flavor> Drop for Send<'_, T, F> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.stage.get() {
            Stage::Over => {}
            // SAFETY: a new send's message is in its waiter.
            Stage::New => drop(unsafe { self.waiter.take_value() }),
            Stage::Waiting => self.cancel(),
        }
    }
}

impl<T, F: Flavor> Send<'_, T, F> {
    #[cold]
    fn cancel(&self) {
        let chan = self.sender.chan();
        let mut panics = FirstPanic::new();
        // SAFETY: this future's waiter, and it has entered the line.
        match unsafe { chan.leave_line(self.waiter.node(), &mut panics) } {
            // SAFETY: DONE says where the message was put.
            Status::Done => chan.withdraw(unsafe { self.waiter.position() }),
            Status::Linked | Status::Closed => {
                // SAFETY: out of the line, by this call or by closing, with the message in it.
                let value = unsafe { self.waiter.take_value() };
                panics.catch(|| drop(value));
            }
            _ => {}
        }
        panics.resume("a waker or a message");
    }
}

impl<T, F: Flavor> fmt::Debug for Send<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Send")
            .field("stage", &self.stage.get())
            .finish_non_exhaustive()
    }
}
