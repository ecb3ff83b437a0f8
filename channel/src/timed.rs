//! Waits that end in time, or when something else does.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use wakerun::time::Timeout;
use wakerun::wake::{block_on_thread, block_on_thread_until};

use crate::error::{RecvTimeoutError, SendTimeoutError};

/// When a wait of this length from now on is over; `None`: in this world never.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Receives, blocking the thread no longer than to the deadline.
pub(crate) fn blocking_recv<T>(
    recv: impl Future<Output = Option<T>>,
    deadline: Option<Instant>,
) -> Result<T, RecvTimeoutError> {
    let received = match deadline {
        None => Some(block_on_thread(recv)),
        Some(deadline) => block_on_thread_until(pin!(recv), deadline),
    };
    match received {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(RecvTimeoutError::Disconnected),
        None => Err(RecvTimeoutError::Timeout),
    }
}

/// Receives, unless `cancel` is ready first.
pub(crate) async fn recv_or<T>(
    recv: impl Future<Output = Option<T>>,
    cancel: impl Future,
) -> Result<T, RecvTimeoutError> {
    let mut recv = pin!(recv);
    let mut cancel = pin!(cancel);
    poll_fn(|cx| {
        // First: a receiver that always finds messages is to be stopped, too. Nothing is lost by that.
        if cancel.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(RecvTimeoutError::Timeout));
        }
        recv.as_mut()
            .poll(cx)
            .map(|received| received.ok_or(RecvTimeoutError::Disconnected))
    })
    .await
}

/// Receives within a time limit; a message that is there wins.
pub(crate) async fn recv_within<T>(
    recv: Timeout<impl Future<Output = Option<T>>>,
) -> Result<T, RecvTimeoutError> {
    match recv.await {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(RecvTimeoutError::Disconnected),
        Err(_) => Err(RecvTimeoutError::Timeout),
    }
}

/// Sends, blocking the thread no longer than to the deadline. `send_or` makes the future, out of one that
/// tells it to give up.
pub(crate) fn blocking_send<T, S>(
    deadline: Option<Instant>,
    send_or: impl FnOnce(Expiry) -> S,
) -> Result<(), SendTimeoutError<T>>
where
    S: Future<Output = Result<(), SendTimeoutError<T>>>,
{
    let expired = Rc::new(Cell::new(false));
    let mut send = pin!(send_or(Expiry(expired.clone())));
    let Some(deadline) = deadline else {
        return block_on_thread(send);
    };
    if let Some(sent) = block_on_thread_until(send.as_mut(), deadline) {
        return sent;
    }
    expired.set(true);
    match send.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(sent) => sent,
        Poll::Pending => unreachable!("it was told to give up"),
    }
}

/// Ready when the time is over. It wakes nobody: whoever sets it polls.
pub(crate) struct Expiry(Rc<Cell<bool>>);

impl Future for Expiry {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.get() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
