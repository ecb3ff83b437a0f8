//! A receiver that is woken and does not come: its wake goes to others.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_lite::future::poll_once;
use futures_lite::stream::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::common::{
    CAPACITIES, LIMIT, Place, Puppet, Rng, Watchdog, noop, polled, rest, rounds, runtimes, within,
    yield_once,
};
use crate::flavor::{Receiver, Sender, channel};

type Receiving = Pin<Box<dyn Future<Output = Option<usize>> + Send>>;

/// A receive that can be polled here and there.
#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Receiving>>>);

impl Shared {
    fn new(rx: &Receiver<usize>) -> Self {
        let rx = rx.clone();
        Self(Arc::new(Mutex::new(Some(Box::pin(async move {
            rx.recv().await
        })))))
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let mut future = self.0.lock().unwrap();
        future.as_mut().unwrap().as_mut().poll(cx)
    }

    /// One poll by the task.
    async fn poll_in(&self, puppet: &Puppet) -> Poll<Option<usize>> {
        let this = self.clone();
        puppet.act(move |cx| this.poll(cx)).await
    }

    fn take(&self) -> Option<Receiving> {
        self.0.lock().unwrap().take()
    }
}

/// Runs a test on a current-thread runtime, with a task to poll by hand whose receive heads the line.
fn with_head<Fut: Future<Output = ()>>(
    test: impl Fn(Puppet, Shared, Sender<usize>, Receiver<usize>) -> Fut + Copy + Send + 'static,
) {
    within("lapse", move || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let puppet = Puppet::new(&runtime).await;
                let (tx, rx) = channel(capacity);
                let head = Shared::new(&rx);
                assert!(head.poll_in(&puppet).await.is_pending());
                test(puppet, head, tx, rx).await;
            });
        }
    });
}

#[test]
fn a_poll_that_passes_the_wake_by_hands_it_on() {
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        next.pending();
        let polls = puppet.polls();
        tx.try_send(1).unwrap();
        assert!(!next.wakes.fired(), "the first in line is woken first");
        rest().await;
        assert_eq!(puppet.polls(), polls + 1);
        assert_eq!(next.woken(), Some(1));
        drop(head);
    });
}

#[test]
fn a_poll_that_takes_the_message_hands_nothing_on() {
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        next.pending();
        tx.try_send(1).unwrap();
        assert_eq!(head.poll_in(&puppet).await, Poll::Ready(Some(1)));
        rest().await;
        assert!(!next.wakes.fired());
    });
}

#[test]
fn a_lapsed_receive_keeps_its_place() {
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        let mut last = polled(rx.recv());
        next.pending();
        last.pending();
        tx.try_send(1).unwrap();
        rest().await;
        assert_eq!(next.woken(), Some(1));
        assert!(head.poll_in(&puppet).await.is_pending());
        tx.try_send(2).unwrap();
        assert!(!last.wakes.fired(), "the old place is before the last");
        assert_eq!(head.poll_in(&puppet).await, Poll::Ready(Some(2)));
        assert!(!last.wakes.fired());
    });
}

#[test]
fn a_lapsed_receive_takes_a_message_that_is_there() {
    with_head(|puppet, head, tx, _rx| async move {
        tx.try_send(1).unwrap();
        rest().await;
        puppet.idle().await;
        assert_eq!(head.poll_in(&puppet).await, Poll::Ready(Some(1)));
    });
}

#[test]
fn a_lapsed_receive_is_told_of_the_end() {
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        next.pending();
        tx.try_send(1).unwrap();
        rest().await;
        assert_eq!(next.woken(), Some(1));
        drop(tx);
        assert_eq!(head.poll_in(&puppet).await, Poll::Ready(None));
    });
}

#[test]
fn a_receive_whose_task_has_ended_takes_no_wake_from_others() {
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        next.pending();
        puppet.end(|_| ()).await;
        tx.try_send(1).unwrap();
        assert_eq!(next.woken(), Some(1));
        // It is as good as ever to whoever polls it.
        let task = wakerun::spawn(head.take().unwrap());
        rest().await;
        tx.try_send(2).unwrap();
        assert_eq!(task.await.unwrap(), Some(2));
    });
    with_head(|puppet, head, tx, rx| async move {
        let mut next = polled(rx.recv());
        next.pending();
        let sends = tx.clone();
        puppet
            .end(move |_| {
                std::thread::scope(|s| {
                    s.spawn(|| sends.try_send(1).unwrap());
                });
            })
            .await;
        assert_eq!(next.woken(), Some(1), "woken in the last poll of its task");
        drop(head);
    });
}

#[test]
fn a_foreign_waker_keeps_its_wake_until_it_is_polled_or_dropped() {
    within("foreign waker", || {
        for capacity in CAPACITIES {
            let runtime = Place::Current.runtime().unwrap();
            runtime.block_on(async {
                let puppet = Puppet::new(&runtime).await;
                let (tx, rx) = channel(capacity);
                let head = Shared::new(&rx);
                let this = head.clone();
                let first = puppet.act(move |_| this.poll(&mut Context::from_waker(noop())));
                assert!(first.await.is_pending());
                let mut next = polled(rx.recv());
                next.pending();
                tx.try_send(1).unwrap();
                for _ in 0..5 {
                    puppet.idle().await;
                }
                assert!(!next.wakes.fired());
                drop(head.take());
                assert_eq!(next.woken(), Some(1));
            });
        }
    });
}

