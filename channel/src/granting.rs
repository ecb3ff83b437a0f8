//! The short way of a reservation that waits: how the one receiver grants it, and how its future claims that.
//!
//! The same as `serving.rs` and `parking.rs` do in general, less what only others need.

use std::ptr::NonNull;

use wakerun::sync::atomic::Ordering;
use wakerun::wake;

use crate::chan::Chan;
use crate::flavor::{Flavor, Mpsc};
use crate::gate::PARKED;
use crate::line::{Line, Told};
use crate::waiter::{Status, Waiter};

impl<T> Chan<T, Mpsc> {
    /// [`serve_as_receiver`](Self::serve_as_receiver) for a receiver that has made room for the first of the
    /// line, which wants permits, and for nobody behind it. Returns whom to wake after the lock; `None`: it
    /// is another case.
    #[inline]
    pub(crate) fn serve_one_reservation(&self, line: &mut Line) -> Option<Told> {
        let (node, count, next) = line.first_reservation()?;
        let word = self.gate.load();
        let head = self.rx.head.load(Ordering::Relaxed);
        let used = word.used(head) + count;
        let capacity = self.gate.capacity();
        let empty = next.is_none();
        if word.has(PARKED) || used > capacity || (used < capacity && !empty) {
            return None;
        }
        if empty {
            self.rx.waiting.store(false, Ordering::Relaxed);
        }
        // Counted before the future can see it.
        if word.permits() == 0 {
            // Nobody else changes the word before the permits are in it, and they come by the one store.
            let granted = word.grant(count);
            if empty {
                let limit = self.gate.limit(head);
                self.gate.end_line_exclusively(granted, limit);
            } else {
                self.gate.store_exclusive(granted);
            }
        } else {
            self.gate.grant_to_first(count, head, empty);
        }
        // SAFETY: found just now.
        if unsafe { line.grant_first(node) } {
            self.copy_counts(line);
            // After the counts: then the poll that this wake leads to finds them at its end.
            // SAFETY: linked still.
            return Some(unsafe { line.wakeup_of(node) });
        }
        // SAFETY: the first, and the one behind it.
        let waker = unsafe { line.remove_first(node, next) };
        // SAFETY: out of the line; the last touch.
        unsafe { Waiter::finish(node, Status::Granted) };
        Some(waker.map_or(Told::Nobody, Told::Other))
    }
}

impl<T, F: Flavor> Chan<T, F> {
    /// [`claim_grant`](Self::claim_grant) of one that has been granted and has not lapsed: it is out of the line,
    /// and what it wants is its own. `false`: it is another case.
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(crate) unsafe fn claim_grant_simply(&self, waiter: NonNull<Waiter>) -> bool {
        let mut line = self.line.lock();
        // SAFETY: the caller's own.
        if unsafe { waiter.as_ref() }.status() != Status::GrantedHere {
            return false;
        }
        // It was passed over, so those who wait are the same without it.
        // SAFETY: linked, and the lock is held.
        let waker = unsafe { line.remove(waiter) };
        self.copy_counts(&line);
        drop(line);
        if let Some(waker) = waker {
            // One of our own: no foreign code.
            wake::recycle(waker);
        }
        true
    }
}
