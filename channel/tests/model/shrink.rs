//! A failing sequence made shorter: drop large parts, then smaller ones, while it still fails.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Case, Op, Turns};

/// Attempts before it is left as it is.
const ATTEMPTS: usize = 4_000;

/// The shortest failing sequence found, and how it fails. `steps` counts the attempts.
pub(crate) async fn shrink(
    case: Case,
    turns: &Turns,
    mut ops: Vec<Op>,
    mut error: String,
    steps: &AtomicU64,
) -> (Vec<Op>, String) {
    let mut attempts = 0;
    let mut part = ops.len() / 2;
    while part > 0 {
        let mut at = 0;
        let mut removed = false;
        while at < ops.len() && attempts < ATTEMPTS {
            attempts += 1;
            steps.fetch_add(1, Ordering::Relaxed);
            let mut shorter = ops.clone();
            shorter.drain(at..(at + part).min(ops.len()));
            match case.run(&shorter, turns).await {
                Ok(_) => at += part,
                Err(other) => {
                    (ops, error) = (shorter, other);
                    removed = true;
                }
            }
        }
        // Removing one may make another removable: single steps go on until none helps.
        if !(removed && part == 1) {
            part /= 2;
        }
    }
    (ops, error)
}
