//! Models of the driver's handshakes: readiness, timers against the driver's sleep and against their
//! own future, who waits in the driver.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, Wake, Waker};

use loom::sync::{Condvar, Mutex};
use loom::thread;
use polling::Event;

use super::arming::oneshot::Arming;
use super::direction::{Direction, Interest};
use super::timers::{Brought, Entry, State, Timers};
use super::wakes::Wakes;
use crate::lock::Lock;
use crate::scheduler::idle::Idle;
use crate::scheduler::parker::Parker;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::wake::block_on_thread;

/// What `polling` promises: an interruption ends the wait under way or the next one; an event stays
/// until somebody has taken it.
struct Poller {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Poller {
    fn new() -> Self {
        Self {
            state: Mutex::new((false, 0)),
            changed: Condvar::new(),
        }
    }

    fn interrupt(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_one();
    }

    fn event(&self) {
        self.state.lock().unwrap().1 += 1;
        self.changed.notify_one();
    }

    /// The events that have come.
    fn wait(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        while *state == (false, 0) {
            state = self.changed.wait(state).unwrap();
        }
        state.0 = false;
        std::mem::take(&mut state.1)
    }
}

/// Counts its wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

fn count() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(AtomicUsize::new(0)));
    (count.clone(), Waker::from(count))
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

// ---- a direction

/// A socket with some messages in it.
struct Socket {
    direction: Direction,
    messages: AtomicUsize,
}

