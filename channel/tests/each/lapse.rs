//! What is granted to a task that does not come for it goes to others: the rule, poll by poll.
//!
//! One task is polled by hand on a current-thread runtime. A grant wakes it, and a poll of it that passes
//! the reservation by lets the grant lapse.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::common::{
    CAPACITIES, Place, Polled, Puppet, block_on, noop, poll_once, polled, rest, within,
};
use crate::flavor::error::{SendError, TryRecvError, TrySendError};
use crate::flavor::{OwnedPermit, Receiver, Sender, channel};

use super::full;

type Reserving = Pin<Box<dyn Future<Output = Result<OwnedPermit<usize>, SendError<()>>> + Send>>;

/// A reservation that can be polled here and there.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Reserving>>>);

impl Shared {
    fn new(tx: &Sender<usize>) -> Self {
        let tx = tx.clone();
        Self(Arc::new(Mutex::new(Some(Box::pin(tx.reserve_owned())))))
    }

    /// One poll; a permit that it gives is `Some`.
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<OwnedPermit<usize>, SendError<()>>> {
        let mut future = self.0.lock().unwrap();
        future.as_mut().unwrap().as_mut().poll(cx)
    }

    fn take(&self) -> Option<Reserving> {
        self.0.lock().unwrap().take()
    }

    /// One poll by the task, which must be Pending.
    async fn pending_in(&self, puppet: &Puppet) {
        let this = self.clone();
        assert!(puppet.act(move |cx| this.poll(cx).is_pending()).await);
    }

    /// One poll by the task, which must give the permit.
    async fn ready_in(&self, puppet: &Puppet) -> OwnedPermit<usize> {
        let this = self.clone();
        match puppet.act(move |cx| this.poll(cx)).await {
            Poll::Ready(Ok(permit)) => permit,
            Poll::Ready(Err(_)) => panic!("closed"),
            Poll::Pending => panic!("expected Ready, was Pending"),
        }
    }
}

/// Runs a test on a current-thread runtime, with a task to poll by hand and a full channel whose line a
/// reservation of that task heads.
fn with_head<Fut: Future<Output = ()>>(
    test: impl Fn(usize, Puppet, Shared, Sender<usize>, Receiver<usize>) -> Fut
    + Copy
    + std::marker::Send
    + 'static,
) {
    within("lapse", move || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let puppet = Puppet::new(&runtime).await;
                let (tx, rx) = full(capacity);
                let head = Shared::new(&tx);
                head.pending_in(&puppet).await;
                test(capacity, puppet, head, tx, rx).await;
            });
        }
    });
}

/// A send that waits now.
fn waits<'a>(
    tx: &'a Sender<usize>,
    value: usize,
) -> Polled<impl Future<Output = Result<(), SendError<usize>>> + 'a> {
    let mut send = polled(tx.send(value));
    send.pending();
    send
}

#[test]
fn a_poll_that_passes_the_grant_by_lets_it_lapse() {
    with_head(|_, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        let polls = puppet.polls();
        rx.try_recv().unwrap();
        assert!(!next.wakes.fired(), "the grant is the head's");
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
        // The grant has woken the task, which does nothing with it.
        rest().await;
        assert_eq!(next.woken(), Ok(()));
        assert_eq!(puppet.polls(), polls + 1);
        drop(head);
    });
}

#[test]
fn a_poll_that_claims_the_grant_keeps_it() {
    with_head(|capacity, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        rx.try_recv().unwrap();
        let permit = head.ready_in(&puppet).await;
        rest().await;
        puppet.idle().await;
        assert!(!next.wakes.fired());
        drop(permit.send(99).unwrap());
        rx.try_recv().unwrap();
        assert_eq!(next.woken(), Ok(()));
        assert_eq!(tx.len(), capacity);
    });
}

#[test]
fn a_lapsed_reservation_keeps_its_place() {
    with_head(|capacity, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        let mut last = waits(&tx, 101);
        rx.try_recv().unwrap();
        rest().await;
        assert_eq!(next.woken(), Ok(()));
        // Polled again, it waits where it stood: before the one that came after it.
        head.pending_in(&puppet).await;
        rx.try_recv().unwrap();
        assert!(!last.wakes.fired());
        let permit = head.ready_in(&puppet).await;
        assert!(!last.wakes.fired());
        drop(permit.send(99).unwrap());
        rx.try_recv().unwrap();
        assert_eq!(last.woken(), Ok(()));
        let got: Vec<_> = std::iter::from_fn(|| rx.try_recv().ok()).collect();
        let expect = (3..capacity).chain([100, 99, 101]);
        let expect: Vec<_> = expect.collect();
        assert_eq!(got, expect[expect.len() - got.len()..]);
    });
}

#[test]
fn a_lapsed_reservation_finds_room_that_nobody_waits_for() {
    with_head(|capacity, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        rx.try_recv().unwrap();
        rest().await;
        assert_eq!(next.woken(), Ok(()));
        while rx.try_recv().is_ok() {}
        rest().await;
        assert_eq!(tx.capacity(), capacity, "what was lapsed is free");
        let permit = head.ready_in(&puppet).await;
        assert_eq!(tx.capacity(), capacity - 1);
        drop(permit);
        assert_eq!(tx.capacity(), capacity);
    });
}

