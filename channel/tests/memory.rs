//! What channels take of memory, counted by an allocator.
#![cfg(not(wakerun_loom))]

#[path = "common/mod.rs"]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{noop, poll_once};
use wakerun_channel::{mpmc, mpsc};

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and how often it has allocated.
    static COUNTS: Cell<(isize, usize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize, allocations: usize) {
    // Nothing is counted while the thread ends.
    let _ = COUNTS.try_with(|counts| {
        let (live, all) = counts.get();
        counts.set((live + bytes, all + allocations));
    });
}

// SAFETY: everything is handed to the system's allocator as it came, and its answer given back.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize, 1);
        // SAFETY: the caller keeps the same promises to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as isize), 0);
        // SAFETY: the caller keeps the same promises to us, and the block came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `make` makes, the bytes that stay allocated, and the allocations.
fn counted<M>(make: impl FnOnce() -> M) -> (M, isize, usize) {
    let before = COUNTS.get();
    let made = make();
    let after = COUNTS.get();
    (made, after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_channel_for_one_small_message_is_one_small_allocation() {
    let (_channel, bytes, allocations) = counted(|| mpsc::channel::<usize>(1));
    assert!(bytes <= 256, "{bytes}");
    assert_eq!(allocations, 1);
    let (_channel, bytes, allocations) = counted(|| mpsc::channel::<Box<str>>(1));
    assert!(bytes <= 256, "{bytes}");
    assert_eq!(allocations, 1);
    let (_channel, _, allocations) = counted(|| mpmc::channel::<usize>(1));
    assert_eq!(allocations, 1);
    let (_channel, bytes, allocations) = counted(|| mpsc::channel::<[u8; 1024]>(1));
    assert!(bytes <= 1024 + 264, "capacity 1 pays for one slot: {bytes}");
    assert_eq!(allocations, 2);
}

#[test]
fn an_empty_channel_for_many_large_messages_is_small() {
    let (_channel, bytes, _) = counted(|| mpsc::channel::<[u8; 1024]>(10_000));
    if cfg!(not(wakerun_small_blocks)) {
        assert!(bytes <= 4096, "{bytes}");
    }
}

#[test]
fn a_nearly_empty_queue_allocates_nothing_and_a_burst_is_given_back() {
    let (tx, mut rx) = mpsc::channel::<[u64; 128]>(10_000);
    let mut turn = |n| {
        assert!(tx.try_send([n; 128]).is_ok());
        assert_eq!(rx.try_recv().unwrap()[127], n);
    };
    // Until there is one block in use and one that is kept.
    (0..200).for_each(&mut turn);
    let ((), bytes, allocations) = counted(|| (0..20_000).for_each(&mut turn));
    assert_eq!((bytes, allocations), (0, 0));
    let ((), bytes, _) = counted(|| {
        for n in 0..10_000 {
            assert!(tx.try_send([n; 128]).is_ok());
        }
        assert!(tx.try_send([0; 128]).is_err());
    });
    assert!(bytes > 9_000 * 1024);
    let ((), freed, _) = counted(|| {
        for n in 0..10_000 {
            assert_eq!(rx.try_recv().unwrap()[0], n);
        }
    });
    // Two blocks may be there in any case, one in use and one that is kept.
    assert!(bytes + freed <= 2 * 66 * 1024, "{bytes} {freed}");
    let ((), bytes, _) = counted(|| drop((tx, rx)));
    assert!(bytes < 0);
}

#[test]
fn a_send_that_waits_allocates_nothing() {
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(0).unwrap();
    let mut send = Box::pin(tx.send(1));
    let ((), bytes, allocations) = counted(|| {
        assert!(poll_once(send.as_mut(), noop()).is_pending());
        assert_eq!(rx.try_recv(), Ok(0));
        assert!(poll_once(send.as_mut(), noop()).is_ready());
    });
    assert_eq!((bytes, allocations), (0, 0));
    drop(send);
    assert_eq!(rx.try_recv(), Ok(1));
}
