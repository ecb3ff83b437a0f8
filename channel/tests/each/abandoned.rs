//! Grants that their task does not come for, at the edges: whoever waits behind them is served.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::full;
use crate::common::{on_wake, polled, runtimes, within, yield_once};
use crate::flavor::channel;

#[test]
fn a_grant_in_the_last_operation_of_a_poll_lapses_too() {
    within("the last operation", || {
        for (_, runtime) in runtimes() {
            let (tx, mut rx) = channel(1);
            let task = runtime.spawn(async move {
                let mut kept = Box::pin(tx.reserve());
                poll_fn(|cx| {
                    while wakerun::wake::spend_budget() {}
                    // It has got the room, but must not say so before the next poll.
                    assert!(kept.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                tx.reserve().await.unwrap().send(1).unwrap();
                drop(kept);
            });
            assert_eq!(runtime.block_on(rx.recv()), Some(1));
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn a_waker_that_panics_at_a_lapse_keeps_no_later_grant_from_lapsing() {
    within("a panic at a lapse", || {
        for (_, runtime) in runtimes() {
            let (tx, mut rx) = full(2);
            let tx = Arc::new(tx);
            let sender = Arc::clone(&tx);
            let polls = Arc::new(AtomicUsize::new(0));
            let waker = Arc::new(Mutex::new(None::<Waker>));
            let lapsed = Arc::new(AtomicBool::new(false));
            let (count, shown) = (Arc::clone(&polls), Arc::clone(&waker));
            let lapse = Arc::clone(&lapsed);
            let task = runtime.spawn(async move {
                let mut first = Box::pin(sender.reserve());
                let mut bad = Box::pin(sender.reserve());
                let mut second = Box::pin(sender.reserve());
                poll_fn(|cx| match count.fetch_add(1, Ordering::SeqCst) {
                    0 => {
                        let lapse = Arc::clone(&lapse);
                        let panics = on_wake(move || {
                            lapse.store(true, Ordering::SeqCst);
                            panic!("a wake panics")
                        });
                        let panics = &mut Context::from_waker(&panics);
                        assert!(first.as_mut().poll(cx).is_pending());
                        assert!(bad.as_mut().poll(panics).is_pending());
                        assert!(second.as_mut().poll(cx).is_pending());
                        *shown.lock().unwrap() = Some(cx.waker().clone());
                        Poll::Pending
                    }
                    polls if polls < 1000 => Poll::Pending,
                    _ => Poll::Ready(()),
                })
                .await;
            });
            runtime.block_on(async {
                while waker.lock().unwrap().is_none() {
                    yield_once().await;
                }
                let mut last = polled(tx.send(2));
                last.pending();
                // Room for the first, whose grant lapses when the poll is over that it is woken for. Then
                // it goes to the one behind, whose waker panics.
                assert_eq!(rx.try_recv(), Ok(0));
                while !lapsed.load(Ordering::SeqCst) {
                    yield_once().await;
                }
                // Room for the second, which lapses, too.
                assert_eq!(rx.try_recv(), Ok(1));
                while !last.wakes.fired() {
                    yield_once().await;
                }
                assert_eq!(last.ready(), Ok(()));
            });
            polls.store(1000, Ordering::SeqCst);
            waker.lock().unwrap().take().unwrap().wake();
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn a_reservation_that_returned_to_the_front_and_left_makes_news_of_the_message_behind_it() {
    within("back at the front, and gone", || {
        for (_, runtime) in runtimes() {
            let task = runtime.spawn(async {
                let (tx, mut rx) = full(1);
                let mut lapses = Box::pin(tx.reserve());
                poll_fn(|cx| {
                    assert!(lapses.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                assert_eq!(rx.try_recv(), Ok(0));
                // Granted, and two polls are over without it.
                for _ in 0..4 {
                    yield_once().await;
                }
                // It lapses in favour of one who keeps the room for good.
                let mut holds = polled(tx.reserve());
                holds.pending();
                let _permit = holds.woken().unwrap();
                let mut recv = polled(rx.recv());
                recv.pending();
                // The receiver is woken to take the message straight out of the line,
                let mut send = polled(tx.send(1));
                send.pending();
                assert!(recv.wakes.fired());
                // but finds somebody else in front.
                poll_fn(|cx| {
                    assert!(lapses.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                })
                .await;
                recv.pending();
                recv.wakes.take();
                drop(lapses);
                assert_eq!(recv.woken(), Some(1));
                assert_eq!(send.woken(), Ok(()));
            });
            runtime.block_on(task).unwrap();
        }
    });
}

/// Waits for a flag, poll after poll.
async fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        yield_once().await;
    }
}

#[test]
fn a_grant_that_nobody_comes_for_keeps_no_receiver_from_the_end() {
    within("the end", || {
        for (_, runtime) in runtimes() {
            for is_due in [false, true] {
                let (tx, mut rx) = full(1);
                // It waits in line; it is due; the receiver has seen the end.
                let flags = Arc::new([const { AtomicBool::new(false) }; 3]);
                let seen = Arc::clone(&flags);
                let task = runtime.spawn(async move {
                    let [waits, due, over] = &*seen;
                    let mut kept = Box::pin(tx.reserve());
                    poll_fn(|cx| {
                        if waits.load(Ordering::SeqCst) {
                            return Poll::Ready(());
                        }
                        assert!(kept.as_mut().poll(cx).is_pending());
                        waits.store(true, Ordering::SeqCst);
                        Poll::Pending
                    })
                    .await;
                    // Granted. Now it waits for what comes after the end.
                    for _ in 0..4 {
                        yield_once().await;
                    }
                    due.store(true, Ordering::SeqCst);
                    wait_for(over).await;
                    assert!(kept.await.is_err());
                });
                let receiver = runtime.spawn(async move {
                    let [waits, due, over] = &*flags;
                    wait_for(waits).await;
                    assert_eq!(rx.recv().await, Some(0));
                    if is_due {
                        wait_for(due).await;
                    }
                    rx.close();
                    assert_eq!(rx.recv().await, None);
                    over.store(true, Ordering::SeqCst);
                });
                runtime.block_on(receiver).unwrap();
                runtime.block_on(task).unwrap();
            }
        }
    });
}
