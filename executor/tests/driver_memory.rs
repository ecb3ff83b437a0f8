//! What sources and timers take, they give back: counted by the allocator.
#![cfg(all(not(wakerun_loom), not(miri), unix))]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Waker;

use common::{Kind, poll_once, rounds, within};
use wakerun::io::Async;
use wakerun::time::{Duration, Sleep, sleep, timeout};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: handed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A hundred reads and timers that wait when their runtime ends.
fn live_and_end(kind: Kind) {
    let runtime = kind.build();
    let mut others = Vec::new();
    for n in 0..100 {
        let _guard = runtime.enter();
        let (one, other) = UnixStream::pair().unwrap();
        others.push(other);
        let one = Async::new(one).unwrap();
        drop(runtime.spawn(async move {
            let mut byte = [0];
            let read = one.read_with(|mut io| io.read(&mut byte));
            let _ = timeout(Duration::from_secs(1000 + n), read).await;
        }));
    }
    runtime.block_on(async { sleep(Duration::from_millis(1)).await });
    drop(runtime);
}

// One test, since the count is the process's.
#[test]
fn memory_does_not_grow_with_runtimes_sources_and_timers() {
    within("memory", || {
        for kind in Kind::ALL {
            // B100
            for _ in 0..3 {
                live_and_end(kind);
            }
            let before = LIVE.load(Ordering::Relaxed);
            for _ in 0..rounds(1000).max(200) / 10 {
                live_and_end(kind);
            }
            let grown = LIVE.load(Ordering::Relaxed) - before;
            // One source or waker of each hundred would be more.
            assert!(grown < 10_000, "{kind:?}: {grown} bytes");
        }

        // In one runtime: what is taken back is given back at once, or used again.
        let runtime = Kind::Workers(2).build();
        let _guard = runtime.enter();
        // What a worker needs is there when it runs.
        let both = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let both = both.clone();
            drop(runtime.spawn(async move { both.wait() }));
        }
        both.wait();
        let turn = |many: usize| {
            let mut timers: Vec<Pin<Box<Sleep>>> = (0..many)
                .map(|n| Box::pin(sleep(Duration::from_secs(100 + n as u64))))
                .collect();
            for timer in &mut timers {
                assert!(poll_once(timer.as_mut(), Waker::noop()).is_pending());
            }
            let sources: Vec<_> = (0..100)
                .map(|_| Async::new(UnixStream::pair().unwrap().0).unwrap())
                .collect();
            let waits: Vec<_> = sources
                .iter()
                .map(|source| {
                    let mut wait = Box::pin(source.writable());
                    let _ = poll_once(wait.as_mut(), Waker::noop());
                    wait
                })
                .collect();
            drop(waits);
        };
        turn(1000);
        let before = LIVE.load(Ordering::Relaxed);
        for _ in 0..50 {
            turn(1000);
        }
        let grown = LIVE.load(Ordering::Relaxed) - before;
        assert!(grown < 10_000, "{grown} bytes");
    });
}
