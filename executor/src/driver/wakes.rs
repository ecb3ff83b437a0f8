//! What one turn of the driver has to wake.

use std::task::Waker;

use crate::panics;
use crate::wake::{BATCH, Batch, Place};

/// Larger lists are given back to the allocator after they have been fired.
const KEPT: usize = 1024;

/// Wakers taken out of the driver, to be fired when it has been given back.
#[derive(Default)]
pub(crate) struct Wakes(Vec<Waker>);

impl Wakes {
    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.0.extend(wakers);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes all, batch by batch, in their order. A waker that panics is reported and keeps none
    /// from being woken.
    pub(crate) fn fire(&mut self) {
        let mut wakers = self.0.drain(..);
        while wakers.len() > 0 {
            let mut batch = Batch::new(Place::Tail);
            wakers
                .by_ref()
                .take(BATCH)
                .for_each(|waker| batch.push(waker));
            panics::report("a waker", || batch.wake_all());
        }
        drop(wakers);
        if self.0.capacity() > KEPT {
            self.0 = Vec::new();
        }
    }
}
