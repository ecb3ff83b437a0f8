//! Foreign code that the runtime calls on its own threads: hooks, names, and what primitives leave to
//! the end of a poll. What it wakes runs, and what it breaks is its own.
#![cfg(not(wakerun_loom))]

mod common;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use common::{Event, Kind, LIMIT, each_kind, on_wake, within};
use wakerun::Builder;
use wakerun::task::yield_now;
use wakerun::wake::{
    Batch, Place, PollEnd, PollWatch, Poller, Wakeup, defer_to_poll_end, note_poll, unwatch_polls,
    wake, wake_owned, watch_polls,
};

/// What is given to the builder, as the hook to be tested.
type Hook = Box<dyn Fn() + Send + Sync>;

/// On each kind of runtime: lets the hook wake a task once, with nothing else going on, and waits for
/// the task.
fn woken_by(what: &'static str, set_hook: fn(&mut Builder, Hook)) {
    within(what, move || {
        for kind in Kind::ALL {
            let (armed, called) = (Arc::new(AtomicBool::new(false)), Event::new());
            let (wakes, done) = (Event::new(), Event::new());
            let (arm, call, wake) = (Arc::clone(&armed), called.clone(), wakes.clone());
            let mut builder = kind.builder();
            set_hook(
                &mut builder,
                Box::new(move || {
                    if arm.swap(false, Ordering::SeqCst) {
                        wake.set();
                        call.set();
                    }
                }),
            );
            let runtime = builder.build().unwrap();
            let (wait, set) = (wakes.clone(), done.clone());
            drop(runtime.spawn(async move {
                wait.wait().await;
                set.set();
            }));
            thread::scope(|s| {
                let handle = runtime.handle();
                s.spawn(|| {
                    while wakes.waiting() == 0 {
                        thread::yield_now();
                    }
                    armed.store(true, Ordering::SeqCst);
                    // One event, after which a worker goes through the hook, and no other that would
                    // find the woken task by the way. A worker that was not asleep yet may have taken
                    // that one without; then one more.
                    loop {
                        drop(handle.spawn(async {}));
                        if called.wait_for(Duration::from_secs(1)) {
                            break;
                        }
                    }
                    done.wait_blocking();
                });
                runtime.block_on(done.wait());
            });
        }
    });
}

#[test]
fn a_task_woken_by_the_park_hook_runs() {
    woken_by("park hook", |builder, hook| {
        builder.on_thread_park(hook);
    });
}

#[test]
fn a_task_woken_by_the_unpark_hook_runs() {
    woken_by("unpark hook", |builder, hook| {
        builder.on_thread_unpark(hook);
    });
}

#[test]
fn a_name_function_that_panics_leaves_no_worker_behind() {
    within("name", || {
        for panics_at in 0..3 {
            let (started, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::default());
            let (start, stop) = (Arc::clone(&started), Arc::clone(&stopped));
            let names = AtomicUsize::new(0);
            let mut builder = Builder::new_multi_thread();
            builder
                .worker_threads(3)
                .on_thread_start(move || _ = start.fetch_add(1, Ordering::SeqCst))
                .on_thread_stop(move || _ = AtomicUsize::fetch_add(&stop, 1, Ordering::SeqCst))
                .thread_name_fn(move || {
                    let name = names.fetch_add(1, Ordering::SeqCst);
                    assert_ne!(name, panics_at, "a name panics");
                    "some name".to_string()
                });
            let built = catch_unwind(AssertUnwindSafe(|| builder.build().is_ok()));
            assert!(built.is_err(), "the panic is the caller's to see");
            drop(builder);
            // A worker that goes lets go of the hooks.
            while Arc::strong_count(&started) > 1 || Arc::strong_count(&stopped) > 1 {
                thread::yield_now();
            }
            assert_eq!(
                started.load(Ordering::SeqCst),
                stopped.load(Ordering::SeqCst)
            );
        }
    });
}

/// Asserts that the runtime works.
async fn works() {
    for i in 0..50 {
        assert_eq!(wakerun::spawn(async move { i }).await.unwrap(), i);
    }
}

/// Defers the primitive, which is refused at first.
fn defer<H: PollEnd + 'static>(hook: &Arc<H>) {
    let mut refused = 0;
    while !defer_to_poll_end(hook) {
        refused += 1;
        assert!(refused < 3, "always refused");
    }
}

