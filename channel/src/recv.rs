//! The future that receives, of all channels with many receivers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::receivers::Source;
use crate::reception::Reception;

/// Receives one message from a source; the futures with names wrap it.
pub(crate) struct RecvFrom<'a, S: Source> {
    source: &'a Arc<S>,
    reception: Reception,
}

// SAFETY: no message is in it; the waiter is reached by other threads under the receivers' lock only.
unsafe impl<S: Source> Send for RecvFrom<'_, S> where S::Item: Send {}
// SAFETY: `&RecvFrom` gives access to nothing.
unsafe impl<S: Source> Sync for RecvFrom<'_, S> where S::Item: Send {}

impl<S: Source> std::panic::UnwindSafe for RecvFrom<'_, S> {}
impl<S: Source> std::panic::RefUnwindSafe for RecvFrom<'_, S> {}

impl<'a, S: Source> RecvFrom<'a, S> {
    #[inline]
    pub(crate) fn new(source: &'a Arc<S>) -> Self {
        Self {
            source,
            reception: Reception::new(),
        }
    }
}

impl<S: Source> Future for RecvFrom<'_, S> {
    type Output = Option<S::Item>;

    // Always, as for `Send`.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.into_ref().get_ref();
        // SAFETY: pinned with this future, which has one source and cancels when it is dropped.
        unsafe { this.reception.poll(this.source, cx) }
    }
}

impl<S: Source> Drop for RecvFrom<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.reception.cancel(&**self.source);
    }
}

impl<S: Source> fmt::Debug for RecvFrom<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}
