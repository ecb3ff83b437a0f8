//! Closures that block: where they run, how they end, what shutdown does with them.

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use common::{DropFlag, Event, Kind, LIMIT, each_kind, rounds, within};
use wakerun::task::{Builder, JoinSet, spawn_blocking};
use wakerun::{Handle, Runtime};

#[test]
fn the_value_comes_back_and_the_worker_is_free_meanwhile() {
    each_kind(|_, runtime| {
        let answer = runtime.block_on(async {
            let (release, released) = mpsc::channel();
            // Blocks its thread until a task of the same runtime has run.
            let job = spawn_blocking(move || released.recv_timeout(LIMIT / 2).map(|n: i32| n + 1));
            let task = wakerun::spawn(async move { release.send(41) });
            task.await.unwrap().unwrap();
            job.await.unwrap()
        });
        assert_eq!(answer, Ok(42));
    });
}

#[test]
fn a_job_is_inside_its_runtime_and_may_block_on_it() {
    each_kind(|kind, runtime| {
        let job = runtime.spawn_blocking(move || {
            assert!(wakerun::task::try_id().is_none(), "a job is not polled");
            let handle = Handle::current();
            // On a current-thread runtime the block_on below runs the tasks together with ours.
            let sum = handle.block_on(async {
                let one = wakerun::spawn(async { 1 });
                let two = spawn_blocking(|| 2);
                one.await.unwrap() + two.await.unwrap()
            });
            (kind, sum, thread::current().id())
        });
        let (job_kind, sum, on) = runtime.block_on(job).unwrap();
        assert_eq!((job_kind, sum), (kind, 3));
        assert_ne!(on, thread::current().id());
    });
}

#[test]
fn a_panic_comes_back_through_the_handle() {
    each_kind(|_, runtime| {
        let error = runtime
            .block_on(runtime.spawn_blocking(|| panic!("on purpose")))
            .unwrap_err();
        assert!(error.is_panic());
        let payload = error.into_panic();
        assert_eq!(*payload.downcast::<&str>().unwrap(), "on purpose");
        assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 1)).unwrap(), 1);
    });
}

#[test]
fn a_job_whose_handle_is_dropped_goes_on() {
    each_kind(|_, runtime| {
        let done = Event::new();
        let set = done.clone();
        drop(runtime.spawn_blocking(move || set.set()));
        done.wait_blocking();
    });
}

#[test]
fn handles_builders_and_sets_know_jobs() {
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        runtime.block_on(async {
            let named = Builder::new().name("reader").spawn_blocking(|| 1);
            assert!(format!("{named:?}").contains("reader"));
            let elsewhere = Builder::new().spawn_blocking_on(|| 2, &handle);
            let mut set = JoinSet::new();
            set.spawn_blocking(|| 7);
            set.spawn_blocking_on(|| 5, &handle);
            assert_eq!(named.await.unwrap() + elsewhere.await.unwrap(), 3);
            assert_eq!(set.join_all().await.into_iter().sum::<i32>(), 12);
        });
    });
}

#[test]
fn thousands_of_jobs_all_run_once_and_leave_nothing_behind() {
    each_kind(|_, runtime| {
        const JOBS: usize = 3000;
        let runs = Arc::new(AtomicUsize::new(0));
        let sum = runtime.block_on(async {
            let mut set = JoinSet::new();
            for n in 0..JOBS {
                let runs = runs.clone();
                set.spawn_blocking(move || {
                    runs.fetch_add(1, Ordering::Relaxed);
                    n
                });
            }
            set.join_all().await.into_iter().sum::<usize>()
        });
        assert_eq!(sum, JOBS * (JOBS - 1) / 2);
        assert_eq!(runs.load(Ordering::Relaxed), JOBS);
        // A job leaves the list just after it has woken its handle.
        let start = Instant::now();
        while runtime.handle().num_alive_tasks() > 0 {
            assert!(start.elapsed() < LIMIT / 2, "jobs are left in the list");
            thread::yield_now();
        }
        assert_eq!(Arc::strong_count(&runs), 1);
    });
}

