//! Work that is due once a poll.

use std::sync::Arc;

use crate::context;
use crate::sync::atomic::AtomicBool;

/// Something to be done when the poll is over, on the same thread.
pub trait PollEnd {
    /// Called on the worker after the poll in which it was deferred; not called if the deferral is
    /// [cancelled](cancel_deferred) first.
    ///
    /// The caller has made a full fence since the poll: what the poll stored, such as that room has
    /// become free, is seen by others before anything is looked at here.
    ///
    /// It must be short: no other worker takes over what is queued behind it. That does not hold for the wakers
    /// that it wakes by [`wake`](super::wake) and its like.
    fn poll_end(&self);

    /// A flag without which [`poll_end`](Self::poll_end) has nothing to do, and is not called. It is
    /// looked at after the fence.
    fn flag(&self) -> Option<&AtomicBool> {
        None
    }
}

/// Asks for [`PollEnd::poll_end`] to be called when the current poll is over. `false`: refused, the
/// caller does the work at once.
///
/// It is refused off the runtime, and when another primitive has been deferred in this poll. Each
/// worker keeps counted references to those it has deferred, from poll to poll, while it does not
/// sleep; one that is not kept yet is refused once, too.
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
#[inline(always)]
pub unsafe fn defer_to_poll_end_unchecked<H: PollEnd>(hook: &Arc<H>) -> bool {
    let address = Arc::as_ptr(hook).cast();
    context::defer(address, || keep(hook, address))
}

/// Whether [`PollEnd::poll_end`] of the hook is already to be called when the current poll is over, as if
/// [`defer_to_poll_end`] had just been granted.
///
/// ```
/// # use std::sync::Arc;
/// # struct Flush;
/// # impl wakerun::wake::PollEnd for Flush { fn poll_end(&self) {} }
/// assert!(!wakerun::wake::is_deferred(&Arc::new(Flush)));
/// ```
#[inline(always)]
pub fn is_deferred<H: PollEnd>(hook: &Arc<H>) -> bool {
    context::is_deferred(Arc::as_ptr(hook).cast())
}

/// Whether the current worker keeps a counted reference to the hook, from now on if need be.
#[inline(never)]
fn keep<H: PollEnd>(hook: &Arc<H>, address: *const ()) -> bool {
    context::with_worker(|worker| {
        worker.is_some_and(|worker| {
            worker.hooks.keep(address, || {
                let hook: Arc<dyn PollEnd + '_> = hook.clone();
                // SAFETY: only the lifetime changes; the caller of `defer_to_poll_end_unchecked`
                // vouches for what happens after it.
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
    context::cancel_deferred(Arc::as_ptr(hook).cast());
}

/// Lets the current worker drop its counted reference, and takes a deferral back: for the destructor
/// of a handle whose primitive is not going to be used any more.
///
/// ```
/// # use std::sync::Arc;
/// # struct Flush;
/// # impl wakerun::wake::PollEnd for Flush { fn poll_end(&self) {} }
/// wakerun::wake::forget_deferred(&Arc::new(Flush));
/// ```
pub fn forget_deferred<H: PollEnd>(hook: &Arc<H>) {
    let address = Arc::as_ptr(hook).cast();
    context::cancel_deferred(address);
    context::with_worker(|worker| {
        if let Some(worker) = worker {
            worker.hooks.evict(address);
        }
    });
}
