//! Idle means idle: no polls, no time on a core, no growing memory.
#![cfg(all(not(wakerun_loom), target_os = "linux"))]

mod common;

use std::env;
use std::fs;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use common::{Event, Kind, rounds, within};
use wakerun::Runtime;
use wakerun::task::{JoinSet, yield_now};

/// The measures are the process's; one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Voluntary switches and time on a core (in ticks) of the threads with this name, together.
fn activity(name: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let path = thread.unwrap().path();
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        if read("comm").trim() != name {
            continue;
        }
        let status = read("status");
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .map_or(0, |count| count.trim().parse().unwrap());
        let stat = read("stat");
        // The fields behind the name, which may hold blanks; user and system time are 12th and 13th.
        let times = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let ticks: u64 = times
            .skip(11)
            .take(2)
            .map(|t| t.parse::<u64>().unwrap())
            .sum();
        sum = (sum.0 + switches, sum.1 + ticks);
    }
    sum
}

/// Whether freed memory may be kept by a sanitizer, or time has another meaning: nothing to measure.
fn is_watched() -> bool {
    let sanitized = |name| env::var_os(name).is_some();
    cfg!(miri) || sanitized("ASAN_OPTIONS") || sanitized("TSAN_OPTIONS")
}

/// Resident memory, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

fn named(kind: Kind, name: &str) -> Runtime {
    kind.builder().thread_name(name).build().unwrap()
}

/// Asserts that the threads of this name come to sleep.
///
/// When is the machine's business: a watcher looks on each millisecond as long as another worker has not slept once,
/// and one whose thread has not got a core yet has not. So there are some tries; who never sleeps fails in each.
#[track_caller]
fn assert_asleep(name: &str, threads: u64) {
    const TRIES: usize = 10;
    for tries_left in (0..TRIES).rev() {
        thread::sleep(Duration::from_millis(100));
        let before = activity(name);
        thread::sleep(Duration::from_millis(300));
        let after = activity(name);
        let (switches, ticks) = (after.0 - before.0, after.1 - before.1);
        let asleep = switches <= 2 * threads && ticks <= 1;
        if asleep {
            return;
        }
        assert!(
            tries_left > 0,
            "{switches} wake-ups and {ticks} ticks of work in 300 ms"
        );
    }
}

#[test]
fn a_runtime_without_tasks_sleeps() {
    // B140
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("no tasks", || {
        for workers in [1, 2, 4] {
            let _runtime = named(Kind::Workers(workers), "idle-empty");
            assert_asleep("idle-empty", workers as u64);
        }
    });
}

#[test]
fn a_runtime_with_parked_tasks_sleeps() {
    // B038, B140: after work has been spread over all workers, too.
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("parked tasks", || {
        for workers in [1, 2, 4] {
            let runtime = named(Kind::Workers(workers), "idle-parked");
            for _ in 0..100 {
                drop(runtime.spawn(std::future::pending::<()>()));
            }
            let busy: Vec<_> = (0..200)
                .map(|_| {
                    runtime.spawn(async {
                        for _ in 0..20 {
                            yield_now().await;
                        }
                    })
                })
                .collect();
            runtime.block_on(async {
                for task in busy {
                    task.await.unwrap();
                }
            });
            assert_asleep("idle-parked", workers as u64);
        }
    });
}

#[test]
fn the_others_sleep_while_one_task_blocks_its_worker() {
    // A watcher may look at the busy one now and then; it must not spin.
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("one blocks", || {
        let runtime = named(Kind::Workers(4), "idle-watch");
        let (in_poll, go_on) = (Event::new(), Event::new());
        let (set, wait) = (in_poll.clone(), go_on.clone());
        drop(runtime.spawn(async move {
            set.set();
            wait.wait_blocking();
        }));
        in_poll.wait_blocking();
        thread::sleep(Duration::from_millis(50));
        let before = activity("idle-watch");
        thread::sleep(Duration::from_millis(300));
        let after = activity("idle-watch");
        go_on.set();
        assert!(
            after.0 - before.0 <= 700,
            "{} wake-ups in 300 ms",
            after.0 - before.0
        );
        assert!(
            after.1 - before.1 <= 6,
            "{} ticks in 300 ms",
            after.1 - before.1
        );
    });
}

#[test]
fn a_block_on_that_waits_sleeps() {
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("block_on", || {
        for kind in [Kind::Current, Kind::Workers(2)] {
            let go = Event::new();
            let wait = go.clone();
            let blocked = thread::Builder::new()
                .name("idle-block".to_string())
                .spawn(move || {
                    let runtime = named(kind, "idle-block");
                    drop(runtime.spawn(std::future::pending::<()>()));
                    runtime.block_on(wait.wait());
                })
                .unwrap();
            assert_asleep("idle-block", 3);
            go.set();
            blocked.join().unwrap();
        }
    });
}