#[test]
fn shutdown_does_not_wait_for_a_job_that_runs() {
    each_kind(|_, runtime| {
        let (begun, release, ended) = (Event::new(), Event::new(), Event::new());
        let (flag, dropped, _) = DropFlag::new();
        let job = {
            let (begun, release, ended) = (begun.clone(), release.clone(), ended.clone());
            runtime.spawn_blocking(move || {
                begun.set();
                release.wait_blocking();
                ended.set();
                flag
            })
        };
        begun.wait_blocking();
        // Returns although the job waits for what comes after.
        drop(runtime);
        assert!(!ended.is_set());
        drop(job);
        release.set();
        ended.wait_blocking();
        // The value that nobody asks for any more is dropped.
        dropped.wait_blocking();
    });
}

#[test]
fn a_job_that_outlives_its_runtime_still_answers() {
    each_kind(|_, runtime| {
        let (begun, release) = (Event::new(), Event::new());
        let job = {
            let (begun, release) = (begun.clone(), release.clone());
            runtime.spawn_blocking(move || {
                begun.set();
                release.wait_blocking();
                7
            })
        };
        begun.wait_blocking();
        drop(runtime);
        release.set();
        assert_eq!(common::block_on(job).unwrap(), 7);
    });
}

#[test]
fn after_shutdown_a_job_is_cancelled_and_its_closure_dropped() {
    each_kind(|_, runtime| {
        let handle = runtime.handle().clone();
        drop(runtime);
        let (flag, dropped, _) = DropFlag::new();
        let ran = Arc::new(AtomicBool::new(false));
        let job = {
            let ran = ran.clone();
            handle.spawn_blocking(move || {
                let _flag = flag;
                ran.store(true, Ordering::Relaxed);
            })
        };
        assert!(dropped.is_set());
        assert!(common::block_on(job).unwrap_err().is_cancelled());
        assert!(!ran.load(Ordering::Relaxed));
    });
}

#[test]
#[should_panic(expected = "there is no wakerun runtime here")]
fn outside_a_runtime_is_told() {
    drop(spawn_blocking(|| ()));
}

// Case B115.
#[test]
fn a_panic_in_block_on_is_not_held_up_by_a_job() {
    within("a panic in block_on", || {
        let release = Event::new();
        let held = release.clone();
        let unwound = std::panic::catch_unwind(|| {
            let runtime = Runtime::new().unwrap();
            let begun = Event::new();
            let begin = begun.clone();
            runtime.block_on(async move {
                spawn_blocking(move || {
                    begin.set();
                    held.wait_blocking();
                });
                begun.wait().await;
                panic!("on purpose");
            })
        });
        assert!(unwound.is_err());
        // Only now may the job end.
        release.set();
    });
}

// ---- what needs a pool of one thread: in a process of its own, since the pool is the process's

/// Set in the child process.
const CHILD: &str = "WAKERUN_TEST_POOL_OF_ONE";

