//! The sender for code that polls.

use std::task::{Context, Poll};

use super::full;
use crate::common::noop;
use crate::flavor::PollSender;

/// In each state: idle, in line, with room reserved.
#[test]
fn a_poll_sender_tells_that_its_channel_is_closed_whatever_it_is_doing() {
    let mut cx = Context::from_waker(noop());
    let (tx, rx) = full(2);
    let idle = PollSender::new(tx.clone());
    let mut in_line = PollSender::new(tx.clone());
    assert_eq!(in_line.poll_reserve(&mut cx), Poll::Pending);
    assert!(!idle.is_closed());
    assert!(!in_line.is_closed());
    drop(rx);
    assert!(idle.is_closed());
    assert!(in_line.is_closed());

    let (tx, rx) = crate::flavor::channel::<usize>(1);
    let mut reserved = PollSender::new(tx);
    assert_eq!(reserved.poll_reserve(&mut cx), Poll::Ready(Ok(())));
    assert!(!reserved.is_closed());
    drop(rx);
    assert!(reserved.is_closed());
    assert_eq!(reserved.send_item(1).unwrap_err().into_inner(), 1);
}
