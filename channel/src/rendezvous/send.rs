//! Sending one message, hand to hand.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll};

use wakerun::wake;

use super::Sender;
use crate::error::{SendError, SendTimeoutError};
use crate::waiter::{SendWaiter, Status};

/// The future of [`Sender::send`].
///
/// # Cancel safety
/// Dropped before it is Ready, it takes its message back, unless a receiver has it already. Who must know
/// which uses [`Sender::send_or`].
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Send<'a, T> {
    sender: &'a Sender<T>,
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
    /// The message is gone.
    Over,
}

// SAFETY: a message on its way, which `T: Send` allows to be anywhere; the waiter is reached by other
// threads under the lock only.
unsafe impl<T: std::marker::Send> std::marker::Send for Send<'_, T> {}
// SAFETY: `&Send` gives no more than `Debug`, which reads the stage; all that write it hold the future
// pinned and exclusively.
unsafe impl<T: std::marker::Send> Sync for Send<'_, T> {}

impl<T> std::panic::UnwindSafe for Send<'_, T> {}
impl<T> std::panic::RefUnwindSafe for Send<'_, T> {}

impl<'a, T> Send<'a, T> {
    pub(super) fn new(sender: &'a Sender<T>, value: T) -> Self {
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
    unsafe fn finish(&self) -> T {
        self.stage.set(Stage::Over);
        // SAFETY: handed on.
        unsafe { self.waiter.take_value() }
    }

    /// # Safety
    /// Pinned.
    unsafe fn poll_pinned(&self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let chan = self.sender.chan();
        let node = self.waiter.node();
        match self.stage.get() {
            Stage::New => {
                // Before the lock, since cloning a waker may be foreign code.
                let waker = wake::clone_waker(cx.waker());
                self.stage.set(Stage::Waiting);
                // SAFETY: pinned with this future, which takes it out when it is dropped.
                match unsafe { chan.enter_senders(node, waker) } {
                    // If a receiver was woken on this very stack, it may have come already.
                    Ok(()) if self.waiter.status() == Status::Linked => return Poll::Pending,
                    Ok(()) => {}
                    Err(waker) if !wake::spend_budget() => {
                        // Told at the next poll, or a task that sends on and on would never yield.
                        self.stage.set(Stage::New);
                        wake::recycle(waker);
                        wake::force_yield(cx);
                        return Poll::Pending;
                    }
                    Err(waker) => {
                        // SAFETY: the waiter did not get into the line.
                        let value = unsafe { self.finish() };
                        wake::recycle(waker);
                        return Poll::Ready(Err(SendError(value)));
                    }
                }
            }
            Stage::Waiting if self.waiter.status() == Status::Linked => {
                // SAFETY: this future's waiter, and it has entered the line.
                unsafe { chan.renew_waker(node, cx.waker()) };
                if self.waiter.status() == Status::Linked {
                    return Poll::Pending;
                }
            }
            Stage::Waiting => {}
            Stage::Over => panic!("a `send` future was polled after it was ready"),
        }
        // Charged, but never refused: the task has waited.
        let _ = wake::spend_budget();
        if self.waiter.status() == Status::Closed {
            // SAFETY: a closed send keeps its message.
            return Poll::Ready(Err(SendError(unsafe { self.finish() })));
        }
        self.stage.set(Stage::Over);
        Poll::Ready(Ok(()))
    }

    /// Takes the message back, unless it has been received.
    fn withdraw(&self) -> Option<T> {
        let node = self.waiter.node();
        match self.stage.get() {
            // SAFETY: a new send's message is in its waiter.
            Stage::New => Some(unsafe { self.finish() }),
            Stage::Over => None,
            Stage::Waiting => {
                // SAFETY: this future's waiter, and it has entered the line.
                let left = unsafe { self.sender.chan().leave_senders(node) };
                if left.is_none() && self.waiter.status() != Status::Closed {
                    self.stage.set(Stage::Over);
                    return None;
                }
                // SAFETY: out of the line, by this call or by closing, with the message in it.
                let value = unsafe { self.finish() };
                left.flatten().into_iter().for_each(wake::recycle);
                Some(value)
            }
        }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned.
        unsafe { self.into_ref().get_ref().poll_pinned(cx) }
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        drop(self.withdraw());
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Send")
            .field("stage", &self.stage.get())
            .finish_non_exhaustive()
    }
}

/// The future of [`Sender::send_or`].
///
/// # Cancel safety
/// Dropped before it is Ready, it takes its message back, unless a receiver has it already.
///
/// # Panics
/// When it is polled again after it was Ready.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct SendOr<'a, T, C> {
    send: Send<'a, T>,
    cancel: C,
}

impl<'a, T, C> SendOr<'a, T, C> {
    pub(super) fn new(send: Send<'a, T>, cancel: C) -> Self {
        Self { send, cancel }
    }
}

impl<T, C: Future> Future for SendOr<'_, T, C> {
    type Output = Result<(), SendTimeoutError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: both fields are pinned with this future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: pinned, as said.
        match unsafe { this.send.poll_pinned(cx) } {
            Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
            Poll::Ready(Err(SendError(value))) => {
                return Poll::Ready(Err(SendTimeoutError::Closed(value)));
            }
            Poll::Pending => {}
        }
        // SAFETY: pinned, as said.
        let cancel = unsafe { Pin::new_unchecked(&mut this.cancel) };
        std::task::ready!(cancel.poll(cx));
        Poll::Ready(match this.send.withdraw() {
            Some(value) => Err(SendTimeoutError::Timeout(value)),
            None => Ok(()),
        })
    }
}

impl<T, C> fmt::Debug for SendOr<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendOr")
            .field("stage", &self.send.stage.get())
            .finish_non_exhaustive()
    }
}
