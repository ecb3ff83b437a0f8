//! What a primitive left to be done when the poll is over: once a poll, not once an operation.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::wake::PollEnd;

/// Sets of places, a power of two.
const SETS: usize = 512;
/// Places of a set: their addresses are side by side in a cache line.
const WAYS: usize = 4;
const SETS_PER_WORD: usize = u64::BITS as usize;

/// Counted references to those who have asked for an action at the end of a poll.
///
/// Which of them is to be called after this poll, at most one, stands in the thread's context, where
/// the second and later requests of a poll find it with one comparison.
///
/// References are kept from poll to poll, so that a primitive that is used again and again touches
/// its count once. They are let go when the worker sleeps, and every now and then when it does not.
/// A primitive that is not kept is refused the first time (it does its work at once) and taken the
/// second time: then it is worth the two counts, its own and that of the one it takes the place of.
///
/// A worker of a busy pipeline, or of actors that talk to each other, serves up to a thousand channels in turn, and
/// each should find its reference still there; so there are two thousand places, in memory that is not touched before
/// it is used.
pub(crate) struct HookSlots {
    table: Box<Table>,
    /// Sets in which something may be kept, a bit each.
    used: [Cell<u64>; SETS / SETS_PER_WORD],
}

/// Valid as zeros: then nothing is kept.
struct Table {
    /// What a poll looks at to see whether a primitive is kept; apart from the rest, which it seldom needs.
    sets: [Set; SETS],
    /// Who asked for a place of each set and was refused, the last one first.
    refused: [[Cell<*const ()>; WAYS]; SETS],
    kept: [[Kept; WAYS]; SETS],
}

/// The addresses of what is kept, or null.
#[repr(align(32))]
struct Set([Cell<*const ()>; WAYS]);

/// What is kept, where the set has an address.
struct Kept {
    /// The flag of the hook, or null: it lives as long as that.
    flag: Cell<*const AtomicBool>,
    hook: UnsafeCell<MaybeUninit<Arc<dyn PollEnd>>>,
}

/// A place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    set: usize,
    way: usize,
}

impl HookSlots {
    pub(crate) fn new() -> Self {
        Self {
            // SAFETY: zeros are null pointers, and hooks that are not there.
            table: unsafe { Box::new_zeroed().assume_init() },
            used: [const { Cell::new(0) }; SETS / SETS_PER_WORD],
        }
    }

    /// The set where a primitive of this address can be kept. Primitives are aligned to cache
    /// lines, so the low bits say nothing; the others are mixed by Fibonacci hashing (Knuth, TAOCP 6.4).
    #[inline]
    fn set_of(address: *const ()) -> usize {
        let mixed = (address as u64 >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - SETS.trailing_zeros())) as usize % SETS
    }

    /// Where a primitive is kept, if it is.
    #[inline]
    fn find(&self, address: *const ()) -> Option<Place> {
        let set = Self::set_of(address);
        (0..WAYS)
            .map(|way| Place { set, way })
            .find(|place| self.address(*place).get() == address)
    }

    #[inline]
    fn address(&self, place: Place) -> &Cell<*const ()> {
        &self.table.sets[place.set].0[place.way]
    }

    #[inline]
    fn kept(&self, place: Place) -> &Kept {
        &self.table.kept[place.set][place.way]
    }

    /// Whether a primitive is kept; makes the counted reference with `keep` if it is to be kept from
    /// now on. `false`: refused this time.
    #[inline]
    pub(crate) fn keep(&self, address: *const (), keep: impl FnOnce() -> Arc<dyn PollEnd>) -> bool {
        self.find(address).is_some() || self.keep_other(address, keep)
    }

    #[cold]
    #[inline(never)]
    fn keep_other(&self, address: *const (), keep: impl FnOnce() -> Arc<dyn PollEnd>) -> bool {
        let set = Self::set_of(address);
        let refused = &self.table.refused[set];
        let before = refused.iter().position(|other| other.get() == address);
        let place = match (before, self.find_free(set)) {
            (Some(_), Some(free)) => free,
            // Where more come than there are places, they come in turn. One place goes to whoever comes twice in a
            // row, and the others stay with those who have them.
            (Some(0), None) => Place { set, way: 0 },
            _ => {
                let from = before.unwrap_or(WAYS - 1);
                for later in (0..from).rev() {
                    refused[later + 1].set(refused[later].get());
                }
                refused[0].set(address);
                return false;
            }
        };
        discard(self.put(place, address, keep()));
        // The destructor of what stood here may have been that of the new one's handle, which evicts it; or it may have
        // deferred another one in this poll, which would be forgotten for this one.
        self.address(place).get() == address && !crate::context::has_deferred()
    }

    fn find_free(&self, set: usize) -> Option<Place> {
        (0..WAYS)
            .map(|way| Place { set, way })
            .find(|place| self.address(*place).get().is_null())
    }

    /// Keeps a hook at a place. The destructor of what stood there is the caller's to run.
    fn put(
        &self,
        place: Place,
        address: *const (),
        hook: Arc<dyn PollEnd>,
    ) -> Option<Arc<dyn PollEnd>> {
        let flag = hook.flag().map_or(ptr::null(), ptr::from_ref);
        let old = self.let_go(place);
        let used = &self.used[place.set / SETS_PER_WORD];
        used.set(used.get() | 1 << (place.set % SETS_PER_WORD));
        let kept = self.kept(place);
        kept.flag.set(flag);
        // SAFETY: this thread alone has the places, and no reference into them is ever kept.
        unsafe { (*kept.hook.get()).write(hook) };
        self.address(place).set(address);
        old
    }

    /// Takes out what is kept at a place.
    fn let_go(&self, place: Place) -> Option<Arc<dyn PollEnd>> {
        if self.address(place).replace(ptr::null()).is_null() {
            return None;
        }
        // SAFETY: as in `put`.
        let hook = unsafe { &*self.kept(place).hook.get() };
        // SAFETY: the address said that one is there; it is gone, so nobody reads it a second time.
        Some(unsafe { hook.assume_init_read() })
    }

    /// The poll is over in which this primitive was deferred.
    #[inline]
    pub(crate) fn run(&self, address: *const ()) {
        if let Some(place) = self.find(address)
            && self.is_due(place)
        {
            self.call(place, address);
        }
    }

    /// Whether what is kept there has something to do.
    #[inline]
    fn is_due(&self, place: Place) -> bool {
        // SAFETY: null, or borrowed from the hook that is kept here.
        let flag = unsafe { self.kept(place).flag.get().as_ref() };
        // Relaxed: ordered by the fence of whoever calls the hooks.
        flag.is_none_or(|flag| flag.load(Ordering::Relaxed))
    }

    #[cold]
    #[inline(never)]
    fn call(&self, place: Place, address: *const ()) {
        // Taken out for the call: what it wakes may come here again.
        if let Some(hook) = self.let_go(place) {
            crate::panics::report("the end-of-poll hook of a primitive", || hook.poll_end());
            discard(self.put(place, address, hook));
        }
    }

    /// Lets go of one primitive, which its owner is done with.
    pub(crate) fn evict(&self, address: *const ()) {
        if let Some(place) = self.find(address) {
            discard(self.let_go(place));
        }
    }

    /// Lets go of what is kept: the worker goes to sleep or ends, or has kept it for long.
    pub(crate) fn clear(&self) {
        for (word, used) in self.used.iter().enumerate() {
            let mut left = used.take();
            while left != 0 {
                let set = word * SETS_PER_WORD + left.trailing_zeros() as usize;
                left &= left - 1;
                for way in 0..WAYS {
                    discard(self.let_go(Place { set, way }));
                }
            }
        }
    }
}