impl Socket {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            direction: Direction::new(),
            messages: AtomicUsize::new(0),
        })
    }

    /// A message, and the turn of the driver that tells of it.
    fn arrive(&self) {
        self.messages.fetch_add(1, Ordering::AcqRel);
        let mut wakes = Wakes::default();
        self.direction.set_ready(&mut wakes);
        wakes.fire();
    }

    fn take(&self) -> bool {
        let mut now = self.messages.load(Ordering::Acquire);
        while now > 0 {
            match self
                .messages
                .compare_exchange(now, now - 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// As `Async::read_with`.
    async fn read(&self) -> std::io::Result<()> {
        loop {
            let seen = match self.direction.try_now()? {
                Some(seen) => seen,
                None => self.direction.ready_to_try().await?,
            };
            if self.take() {
                return Ok(());
            }
            self.direction.clear(seen);
        }
    }

    /// As `Async::poll_read_with`.
    async fn poll_read(&self) -> std::io::Result<()> {
        poll_fn(|cx| {
            loop {
                let seen = match self.direction.poll_try(cx) {
                    Poll::Ready(seen) => seen?,
                    Poll::Pending => return Poll::Pending,
                };
                if self.take() {
                    return Poll::Ready(Ok(()));
                }
                self.direction.clear(seen);
            }
        })
        .await
    }
}

#[test]
fn an_event_between_the_operation_and_its_failure_is_not_lost() {
    loom::model(|| {
        let socket = Socket::new();
        let reader = {
            let socket = socket.clone();
            thread::spawn(move || {
                block_on_thread(socket.read()).unwrap();
                block_on_thread(socket.poll_read()).unwrap();
            })
        };
        socket.arrive();
        socket.arrive();
        reader.join().unwrap();
    });
}

#[test]
fn two_readers_and_two_messages_come_together() {
    loom::model(|| {
        let socket = Socket::new();
        let other = {
            let socket = socket.clone();
            thread::spawn(move || block_on_thread(socket.read()).unwrap())
        };
        socket.arrive();
        socket.arrive();
        block_on_thread(socket.poll_read()).unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_wait_that_is_dropped_under_an_event_leaves_nothing() {
    loom::model(|| {
        let socket = Socket::new();
        let (count, waker) = count();
        let seen = socket.direction.try_now().unwrap().unwrap();
        socket.direction.clear(seen);
        let driver = {
            let socket = socket.clone();
            thread::spawn(move || socket.arrive())
        };
        {
            let mut wait = std::pin::pin!(socket.direction.ready());
            let mut cx = std::task::Context::from_waker(&waker);
            let _ = wait.as_mut().poll(&mut cx);
        }
        driver.join().unwrap();
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
        assert!(count.get() <= 1);
        assert!(socket.direction.try_now().unwrap().is_some());
    });
}

#[test]
fn whoever_comes_to_wait_when_the_runtime_ends_is_told() {
    loom::model(|| {
        let socket = Socket::new();
        let end = {
            let socket = socket.clone();
            thread::spawn(move || {
                let mut wakes = Wakes::default();
                socket.direction.close(&mut wakes);
                wakes.fire();
            })
        };
        assert!(block_on_thread(socket.read()).is_err());
        end.join().unwrap();
    });
}

// ---- a direction whose poller tells once

/// A socket as in [`Socket`], and a poller that tells what it has been asked.
struct AskedSocket {
    direction: Direction,
    arming: Arming,
    poller: Mutex<Question>,
    changed: Condvar,
}

struct Question {
    messages: usize,
    asked: bool,
    over: bool,
}

impl AskedSocket {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            direction: Direction::new(),
            arming: Arming::new(0),
            poller: Mutex::new(Question {
                messages: 0,
                asked: true,
                over: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Question) -> R) -> R {
        let result = change(&mut self.poller.lock().unwrap());
        self.changed.notify_one();
        result
    }

    fn modify(&self, event: Event) -> std::io::Result<()> {
        self.change(|question| question.asked = event.readable);
        Ok(())
    }

    /// The driver: tells of events until all is over.
    fn drive(&self) {
        loop {
            let mut question = self.poller.lock().unwrap();
            while !question.over && !(question.asked && question.messages > 0) {
                question = self.changed.wait(question).unwrap();
            }
            if question.over {
                return;
            }
            question.asked = false;
            drop(question);
            self.arming
                .told(Event::readable(0), |_, rest| self.modify(rest))
                .unwrap();
            let mut wakes = Wakes::default();
            self.direction.set_ready(&mut wakes);
            wakes.fire();
        }
    }

    /// As `Async::read_with`.
    async fn read(&self) -> std::io::Result<()> {
        loop {
            let seen = match self.direction.try_now()? {
                Some(seen) => seen,
                None => self.direction.ready_to_try().await?,
            };
            let taken = self.change(|question| {
                let there = question.messages > 0;
                question.messages -= usize::from(there);
                there
            });
            if taken {
                return Ok(());
            }
            self.direction.clear(seen);
            self.arming
                .ask(0, Interest::Read, |_, event| self.modify(event))?;
        }
    }
}

#[test]
fn a_direction_that_is_not_ready_has_been_asked_for() {
    loom::model(|| {
        let socket = AskedSocket::new();
        let sender = {
            let socket = socket.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    socket.change(|question| question.messages += 1);
                }
            })
        };
        let driver = {
            let socket = socket.clone();
            thread::spawn(move || socket.drive())
        };
        block_on_thread(async {
            socket.read().await.unwrap();
            socket.read().await.unwrap();
        });
        socket.change(|question| question.over = true);
        sender.join().unwrap();
        driver.join().unwrap();
    });
}

// ---- timers

/// Time stands at 10; what is due by then fires, and a sleep until then is over at once.
const NOW: u64 = 10;

/// The driver's loop until `done`.
fn drive(timers: &Timers, poller: &Poller, done: impl Fn() -> bool) {
    loop {
        match timers.plan(None) {
            Some(until) if until <= NOW => {}
            _ => {
                poller.wait();
            }
        }
        timers.awake();
        timers.fire(NOW);
        if done() {
            return;
        }
    }
}

/// Sets a timer as `Sleep::poll` does; one that is due counts as woken.
fn insert(timers: &Timers, poller: &Poller, entry: &Pin<Box<Entry>>, when: u64, waker: Waker) {
    // SAFETY: pinned, IDLE, and waited for or removed by each test.
    match unsafe { timers.insert(entry, when, waker.clone()) } {
        Brought::Waits => {}
        Brought::Interrupt => poller.interrupt(),
        Brought::Due => {
            entry.finish();
            waker.wake();
            // The driver's loop is to see that all is done.
            poller.interrupt();
        }
        Brought::Closed => unreachable!("nobody closes"),
    }
}

#[test]
fn a_timer_that_comes_while_the_driver_goes_to_sleep_is_not_slept_through() {
    loom::model(|| {
        let shared = Arc::new((Timers::new(), Poller::new()));
        let (timers, poller) = &*shared;
        let far = Box::pin(Entry::new());
        insert(timers, poller, &far, 1000, Waker::noop().clone());
        let (count, waker) = count();
        let driver = {
            let (shared, count) = (shared.clone(), count.clone());
            thread::spawn(move || drive(&shared.0, &shared.1, || count.get() > 0))
        };
        let near = Box::pin(Entry::new());
        insert(timers, poller, &near, 5, waker);
        driver.join().unwrap();
        assert_eq!(near.state(), State::Fired);
        assert_eq!(far.state(), State::Waiting);
        // SAFETY: inserted here.
        unsafe { timers.remove(&far) };
    });
}

#[test]
fn the_second_of_two_timers_need_not_interrupt_and_fires_all_the_same() {
    loom::model(|| {
        let shared = Arc::new((Timers::new(), Poller::new()));
        let (timers, poller) = &*shared;
        let (count, waker) = count();
        let driver = {
            let (shared, count) = (shared.clone(), count.clone());
            thread::spawn(move || drive(&shared.0, &shared.1, || count.get() == 2))
        };
        let entries = [6, 7].map(|when| {
            let entry = Box::pin(Entry::new());
            insert(timers, poller, &entry, when, waker.clone());
            entry
        });
        driver.join().unwrap();
        for entry in &entries {
            assert_eq!(entry.state(), State::Fired);
        }
    });
}

#[test]
fn a_timer_that_is_taken_back_while_it_fires_is_freed_in_time() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; removed below.
        assert_eq!(unsafe { timers.insert(&entry, 5, waker) }, Brought::Waits);
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // As `Sleep::drop`: without the lock if it is not WAITING. The model's cell tells if the
        // driver still touches the node when it is freed.
        if entry.state() == State::Waiting {
            // SAFETY: inserted here.
            unsafe { timers.remove(&entry) };
        }
        let fired = entry.state() == State::Fired;
        drop(entry);
        driver.join().unwrap();
        assert_eq!(count.get(), usize::from(fired));
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
    });
}

