//! One-shot events: the poller tells what has been asked of it once, and forgets all of the question
//! with that.
//!
//! What must hold: *a direction that is not ready has been asked for, or is about to be set ready.* The
//! poller looks at the source when it is asked, so what was there before is told, too.
//!
//! | who | does |
//! |---|---|
//! | who registers | asks for both directions, of which neither is ready |
//! | who operates and would block | 1 clears READY · 2 under the lock: if the direction is not asked for, notes it and asks |
//! | an event | 1 under the lock: notes that its directions are not asked for any more, and asks for the other again · 2 sets READY |
//!
//! In this order. If 2 of the event came before its 1, somebody could find the direction ready, clear
//! it, find it noted as asked for, and wait; then the note goes, and nothing comes. As it is, a note
//! that is found means that the poller has the question, or that an event has answered it and will set
//! READY, after the clearing. The note and the question change under one lock, so that the poller has
//! the one that was noted last. The model in `driver/loom_tests.rs` checks this.

use std::io;

use polling::Event;

use crate::driver::direction::Interest;
use crate::lock::Lock;
use crate::sys::RawSource;

pub(crate) struct Arming {
    source: RawSource,
    asked: Lock<Asked>,
}

/// The directions that the poller is to tell of.
struct Asked {
    read: bool,
    write: bool,
}

impl Arming {
    /// Of a source that is registered for both directions.
    pub(crate) fn new(source: RawSource) -> Self {
        Self {
            source,
            asked: Lock::new(Asked {
                read: true,
                write: true,
            }),
        }
    }

    /// The poller has told `event`, which is not noted in the directions yet. `modify` asks it.
    ///
    /// # Errors
    /// If the poller cannot be asked: then nobody waits for an event that will not come, if both
    /// directions are set ready. Whoever operates is told the error.
    pub(crate) fn told(
        &self,
        event: Event,
        modify: impl FnOnce(RawSource, Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut asked = self.asked.lock();
        asked.read &= !event.readable;
        asked.write &= !event.writable;
        if !asked.read && !asked.write {
            return Ok(());
        }
        let asking = modify(self.source, Event::new(event.key, asked.read, asked.write));
        if asking.is_err() {
            asked.read = false;
            asked.write = false;
        }
        asking
    }

    /// The direction has just been found not to be ready. `modify` asks the poller.
    ///
    /// # Errors
    /// If it cannot be asked, so that no event will come.
    pub(crate) fn ask(
        &self,
        key: usize,
        interest: Interest,
        modify: impl FnOnce(RawSource, Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut asked = self.asked.lock();
        let (read, write) = match interest {
            Interest::Read => (true, asked.write),
            Interest::Write => (asked.read, true),
        };
        if (read, write) == (asked.read, asked.write) {
            return Ok(());
        }
        modify(self.source, Event::new(key, read, write))?;
        asked.read = read;
        asked.write = write;
        Ok(())
    }
}