impl Drop for HookSlots {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Drops what was kept: perhaps the last reference, and its destructor is foreign code.
fn discard(hook: Option<Arc<dyn PollEnd>>) {
    if hook.is_some() {
        crate::panics::report("the destructor of a primitive", || {
            crate::context::run_foreign(|| drop(hook));
        });
    }
}

#[cfg(all(test, not(wakerun_loom)))]
mod tests {
    use super::*;
    use crate::context::{self, PollGuard};

    /// Does something in its destructor, as a primitive may that holds foreign code, or another one's handle.
    struct Holder(Cell<Option<Box<dyn FnOnce()>>>);

    impl PollEnd for Holder {
        fn poll_end(&self) {}
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            if let Some(at_drop) = self.0.take() {
                at_drop();
            }
        }
    }

    fn address(holder: &Arc<Holder>) -> *const () {
        Arc::as_ptr(holder).cast()
    }

    fn keep(slots: &HookSlots, holder: &Arc<Holder>) -> bool {
        slots.keep(address(holder), || Arc::clone(holder) as Arc<dyn PollEnd>)
    }

    /// One that is kept, does this in its destructor, and has no other reference; and another one that will take its
    /// place, since there is no other left in their set.
    fn kept_and_next(
        slots: &HookSlots,
        at_drop: impl FnOnce(*const ()) + 'static,
    ) -> (Vec<Arc<Holder>>, Arc<Holder>) {
        let new = || {
            #[expect(clippy::arc_with_non_send_sync, reason = "hooks stay on their thread")]
            Arc::new(Holder(Cell::new(None)))
        };
        // More than there are places: some set has too many.
        let mut holders: Vec<_> = (0..=SETS * WAYS).map(|_| new()).collect();
        let set = |holder: &Arc<Holder>| HookSlots::set_of(address(holder));
        holders.sort_by_key(set);
        let at = (WAYS..holders.len())
            .find(|at| set(&holders[at - WAYS]) == set(&holders[*at]))
            .unwrap();
        let mut of_one_set: Vec<_> = holders.drain(at - WAYS..=at).collect();
        let next = of_one_set.remove(WAYS);
        for holder in &of_one_set {
            assert!(!keep(slots, holder), "refused the first time");
            assert!(keep(slots, holder));
        }
        let next_address = address(&next);
        let first = of_one_set.remove(0);
        first.0.set(Some(Box::new(move || at_drop(next_address))));
        (of_one_set, next)
    }

    #[test]
    fn one_that_is_evicted_by_what_it_displaces_is_refused() {
        let slots = std::rc::Rc::new(HookSlots::new());
        let its_slots = std::rc::Rc::clone(&slots);
        let (_others, next) = kept_and_next(&slots, move |next| its_slots.evict(next));
        assert!(!keep(&slots, &next), "refused the first time");
        assert!(
            !keep(&slots, &next),
            "evicted, so it must not count as kept"
        );
        assert_eq!(Arc::strong_count(&next), 1);
        assert!(keep(&slots, &next), "and later it is kept");
        slots.clear();
        assert_eq!(Arc::strong_count(&next), 1);
    }

    #[test]
    fn one_is_refused_if_what_it_displaces_defers_another_one() {
        let slots = HookSlots::new();
        let other = (&raw const slots).cast();
        let (_others, next) = kept_and_next(&slots, move |_| {
            assert!(context::defer(other, || true));
        });
        let _poll = PollGuard::new(None);
        let defer = || context::defer(address(&next), || keep(&slots, &next));
        assert!(!defer(), "refused the first time");
        assert!(!defer(), "another one is deferred by now");
        assert_eq!(context::take_deferred(), other);
        assert!(defer(), "and in another poll it is kept");
        let _ = context::take_deferred();
    }
}
