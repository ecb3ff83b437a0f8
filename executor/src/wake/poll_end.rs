//! Work that is due once a poll.

use std::sync::Arc;

use crate::context;

/// Something to be done when the poll is over, on the same thread.
pub trait PollEnd {
    /// Called on the worker after the poll in which it was deferred; not called if the deferral is
    /// [cancelled](cancel_deferred) first.
    ///
    /// The caller has made no fence: a handshake that needs one makes it here.
    fn poll_end(&self);
}

/// Asks for [`PollEnd::poll_end`] to be called when the current poll is over. `false`: refused, the
/// caller does the work at once.
///
/// Each worker has one place for this, which keeps a counted reference from poll to poll. So it is
/// refused off the runtime, when another primitive has the place in this poll, and the first time
/// in a poll that a primitive other than the kept one asks.
///
/// ```
/// use std::sync::Arc;
/// use wakerun::wake::{PollEnd, defer_to_poll_end};
///
/// struct Flush;
/// impl PollEnd for Flush {
///     fn poll_end(&self) {}
/// }
///
/// // No runtime, no poll: do it now.
/// assert!(!defer_to_poll_end(&Arc::new(Flush)));
/// ```
#[inline]
pub fn defer_to_poll_end<H: PollEnd + 'static>(hook: &Arc<H>) -> bool {
    // SAFETY: nothing borrowed in `H`.
    unsafe { defer_to_poll_end_unchecked(hook) }
}

/// [`defer_to_poll_end`] for types that borrow.
///
/// # Safety
/// The worker may call `poll_end` on the hook and drop its last reference after what `H` borrows is
/// gone (the owner may have been leaked before), so neither may touch borrowed data.
///
/// ```
/// # use std::sync::Arc;
/// # struct Flush;
/// # impl wakerun::wake::PollEnd for Flush { fn poll_end(&self) {} }
/// // SAFETY: `Flush` borrows nothing.
/// assert!(!unsafe { wakerun::wake::defer_to_poll_end_unchecked(&Arc::new(Flush)) });
/// ```
#[inline]
pub unsafe fn defer_to_poll_end_unchecked<H: PollEnd>(hook: &Arc<H>) -> bool {
    if !context::in_poll() {
        return false;
    }
    context::with_worker(|worker| {
        worker.is_some_and(|worker| {
            worker.hook.defer(Arc::as_ptr(hook).cast(), || {
                let hook: Arc<dyn PollEnd + '_> = hook.clone();
                // SAFETY: only the lifetime changes; the caller vouches for what happens after it.
                unsafe { std::mem::transmute::<Arc<dyn PollEnd + '_>, Arc<dyn PollEnd>>(hook) }
            })
        })
    })
}

/// Takes a deferral of this poll back, since its work has been done otherwise.
///
/// ```
/// # use std::sync::Arc;
/// # struct Flush;
/// # impl wakerun::wake::PollEnd for Flush { fn poll_end(&self) {} }
/// wakerun::wake::cancel_deferred(&Arc::new(Flush));
/// ```
#[inline]
pub fn cancel_deferred<H: PollEnd>(hook: &Arc<H>) {
    context::with_worker(|worker| {
        if let Some(worker) = worker {
            worker.hook.cancel(Arc::as_ptr(hook).cast());
        }
    });
}