#[test]
fn a_waker_that_is_replaced_while_the_timer_fires_is_woken_or_sees_it() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let ((first, first_waker), (second, second_waker)) = (count(), count());
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; it fires.
        assert_eq!(
            unsafe { timers.insert(&entry, 5, first_waker) },
            Brought::Waits
        );
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // SAFETY: inserted here.
        let replaced = unsafe { timers.replace_waker(&entry, second_waker) };
        if !replaced {
            assert_eq!(entry.state(), State::Fired);
        }
        driver.join().unwrap();
        assert_eq!(second.get(), usize::from(replaced));
        assert_eq!(first.get(), usize::from(!replaced));
    });
}

#[test]
fn a_timer_that_is_moved_while_it_fires_fires_at_one_of_its_times() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; removed below.
        assert_eq!(unsafe { timers.insert(&entry, 5, waker) }, Brought::Waits);
        let driver = {
            let timers = timers.clone();
            thread::spawn(move || timers.fire(NOW))
        };
        // SAFETY: inserted here.
        let moved = unsafe { timers.move_to(&entry, 1000) };
        driver.join().unwrap();
        match moved {
            Some((brought, _)) => {
                assert_eq!(brought, Brought::Waits);
                assert_eq!((entry.state(), count.get()), (State::Waiting, 0));
                timers.fire(1000);
            }
            None => assert_eq!(entry.state(), State::Fired),
        }
        assert_eq!((entry.state(), count.get()), (State::Fired, 1));
    });
}

#[test]
fn a_timer_that_is_set_when_the_runtime_ends_is_told() {
    loom::model(|| {
        let timers = Arc::new(Timers::new());
        let (count, waker) = count();
        let end = {
            let timers = timers.clone();
            thread::spawn(move || timers.close())
        };
        let entry = Box::pin(Entry::new());
        // SAFETY: pinned and IDLE; the end takes it out.
        let brought = unsafe { timers.insert(&entry, 5, waker) };
        end.join().unwrap();
        match brought {
            Brought::Waits => assert_eq!((entry.state(), count.get()), (State::Closed, 1)),
            other => assert_eq!((other, count.get()), (Brought::Closed, 0)),
        }
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
    });
}

// ---- who waits in the driver

#[test]
fn a_token_finds_its_owner_on_either_bed() {
    loom::model(|| {
        let shared = Arc::new((Parker::new(), Poller::new(), AtomicUsize::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (parker, poller, given) = &*shared;
                for _ in 0..2 {
                    given.fetch_add(1, Ordering::AcqRel);
                    parker.unpark_or(|| poller.interrupt());
                }
            })
        };
        let (parker, poller, given) = &*shared;
        parker.attach();
        let mut in_driver = true;
        while given.load(Ordering::Acquire) < 2 {
            // An interruption without a token ends a sleep too early; that is no harm.
            if in_driver {
                parker.park_in(|| {
                    poller.wait();
                });
            } else {
                parker.park();
            }
            in_driver = !in_driver;
        }
        other.join().unwrap();
    });
}