#[test]
fn memory_does_not_grow_with_the_number_of_tasks_spawned() {
    // `WAKERUN_SPAWNS` sets how many.
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("memory", || {
        let spawns =
            env::var("WAKERUN_SPAWNS").map_or(rounds(1_000_000), |n| n.parse().expect("a number"));
        for kind in [Kind::Current, Kind::Workers(2)] {
            let runtime = kind.build();
            let round = |tasks: usize| {
                runtime.block_on(async {
                    for i in 0..tasks / 100 {
                        let tasks: Vec<_> = (0..100)
                            .map(|_| wakerun::spawn(async { yield_now().await }))
                            .collect();
                        for task in tasks {
                            // Some are awaited, some aborted, some left alone.
                            match i % 3 {
                                0 => task.await.unwrap(),
                                1 => task.abort(),
                                _ => drop(task),
                            }
                        }
                        yield_now().await;
                    }
                    while wakerun::Handle::current().num_alive_tasks() > 0 {
                        yield_now().await;
                    }
                });
            };
            round(spawns / 4);
            let before = resident();
            round(spawns);
            let grown = resident().saturating_sub(before);
            assert!(
                grown < 4 * 1024,
                "{grown} KiB more after {spawns} tasks on {kind:?}"
            );
        }
    });
}

#[test]
fn memory_does_not_grow_with_the_number_of_tasks_detached() {
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("detached", || {
        let runtime = Kind::Current.build();
        runtime.block_on(async {
            let mut set = JoinSet::new();
            let mut round = async |tasks: usize| {
                for i in 0..tasks {
                    set.spawn(async {});
                    set.detach_all();
                    while i % 1000 == 0 && wakerun::Handle::current().num_alive_tasks() > 0 {
                        yield_now().await;
                    }
                }
            };
            // A number kept of each would be 8 bytes.
            let tasks = 600_000;
            round(tasks / 4).await;
            let before = resident();
            round(tasks).await;
            let grown = resident().saturating_sub(before);
            assert!(grown < 2 * 1024, "{grown} KiB more after {tasks} tasks");
        });
    });
}

#[test]
fn memory_does_not_grow_with_the_number_of_runtimes() {
    // B100
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("runtimes", || {
        let round = |count: usize| {
            for _ in 0..count {
                for kind in [Kind::Current, Kind::Workers(2)] {
                    let runtime = kind.build();
                    for _ in 0..20 {
                        drop(runtime.spawn(std::future::pending::<()>()));
                    }
                    runtime.block_on(yield_now());
                }
            }
        };
        let count = rounds(4_000) / 4;
        round(count / 4);
        let before = resident();
        round(count);
        let grown = resident().saturating_sub(before);
        assert!(grown < 4 * 1024, "{grown} KiB more after {count} runtimes");
    });
}

#[test]
fn open_sockets_and_far_timers_cost_nothing() {
    // B140: five seconds, as long as it takes for a wheel that turns to no purpose to show.
    if is_watched() {
        return;
    }
    let _alone = alone();
    within("sockets and timers", || {
        let kinds = [
            (Kind::Current, "idle-io-one"),
            (Kind::Workers(1), "idle-io-w1"),
            (Kind::Workers(2), "idle-io-w2"),
            (Kind::Workers(4), "idle-io-w4"),
        ];
        let go = Event::new();
        let blocked = kinds.map(|(kind, name)| {
            let (ready, wait) = (Event::new(), go.clone());
            let set = ready.clone();
            let thread = thread::Builder::new()
                .name(name.to_string())
                .spawn(move || sleep_with_sockets_and_timers(&named(kind, name), &set, &wait))
                .unwrap();
            ready.wait_blocking();
            thread
        });
        thread::sleep(Duration::from_millis(100));
        let before = kinds.map(|(_, name)| activity(name));
        thread::sleep(Duration::from_secs(5));
        let after = kinds.map(|(_, name)| activity(name));
        go.set();
        for thread in blocked {
            thread.join().unwrap();
        }
        for (at, (kind, _)) in kinds.into_iter().enumerate() {
            let (before, after) = (before[at], after[at]);
            let (switches, ticks) = (after.0 - before.0, after.1 - before.1);
            assert!(before.0 > 0, "the threads have not been found");
            println!("{kind:?}: {switches} wake-ups, {ticks} ticks in 5 s");
            assert!(switches <= 10, "{kind:?}: {switches} wake-ups in 5 s");
            assert!(ticks <= 1, "{kind:?}: {ticks} ticks of work in 5 s");
        }
    });
}

/// A hundred sockets that nothing comes to, and a hundred timers that are far.
fn sleep_with_sockets_and_timers(runtime: &Runtime, ready: &Event, go: &Event) {
    use std::os::unix::net::UnixStream;
    use wakerun::io::Async;
    use wakerun::time::sleep;

    let _guard = runtime.enter();
    let mut others = Vec::new();
    for n in 0..100_u64 {
        let (one, other) = UnixStream::pair().unwrap();
        others.push(other);
        let one = Async::new(one).unwrap();
        drop(runtime.spawn(async move { one.readable().await }));
        drop(runtime.spawn(async move {
            sleep(Duration::from_secs(60 + n * 977)).await;
        }));
    }
    runtime.block_on(async {
        // All of them have been polled.
        for _ in 0..400 {
            yield_now().await;
        }
        ready.set();
        go.wait().await;
    });
}

#[test]
fn a_runtime_without_sources_and_timers_makes_no_descriptors() {
    let _alone = alone();
    within("no driver", || {
        let count = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = count();
        let runtimes: Vec<_> = Kind::ALL.into_iter().map(Kind::build).collect();
        for runtime in &runtimes {
            runtime.block_on(runtime.spawn(yield_now())).unwrap();
        }
        assert_eq!(count(), before);
    });
}