/// Runs the test of this name alone, in a child with one thread for blocking jobs. `true`: this is
/// the child.
fn in_pool_of_one(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("BLOCKING_MAX_THREADS", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Occupies the one thread until the event is set.
fn occupy(runtime: &Runtime) -> Event {
    let (begun, release) = (Event::new(), Event::new());
    let (begin, held) = (begun.clone(), release.clone());
    runtime.spawn_blocking(move || {
        begin.set();
        held.wait_blocking();
    });
    begun.wait_blocking();
    release
}

#[test]
fn a_job_that_has_not_begun_can_be_aborted() {
    if !in_pool_of_one("a_job_that_has_not_begun_can_be_aborted") {
        return;
    }
    each_kind(|_, runtime| {
        let release = occupy(&runtime);
        let (flag, dropped, on) = DropFlag::new();
        let job = runtime.spawn_blocking(move || drop(flag));
        job.abort();
        // Not on the stack of whoever aborts.
        assert!(!dropped.is_set());
        release.set();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        dropped.wait_blocking();
        assert_ne!(on.lock().unwrap()[0], thread::current().id());
    });
}

#[test]
fn shutdown_drops_jobs_that_have_not_begun() {
    if !in_pool_of_one("shutdown_drops_jobs_that_have_not_begun") {
        return;
    }
    each_kind(|_, runtime| {
        let release = occupy(&runtime);
        let (flag, dropped, _) = DropFlag::new();
        let ran = Arc::new(AtomicBool::new(false));
        let job = {
            let ran = ran.clone();
            runtime.spawn_blocking(move || {
                let _flag = flag;
                ran.store(true, Ordering::Relaxed);
            })
        };
        drop(runtime);
        assert!(dropped.is_set(), "dropped by the shutdown, not later");
        assert!(common::block_on(job).unwrap_err().is_cancelled());
        release.set();
        // The stale entry goes through the pool and is passed over.
        let other = Runtime::new().unwrap();
        other.block_on(other.spawn_blocking(|| ())).unwrap();
        assert!(!ran.load(Ordering::Relaxed));
    });
}

#[test]
fn jobs_that_wait_for_a_thread_do_not_hold_up_tasks() {
    if !in_pool_of_one("jobs_that_wait_for_a_thread_do_not_hold_up_tasks") {
        return;
    }
    each_kind(|_, runtime| {
        let release = occupy(&runtime);
        let jobs: Vec<_> = (0..100)
            .map(|n| runtime.spawn_blocking(move || n))
            .collect();
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
        release.set();
        for (n, job) in jobs.into_iter().enumerate() {
            assert_eq!(runtime.block_on(job).unwrap(), n);
        }
    });
}

/// How many threads the pool has.
#[cfg(target_os = "linux")]
fn pool_threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        // The main thread has the name of this program, which is much like it.
        .filter_map(|name| name.strip_prefix("blocking-")?.trim().parse::<u16>().ok())
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_are_idle_leave() {
    if !in_pool_of_one("threads_that_are_idle_leave") {
        return;
    }
    within("idle threads", || {
        let runtime = Runtime::new().unwrap();
        let job = runtime.spawn_blocking(pool_threads);
        assert_eq!(runtime.block_on(job).unwrap(), 1);
        let start = Instant::now();
        while pool_threads() > 0 {
            assert!(start.elapsed() < LIMIT / 2, "an idle thread stays");
            thread::sleep(std::time::Duration::from_millis(20));
        }
        // And the pool comes back.
        runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
    });
}

#[test]
fn a_job_that_is_begun_aborted_and_ended_at_once_runs_or_is_dropped() {
    within("jobs, aborts and the end", || {
        for kind in Kind::ALL {
            for round in 0..rounds(2_000) / 20 {
                let runtime = kind.build();
                let jobs: Vec<_> = (0..8)
                    .map(|_| {
                        let ran = Arc::new(AtomicBool::new(false));
                        let runs = Arc::clone(&ran);
                        let (flag, dropped, on) = DropFlag::new();
                        let job = runtime.spawn_blocking(move || {
                            let _flag = flag;
                            assert!(!runs.swap(true, Ordering::Relaxed), "run twice");
                        });
                        (ran, dropped, on, job)
                    })
                    .collect();
                let aborts: Vec<_> = jobs.iter().map(|(.., job)| job.abort_handle()).collect();
                thread::scope(|s| {
                    s.spawn(move || aborts[..6].iter().for_each(|abort| abort.abort()));
                    for _ in 0..round % 8 {
                        thread::yield_now();
                    }
                    drop(runtime);
                });
                for (ran, dropped, on, job) in jobs {
                    let ended = common::block_on(job);
                    assert_eq!(ended.is_ok(), ran.load(Ordering::Relaxed), "{ended:?}");
                    dropped.wait_blocking();
                    assert_eq!(on.lock().unwrap().len(), 1);
                }
            }
        }
    });
}