#[test]
fn a_grant_that_nobody_else_wants_stays_until_somebody_does() {
    with_head(|_, puppet, head, tx, mut rx| async move {
        rx.try_recv().unwrap();
        rest().await;
        puppet.idle().await;
        // Still the head's.
        let permit = head.ready_in(&puppet).await;
        assert_eq!(tx.capacity(), 0);
        drop(permit);
        assert_eq!(tx.capacity(), 1);
    });
}

#[test]
fn whoever_comes_may_have_a_grant_that_has_not_been_claimed() {
    type Comes = fn(&Sender<usize>);
    let comers: [Comes; 5] = [
        |tx| tx.try_send(7).unwrap(),
        |tx| drop(tx.try_reserve().unwrap()),
        |tx| drop(tx.try_reserve_many(1).unwrap()),
        |tx| {
            let mut send = polled(tx.send(7));
            if send.poll().is_pending() {
                assert_eq!(send.woken(), Ok(()));
            }
        },
        |tx| {
            let mut reserve = polled(tx.reserve());
            if reserve.poll().is_pending() {
                drop(reserve.woken().unwrap());
            }
        },
    ];
    for comes in comers {
        with_head(move |_, puppet, head, tx, mut rx| async move {
            rx.try_recv().unwrap();
            // Not before a poll has passed it by.
            assert!(matches!(tx.try_send(9), Err(TrySendError::Full(9))));
            rest().await;
            comes(&tx);
            while rx.try_recv().is_ok() {}
            // The head has lost the grant, not its message.
            drop(head.ready_in(&puppet).await.send(8).unwrap());
            assert_eq!(rx.try_recv(), Ok(8));
        });
    }
}

#[test]
fn a_grant_made_during_a_poll_is_good_for_the_next_one() {
    // That poll may have passed the reservation already, when there was no grant yet.
    with_head(|_, puppet, head, tx, rx| async move {
        let mut next = waits(&tx, 100);
        let rx = Arc::new(Mutex::new(rx));
        let receives = Arc::clone(&rx);
        puppet.plan(move |_| {
            // On another thread: what it frees is granted at once.
            std::thread::scope(|s| {
                s.spawn(|| receives.lock().unwrap().try_recv().unwrap());
            });
        });
        let permit = head.ready_in(&puppet).await;
        assert!(!next.wakes.fired());
        drop(permit);
        assert_eq!(next.woken(), Ok(()));
    });
}

#[test]
fn a_close_ends_a_lapsed_reservation() {
    with_head(|_, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        rx.try_recv().unwrap();
        rest().await;
        assert_eq!(next.woken(), Ok(()));
        let before = puppet.polls();
        rx.close();
        rest().await;
        assert!(puppet.polls() > before, "its task is told");
        let this = head.clone();
        assert!(matches!(
            puppet.act(move |cx| this.poll(cx)).await,
            Poll::Ready(Err(SendError(())))
        ));
    });
}

#[test]
fn a_grant_stays_good_when_the_channel_closes() {
    with_head(|_, puppet, head, tx, mut rx| async move {
        rx.try_recv().unwrap();
        rx.close();
        while rx.try_recv().is_ok() {}
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
        // The task comes for it in its next poll.
        let permit = head.ready_in(&puppet).await;
        drop(permit.send(5).unwrap());
        assert_eq!(rx.try_recv(), Ok(5));
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        drop(tx);
    });
}

#[test]
fn a_lapsed_reservation_that_is_dropped_leaves_the_line() {
    with_head(|capacity, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        let mut last = waits(&tx, 101);
        rx.try_recv().unwrap();
        rest().await;
        assert_eq!(next.woken(), Ok(()));
        drop(head.take());
        assert!(!last.wakes.fired());
        rx.try_recv().unwrap();
        assert_eq!(last.woken(), Ok(()));
        while rx.try_recv().is_ok() {}
        rest().await;
        assert_eq!(tx.capacity(), capacity);
        puppet.idle().await;
    });
}

#[test]
fn a_due_grant_that_is_dropped_frees_its_room() {
    with_head(|_, puppet, head, tx, mut rx| async move {
        rx.try_recv().unwrap();
        rest().await;
        puppet.idle().await;
        drop(head.take());
        assert_eq!(tx.capacity(), 1);
        tx.try_send(7).unwrap();
    });
}

#[test]
fn a_reservation_may_move_to_another_task_after_it_was_polled() {
    with_head(|capacity, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        let moved = head.take().unwrap();
        // Granted while it belongs to the first task; then the second one has it.
        rx.try_recv().unwrap();
        let task = wakerun::spawn(async move { moved.await.unwrap().send(99).map(drop) });
        while !task.is_finished() {
            let _ = rx.try_recv();
            rest().await;
        }
        task.await.unwrap().unwrap();
        assert_eq!(next.woken(), Ok(()));
        while rx.try_recv().is_ok() {}
        rest().await;
        assert_eq!(tx.capacity(), capacity);
        puppet.idle().await;
    });
}