#[test]
fn a_deferred_primitive_whose_destructor_panics_harms_no_worker() {
    struct Bomb(Event);

    impl PollEnd for Bomb {
        fn poll_end(&self) {}
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.set();
            panic!("the destructor of a primitive panics");
        }
    }

    each_kind(|_, runtime| {
        let dropped = Event::new();
        let event = dropped.clone();
        // The worker's own reference is the last; it goes when the worker sleeps.
        runtime.block_on(async {
            let task = wakerun::spawn(async move {
                let bomb = Arc::new(Bomb(event));
                defer(&bomb);
            });
            task.await.unwrap();
            dropped.wait().await;
            works().await;
        });
        // The same in the end of the runtime; and it ends.
        let dropped = Event::new();
        let event = dropped.clone();
        let task = runtime.spawn(async move {
            let bomb = Arc::new(Bomb(event));
            loop {
                defer(&bomb);
                yield_now().await;
            }
        });
        let _: Result<(), _> = runtime.block_on(async {
            works().await;
            task.abort();
            task.await
        });
        drop(runtime);
        dropped.wait_blocking();
    });
}

#[test]
fn a_deferral_ends_with_the_poll_of_a_main_future_that_panics() {
    #[derive(Default)]
    struct Calls(AtomicUsize);

    impl PollEnd for Calls {
        fn poll_end(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    within("main future", || {
        let runtime = Kind::Current.build();
        let calls = Arc::new(Calls::default());
        for round in 1..4 {
            let main = || {
                runtime.block_on(async {
                    defer(&calls);
                    panic!("the main future panics");
                })
            };
            assert!(catch_unwind(AssertUnwindSafe(main)).is_err());
            assert_eq!(calls.0.load(Ordering::SeqCst), 2 * round - 1);
            runtime.block_on(async {
                defer(&calls);
                yield_now().await;
                assert_eq!(calls.0.load(Ordering::SeqCst), 2 * round);
            });
            assert_eq!(calls.0.load(Ordering::SeqCst), 2 * round);
        }
    });
}

/// Spawns a task on this thread's worker, and waits until somebody else has run it.
fn is_helped() -> bool {
    let ran = Event::new();
    let run = ran.clone();
    drop(wakerun::spawn(async move { run.set() }));
    ran.wait_for(LIMIT / 4)
}

#[test]
fn a_waker_that_blocks_at_the_end_of_a_poll_keeps_no_task_from_the_other_workers() {
    /// The ways in which a primitive wakes others.
    const WAYS: [fn(Waker); 4] = [
        |waker| wake(&waker, Place::Tail),
        |waker| wake_owned(waker, Place::Next),
        |waker| Wakeup::of(&waker).fire(Place::Tail),
        |waker| {
            let mut batch = Batch::new(Place::Tail);
            batch.push(Waker::noop().clone());
            batch.push(waker);
            batch.wake_all();
        },
    ];

    struct Wakes(Waker, fn(Waker));

    impl PollEnd for Wakes {
        fn poll_end(&self) {
            self.1(self.0.clone());
        }
    }

    within("a waker that blocks", || {
        for way in WAYS {
            let runtime = Kind::Workers(2).build();
            let (helped, called) = (Arc::new(AtomicBool::new(true)), Event::new());
            let (all_helped, call) = (Arc::clone(&helped), called.clone());
            let waker = on_wake(move || {
                all_helped.fetch_and(is_helped(), Ordering::SeqCst);
                call.set();
            });
            let task = async move { defer(&Arc::new(Wakes(waker, way))) };
            drop(runtime.spawn(task));
            called.wait_blocking();
            assert!(helped.load(Ordering::SeqCst), "nobody has taken the task");
        }
    });
}

/// The other half of the next test, in a process of its own, for stderr is the process's.
const CHILD: &str = "WAKERUN_TEST_CHILD";

#[test]
fn an_output_whose_destructor_panics_harms_no_worker_without_stderr() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the destructor of an output panics");
        }
    }

    if cfg!(miri) {
        return;
    }
    if env::var_os(CHILD).is_some() {
        each_kind(|_, runtime| {
            let go = Event::new();
            let wait = go.clone();
            // Nobody takes the output: the worker drops it.
            drop(runtime.spawn(async move {
                wait.wait().await;
                Bomb
            }));
            go.set();
            runtime.block_on(async {
                while wakerun::Handle::current().num_alive_tasks() > 0 {
                    yield_now().await;
                }
                works().await;
            });
        });
        println!("all is well");
        return;
    }
    // A pipe that nobody reads.
    let (reader, stderr) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "an_output_whose_destructor_panics_harms_no_worker_without_stderr",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("all is well"),
        "{:?}: {text}",
        output.status
    );
}

