//! What the builder is told comes true.
#![cfg(not(wakerun_loom))]

mod common;

use std::collections::HashSet;
use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use common::{Event, each_kind, within};
use wakerun::{Builder, Handle, RuntimeFlavor};

/// One task on each worker at a time, giving what `f` gives there.
fn on_each_worker<T: Send + 'static>(
    runtime: &wakerun::Runtime,
    f: impl Fn() -> T + Send + Sync + 'static,
) -> Vec<T> {
    let workers = runtime.handle().num_workers();
    let (barrier, f) = (Arc::new(Barrier::new(workers)), Arc::new(f));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let (barrier, f) = (Arc::clone(&barrier), Arc::clone(&f));
            runtime.spawn(async move {
                barrier.wait();
                f()
            })
        })
        .collect();
    runtime.block_on(async {
        let mut results = Vec::new();
        for task in tasks {
            results.push(task.await.unwrap());
        }
        results
    })
}

fn thread_name() -> String {
    thread::current().name().unwrap_or_default().to_string()
}

#[test]
fn the_runtime_has_as_many_workers_as_it_was_told() {
    within("workers", || {
        for workers in [1, 2, 3, 8] {
            let runtime = Builder::new_multi_thread()
                .worker_threads(workers)
                .build()
                .unwrap();
            assert_eq!(runtime.handle().num_workers(), workers);
            assert_eq!(runtime.handle().flavor(), RuntimeFlavor::MultiThread);
            let threads = on_each_worker(&runtime, || thread::current().id());
            assert_eq!(threads.into_iter().collect::<HashSet<_>>().len(), workers);
        }
        let runtime = Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.handle().num_workers(), 1);
        assert_eq!(runtime.handle().flavor(), RuntimeFlavor::CurrentThread);
    });
}

#[test]
fn worker_threads_have_the_name_they_were_given() {
    within("names", || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("some name")
            .build()
            .unwrap();
        assert_eq!(
            on_each_worker(&runtime, thread_name),
            ["some name", "some name"]
        );

        let count = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(3)
            .thread_name_fn(move || format!("worker {}", count.fetch_add(1, Ordering::Relaxed)))
            .build()
            .unwrap();
        let mut names = on_each_worker(&runtime, thread_name);
        names.sort();
        assert_eq!(names, ["worker 0", "worker 1", "worker 2"]);
    });
}

#[test]
fn worker_threads_have_the_stack_they_were_given() {
    // Far more than the default has room for.
    if cfg!(miri) {
        return;
    }
    fn deep(left: usize) -> usize {
        let frame = std::hint::black_box([left; 128]);
        if left == 0 {
            0
        } else {
            deep(left - 1) + frame[left % 128] - left + 1
        }
    }
    within("stack", || {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_stack_size(64 << 20)
            .build()
            .unwrap();
        assert_eq!(
            runtime
                .block_on(runtime.spawn(async { deep(20_000) }))
                .unwrap(),
            20_000
        );
    });
}

#[test]
fn start_and_stop_are_called_once_on_each_worker() {
    within("start and stop", || {
        for workers in [1, 2, 4] {
            let log = Arc::new(Mutex::new(Vec::new()));
            let (started, stopped) = (Arc::clone(&log), Arc::clone(&log));
            let runtime = Builder::new_multi_thread()
                .worker_threads(workers)
                .on_thread_start(move || {
                    started
                        .lock()
                        .unwrap()
                        .push(("start", thread::current().id()));
                })
                .on_thread_stop(move || {
                    stopped
                        .lock()
                        .unwrap()
                        .push(("stop", thread::current().id()));
                })
                .build()
                .unwrap();
            on_each_worker(&runtime, || {});
            assert_eq!(
                log.lock()
                    .unwrap()
                    .iter()
                    .filter(|(what, _)| *what == "start")
                    .count(),
                workers
            );
            drop(runtime);
            let log = log.lock().unwrap();
            let threads = |which| {
                let of = log
                    .iter()
                    .filter(|(what, _)| *what == which)
                    .map(|&(_, id)| id);
                of.collect::<HashSet<_>>()
            };
            assert_eq!(log.len(), 2 * workers);
            assert_eq!(threads("start").len(), workers);
            assert_eq!(threads("start"), threads("stop"));
        }
    });
}

