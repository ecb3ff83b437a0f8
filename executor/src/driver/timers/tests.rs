//! The wheel against a sorted list, and the timers' answers to those who bring them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use super::entry::{Entry, State};
use super::{Brought, Timers};

/// Random numbers, the same each time.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// A distance of any order of magnitude, often at the edge of a level.
    fn distance(&mut self) -> u64 {
        let size = 1 << self.below(58);
        match self.below(3) {
            0 => size,
            1 => size.max(2) - 1,
            _ => self.below(size) + 1,
        }
    }
}

fn insert(timers: &Timers, entry: &Pin<Box<Entry>>, when: u64) -> Brought {
    // SAFETY: pinned, IDLE, and removed or fired before it is dropped: each test sees to that.
    unsafe { timers.insert(entry, when, Waker::noop().clone()) }
}

fn remove(timers: &Timers, entry: &Pin<Box<Entry>>) {
    // SAFETY: inserted into these timers.
    unsafe { timers.remove(entry) };
}

#[test]
fn everything_fires_at_its_tick_and_nothing_else() {
    const ROUNDS: u64 = if cfg!(miri) { 3 } else { 10 };
    const STEPS: usize = if cfg!(miri) { 100 } else { 500 };
    for seed in 1..=ROUNDS {
        let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let timers = Timers::new();
        let mut now = 0;
        // What waits, by its tick.
        let mut model: BTreeMap<(u64, usize), Pin<Box<Entry>>> = BTreeMap::new();
        let mut fired: Vec<Pin<Box<Entry>>> = Vec::new();
        for step in 0..STEPS {
            match rng.below(10) {
                0..=4 => {
                    let entry = fired.pop().unwrap_or_else(|| Box::pin(Entry::new()));
                    entry.rewind();
                    let when = now + rng.distance();
                    assert_eq!(insert(&timers, &entry, when), Brought::Waits);
                    model.insert((when, step), entry);
                }
                5 if !model.is_empty() => {
                    let at = rng.below(model.len() as u64) as usize;
                    let key = *model.keys().nth(at).unwrap();
                    let entry = model.remove(&key).unwrap();
                    remove(&timers, &entry);
                    assert_eq!(entry.state(), State::Idle);
                }
                6 if !model.is_empty() => {
                    let at = rng.below(model.len() as u64) as usize;
                    let key = *model.keys().nth(at).unwrap();
                    let entry = model.remove(&key).unwrap();
                    let when = now + rng.distance();
                    // SAFETY: WAITING in these timers, and pinned.
                    let moved = unsafe { timers.move_to(&entry, when) };
                    assert_eq!(moved.unwrap().0, Brought::Waits);
                    model.insert((when, step), entry);
                }
                _ => {
                    now += match rng.below(3) {
                        0 => rng.below(3),
                        1 => rng.below(200),
                        _ => rng.distance() / 4,
                    };
                    timers.fire(now);
                    let later = model.split_off(&(now + 1, 0));
                    for ((when, _), entry) in std::mem::replace(&mut model, later) {
                        assert_eq!(entry.state(), State::Fired, "due at {when}, now {now}");
                        fired.push(entry);
                    }
                }
            }
            if step % 16 == 0 {
                for ((when, _), entry) in &model {
                    assert_eq!(entry.state(), State::Waiting, "due at {when}, now {now}");
                }
            }
            match (timers.next(), model.keys().next()) {
                (None, None) => {}
                (Some(next), Some((first, _))) => assert!(now < next && next <= *first),
                (next, first) => panic!("{next:?} but {first:?}"),
            }
        }
        timers.close();
        for entry in model.into_values() {
            assert_eq!(entry.state(), State::Closed);
        }
        assert_eq!(timers.next(), None);
    }
}

#[test]
fn time_comes_step_by_step_to_a_far_timer() {
    for far in [(1 << 38) + 12_345, (1 << 59) + 12_345, u64::MAX - 1] {
        let timers = Timers::new();
        let entry = Box::pin(Entry::new());
        assert_eq!(insert(&timers, &entry, far), Brought::Waits);
        let mut steps = 0;
        while let Some(next) = timers.next() {
            assert!(next <= far);
            timers.fire(next - 1);
            assert_eq!(entry.state(), State::Waiting);
            timers.fire(next);
            steps += 1;
        }
        assert_eq!(entry.state(), State::Fired);
        assert!(steps < 12, "{steps} wake-ups for one timer");
    }
}

