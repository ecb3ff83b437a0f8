//! A set of tasks that are waited for in the order in which they end.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{AbortHandle, Id, JoinError, JoinHandle, spawn};
use crate::lock::Lock;
use crate::{Handle, wake};

/// Tasks of one output type; dropping the set aborts those that still run.
///
/// [`join_next`](Self::join_next) gives outputs as the tasks end, and looks only at tasks that have
/// been woken: a set of many thousand costs no more a task than a small one.
///
/// ```
/// wakerun::block_on(async {
///     let mut set = wakerun::task::JoinSet::new();
///     for n in 0..10 {
///         set.spawn(async move { n * n });
///     }
///     let mut sum = 0;
///     while let Some(square) = set.join_next().await {
///         sum += square.unwrap();
///     }
///     assert_eq!(sum, 285);
/// });
/// ```
pub struct JoinSet<T> {
    tasks: HashMap<Id, JoinHandle<T>>,
    ready: Arc<Ready>,
}

/// What the tasks' wakers share with the set.
struct Ready {
    queue: Lock<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Tasks to look at: new ones and woken ones.
    ids: std::collections::VecDeque<Id>,
    /// Who waits in `join_next`.
    waker: Option<Waker>,
}

/// The waker that a task of the set is polled with.
struct Member {
    id: Id,
    ready: Arc<Ready>,
}

impl Ready {
    /// Queues an id. The waker that waits is returned, to be woken outside the lock.
    fn push(&self, id: Id) -> Option<Waker> {
        let mut queue = self.queue.lock();
        queue.ids.push_back(id);
        queue.waker.take()
    }
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(waker) = self.ready.push(self.id) {
            waker.wake();
        }
    }
}

impl<T> JoinSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            tasks: HashMap::new(),
            ready: Arc::new(Ready {
                queue: Lock::new(Queue::default()),
            }),
        }
    }

    /// How many tasks have not been joined yet, ended or not.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is no task to join.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Aborts all tasks; they stay in the set and are joined as cancelled.
    pub fn abort_all(&self) {
        for task in self.tasks.values() {
            task.abort();
        }
    }

    /// Lets all tasks go on by themselves, and empties the set.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
        self.ready.queue.lock().ids.clear();
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and adds it.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(spawn(future))
    }

    /// Spawns a task on the given runtime and adds it.
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.insert(handle.spawn(future))
    }

    pub(super) fn insert(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        let id = task.id();
        self.tasks.insert(id, task);
        if let Some(waker) = self.ready.push(id) {
            waker.wake();
        }
        abort
    }

    /// Waits for the next task that ends; `None` when the set is empty.
    ///
    /// # Cancel safety
    /// Dropping the future loses no output: a task leaves the set only together with it.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Takes the output of a task that has ended, without waiting. `None`: none has, or there is
    /// none.
    ///
    /// ```
    /// wakerun::block_on(async {
    ///     let mut set = wakerun::task::JoinSet::new();
    ///     assert!(set.try_join_next().is_none());
    ///     set.spawn(async { 1 });
    ///     while set.len() > 0 {
    ///         if let Some(one) = set.try_join_next() {
    ///             assert_eq!(one.unwrap(), 1);
    ///         }
    ///         wakerun::task::yield_now().await;
    ///     }
    /// });
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        loop {
            // A statement of its own: the lock is not held while the task is polled.
            let id = self.ready.queue.lock().ids.pop_front()?;
            let Some(task) = self.tasks.get_mut(&id) else {
                continue;
            };
            let member = Waker::from(Arc::new(Member {
                id,
                ready: self.ready.clone(),
            }));
            if let Poll::Ready(output) = task.poll_output(&mut Context::from_waker(&member)) {
                self.tasks.remove(&id);
                return Some(output);
            }
        }
    }

    /// The poll form of [`join_next`](Self::join_next).
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let in_budget = wake::spend_budget();
        loop {
            if self.tasks.is_empty() {
                return Poll::Ready(None);
            }
            if in_budget && let Some(output) = self.try_join_next() {
                return Poll::Ready(Some(output));
            }
            // Clone outside the lock, store, and look again: a task may end in between.
            let mine = cx.waker().clone();
            let mut queue = self.ready.queue.lock();
            if queue.ids.is_empty() {
                let old = queue.waker.replace(mine);
                drop(queue);
                drop(old);
                if in_budget {
                    wake::refund_budget();
                }
                return Poll::Pending;
            }
            drop(queue);
            drop(mine);
            if !in_budget {
                wake::force_yield(cx);
                return Poll::Pending;
            }
        }
    }

    /// Waits for all tasks and gives their outputs in the order in which they ended.
    ///
    /// # Cancel safety
    /// None: dropping the future aborts the tasks and loses the outputs so far, as a panic does.
    ///
    /// # Panics
    /// If a task panicked, with the task's own panic; or if one was cancelled.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(output) = self.join_next().await {
            match output {
                Ok(output) => outputs.push(output),
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => std::panic::resume_unwind(payload),
                    Err(error) => panic!("{error}"),
                },
            }
        }
        outputs
    }

    /// Aborts all tasks and waits until they are gone.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the tasks aborted, and those not joined yet in the set.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
        // The members' wakers may keep `ready` for a while; who waited here must not be kept by it.
        let waker = self.ready.queue.lock().waker.take();
        drop(waker);
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}
