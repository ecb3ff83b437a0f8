//! The one receiver.

use std::mem;

use crate::common::{everywhere, noop, poll_once, polled};
use crate::each::auto_traits::{IsUnpin, assert_trait};
use crate::flavor::channel;
use crate::flavor::future::{Recv, RecvMany};

#[test]
fn a_leaked_receive_does_not_disturb_the_next() {
    // B002, for the one receiver
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        let mut leaked = Box::pin(rx.recv());
        assert!(poll_once(leaked.as_mut(), noop()).is_pending());
        mem::forget(leaked);
        let mut recv = polled(rx.recv());
        recv.pending();
        tx.try_send(1).unwrap();
        assert_eq!(recv.woken(), Some(1));
        drop(recv);
        drop(tx);
        assert_eq!(polled(rx.recv()).ready(), None);
    });
}

#[test]
fn receives_hold_no_place_and_may_be_moved() {
    assert_trait! { IsUnpin is true for Recv<'static, [u8; 1024]>, RecvMany<'static, [u8; 1024]> }
    assert!(size_of::<Recv<'static, [u8; 1024]>>() <= size_of::<usize>());
}
