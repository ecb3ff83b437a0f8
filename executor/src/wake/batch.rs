//! Many wakes at once.

use std::fmt;
use std::mem::MaybeUninit;
use std::task::Waker;

use super::Place;
use crate::context;
use crate::panics::FirstPanic;
use crate::scheduler::{is_of, schedule};
use crate::task::header::Task;
use crate::task::waker;

/// Wakers that a [`Batch`] holds without allocating.
pub const BATCH: usize = 32;

/// Collects wakers under a primitive's lock, and wakes them after it.
///
/// Tasks of the current worker's runtime are appended to its queue as one batch: one store makes
/// all of them visible, and at most one other worker is notified. Other wakers are woken one by one.
/// If one of them panics, the rest are woken first and then the first panic goes on.
///
/// Dropping a batch wakes what it holds, so that a panic in between loses no wake-up.
///
/// ```
/// use std::task::Waker;
/// use wakerun::wake::{Batch, Place};
///
/// let mut batch = Batch::new(Place::Tail);
/// batch.push(Waker::noop().clone());
/// assert_eq!(batch.len(), 1);
/// batch.wake_all();
/// assert!(batch.is_empty());
/// ```
pub struct Batch {
    wakers: [MaybeUninit<Waker>; BATCH],
    len: usize,
    place: Place,
}

impl Batch {
    /// An empty batch, whose tasks will be queued at `place`. Of several tasks for
    /// [`Place::Next`], the last one pushed runs next.
    #[inline]
    pub const fn new(place: Place) -> Self {
        Self {
            wakers: [const { MaybeUninit::uninit() }; BATCH],
            len: 0,
            place,
        }
    }

    /// How many wakers wait.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether [`BATCH`] wakers wait: leave the lock and [`wake_all`](Self::wake_all) before the
    /// next push.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Adds a waker. Runs no foreign code.
    ///
    /// # Panics
    /// If the batch is full.
    #[inline]
    pub fn push(&mut self, waker: Waker) {
        assert!(self.len < BATCH, "a full batch must be woken first");
        self.wakers[self.len].write(waker);
        self.len += 1;
    }

    /// Takes the waker at `index` out.
    ///
    /// # Safety
    /// It was pushed, and is taken once: `len` does not count it any more.
    unsafe fn take(&mut self, index: usize) -> Waker {
        // SAFETY: handed on.
        unsafe { self.wakers[index].assume_init_read() }
    }

    /// Wakes all, outside every lock, and leaves the batch empty.
    ///
    /// # Panics
    /// If a foreign waker panics: after all are woken, with the first panic.
    #[inline]
    pub fn wake_all(&mut self) {
        match self.len {
            0 => {}
            1 => {
                self.len = 0;
                // SAFETY: the one that was pushed; `len` is 0 now.
                let waker = unsafe { self.take(0) };
                super::wake_owned(waker, self.place);
            }
            _ => self.wake_many(),
        }
    }

    fn wake_many(&mut self) {
        let len = std::mem::take(&mut self.len);
        let mut panics = FirstPanic::new();
        let mut local: [MaybeUninit<Task>; BATCH] = [const { MaybeUninit::uninit() }; BATCH];
        let mut locals = 0;
        let mut foreign = 0;
        context::with_worker(|worker| {
            let worker = worker.filter(|_| self.place == Place::Tail);
            for index in 0..len {
                // SAFETY: `len` were pushed, each is taken once, and none is counted any more.
                let waker = unsafe { self.take(index) };
                let Some(header) = waker::task_of(&waker) else {
                    // Kept for later, at a place that has been taken from already.
                    self.wakers[foreign].write(waker);
                    foreign += 1;
                    continue;
                };
                std::mem::forget(waker);
                // SAFETY: the forgotten waker's reference is given away.
                let Some(task) = (unsafe { waker::wake_owned(header) }) else {
                    continue;
                };
                if worker.is_some_and(|worker| is_of(&task, worker)) {
                    local[locals].write(task);
                    locals += 1;
                } else {
                    schedule(task, self.place);
                }
            }
            if let Some(worker) = worker.filter(|_| locals > 0) {
                worker.push_batch(local[..locals].iter().map(|task| {
                    // SAFETY: written above, and read once: the iterator passes each slot once, and
                    // `push_batch` takes all of it.
                    unsafe { task.assume_init_read() }
                }));
            }
        });
        // Foreign code last: all tasks of ours are queued by now.
        for index in 0..foreign {
            // SAFETY: written above, and taken once.
            let waker = unsafe { self.take(index) };
            panics.catch(|| context::run_foreign(|| waker.wake()));
        }
        panics.resume("a waker");
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        if std::thread::panicking() {
            // A second panic would end the process.
            crate::panics::report("a waker", || self.wake_all());
        } else {
            self.wake_all();
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len)
            .field("place", &self.place)
            .finish()
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Count {
        wakes: AtomicUsize,
        panics: bool,
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            assert!(!self.panics, "a waker that panics on purpose");
        }
    }

    fn count(panics: bool) -> (Arc<Count>, Waker) {
        let count = Arc::new(Count {
            wakes: AtomicUsize::new(0),
            panics,
        });
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn a_panicking_waker_keeps_none_from_being_woken() {
        let (good, good_waker) = count(false);
        let (_bad, bad_waker) = count(true);
        let mut batch = Batch::new(Place::Tail);
        batch.push(good_waker.clone());
        batch.push(bad_waker);
        batch.push(good_waker);
        let woken = catch_unwind(AssertUnwindSafe(|| batch.wake_all()));
        assert!(woken.is_err());
        assert_eq!(good.wakes.load(Ordering::Relaxed), 2);
        assert!(batch.is_empty());
    }

    #[test]
    fn dropping_a_batch_wakes() {
        let (good, waker) = count(false);
        let mut batch = Batch::new(Place::Next);
        for _ in 0..BATCH {
            batch.push(waker.clone());
        }
        assert!(batch.is_full());
        drop(batch);
        assert_eq!(good.wakes.load(Ordering::Relaxed), BATCH);
        drop(waker);
        assert_eq!(Arc::strong_count(&good), 1);
    }
}
