//! Grants that lapse: what is granted to a task that does not come for it goes to whoever wants it (the
//! second table of `waiter.rs`).

use wakerun::panics::FirstPanic;
use wakerun::sync::atomic::Ordering;
use wakerun::wake::{Batch, Place, PollWatch, Poller};

use crate::chan::Chan;
use crate::flavor::Flavor;
use crate::line::Line;
use crate::serving::Served;
use crate::waiter::Mark;

impl<T, F: Flavor> Chan<T, F> {
    /// Takes due grants back, since somebody waits, and serves the line.
    pub(crate) fn lapse_due(&self, line: &mut Line, batch: &mut Batch) -> Served {
        let ended = self.lapse_all_due(line);
        let mut served = self.serve(line, batch);
        served.ended |= ended;
        served
    }

    /// Takes due grants back. `true`: the channel has come to its end by that, and receivers are to be woken.
    pub(crate) fn lapse_all_due(&self, line: &mut Line) -> bool {
        let mut ended = false;
        let mut next = line.front();
        while let Some(node) = next
            && line.due() > 0
        {
            // SAFETY: linked: found from the front on.
            let (behind, _, mark) = unsafe { line.look(node) };
            next = behind;
            if mark == Mark::Due {
                // SAFETY: linked, and due.
                let had = unsafe { line.lapse(node) };
                // Of a closed channel it may have been the last one.
                ended |= self.gate.return_permits(had.count()).1;
            }
        }
        ended
    }

    /// Room that is granted to somebody who does not come for it is to be had. `true`: some has been
    /// taken back, and nobody waits for it.
    #[cold]
    pub(crate) fn reclaim_due(&self) -> bool {
        if self.rx.due.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut batch = Batch::new(Place::Tail);
        let mut line = self.line.lock();
        let some = line.due() > 0;
        let served = self.lapse_due(&mut line, &mut batch);
        let nobody = line.is_empty();
        drop(line);
        self.after_serving(served, &mut batch);
        some && nobody
    }

    /// A poll of a task is over, which may have left grants unclaimed; or the task is, and others may have
    /// futures of it that wait here.
    #[cold]
    fn look_for_due(&self, poller: &Poller<'_>) {
        let mut batch = Batch::new(Place::Tail);
        let mut line = self.line.lock();
        let over = poller.is_over();
        let mut left = if over { usize::MAX } else { line.granted() };
        let mut next = line.front();
        while let Some(node) = next
            && left > 0
        {
            // SAFETY: linked: found from the front on.
            let (behind, _, mark) = unsafe { line.look(node) };
            next = behind;
            left -= usize::from(matches!(mark, Mark::Granted { .. } | Mark::Due));
            // SAFETY: linked.
            let _ = unsafe { line.becomes_due(node, poller) };
            if over {
                // SAFETY: linked.
                unsafe { line.abandon(node, poller) };
            }
        }
        let served = if line.is_empty() && !self.is_closed() {
            // Nobody else wants it: it stays where it is. (Receivers of a closed channel want its end.)
            self.end_line();
            self.copy_counts(&line);
            Served::default()
        } else if line.due() == 0 && !over {
            // It may still be claimed.
            self.copy_counts(&line);
            Served::default()
        } else {
            self.lapse_due(&mut line, &mut batch)
        };
        drop(line);
        self.after_serving(served, &mut batch);
    }
}

impl<T, F: Flavor> PollWatch for Chan<T, F> {
    /// Touches no message but those it moves, unread, from the line into the ring.
    fn poll_over(&self, poller: &Poller<'_>) -> bool {
        // The grant was made before the wake that led to this poll, or another poll follows; so a stale
        // count is looked at again.
        let unclaimed = self.rx.grants.load(Ordering::Acquire) > 0;
        let mut panics = FirstPanic::new();
        if unclaimed || (poller.is_over() && self.rx.own.load(Ordering::Acquire) > 0) {
            panics.catch(|| self.look_for_due(poller));
        }
        let mut receivers = true;
        panics.catch(|| receivers = F::poll_over(self, poller));
        panics.resume("a waker");
        self.rx.own.load(Ordering::Relaxed) > 0 || receivers
    }
}