#[test]
fn a_moved_reservation_lapses_by_the_polls_of_its_new_task() {
    within("moved", || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let (old, new) = (Puppet::new(&runtime).await, Puppet::new(&runtime).await);
                let (tx, mut rx) = full(capacity);
                let head = Shared::new(&tx);
                head.pending_in(&old).await;
                head.pending_in(&new).await;
                let mut next = waits(&tx, 100);
                rx.try_recv().unwrap();
                // The old task's polls say nothing any more.
                let polls = (old.polls(), new.polls());
                rest().await;
                assert_eq!(old.polls(), polls.0);
                assert_eq!(new.polls(), polls.1 + 1);
                assert_eq!(next.woken(), Ok(()));
                drop(head.take());
            });
        }
    });
}

#[test]
fn a_reservation_whose_task_has_ended_holds_nobody_up() {
    // Kept elsewhere, granted before the end of its task or after it, or not at all yet.
    with_head(|_, puppet, head, tx, mut rx| async move {
        let mut next = waits(&tx, 100);
        puppet.end(|_| ()).await;
        rx.try_recv().unwrap();
        rest().await;
        assert_eq!(next.woken(), Ok(()), "granted to a task that is over");
        // It is as good as ever to whoever polls it.
        while rx.try_recv().is_ok() {}
        rest().await;
        let permit = block_on(head.take().unwrap());
        drop(permit.unwrap().send(6).unwrap());
        assert_eq!(rx.try_recv(), Ok(6));
    });
    with_head(|_, puppet, head, tx, rx| async move {
        let mut next = waits(&tx, 100);
        let rx = Arc::new(Mutex::new(rx));
        let receives = Arc::clone(&rx);
        puppet
            .end(move |_| {
                std::thread::scope(|s| {
                    s.spawn(|| receives.lock().unwrap().try_recv().unwrap());
                });
            })
            .await;
        rest().await;
        assert_eq!(next.woken(), Ok(()), "granted in the last poll of the task");
        drop(head.take());
    });
}

#[test]
fn many_permits_lapse_together() {
    within("many", || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let puppet = Puppet::new(&runtime).await;
                let (tx, mut rx) = channel(capacity);
                let held = tx.try_reserve_many(capacity).unwrap();
                let many = Arc::new(Mutex::new(Some(Box::pin({
                    let tx = tx.clone();
                    async move {
                        let permits = tx.reserve_many(capacity).await.unwrap();
                        permits.send_many(&mut (0..capacity).collect()).unwrap()
                    }
                }))));
                let poll = {
                    let many = Arc::clone(&many);
                    move |cx: &mut Context<'_>| {
                        many.lock().unwrap().as_mut().unwrap().as_mut().poll(cx)
                    }
                };
                assert!(puppet.act(poll.clone()).await.is_pending());
                let mut sends: Vec<_> = (0..capacity).map(|i| waits(&tx, 100 + i)).collect();
                drop(held);
                assert!(sends.iter().all(|send| !send.wakes.fired()));
                rest().await;
                for send in &mut sends {
                    assert_eq!(send.woken(), Ok(()));
                }
                // And again, when its turn comes.
                assert!(puppet.act(poll.clone()).await.is_pending());
                for i in 0..capacity {
                    assert_eq!(rx.try_recv(), Ok(100 + i));
                }
                assert_eq!(puppet.act(poll).await, Poll::Ready(capacity));
                assert_eq!(rx.try_recv(), Ok(0));
            });
        }
    });
}

#[test]
fn a_foreign_waker_keeps_its_grant() {
    // Inside combinators with wakers of their own, and off the runtime: the task's polls say nothing of
    // when such a future is polled.
    within("foreign waker", || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let puppet = Puppet::new(&runtime).await;
                let (tx, mut rx) = full(capacity);
                let head = Shared::new(&tx);
                let this = head.clone();
                let first = puppet.act(move |_| this.poll(&mut Context::from_waker(noop())));
                assert!(first.await.is_pending());
                let mut next = waits(&tx, 100);
                rx.try_recv().unwrap();
                for _ in 0..5 {
                    puppet.idle().await;
                }
                assert!(!next.wakes.fired());
                assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)));
                // Late, and good: it can be claimed from anywhere.
                let mut future = head.take().unwrap();
                let Poll::Ready(Ok(permit)) = poll_once(future.as_mut(), noop()) else {
                    panic!("the grant has gone");
                };
                drop(permit);
                assert_eq!(next.woken(), Ok(()));
            });
        }
    });
}

#[test]
fn off_the_runtime_a_grant_is_kept() {
    within("off the runtime", || {
        for capacity in CAPACITIES {
            let (tx, mut rx) = full(capacity);
            let mut head = polled(tx.reserve());
            head.pending();
            let mut next = waits(&tx, 100);
            rx.try_recv().unwrap();
            for _ in 0..10 {
                assert!(matches!(tx.try_send(9), Err(TrySendError::Full(9))));
                block_on(async { crate::common::yield_once().await });
            }
            assert!(!next.wakes.fired());
            drop(head.woken().unwrap());
            assert_eq!(next.woken(), Ok(()));
        }
    });
}
