//! What a primitive left to be done when the poll is over: once a poll, not once an operation.

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::wake::PollEnd;

/// Primitives that a worker keeps counted references to. A worker of a busy pipeline serves some
/// dozens of channels in turn; each should find its reference still there. A power of two.
const KEPT: usize = 256;

/// Counted references to those who have asked for an action at the end of a poll.
///
/// Which of them is to be called after this poll, at most one, stands in the thread's context, where
/// the second and later requests of a poll find it with one comparison.
///
/// References are kept from poll to poll, so that a primitive that is used again and again touches
/// its count once. They are let go when the worker sleeps, and every now and then when it does not.
/// A primitive that is not kept is refused the first time (it does its work at once) and taken the
/// second time: then it is worth the two counts, its own and that of the one it takes the place of.
pub(crate) struct HookSlots {
    kept: [Kept; KEPT],
}

struct Kept {
    /// The address of what is kept: for comparing without a borrow.
    address: Cell<*const ()>,
    /// Who asked for this place last and was refused.
    refused: Cell<*const ()>,
    /// The flag of what is kept, or null: it lives as long as that.
    flag: Cell<*const AtomicBool>,
    hook: UnsafeCell<Option<Arc<dyn PollEnd>>>,
}

impl Kept {
    const fn new() -> Self {
        Self {
            address: Cell::new(std::ptr::null()),
            refused: Cell::new(std::ptr::null()),
            flag: Cell::new(std::ptr::null()),
            hook: UnsafeCell::new(None),
        }
    }

    /// Whether what is kept has something to do.
    #[inline]
    fn is_due(&self) -> bool {
        // SAFETY: null, or borrowed from what this slot keeps, which only `replace` lets go.
        let flag = unsafe { self.flag.get().as_ref() };
        // Relaxed: ordered by the fence of whoever calls the hooks.
        flag.is_none_or(|flag| flag.load(Ordering::Relaxed))
    }

    /// Exchanges what is kept; `flag` is the new one's. The old one's destructor is the caller's to
    /// run.
    fn replace(
        &self,
        address: *const (),
        flag: *const AtomicBool,
        hook: Option<Arc<dyn PollEnd>>,
    ) -> Option<Arc<dyn PollEnd>> {
        self.address.set(address);
        self.flag.set(flag);
        // SAFETY: this thread alone has the slots, and no reference into them is ever kept.
        unsafe { std::mem::replace(&mut *self.hook.get(), hook) }
    }

    /// Takes out what is kept.
    fn let_go(&self) -> Option<Arc<dyn PollEnd>> {
        self.replace(std::ptr::null(), std::ptr::null(), None)
    }
}

impl HookSlots {
    pub(crate) fn new() -> Self {
        Self {
            kept: [const { Kept::new() }; KEPT],
        }
    }

    /// The two places where a primitive of this address can be kept. Primitives are aligned to cache
    /// lines, so the low bits say nothing; the others are mixed by Fibonacci hashing (Knuth, TAOCP 6.4).
    #[inline]
    fn places(&self, address: *const ()) -> [&Kept; 2] {
        let mixed = (address as u64 >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let first = (mixed >> (64 - KEPT.trailing_zeros())) as usize % KEPT;
        [&self.kept[first], &self.kept[first ^ 1]]
    }

    /// Where a primitive is kept, if it is.
    #[inline]
    fn find(&self, address: *const ()) -> Option<&Kept> {
        let [first, second] = self.places(address);
        if first.address.get() == address {
            return Some(first);
        }
        (second.address.get() == address).then_some(second)
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
        let [first, second] = self.places(address);
        if first.refused.replace(address) != address {
            return false;
        }
        let is_free = |kept: &Kept| kept.address.get().is_null();
        let kept = if !is_free(first) && is_free(second) {
            second
        } else {
            first
        };
        let hook = keep();
        let flag = hook.flag().map_or(std::ptr::null(), std::ptr::from_ref);
        discard(kept.replace(address, flag, Some(hook)));
        // The destructor of what stood here may have been that of the new one's handle, which evicts it.
        kept.address.get() == address
    }

    /// The poll is over in which this primitive was deferred.
    #[inline]
    pub(crate) fn run(&self, address: *const ()) {
        if let Some(kept) = self.find(address)
            && kept.is_due()
        {
            Self::call(kept, address);
        }
    }

    #[cold]
    #[inline(never)]
    fn call(kept: &Kept, address: *const ()) {
        let flag = kept.flag.get();
        // Taken out for the call: what it wakes may come here again.
        if let Some(hook) = kept.let_go() {
            crate::panics::report("the end-of-poll hook of a primitive", || hook.poll_end());
            // The flag is borrowed from the hook, which goes back with it.
            discard(kept.replace(address, flag, Some(hook)));
        }
    }

    /// Lets go of one primitive, which its owner is done with.
    pub(crate) fn evict(&self, address: *const ()) {
        if let Some(kept) = self.find(address) {
            discard(kept.let_go());
        }
    }

    /// Lets go of what is kept: the worker goes to sleep or ends, or has kept it for long.
    pub(crate) fn clear(&self) {
        for kept in &self.kept {
            if !kept.address.get().is_null() {
                discard(kept.let_go());
            }
        }
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
    use std::rc::Rc;

    /// Lets go of another one in its destructor, as a channel does that holds another one's handle.
    struct Holder {
        slots: Rc<HookSlots>,
        held: Cell<*const ()>,
    }

    impl PollEnd for Holder {
        fn poll_end(&self) {}
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            self.slots.evict(self.held.get());
        }
    }

    #[test]
    fn one_that_is_evicted_by_what_it_displaces_is_refused() {
        let slots = Rc::new(HookSlots::new());
        let new = || {
            #[expect(clippy::arc_with_non_send_sync, reason = "hooks stay on their thread")]
            Arc::new(Holder {
                slots: Rc::clone(&slots),
                held: Cell::new(std::ptr::null()),
            })
        };
        let address = |holder: &Arc<Holder>| Arc::as_ptr(holder).cast::<()>();
        // More than two for each place: three of them have the same one.
        let mut holders: Vec<_> = (0..=2 * KEPT).map(|_| new()).collect();
        let place = |holder: &Arc<Holder>| std::ptr::from_ref(slots.places(address(holder))[0]);
        holders.sort_by_key(place);
        let at = (2..holders.len())
            .find(|at| place(&holders[at - 2]) == place(&holders[*at]))
            .unwrap();
        let [first, other, second]: [_; 3] = holders
            .drain(at - 2..=at)
            .collect::<Vec<_>>()
            .try_into()
            .ok()
            .unwrap();
        first.held.set(address(&second));
        let keep = |holder: &Arc<Holder>| {
            let counted = || Arc::clone(holder) as Arc<dyn PollEnd>;
            slots.keep(address(holder), counted)
        };
        assert!(!keep(&first), "refused the first time");
        assert!(keep(&first));
        assert!(!keep(&other) && keep(&other), "in the second place");
        drop(first);
        assert!(!keep(&second), "refused the first time");
        assert!(!keep(&second), "evicted, so it must not count as kept");
        assert_eq!(Arc::strong_count(&second), 1);
        assert!(keep(&second), "and later it is kept");
        slots.clear();
        assert_eq!(Arc::strong_count(&second), 1);
    }
}