/// Workers that sleep in the driver or out of it, as in `worker/sleep.rs` and `worker/drive.rs`, but
/// without the watch, which only ever adds to what is served.
struct Model {
    idle: Idle,
    parkers: Vec<Parker>,
    poller: Poller,
    driver: Lock<()>,
    in_use: AtomicBool,
    injected: AtomicUsize,
    served: AtomicUsize,
    goal: usize,
}

impl Model {
    fn new(workers: usize, in_use: bool, goal: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            parkers: (0..workers).map(|_| Parker::new()).collect(),
            poller: Poller::new(),
            driver: Lock::new(()),
            in_use: AtomicBool::new(in_use),
            injected: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            goal,
        })
    }

    fn unpark(&self, worker: usize) {
        self.parkers[worker].unpark_or(|| self.poller.interrupt());
    }

    /// A task from outside.
    fn inject(&self) {
        self.injected.fetch_add(1, Ordering::AcqRel);
        if let Some(worker) = self.idle.worker_to_notify() {
            self.unpark(worker);
        }
    }

    /// As `Driver::start` and `Shared::start_driver`.
    fn start_driver(&self) {
        self.in_use.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if let Some(worker) = self.idle.notify_one() {
            self.unpark(worker);
        }
    }

    fn is_over(&self) -> bool {
        self.served.load(Ordering::Acquire) >= self.goal
    }

    /// Some tasks have run; the one who runs the last lets the others go.
    fn serve(&self, tasks: usize) {
        if self.served.fetch_add(tasks, Ordering::AcqRel) + tasks >= self.goal {
            fence(Ordering::SeqCst);
            while let Some(worker) = self.idle.notify_one() {
                self.unpark(worker);
            }
        }
    }

    fn work(&self, index: usize) {
        let parker = &self.parkers[index];
        parker.attach();
        let mut searching = false;
        let mut may_drive = false;
        while !self.is_over() {
            if self.injected.swap(0, Ordering::AcqRel) > 0 {
                if std::mem::replace(&mut searching, false) {
                    let _ = self.idle.stop_searching();
                }
                self.serve(1);
                continue;
            }
            let announced = self
                .idle
                .announce(index, std::mem::replace(&mut searching, false));
            if self.injected.load(Ordering::Acquire) > 0 || self.is_over() {
                self.wake_up(index);
                searching = true;
                continue;
            }
            let mut hold = None;
            if self.in_use.load(Ordering::Acquire) && (announced.last || may_drive) {
                hold = self.driver.try_lock();
            }
            may_drive = hold.is_some();
            let events = self.sleep(index, &mut hold);
            searching = true;
            drop(hold);
            if events > 0 {
                self.serve(events);
            }
        }
        if searching {
            let _ = self.idle.stop_searching();
        }
    }

    /// Sleeps until a token or an event, and is off the list then.
    fn sleep(&self, index: usize, hold: &mut Option<crate::lock::LockGuard<'_, ()>>) -> usize {
        let parker = &self.parkers[index];
        if hold.is_none() {
            parker.park();
            return 0;
        }
        loop {
            let mut events = 0;
            let token = parker.park_in(|| events = self.poller.wait());
            if token {
                return events;
            }
            if events > 0 {
                self.wake_up(index);
                return events;
            }
        }
    }

    fn wake_up(&self, index: usize) {
        if !self.idle.retract(index) {
            self.parkers[index].park();
        }
    }
}

/// Some workers, and what the rest of the world does.
fn check(workers: usize, in_use: bool, goal: usize, world: fn(&Model)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let model = Model::new(workers, in_use, goal);
        let threads: Vec<_> = (0..workers)
            .map(|index| {
                let model = model.clone();
                thread::spawn(move || model.work(index))
            })
            .collect();
        world(&model);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(model.idle.relaxed().searching(), 0);
        assert_eq!(model.idle.relaxed().parked(), 0);
        assert!(model.driver.try_lock().is_some());
    });
}

#[test]
fn an_event_finds_somebody_in_the_driver() {
    check(2, true, 1, |model| model.poller.event());
}

#[test]
fn an_event_and_a_task_from_outside_are_both_served() {
    check(2, true, 2, |model| {
        model.poller.event();
        model.inject();
    });
}

#[test]
fn the_first_source_gets_a_worker_into_the_driver() {
    check(1, false, 1, |model| {
        model.start_driver();
        model.poller.event();
    });
}
