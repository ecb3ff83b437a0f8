//! The sources of a runtime, and the poller that watches them.
//!
//! A source is registered once, for both directions and for changes only (edge-triggered), and costs no
//! further system call; where there is no such mode, the poller is asked again (`arming`). Its key in
//! the poller is its place in a slab together with a generation: an event of a source that is gone,
//! still in the list that the poller has returned, does not reach the next one in the same place.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polling::{Event, Events, PollMode, Poller};
use slab::Slab;

use super::arming::{Arming, MODE};
use super::direction::{Direction, shut_down_error};
use super::wakes::Wakes;
use crate::lock::{Lock, LockGuard};
use crate::panics;
use crate::sys::{BorrowedSource, RawSource};

/// Bits of a key that are the place in the slab; the others are the generation.
const INDEX_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };
const INDEX_MASK: usize = (1 << INDEX_BITS) - 1;
/// Events that are handled under one hold of the slab's lock: a microsecond or two.
const EVENTS_PER_LOCK: usize = 32;
/// How long to wait after the poller has failed, which it does only when the system is in trouble.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(10);

/// A descriptor that is watched.
pub(crate) struct Source {
    pub(crate) read: Direction,
    pub(crate) write: Direction,
    pub(super) arming: Arming,
}

pub(super) struct Reactor {
    poller: Poller,
    sources: Lock<Sources>,
    /// The buffer of a wait; only ever tried, and held during the wait: who has it has the driver.
    events: Lock<Events>,
    reported: AtomicBool,
}

struct Sources {
    slab: Slab<Entry>,
    generation: usize,
    closed: bool,
}

struct Entry {
    generation: usize,
    source: Arc<Source>,
}

/// What identifies a registered source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) usize);

impl Key {
    fn index(self) -> usize {
        self.0 & INDEX_MASK
    }

    fn generation(self) -> usize {
        self.0 >> INDEX_BITS
    }
}

impl Sources {
    fn insert(&mut self, source: Arc<Source>) -> io::Result<Key> {
        if self.closed {
            return Err(shut_down_error());
        }
        // The last index is left out: with all bits set, a key would be the poller's own.
        if self.slab.len() >= INDEX_MASK {
            return Err(io::Error::other("the runtime has too many I/O sources"));
        }
        self.generation = self.generation.wrapping_add(1) & (usize::MAX >> INDEX_BITS);
        let generation = self.generation;
        let index = self.slab.insert(Entry { generation, source });
        Ok(Key(generation << INDEX_BITS | index))
    }

    fn get(&self, key: Key) -> Option<&Source> {
        let entry = self.slab.get(key.index())?;
        (entry.generation == key.generation()).then_some(&*entry.source)
    }

    fn remove(&mut self, key: Key) -> Option<Arc<Source>> {
        self.get(key)?;
        Some(self.slab.remove(key.index()).source)
    }
}

impl Reactor {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            sources: Lock::new(Sources {
                slab: Slab::new(),
                generation: 0,
                closed: false,
            }),
            events: Lock::new(Events::new()),
            reported: AtomicBool::new(false),
        })
    }

    /// Starts to watch a descriptor.
    ///
    /// # Safety
    /// It stays open until it has been removed.
    pub(super) unsafe fn add(&self, fd: RawSource) -> io::Result<(Key, Arc<Source>)> {
        if matches!(MODE, PollMode::Edge) && !self.poller.supports_edge() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system does not tell of changes of readiness only, which is what wakerun needs",
            ));
        }
        let source = Arc::new(Source {
            read: Direction::new(),
            write: Direction::new(),
            arming: Arming::new(fd),
        });
        // Listed first, so that its first event finds it.
        let key = self.sources.lock().insert(source.clone())?;
        let all = Event::all(key.0);
        // SAFETY: the descriptor stays open until `remove` takes it out of the poller, says the
        // caller.
        let added = unsafe { self.poller.add_with_mode(fd, all, MODE) };
        if let Err(error) = added {
            let listed = self.sources.lock().remove(key);
            drop(listed);
            return Err(error);
        }
        Ok((key, source))
    }

    /// Asks the poller for events of a source that is registered.
    pub(super) fn ask(&self, fd: BorrowedSource<'_>, event: Event) -> io::Result<()> {
        self.poller.modify_with_mode(fd, event, MODE)
    }

    /// Stops watching. The source is gone from here whatever the system says to it, for example
    /// because the descriptor has been closed behind our back.
    pub(super) fn remove(&self, key: Key, fd: BorrowedSource<'_>) -> io::Result<()> {
        let result = self.poller.delete(fd);
        let source = self.sources.lock().remove(key);
        drop(source);
        result
    }

    pub(super) fn try_wait(&self) -> Option<Wait<'_>> {
        let events = self.events.try_lock()?;
        Some(Wait {
            reactor: self,
            events,
        })
    }

    pub(super) fn interrupt(&self) {
        if let Err(error) = self.poller.notify() {
            self.report(&error);
        }
    }

    /// Takes no source any more, and gives all wakers out.
    pub(super) fn close(&self, wakes: &mut Wakes) {
        self.sources.lock().closed = true;
        // Nothing is added any more, so each place needs to be looked at once, a few at a time.
        let mut index = 0;
        loop {
            let sources = self.sources.lock();
            let end = sources.slab.capacity();
            for place in index..end.min(index + EVENTS_PER_LOCK) {
                if let Some(entry) = sources.slab.get(place) {
                    entry.source.read.close(wakes);
                    entry.source.write.close(wakes);
                }
            }
            index += EVENTS_PER_LOCK;
            if index >= end {
                return;
            }
        }
    }

    fn report(&self, error: &io::Error) {
        if !self.reported.swap(true, Ordering::Relaxed) {
            panics::say(format_args!("the system's poller failed: {error}"));
        }
    }
}

/// The right to wait.
pub(super) struct Wait<'a> {
    reactor: &'a Reactor,
    events: LockGuard<'a, Events>,
}

impl Wait<'_> {
    /// Waits for events, for as long as `limit` if there is one, and notes them.
    pub(super) fn wait(&mut self, limit: Option<Duration>, wakes: &mut Wakes) {
        self.events.clear();
        // A wait that a signal interrupts is resumed by the poller, for the rest of its time.
        if let Err(error) = self.reactor.poller.wait(&mut self.events, limit) {
            self.reactor.report(&error);
            // Better late than at full speed.
            std::thread::sleep(limit.map_or(PAUSE_AFTER_ERROR, |l| l.min(PAUSE_AFTER_ERROR)));
            return;
        }
        let mut events = self.events.iter().peekable();
        while events.peek().is_some() {
            let sources = self.reactor.sources.lock();
            for event in events.by_ref().take(EVENTS_PER_LOCK) {
                let Some(source) = sources.get(Key(event.key)) else {
                    continue;
                };
                let asked = source.arming.told(event, |fd, rest| {
                    // SAFETY: it is open until `remove` has taken it out of the list, says the
                    // caller of `add`; and it is in the list, which is locked.
                    let fd = unsafe { BorrowedSource::borrow_raw(fd) };
                    self.reactor.ask(fd, rest)
                });
                // If no other event will come, whoever operates is to find out.
                if event.readable || asked.is_err() {
                    source.read.set_ready(wakes);
                }
                if event.writable || asked.is_err() {
                    source.write.set_ready(wakes);
                }
            }
        }
    }
}
