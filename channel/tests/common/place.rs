//! Where a test runs: off the runtime, and as a task on each kind of runtime.

use std::future::{Future, poll_fn};
use std::task::Poll;

use super::{block_on, within};
use wakerun::{Builder, Runtime};

/// Capacities at the edges: the smallest, a power of two and its neighbours.
pub(crate) const CAPACITIES: [usize; 4] = [1, 2, 3, 33];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A thread with a `block_on` that the runtime knows nothing of.
    Off,
    /// A task on a current-thread runtime.
    Current,
    /// A task on a runtime with that many workers.
    Workers(usize),
}

impl Place {
    pub(crate) const ALL: [Self; 5] = [
        Self::Off,
        Self::Current,
        Self::Workers(1),
        Self::Workers(2),
        Self::Workers(4),
    ];

    /// The runtime of this place, if it has one.
    pub(crate) fn runtime(self) -> Option<Runtime> {
        match self {
            Self::Off => None,
            Self::Current => Some(Builder::new_current_thread().build().unwrap()),
            Self::Workers(n) => Some(
                Builder::new_multi_thread()
                    .worker_threads(n)
                    .build()
                    .unwrap(),
            ),
        }
    }

    /// Runs the future here to its end: as a spawned task where there is a runtime.
    pub(crate) fn run<F>(self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.runtime() {
            None => block_on(future),
            Some(runtime) => {
                let task = runtime.spawn(future);
                match runtime.block_on(task) {
                    Ok(output) => output,
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                }
            }
        }
    }
}

/// Runs the test at every capacity of [`CAPACITIES`] in every [`Place`].
#[track_caller]
pub(crate) fn everywhere<F, Fut>(test: F)
where
    F: Fn(usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    within("everywhere", move || {
        for place in Place::ALL {
            for capacity in CAPACITIES {
                let _label = Label(place, capacity);
                place.run(test(capacity));
            }
        }
    });
}

/// Says where it was when a test fails.
struct Label(Place, usize);

impl Drop for Label {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed in {:?} at capacity {}", self.0, self.1);
        }
    }
}

/// One runtime of each kind, with its name.
pub(crate) fn runtimes() -> impl Iterator<Item = (Place, Runtime)> {
    Place::ALL
        .into_iter()
        .filter_map(|place| Some((place, place.runtime()?)))
}

/// Ends the current poll and goes on in the next one.
pub(crate) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// On the runtime a receive may leave the release of its slot to the end of the poll. Tests that
/// poll other futures by hand in the same task wait here for that end after each receive.
pub(crate) async fn settle() {
    yield_once().await;
}
