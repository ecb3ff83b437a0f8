//! What the service tells about itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start. Relaxed: they say how many, and order nothing.
#[derive(Default)]
pub(crate) struct Metrics {
    accepted: AtomicU64,
    refused: AtomicU64,
    written: AtomicU64,
}

impl Metrics {
    pub(crate) fn count_accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_written(&self, events: usize) {
        self.written.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// In the text form that Prometheus and its like read.
    pub(crate) fn text(&self, queued: usize, capacity: usize) -> String {
        let accepted = self.accepted.load(Ordering::Relaxed);
        let refused = self.refused.load(Ordering::Relaxed);
        let written = self.written.load(Ordering::Relaxed);
        format!(
            "# TYPE events_queued gauge\n\
             events_queued {queued}\n\
             # TYPE events_queue_capacity gauge\n\
             events_queue_capacity {capacity}\n\
             # TYPE events_accepted_total counter\n\
             events_accepted_total {accepted}\n\
             # TYPE events_refused_total counter\n\
             events_refused_total {refused}\n\
             # TYPE events_written_total counter\n\
             events_written_total {written}\n"
        )
    }
}