#[test]
fn park_and_unpark_are_called_in_turns() {
    within("park and unpark", || {
        let balance = Arc::new(AtomicUsize::new(0));
        let parked = Event::new();
        let (park, unpark, set) = (Arc::clone(&balance), Arc::clone(&balance), parked.clone());
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .on_thread_park(move || {
                park.fetch_add(1, Ordering::SeqCst);
                set.set();
            })
            .on_thread_unpark(move || {
                unpark.fetch_sub(1, Ordering::SeqCst);
            })
            .build()
            .unwrap();
        parked.wait_blocking();
        for _ in 0..100 {
            // A task runs only on a worker that is not parked.
            let balance = Arc::clone(&balance);
            let seen = runtime.spawn(async move { balance.load(Ordering::SeqCst) });
            assert_eq!(runtime.block_on(seen).unwrap(), 0);
        }
    });
}

#[test]
fn hooks_may_use_the_runtime_and_may_panic() {
    // B051: what a hook does must not upset who sleeps and who does not.
    within("hooks", || {
        let handle = Arc::new(Mutex::new(None::<Handle>));
        let spawned = Arc::new(AtomicUsize::new(0));
        let (reach, count) = (Arc::clone(&handle), Arc::clone(&spawned));
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(|| panic!("a hook panics"))
            .on_thread_stop(|| panic!("a hook panics"))
            .on_thread_park(move || {
                let handle = reach.lock().unwrap().clone();
                if let Some(handle) = handle
                    && count.fetch_add(1, Ordering::SeqCst) < 100
                {
                    drop(handle.spawn(async {}));
                }
            })
            .build()
            .unwrap();
        *handle.lock().unwrap() = Some(runtime.handle().clone());
        for i in 0..1000 {
            assert_eq!(
                runtime.block_on(runtime.spawn(async move { i })).unwrap(),
                i
            );
        }
        while spawned.load(Ordering::SeqCst) < 100 {
            runtime.block_on(runtime.spawn(async {})).unwrap();
        }
        *handle.lock().unwrap() = None;
    });
}

#[test]
fn one_builder_may_build_several_runtimes() {
    within("several", || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).keep_talkers_together(false);
        let (a, b) = (builder.build().unwrap(), builder.build().unwrap());
        assert_eq!(a.block_on(b.spawn(async { 1 })).unwrap(), 1);
        assert!(!format!("{builder:?} {a:?} {:?}", a.handle()).is_empty());
    });
}

/// The other half of the next test, in a process of its own, for the variable is the process's.
const CHILD: &str = "WAKERUN_TEST_CHILD";

#[test]
fn the_environment_says_how_many_workers_there_are() {
    if cfg!(miri) {
        return;
    }
    if env::var_os(CHILD).is_some() {
        let runtime = wakerun::Runtime::new().unwrap();
        println!("workers: {}", runtime.handle().num_workers());
        // What the program says itself wins.
        let told = wakerun::Runtime::builder()
            .worker_threads(2)
            .build()
            .unwrap();
        assert_eq!(told.handle().num_workers(), 2);
        return;
    }
    let run = |value: Option<&str>| {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "the_environment_says_how_many_workers_there_are",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .env_remove("WAKERUN_WORKER_THREADS");
        if let Some(value) = value {
            command.env("WAKERUN_WORKER_THREADS", value);
        }
        let output = command.output().unwrap();
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), text.concat())
    };
    for workers in ["1", "3", "7"] {
        let (success, text) = run(Some(workers));
        assert!(
            success && text.contains(&format!("workers: {workers}")),
            "{text}"
        );
    }
    let (success, text) = run(None);
    let cores = thread::available_parallelism().unwrap();
    assert!(
        success && text.contains(&format!("workers: {cores}")),
        "{text}"
    );
    for nonsense in ["0", "many", "-1", "", "99999999999999999999"] {
        let (success, text) = run(Some(nonsense));
        assert!(
            !success && text.contains("WAKERUN_WORKER_THREADS"),
            "{nonsense:?}: {text}"
        );
    }
}

#[test]
fn the_quick_start_runs_tasks() {
    within("quick start", || {
        let sum = wakerun::block_on(async {
            let tasks: Vec<_> = (0..10).map(|i| wakerun::spawn(async move { i })).collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 45);
    });
    each_kind(|_, runtime| runtime.block_on(async {}));
}
