//! Receivers that wait: woken in line, one for each message, and no wake is lost.

use std::collections::VecDeque;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_lite::Stream;

use crate::common::{
    Counter, Polled, Rng, counter, everywhere, noop, poll_once, polled, settle, within,
};
use crate::each::full;
use crate::each::waker_drops::acting;
use crate::flavor::error::TryRecvError;
use crate::flavor::future::Recv;
use crate::flavor::{Receiver, channel};

/// Receives that wait now.
fn waiting(rx: &Receiver<usize>, count: usize) -> Vec<Polled<Recv<'_, usize>>> {
    let mut line: Vec<_> = (0..count).map(|_| polled(rx.recv())).collect();
    for recv in &mut line {
        recv.pending();
    }
    line
}

#[test]
fn receivers_are_woken_in_the_order_of_their_first_poll() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 5);
        // Polled again, they keep their places.
        line[1].pending();
        line[0].pending();
        for i in 0..5 {
            tx.try_send(i).unwrap();
            for (place, recv) in line.iter().enumerate() {
                let fired = if place == i { 1 } else { 0 };
                assert_eq!(recv.wakes.take(), fired);
            }
            assert_eq!(line[i].ready(), Some(i));
            settle().await;
        }
    });
}

#[test]
fn as_many_messages_wake_as_many_receivers() {
    // B002
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, capacity + 1);
        for i in 0..capacity {
            tx.try_send(i).unwrap();
        }
        // Whichever of those that were woken comes first takes the first message.
        for (i, recv) in line[..capacity].iter_mut().rev().enumerate() {
            assert_eq!(recv.woken(), Some(i));
        }
        assert!(!line[capacity].wakes.fired());
    });
}

#[test]
fn messages_sent_together_wake_as_many_receivers() {
    everywhere(|capacity| async move {
        for count in 1..=capacity {
            // A new poll has a new budget.
            settle().await;
            let (tx, rx) = channel(capacity);
            let mut line = waiting(&rx, capacity + 1);
            let mut messages: VecDeque<_> = (0..count).collect();
            let permits = tx.try_reserve_many(capacity).unwrap();
            assert_eq!(permits.send_many(&mut messages), Ok(count));
            for (place, recv) in line.iter_mut().enumerate() {
                assert_eq!(recv.wakes.count(), usize::from(place < count));
                if place < count {
                    assert_eq!(recv.ready(), Some(place));
                }
            }
        }
    });
}

#[test]
fn a_line_of_senders_wakes_as_many_receivers_as_it_brings_messages() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let permits: Vec<_> = (0..capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let mut line = waiting(&rx, capacity + 1);
        let mut sends: Vec<_> = (0..capacity).map(|i| polled(tx.send(i))).collect();
        for send in &mut sends {
            send.pending();
        }
        let early: usize = line.iter().map(|recv| recv.wakes.take()).sum();
        assert_eq!(early, 1, "one is told that the line has a message");
        drop(permits);
        for (i, recv) in line[..capacity].iter_mut().enumerate() {
            assert_eq!(recv.ready(), Some(i));
        }
        line[capacity].pending();
        for send in &mut sends {
            assert_eq!(send.woken(), Ok(()));
        }
    });
}

#[test]
fn a_forgotten_receive_costs_its_own_wake_and_no_more() {
    // B002
    everywhere(|capacity| async move {
        for leaked in [false, true] {
            let (tx, rx) = channel(capacity + 1);
            let mut forgotten = Box::pin(rx.recv());
            assert!(poll_once(forgotten.as_mut(), noop()).is_pending());
            let mut kept = None;
            if leaked {
                mem::forget(forgotten);
            } else {
                kept = Some(forgotten);
            }
            let mut live = polled(rx.recv());
            live.pending();
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap();
            // It holds no message: the first one to come takes the first message.
            assert_eq!(live.woken(), Some(1));
            assert_eq!(rx.try_recv(), Ok(2));
            drop(kept);
            settle().await;
            // And nothing that comes later suffers.
            let mut live = polled(rx.recv());
            live.pending();
            tx.try_send(3).unwrap();
            assert_eq!(live.woken(), Some(3));
        }
    });
}