#[test]
fn a_watch_that_panics_goes_on_watching() {
    struct Watch(AtomicUsize);

    impl PollWatch for Watch {
        fn poll_over(&self, _: &Poller<'_>) -> bool {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "the first look");
            true
        }
    }

    each_kind(|_, runtime| {
        let watch = Arc::new(Watch(AtomicUsize::new(0)));
        let watched = Arc::clone(&watch);
        let task = runtime.spawn(async move {
            assert!(watch_polls(&watched));
            yield_now().await;
            yield_now().await;
        });
        runtime.block_on(task).unwrap();
        assert_eq!(watch.0.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn a_watch_whose_destructor_panics_ends_no_worker_and_no_task() {
    struct Watch {
        stays: bool,
        drops: Arc<AtomicUsize>,
    }

    impl PollWatch for Watch {
        fn poll_over(&self, _: &Poller<'_>) -> bool {
            self.stays
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.drops.fetch_add(1, Ordering::SeqCst);
            panic!("the destructor of a watch panics");
        }
    }

    each_kind(|_, runtime| {
        for stays in [false, true] {
            let drops = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&drops);
            let task = runtime.spawn(async move {
                for _ in 0..3 {
                    // The task has the only reference.
                    let drops = Arc::clone(&counted);
                    assert!(watch_polls(&Arc::new(Watch { stays, drops })));
                }
                yield_now().await;
                7
            });
            assert_eq!(runtime.block_on(task).unwrap(), 7);
            while drops.load(Ordering::SeqCst) < 3 {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn a_watch_that_is_taken_back_is_told_no_more() {
    struct Watch(AtomicUsize);

    impl PollWatch for Watch {
        fn poll_over(&self, _: &Poller<'_>) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            true
        }
    }

    each_kind(|_, runtime| {
        let watch = Arc::new(Watch(AtomicUsize::new(0)));
        let watched = Arc::clone(&watch);
        let task = runtime.spawn(async move {
            // Asked for twice and taken back once: told at the end of this poll.
            assert!(watch_polls(&watched));
            assert!(watch_polls(&watched));
            unwatch_polls(&*watched);
            yield_now().await;
            assert_eq!(watched.0.load(Ordering::SeqCst), 1);
            unwatch_polls(&*watched);
            yield_now().await;
            assert_eq!(watched.0.load(Ordering::SeqCst), 1);
            // And let go.
            Arc::strong_count(&watched)
        });
        assert_eq!(runtime.block_on(task).unwrap(), 2);
    });
}

#[test]
fn a_watch_is_told_of_the_polls_that_have_not_come_to_all_who_asked() {
    struct Watch(AtomicUsize);

    impl PollWatch for Watch {
        fn poll_over(&self, _: &Poller<'_>) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            true
        }
    }

    each_kind(|_, runtime| {
        let watch = Arc::new(Watch(AtomicUsize::new(0)));
        let watched = Arc::clone(&watch);
        let task = runtime.spawn(async move {
            let told = || watched.0.swap(0, Ordering::SeqCst);
            for _ in 0..2 {
                assert!(watch_polls(&watched));
            }
            let (mut one, mut other) = (0, 0);
            one = note_poll(&*watched, one);
            // A second time in a poll it counts for nothing.
            one = note_poll(&*watched, one);
            yield_now().await;
            assert_eq!(told(), 1, "the other was not polled");
            one = note_poll(&*watched, one);
            other = note_poll(&*watched, other);
            yield_now().await;
            assert_eq!(told(), 0);
            // One was polled and one goes: which one is not known.
            let _ = note_poll(&*watched, one);
            unwatch_polls(&*watched);
            yield_now().await;
            assert_eq!(told(), 1);
            // The last poll is told in any case.
            let _ = note_poll(&*watched, other);
        });
        runtime.block_on(task).unwrap();
        assert_eq!(watch.0.load(Ordering::SeqCst), 1);
    });
}
