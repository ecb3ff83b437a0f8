//! Messages that are built in their slots.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::{Ledger, everywhere, polled};
use crate::flavor::channel;
use crate::flavor::error::{SendError, TryRecvError};

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[repr(align(128))]
#[derive(Debug, PartialEq)]
struct Aligned(u8);

#[test]
fn a_message_is_built_in_its_turn() {
    everywhere(|capacity| async move {
        let (tx, mut rx) = channel(capacity);
        for n in (0..50).step_by(2) {
            let permit = tx.reserve().await.unwrap();
            assert_eq!(permit.send_with(|| [n; 1000]), Ok(()));
            assert_eq!(rx.recv().await.unwrap()[999], n);
            let permit = tx.reserve().await.unwrap();
            let written = permit.write(|slot| {
                let message = slot.write([0; 1000]);
                message[999] = n + 1;
                message
            });
            assert_eq!(written, Ok(()));
            assert_eq!(rx.recv().await.unwrap()[999], n + 1);
        }
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn nothing_is_built_for_receivers_that_are_gone() {
    let (tx, rx) = channel::<u8>(2);
    let permit = tx.try_reserve().unwrap();
    let owned = tx.clone().try_reserve_owned().unwrap();
    drop(rx);
    assert_eq!(permit.send_with(|| unreachable!()), Err(SendError(())));
    assert!(owned.write(|_| unreachable!()).is_err());
    assert_eq!(tx.capacity(), 2);
}

#[test]
fn an_owned_permit_gives_its_sender_back() {
    let (tx, mut rx) = channel(1);
    let tx = tx
        .try_reserve_owned()
        .unwrap()
        .send_with(|| "built")
        .unwrap();
    assert_eq!(rx.try_recv(), Ok("built"));
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn a_panic_while_building_sends_nothing_and_gives_the_room_back() {
    for capacity in [1, 2, 300] {
        let ledger = Ledger::new();
        let (tx, mut rx) = channel(capacity);
        for _ in 0..3 * capacity {
            let permit = tx.try_reserve().unwrap();
            assert!(panics(|| _ = permit.send_with(|| panic!("while building"))));
            assert!(matches!(rx.try_recv(), Err(TryRecvError::Empty)));
            assert_eq!(tx.capacity(), capacity);
            tx.try_send(ledger.make()).unwrap();
            drop(rx.try_recv().unwrap());
        }
        // Between others, and one that is left for the end.
        if capacity > 2 {
            tx.try_send(ledger.make()).unwrap();
            let permit = tx.try_reserve().unwrap();
            assert!(panics(|| _ = permit.send_with(|| panic!("while building"))));
            tx.try_send(ledger.make()).unwrap();
            let permit = tx.try_reserve().unwrap();
            assert!(panics(|| _ = permit.send_with(|| panic!("while building"))));
            let first = rx.try_recv().unwrap();
            assert_eq!(rx.try_recv().unwrap().id, first.id + 1);
        }
        drop((tx, rx));
        ledger.assert_all_dropped_once();
    }
}

#[test]
fn a_panic_while_building_leaves_a_receiver_waiting_and_the_line_served() {
    let (tx, mut rx) = channel(1);
    let mut recv = polled(rx.recv());
    recv.pending();
    let permit = tx.try_reserve().unwrap();
    assert!(panics(|| _ = permit.send_with(|| panic!("while building"))));
    // Those who wait come behind what it has taken.
    let mut send = polled(tx.send(5));
    let _ = send.poll();
    let mut received = recv.poll();
    if received.is_pending() {
        received = recv.poll();
    }
    assert_eq!(received, std::task::Poll::Ready(Some(5)));
    drop(recv);
    assert!(send.poll().is_ready());
    drop(send);
    drop(tx);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn what_is_built_elsewhere_is_not_sent() {
    let (tx, mut rx) = channel(1);
    let permit = tx.try_reserve().unwrap();
    let elsewhere = || Box::leak(Box::new(1));
    assert!(panics(|| _ = permit.write(|_| elsewhere())));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(tx.capacity(), 1);
}

#[test]
fn slots_are_aligned_and_may_be_of_no_size() {
    for capacity in [1, 3, 2000] {
        let (tx, mut rx) = channel::<Aligned>(capacity);
        for n in 0..200 {
            let permit = tx.try_reserve().unwrap();
            let written = permit.write(|slot| {
                assert!(slot.as_ptr().is_aligned());
                slot.write(Aligned(n))
            });
            assert_eq!(written, Ok(()));
            assert_eq!(rx.try_recv(), Ok(Aligned(n)));
        }
        let (tx, mut rx) = channel::<()>(capacity);
        for _ in 0..capacity {
            tx.try_reserve().unwrap().send_with(|| ()).unwrap();
        }
        assert!(tx.try_send(()).is_err());
        for _ in 0..capacity {
            assert_eq!(rx.try_recv(), Ok(()));
        }
    }
}