#[test]
fn a_woken_receive_that_is_dropped_passes_its_wake_on() {
    // B004, B145
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 3);
        tx.try_send(1).unwrap();
        assert!(line[0].wakes.fired() && !line[1].wakes.fired());
        drop(line.remove(0));
        assert!(line[0].wakes.fired() && !line[1].wakes.fired());
        drop(line.remove(0));
        assert_eq!(line[0].woken(), Some(1));
    });
}

#[test]
fn receives_in_all_forms_pass_their_wakes_on() {
    // B004
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let (mut stream, mut form) = (rx.clone(), rx.clone());
        let mut out = Vec::new();
        let mut many = polled(rx.recv_many(&mut out, 4));
        many.pending();
        let (polls, waker) = counter();
        assert!(
            form.poll_recv(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let (nexts, waker) = counter();
        let mut cx = Context::from_waker(&waker);
        assert!(
            std::pin::Pin::new(&mut stream)
                .poll_next(&mut cx)
                .is_pending()
        );
        let mut last = polled(rx.recv());
        last.pending();
        tx.try_send(1).unwrap();
        assert!(many.wakes.fired() && !polls.fired());
        drop(many);
        assert!(polls.fired() && !nexts.fired());
        drop(form);
        assert!(nexts.fired() && !last.wakes.fired());
        drop(stream);
        assert_eq!(last.woken(), Some(1));
        drop(last);
        assert!(out.is_empty());
    });
}

#[test]
fn a_receive_that_waits_and_is_dropped_leaves_the_line() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 5);
        // The head, one in the middle and the tail go.
        for place in [4, 2, 0] {
            drop(line.remove(place));
        }
        assert_eq!(line.iter().map(|recv| recv.wakes.count()).sum::<usize>(), 0);
        for (i, recv) in line.iter_mut().enumerate() {
            tx.try_send(i).unwrap();
            assert_eq!(recv.woken(), Some(i));
            settle().await;
        }
    });
}

#[test]
fn a_dropped_wake_is_not_passed_on_when_the_message_is_gone() {
    // B038: a wake goes on for a message, and not from one receiver to the next for ever.
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 3);
        tx.try_send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        drop(line.remove(0));
        assert_eq!(line.iter().map(|recv| recv.wakes.count()).sum::<usize>(), 0);
        tx.try_send(2).unwrap();
        assert_eq!(line[0].woken(), Some(2));
        assert!(!line[1].wakes.fired());
    });
}

#[test]
fn a_woken_receive_that_comes_too_late_waits_again_at_the_front() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 3);
        for i in 0..10 {
            tx.try_send(i).unwrap();
            assert_eq!(line[0].wakes.take(), 1);
            // Somebody takes it who did not wait.
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
            line[0].pending();
            assert!(!line[1].wakes.fired(), "the loser is first again");
        }
        tx.try_send(100).unwrap();
        assert_eq!(line[0].woken(), Some(100));
        settle().await;
        tx.try_send(101).unwrap();
        assert_eq!(line[1].woken(), Some(101));
    });
}

#[test]
fn a_loser_comes_before_those_that_came_while_it_was_woken() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut first = polled(rx.recv());
        first.pending();
        tx.try_send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
        settle().await;
        let mut second = polled(rx.recv());
        second.pending();
        assert_eq!(first.wakes.take(), 1);
        first.pending();
        tx.try_send(2).unwrap();
        assert!(!second.wakes.fired());
        assert_eq!(first.woken(), Some(2));
    });
}

#[test]
fn wakes_of_many_receivers_are_bounded_by_events() {
    // B038
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut line = waiting(&rx, 4);
        let mut wakes = 0;
        for i in 0..100 {
            tx.try_send(i).unwrap();
            let mut got = 0;
            for recv in &mut line {
                if recv.wakes.take() > 0 {
                    wakes += 1;
                    assert_eq!(recv.ready(), Some(i));
                    got += 1;
                    *recv = polled(rx.recv());
                    settle().await;
                    recv.pending();
                }
            }
            assert_eq!(got, 1);
        }
        assert_eq!(wakes, 100);
    });
}

