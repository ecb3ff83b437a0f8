//! What the tasks of a workload wait at: [`Gate`] before they start, [`Countdown`] for those who wait for them.
//!
//! Both use nothing but wakers, so they cost the same on every runtime, and a task that waits is parked.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A place where a known number of tasks gather, until somebody lets all of them through.
#[derive(Debug)]
pub struct Gate {
    open: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
    missing: Countdown,
}

impl Gate {
    /// A closed gate that expects `tasks` tasks.
    pub fn new(tasks: usize) -> Self {
        Self {
            open: AtomicBool::new(false),
            waiting: Mutex::new(Vec::with_capacity(tasks)),
            missing: Countdown::new(tasks),
        }
    }

    /// Arrives, and waits until the gate opens.
    pub async fn pass(&self) {
        let mut place = None;
        poll_fn(|cx| self.poll_pass(&mut place, cx)).await;
    }

    fn poll_pass(&self, place: &mut Option<usize>, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = lock(&self.waiting);
        // Read under the lock that `open` holds for its store: no waker is left behind.
        if self.open.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        match *place {
            Some(place) => waiting[place].clone_from(cx.waker()),
            None => {
                *place = Some(waiting.len());
                waiting.push(cx.waker().clone());
                drop(waiting);
                self.missing.tick();
            }
        }
        Poll::Pending
    }

    /// Waits until every expected task stands at the gate.
    pub async fn gathered(&self) {
        self.missing.zero().await;
    }

    /// Opens the gate and wakes those who wait, in the order of their arrival.
    pub fn open(&self) {
        let woken = {
            let mut waiting = lock(&self.waiting);
            self.open.store(true, Ordering::Relaxed);
            std::mem::take(&mut *waiting)
        };
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Counts down to zero, and wakes the one task that waits for it.
#[derive(Debug)]
pub struct Countdown {
    left: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
}

impl Countdown {
    /// A countdown from `left`.
    pub fn new(left: usize) -> Self {
        Self {
            left: AtomicUsize::new(left),
            waiting: Mutex::new(None),
        }
    }

    /// Counts one down.
    ///
    /// # Panics
    ///
    /// At the tick after the last.
    pub fn tick(&self) {
        // AcqRel: what was done before each tick happens before the end of `zero`.
        let left = self.left.fetch_sub(1, Ordering::AcqRel);
        assert!(left > 0, "one tick too many");
        if left == 1 {
            let waker = lock(&self.waiting).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether zero is reached.
    pub fn is_zero(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Waits for zero. One task may wait.
    pub async fn zero(&self) {
        poll_fn(|cx| {
            // The waker first: the last tick takes the lock after it has counted, so either it finds
            // the waker, or this look finds its count.
            *lock(&self.waiting) = Some(cx.waker().clone());
            if self.is_zero() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Locks; nothing here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Wake;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_at_the_gate_is_woken_once_by_its_latest_waker() {
        let gate = Gate::new(1);
        let (old, new) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
        let mut pass = pin!(gate.pass());
        for bell in [&old, &new] {
            let waker = Waker::from(bell.clone());
            assert!(
                pass.as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        gate.open();
        assert_eq!(old.0.load(Ordering::Relaxed), 0);
        assert_eq!(new.0.load(Ordering::Relaxed), 1);
        assert!(
            pass.poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
    }

    #[test]
    fn the_opener_is_woken_when_the_last_task_has_arrived() {
        let gate = Gate::new(2);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let mut gathered = pin!(gate.gathered());
        assert!(
            gathered
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let (mut one, mut two) = (pin!(gate.pass()), pin!(gate.pass()));
        let mut noop = Context::from_waker(Waker::noop());
        assert!(one.as_mut().poll(&mut noop).is_pending());
        assert_eq!(bell.0.load(Ordering::Relaxed), 0);
        assert!(two.as_mut().poll(&mut noop).is_pending());
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        assert!(gathered.poll(&mut noop).is_ready());
    }

    #[test]
    fn a_late_task_passes_an_open_gate() {
        let gate = Gate::new(1);
        gate.open();
        assert!(
            pin!(gate.pass())
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
    }
}
