//! The one task that writes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_lite::{AsyncWrite, AsyncWriteExt};
use wakerun_channel::mpsc::Receiver;

use crate::metrics::Metrics;

/// Events that are written together at most.
const BATCH: usize = 256;

/// Writes events, a line each, until nobody can send any more.
pub(crate) async fn write(
    mut events: Receiver<Bytes>,
    mut out: impl AsyncWrite + Unpin,
    metrics: Arc<Metrics>,
) -> io::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut lines = Vec::new();
    while events.recv_many(&mut batch, BATCH).await > 0 {
        lines.clear();
        for event in &batch {
            lines.extend_from_slice(event);
            lines.push(b'\n');
        }
        out.write_all(&lines).await?;
        // Files tell the error of a write only here.
        out.flush().await?;
        metrics.count_written(batch.len());
        batch.clear();
    }
    out.close().await
}