#[test]
fn the_poll_forms_keep_their_place() {
    everywhere(|capacity| async move {
        type Form = fn(&mut Receiver<usize>, &mut Context<'_>) -> Poll<Option<usize>>;
        let forms: [Form; 2] = [Receiver::poll_recv, |rx, cx| {
            std::pin::Pin::new(rx).poll_next(cx)
        }];
        for form in forms {
            let (tx, rx) = channel(capacity);
            let mut first = rx.clone();
            let (wakes, waker) = counter();
            let mut poll = |waker: &Waker| form(&mut first, &mut Context::from_waker(waker));
            assert!(poll(&waker).is_pending());
            let mut second = polled(rx.recv());
            second.pending();
            // Again and again, with the same waker and another one.
            let (late, other) = counter();
            for _ in 0..3 {
                assert!(poll(&waker).is_pending());
                assert!(poll(&other).is_pending());
            }
            tx.try_send(1).unwrap();
            assert_eq!(
                (wakes.count(), late.count(), second.wakes.count()),
                (0, 1, 0)
            );
            // Too late: it waits again, at its old place.
            assert_eq!(rx.try_recv(), Ok(1));
            settle().await;
            assert!(poll(&other).is_pending());
            tx.try_send(2).unwrap();
            assert_eq!((late.take(), second.wakes.count()), (2, 0));
            assert_eq!(poll(&other), Poll::Ready(Some(2)));
            settle().await;
            // Ready: the place is given up, and the next wait stands at the end.
            assert!(poll(&other).is_pending());
            tx.try_send(3).unwrap();
            assert_eq!((late.count(), second.wakes.count()), (0, 1));
            assert_eq!(second.ready(), Some(3));
        }
    });
}

#[test]
fn poll_recv_many_keeps_its_place() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut first = rx.clone();
        let (wakes, waker) = counter();
        let mut cx = Context::from_waker(&waker);
        let mut out = Vec::new();
        assert!(first.poll_recv_many(&mut cx, &mut out, 8).is_pending());
        let mut second = polled(rx.recv());
        second.pending();
        assert!(first.poll_recv_many(&mut cx, &mut out, 8).is_pending());
        // The other forms share the place.
        assert!(first.poll_recv(&mut cx).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!((wakes.count(), second.wakes.count()), (1, 0));
        assert_eq!(first.poll_recv_many(&mut cx, &mut out, 8), Poll::Ready(1));
        assert_eq!(out, [1]);
        assert_eq!(first.poll_recv_many(&mut cx, &mut out, 0), Poll::Ready(0));
    });
}

#[test]
fn a_receive_of_many_leaves_the_rest_to_others_that_were_woken() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut out = Vec::new();
        let mut many = polled(rx.recv_many(&mut out, 1));
        many.pending();
        let mut recv = polled(rx.recv());
        recv.pending();
        for i in 0..capacity {
            tx.try_send(i).unwrap();
        }
        assert_eq!(many.woken(), 1);
        drop(many);
        assert_eq!(out, [0]);
        if capacity > 1 {
            assert_eq!(recv.woken(), Some(1));
        } else {
            recv.pending();
        }
    });
}

#[test]
fn receives_dropped_at_random_lose_no_message_and_no_wake() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let mut rng = Rng::new(capacity as u64);
        let mut line: Vec<Polled<_>> = Vec::new();
        let (mut sent, mut got) = (0, 0);
        for _ in 0..2_000 {
            match rng.below(5) {
                0 | 1 => sent += usize::from(tx.try_send(sent).is_ok()),
                2 if line.len() < 6 => {
                    let mut recv = polled(rx.recv());
                    match recv.poll() {
                        Poll::Ready(i) => {
                            assert_eq!(i, Some(got));
                            got += 1;
                        }
                        Poll::Pending => line.push(recv),
                    }
                }
                3 if !line.is_empty() => drop(line.remove(rng.below(line.len()))),
                _ if !line.is_empty() => {
                    let place = rng.below(line.len());
                    let mut recv = line.remove(place);
                    recv.wakes.take();
                    match recv.poll() {
                        Poll::Ready(i) => {
                            assert_eq!(i, Some(got));
                            got += 1;
                        }
                        Poll::Pending => line.insert(place, recv),
                    }
                }
                _ => {}
            }
            settle().await;
            // At rest: as many are woken as there are messages, or all.
            let woken = line.iter().filter(|recv| recv.wakes.fired()).count();
            assert!(
                woken >= line.len().min(sent - got),
                "{} messages, {} wait, {woken} woken",
                sent - got,
                line.len()
            );
        }
    });
}