/// A request that is answered by whoever receives it; the asker keeps a receive of its own meanwhile.
#[test]
fn a_receive_that_is_held_while_its_task_waits_for_another_receiver_holds_nothing_up() {
    within("held receive", || {
        for (place, runtime) in runtimes() {
            for capacity in CAPACITIES {
                let (tx, rx) = channel(capacity);
                let (answers, answered) = channel(1);
                let (asker_rx, asker_tx) = (rx.clone(), tx.clone());
                let asker = runtime.spawn(async move {
                    let mut held = pin!(asker_rx.recv());
                    for i in 0..50 {
                        // It stands before the server's in the line of receivers, if it waits.
                        assert!(poll_once(held.as_mut()).await.is_none());
                        asker_tx.send(i).await.unwrap();
                        assert_eq!(answered.recv().await, Some(i), "{place:?}");
                    }
                });
                let server = runtime.spawn(async move {
                    while let Some(i) = rx.recv().await {
                        answers.send(i).await.unwrap();
                        if i == 49 {
                            break;
                        }
                    }
                });
                drop(tx);
                runtime.block_on(asker).unwrap();
                runtime.block_on(server).unwrap();
            }
        }
    });
}

#[test]
fn a_leaked_receive_of_a_task_that_ends_holds_nothing_up() {
    within("leaked by a task that ends", || {
        for (place, runtime) in runtimes() {
            let (tx, rx) = channel(1);
            let leaks = rx.clone();
            let task = runtime.spawn(async move {
                let mut leaked = Box::pin(async move { leaks.recv().await });
                assert!(poll_once(leaked.as_mut()).await.is_none());
                std::mem::forget(leaked);
            });
            runtime.block_on(task).unwrap();
            runtime.block_on(async {
                // Its last poll is over before its handle tells.
                let receiver = wakerun::spawn(async move { rx.recv().await });
                for _ in 0..20 {
                    yield_once().await;
                }
                tx.send(1).await.unwrap();
                assert_eq!(receiver.await.unwrap(), Some(1), "{place:?}");
            });
        }
    });
}

#[test]
fn receives_in_a_set_with_wakers_of_its_own_get_on() {
    within("FuturesUnordered", || {
        for (place, runtime) in runtimes() {
            for capacity in CAPACITIES {
                let (tx, rx) = channel(capacity);
                let task = runtime.spawn(async move {
                    let mut set: FuturesUnordered<_> = (0..20).map(|_| rx.recv()).collect();
                    let mut got = Vec::new();
                    while let Some(Some(i)) = set.next().await {
                        got.push(i);
                        set.push(rx.recv());
                    }
                    got
                });
                runtime.block_on(async {
                    for i in 0..200 {
                        tx.send(i).await.unwrap();
                    }
                    drop(tx);
                    let got = task.await.unwrap();
                    assert_eq!(got, (0..200).collect::<Vec<_>>(), "{place:?}");
                });
            }
        }
    });
}

#[test]
fn tasks_that_abandon_receives_of_all_kinds_lose_nothing() {
    let count = rounds(20_000).min(20_000);
    for place in [
        Place::Current,
        Place::Workers(1),
        Place::Workers(2),
        Place::Workers(4),
    ] {
        for capacity in CAPACITIES {
            let _dog = Watchdog::new("abandoned receives", LIMIT, String::new);
            let runtime = place.runtime().unwrap();
            let (tx, rx) = channel(capacity);
            let tasks: Vec<_> = (0..5)
                .map(|seed| {
                    let rx = rx.clone();
                    runtime.spawn(async move {
                        let mut rng = Rng::new(seed);
                        let mut sum = 0;
                        let mut held: Vec<Receiving> = Vec::new();
                        loop {
                            let own = rx.clone();
                            match rng.below(5) {
                                0 if held.len() < 3 => {
                                    let mut recv: Receiving =
                                        Box::pin(async move { own.recv().await });
                                    match poll_once(recv.as_mut()).await {
                                        Some(None) => break,
                                        Some(Some(i)) => sum += i,
                                        None => held.push(recv),
                                    }
                                }
                                1 if !held.is_empty() => {
                                    drop(held.swap_remove(rng.below(held.len())));
                                }
                                2 if !held.is_empty() => {
                                    let recv = held.swap_remove(rng.below(held.len()));
                                    match recv.await {
                                        None => break,
                                        Some(i) => sum += i,
                                    }
                                }
                                3 => yield_once().await,
                                _ => match rx.recv().await {
                                    None => break,
                                    Some(i) => sum += i,
                                },
                            }
                        }
                        sum
                    })
                })
                .collect();
            drop(rx);
            runtime.block_on(async {
                for i in 0..count {
                    tx.send(i).await.unwrap();
                }
                drop(tx);
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                assert_eq!(sum, count * (count - 1) / 2, "{place:?} at {capacity}");
            });
        }
    }
}