#[test]
fn a_timer_at_the_last_tick_waits_for_it() {
    let timers = Timers::new();
    let entry = Box::pin(Entry::new());
    assert_eq!(insert(&timers, &entry, u64::MAX - 1), Brought::Waits);
    for bits in 0..=63 {
        timers.fire(1 << bits);
        assert_eq!(entry.state(), State::Waiting);
        assert!(timers.next().is_some_and(|next| next > 1 << bits));
    }
    remove(&timers, &entry);
    assert_eq!(timers.next(), None);
}

#[test]
fn only_a_timer_that_is_due_before_the_driver_wakes_interrupts_it() {
    let timers = Timers::new();
    let entries: Vec<_> = (0..6).map(|_| Box::pin(Entry::new())).collect();
    // Nobody sleeps.
    assert_eq!(insert(&timers, &entries[0], 50), Brought::Waits);
    assert_eq!(timers.plan(None), Some(50));
    assert_eq!(insert(&timers, &entries[1], 50), Brought::Waits);
    assert_eq!(insert(&timers, &entries[2], 60), Brought::Waits);
    assert_eq!(insert(&timers, &entries[3], 49), Brought::Interrupt);
    // The interrupted one reads the wheel anyway.
    assert_eq!(insert(&timers, &entries[4], 49), Brought::Waits);
    timers.awake();
    assert_eq!(insert(&timers, &entries[5], 1), Brought::Waits);
    // A limit ends the sleep before.
    assert_eq!(timers.plan(Some(1)), Some(1));
    remove(&timers, &entries[5]);
    assert_eq!(timers.plan(Some(30)), Some(30));
    assert_eq!(insert(&timers, &entries[5], 40), Brought::Waits);
    timers.close();
    assert_eq!(timers.plan(None), None);
}

#[test]
fn a_million_timers_are_no_one_section() {
    // The slot of a higher level is emptied in steps; what is inserted in between is not lost.
    const MANY: usize = if cfg!(miri) { 200 } else { 20_000 };
    let timers = Timers::new();
    let entries: Vec<_> = (0..MANY).map(|_| Box::pin(Entry::new())).collect();
    for entry in &entries {
        assert_eq!(insert(&timers, entry, 5000), Brought::Waits);
    }
    let late = Box::pin(Entry::new());
    struct Insert {
        timers: Arc<Timers>,
        done: AtomicUsize,
    }
    impl Wake for Insert {
        fn wake(self: Arc<Self>) {
            // From inside the firing: no lock is held.
            assert!(self.timers.next().is_some() || self.done.load(Ordering::Relaxed) > 0);
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }
    timers.fire(4999);
    assert_eq!(insert(&timers, &late, 5001), Brought::Waits);
    timers.fire(5000);
    assert!(entries.iter().all(|entry| entry.state() == State::Fired));
    assert_eq!(late.state(), State::Waiting);
    let timers = Arc::new(timers);
    let waker = Arc::new(Insert {
        timers: timers.clone(),
        done: AtomicUsize::new(0),
    });
    for entry in &entries {
        entry.rewind();
        // SAFETY: pinned and IDLE; it fires below.
        let _ = unsafe { timers.insert(entry, 9000, Waker::from(waker.clone())) };
    }
    timers.fire(9000);
    assert_eq!(waker.done.load(Ordering::Relaxed), MANY);
    assert_eq!(late.state(), State::Fired);
    assert_eq!(Arc::strong_count(&waker), 1, "no waker is left behind");
}

#[test]
fn an_open_slot_can_be_emptied_by_those_who_leave() {
    let timers = Timers::new();
    let entries: Vec<_> = (0..200).map(|_| Box::pin(Entry::new())).collect();
    for entry in &entries {
        assert_eq!(insert(&timers, entry, 64), Brought::Waits);
    }
    // One section's worth of steps.
    let mut batch = crate::wake::Batch::new(crate::wake::Place::Tail);
    assert!(!timers.collect(64, &mut batch));
    batch.wake_all();
    let waiting = entries.iter().filter(|e| e.state() == State::Waiting);
    assert!(waiting.clone().count() > 100);
    waiting.for_each(|entry| remove(&timers, entry));
    assert!(timers.is_due(64), "the slot is still open");
    let new = Box::pin(Entry::new());
    assert_eq!(insert(&timers, &new, 128), Brought::Waits);
    timers.fire(100);
    assert_eq!(timers.next(), Some(128));
    timers.fire(128);
    assert_eq!(new.state(), State::Fired);
}
