//! A receiver that has served the only sender expects it to send again, and asks for another poll before it sleeps:
//! nothing is missed if that poll does not come to it.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use wakerun::Builder;

use crate::common::{Puppet, counter, polled, rest, within};
use crate::flavor::{Receiver, Sender, channel};

type Shared = Arc<Mutex<Receiver<usize>>>;

/// A receiver that expects its sender: both messages of a full channel and its line are received, in the last poll
/// of the task, which `then` goes on with.
async fn expecting<R: Send + 'static>(
    puppet: &Puppet,
    then: impl FnOnce(&mut Context<'_>, &mut Receiver<usize>) -> R + Send + 'static,
) -> (Sender<usize>, Shared, R) {
    let (tx, rx) = channel(1);
    let rx = Arc::new(Mutex::new(rx));
    tx.try_send(0).unwrap();
    let mut send = polled(tx.send(1));
    send.pending();
    let in_task = Arc::clone(&rx);
    let output = puppet
        .act(move |cx| {
            let mut rx = in_task.lock().unwrap();
            for n in 0..2 {
                assert_eq!(rx.poll_recv(cx), Poll::Ready(Some(n)));
            }
            then(cx, &mut rx)
        })
        .await;
    assert_eq!(send.woken(), Ok(()));
    drop(send);
    (tx, rx, output)
}

fn with_puppet<F: Future<Output = ()>>(f: impl FnOnce(Puppet) -> F + Send + 'static) {
    within("expecting", || {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { f(Puppet::new(&runtime).await).await });
    });
}

/// A poll that finds nothing.
fn waits(cx: &mut Context<'_>, rx: &mut Receiver<usize>) {
    assert!(rx.poll_recv(cx).is_pending());
}

#[test]
fn one_more_poll_is_made_and_then_it_sleeps() {
    with_puppet(|puppet| async move {
        let (tx, rx, ()) = expecting(&puppet, waits).await;
        rest().await;
        assert_eq!(
            puppet.polls(),
            3,
            "it was polled for its birth, for that, and because it asked"
        );
        let again = Arc::clone(&rx);
        puppet
            .act(move |cx| waits(cx, &mut again.lock().unwrap()))
            .await;
        rest().await;
        assert_eq!(puppet.polls(), 4, "now it sleeps");
        tx.try_send(2).unwrap();
        rest().await;
        assert_eq!(puppet.polls(), 5, "until it is woken");
        assert_eq!(rx.lock().unwrap().try_recv(), Ok(2));
    });
}

#[test]
fn the_poll_that_it_asked_for_may_go_to_something_else() {
    with_puppet(|puppet| async move {
        let (tx, rx, ()) = expecting(&puppet, waits).await;
        // The poll that was asked for does nothing here; then a message comes, and the receiver is polled.
        rest().await;
        tx.try_send(2).unwrap();
        let again = Arc::clone(&rx);
        let got = puppet.act(move |cx| again.lock().unwrap().poll_recv(cx));
        assert_eq!(got.await, Poll::Ready(Some(2)));
    });
}

#[test]
fn another_waker_of_the_same_poll_is_woken() {
    with_puppet(|puppet| async move {
        let (wakes, waker) = counter();
        let other = waker.clone();
        let both = move |cx: &mut Context<'_>, rx: &mut Receiver<usize>| {
            waits(cx, rx);
            waits(&mut Context::from_waker(&other), rx);
        };
        let (tx, rx, ()) = expecting(&puppet, both).await;
        tx.try_send(2).unwrap();
        assert_eq!(wakes.count(), 1);
        assert_eq!(rx.lock().unwrap().try_recv(), Ok(2));
    });
}

#[test]
fn another_task_that_gets_the_receiver_is_woken() {
    for ends in [false, true] {
        with_puppet(move |puppet| async move {
            let (tx, rx, ()) = expecting(&puppet, waits).await;
            // Off the task, before the poll that it asked for.
            let (wakes, waker) = counter();
            waits(&mut Context::from_waker(&waker), &mut rx.lock().unwrap());
            if ends {
                drop(tx);
            } else {
                tx.try_send(2).unwrap();
            }
            assert_eq!(wakes.count(), 1);
            let end = polled(rx.lock().unwrap().recv()).ready();
            assert_eq!(end, (!ends).then_some(2));
        });
    }
}

#[test]
fn the_end_is_found_by_the_poll_that_it_asked_for() {
    with_puppet(|puppet| async move {
        let (tx, rx, ()) = expecting(&puppet, waits).await;
        drop(tx);
        let again = Arc::clone(&rx);
        let end = puppet.act(move |cx| again.lock().unwrap().poll_recv(cx));
        assert_eq!(end.await, Poll::Ready(None));
    });
}

#[test]
fn it_expects_nothing_when_it_has_slept() {
    with_puppet(|puppet| async move {
        // A message that is withdrawn: the poll finds the queue not empty, discards it, and sleeps.
        let (tx, rx, ()) = expecting(&puppet, |_, _| ()).await;
        let (wakes, waker) = counter();
        tx.try_send(2).unwrap();
        let mut send = polled(tx.send(3));
        send.pending();
        let inside = Arc::clone(&rx);
        let take = puppet.act(move |_| inside.lock().unwrap().try_recv());
        assert_eq!(take.await, Ok(2));
        drop(send);
        let inside = Arc::clone(&rx);
        let sleep = puppet.act(move |_| {
            waits(
                &mut Context::from_waker(&waker),
                &mut inside.lock().unwrap(),
            );
        });
        sleep.await;
        // Its next wait replaces that waker.
        let inside = Arc::clone(&rx);
        puppet
            .act(move |cx| waits(cx, &mut inside.lock().unwrap()))
            .await;
        rest().await;
        let before = puppet.polls();
        tx.try_send(4).unwrap();
        rest().await;
        assert_eq!(wakes.count(), 0);
        assert_eq!(puppet.polls(), before + 1);
        assert_eq!(rx.lock().unwrap().try_recv(), Ok(4));
    });
}