#[test]
fn a_receiver_takes_from_the_line_of_senders_what_permits_keep_out_of_the_queue() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let permits = tx.try_reserve_many(capacity).unwrap();
        let mut line = waiting(&rx, 2);
        let mut sends: Vec<_> = (0..2).map(|i| polled(tx.send(i))).collect();
        sends[0].pending();
        assert!(line[0].wakes.fired(), "told of the first of the line");
        sends[1].pending();
        assert_eq!(line[0].ready(), Some(0));
        assert_eq!(sends[0].woken(), Ok(()));
        // The next one stands first now, and a receiver waits: it is told, too.
        assert_eq!(line[1].woken(), Some(1));
        assert_eq!(sends[1].woken(), Ok(()));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        drop(permits);
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_message_that_stands_first_in_line_wakes_one_receiver() {
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        // A worker puts off what a receive owes for channels that it knows.
        for i in 0..2 {
            tx.try_send(i).unwrap();
            assert_eq!(rx.try_recv(), Ok(i));
            settle().await;
        }
        let mut line = waiting(&rx, 3);
        tx.try_send(0).unwrap();
        // So this receive looks at the line of senders once more at the end of the poll.
        assert_eq!(line[0].woken(), Some(0));
        let _permits = tx.try_reserve_many(capacity).unwrap();
        let mut send = polled(tx.send(1));
        send.pending();
        settle().await;
        assert!(line[1].wakes.fired(), "told of the first of the line");
        assert!(!line[2].wakes.fired(), "there is no other message");
        assert_eq!(line[1].ready(), Some(1));
    });
}

#[test]
fn a_receive_frees_a_slot_for_the_senders_whoever_makes_it() {
    everywhere(|capacity| async move {
        let (tx, a) = full(capacity);
        let b = a.clone();
        let mut sends: Vec<_> = (0..4).map(|i| polled(tx.send(capacity + i))).collect();
        for send in &mut sends {
            send.pending();
        }
        for (served, send) in sends.iter_mut().enumerate() {
            let rx = if served % 2 == 0 { &a } else { &b };
            assert_eq!(rx.try_recv(), Ok(served));
            settle().await;
            assert_eq!(send.woken(), Ok(()));
        }
    });
}

#[test]
fn a_waiting_receive_keeps_one_waker_and_none_beyond_its_life() {
    // B035, B063
    everywhere(|capacity| async move {
        let (tx, rx) = channel(capacity);
        let (count, waker) = counter();
        let alive = |count: &std::sync::Arc<Counter>| std::sync::Arc::strong_count(count) - 2;
        let mut recv = Box::pin(rx.recv());
        for _ in 0..100 {
            assert!(poll_once(recv.as_mut(), &waker).is_pending());
        }
        assert_eq!(alive(&count), 1);
        drop(recv);
        assert_eq!(alive(&count), 0);
        let mut recv = Box::pin(rx.recv());
        assert!(poll_once(recv.as_mut(), &waker).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(poll_once(recv.as_mut(), &waker), Poll::Ready(Some(1)));
        assert_eq!(alive(&count), 0);
        // Between two receives of the poll form, too.
        let mut form = rx.clone();
        let mut cx = Context::from_waker(&waker);
        assert!(form.poll_recv(&mut cx).is_pending());
        tx.try_send(2).unwrap();
        assert!(form.poll_recv(&mut cx).is_ready());
        assert_eq!(alive(&count), 0);
    });
}

#[test]
fn two_wakers_that_panic_as_they_are_dropped_lose_no_message_and_are_one_panic() {
    within("receive, two panics", || {
        let (tx, rx) = channel(2);
        let tx = Arc::new(tx);
        let mut ahead = Box::pin(rx.recv());
        assert!(poll_once(ahead.as_mut(), Waker::noop()).is_pending());
        let mut recv = Box::pin(rx.recv());
        // Its clone waits in line.
        let first = ManuallyDrop::new(acting(|| (), || panic!("the drop of a waker panics")));
        assert!(poll_once(recv.as_mut(), &first).is_pending());
        // A message comes between the looks, and wakes the one ahead: the receive has the first waker, and
        // the clone of the second, to drop.
        let sender = Arc::clone(&tx);
        let second = ManuallyDrop::new(acting(
            move || sender.try_send(1).unwrap(),
            || panic!("the drop of another waker panics"),
        ));
        let polled = catch_unwind(AssertUnwindSafe(|| poll_once(recv.as_mut(), &second)));
        assert!(polled.is_err(), "the panic is the caller's to see");
        assert_eq!(rx.try_recv(), Ok(1));
    });
}
