//! The part of a task that does not depend on its future, and the counted reference to it.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::Waker;

use super::Id;
use super::owned::Slot;
use super::state::{Completed, Released, State};
use super::watches::Watches;
use crate::scheduler::{Place, Shared, give_back_shared};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::wake::Poller;

/// What a task of a concrete future can be asked to do.
pub(crate) struct VTable {
    /// Polls the future once; `true`: it is over and its output is in place.
    ///
    /// # Safety
    /// The caller is the task's poller, as the table in `state.rs` says.
    pub(crate) poll: unsafe fn(NonNull<Header>) -> bool,
    /// Drops the future and puts "cancelled" in the output's place.
    ///
    /// # Safety
    /// As for `poll`, or the caller has claimed the task for its shutdown.
    pub(crate) cancel: unsafe fn(NonNull<Header>),
    /// Drops the output that nobody will ask for.
    ///
    /// # Safety
    /// The task is complete and the caller owns its output.
    pub(crate) drop_output: unsafe fn(NonNull<Header>),
    /// Moves the output out, to a `*mut Option<Result<T, JoinError>>` of the task's own `T`.
    ///
    /// # Safety
    /// The task is complete, the caller owns its output, and the pointer is of that type.
    pub(crate) take_output: unsafe fn(NonNull<Header>, *mut ()),
    /// Frees the memory.
    ///
    /// # Safety
    /// The caller gave back the last reference.
    pub(crate) free: unsafe fn(NonNull<Header>),
}

/// The home of a task that has not been polled yet.
const NOWHERE: u32 = u32::MAX;

/// The head of every task's memory. What each wake and each poll touch comes last, next to the future, so that they
/// share cache lines with its first words.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) id: Id,
    pub(crate) name: Option<Box<str>>,
    /// See the second table of `state.rs` for who may touch it, and whether it is there.
    pub(crate) join_waker: UnsafeCell<MaybeUninit<Waker>>,
    /// Where the task stands in the runtime's list: the slot, and its shelf. Written before it is queued.
    pub(crate) slot: AtomicPtr<Slot>,
    pub(crate) shelf: AtomicU32,
    /// The worker that polled the task last; written by the poller only.
    worker: AtomicU32,
    /// Taken out by [`free`], for whom a count of it has a use.
    pub(crate) shared: ManuallyDrop<Arc<Shared>>,
    pub(crate) state: State,
    pub(crate) vtable: &'static VTable,
    /// How often a poll began or ended: odd while the task is polled. Written by the poller only.
    epoch: AtomicU64,
    /// Touched by the poller only.
    pub(crate) watches: UnsafeCell<Watches>,
}

impl Header {
    #[inline]
    pub(crate) fn new(
        vtable: &'static VTable,
        shared: Arc<Shared>,
        id: Id,
        name: Option<Box<str>>,
    ) -> Self {
        Self {
            id,
            name,
            join_waker: UnsafeCell::new(MaybeUninit::uninit()),
            slot: AtomicPtr::new(std::ptr::null_mut()),
            shelf: AtomicU32::new(u32::MAX),
            worker: AtomicU32::new(NOWHERE),
            shared: ManuallyDrop::new(shared),
            state: State::new(),
            vtable,
            epoch: AtomicU64::new(0),
            watches: UnsafeCell::new(Watches::default()),
        }
    }

    /// The task's epoch; see [`crate::wake::TaskRef::epoch`].
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether the worker of this index polled the task last. Relaxed: a hint.
    #[inline]
    pub(crate) fn is_at_home(&self, worker: usize) -> bool {
        self.worker.load(Ordering::Relaxed) == worker as u32
    }

    /// Notes that another worker polls the task from now on. `true`: one did before.
    #[cold]
    pub(crate) fn set_home(&self, worker: usize) -> bool {
        let home = self.worker.load(Ordering::Relaxed);
        self.worker.store(worker as u32, Ordering::Relaxed);
        home != NOWHERE
    }

    /// Tells those who watch this task that a poll is over, and, if it was the last one, lets them go.
    ///
    /// # Safety
    /// The caller is the task's poller, or has claimed it, and no poll is going on.
    #[inline]
    pub(crate) unsafe fn poll_over(&self, last: bool) {
        // SAFETY: the poller alone has the watches.
        let empty = self
            .watches
            .with(|watches| unsafe { (*watches).is_empty() });
        if !empty {
            // SAFETY: handed on.
            unsafe { self.tell_watches(last) };
        }
    }

    /// # Safety
    /// As [`poll_over`](Self::poll_over).
    #[cold]
    #[inline(never)]
    unsafe fn tell_watches(&self, last: bool) {
        // SAFETY: as above.
        let came_to_all = || unsafe { self.watches.with_mut(|watches| (*watches).came_to_all()) };
        if last || !came_to_all() {
            // SAFETY: handed on.
            unsafe { self.tell_all_watches(last) };
        }
    }

    /// # Safety
    /// As [`poll_over`](Self::poll_over).
    #[inline(never)]
    unsafe fn tell_all_watches(&self, last: bool) {
        // Taken out for the calls, which may wake.
        // SAFETY: as above.
        let mut watches = self
            .watches
            .with_mut(|watches| std::mem::take(unsafe { &mut *watches }));
        watches.poll_over(&Poller::new(self, last));
        if last {
            watches.clear();
        } else {
            // SAFETY: as above; nobody adds one between two polls.
            self.watches.with_mut(|mine| unsafe { *mine = watches });
        }
    }

    /// Moves the epoch on; only the poller calls it, so a load and a store suffice.
    #[inline]
    pub(crate) fn advance_epoch(&self) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Release pairs with the Acquire in `epoch`: who sees the poll over sees what it did.
        self.epoch.store(epoch.wrapping_add(1), Ordering::Release);
    }
}

/// A counted reference to a task: what stands in the queues.
pub(crate) struct Task(NonNull<Header>);

// SAFETY: the future behind it is `Send` (demanded at spawn) and is touched only by the task's poller; the
// rest of the header is atomics, immutable fields and cells with one owner at a time.
unsafe impl Send for Task {}
// SAFETY: a shared `Task` gives access to the header only, whose parts are as said above.
unsafe impl Sync for Task {}

impl Task {
    /// Takes over a reference that `header` counts already.
    ///
    /// # Safety
    /// The task is alive, and the caller gives this reference away.
    #[inline]
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// The reference as a pointer; it stays counted.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        let header = self.0;
        std::mem::forget(self);
        header
    }

    /// The address, for comparing.
    #[inline]
    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: this reference keeps the memory.
        unsafe { self.0.as_ref() }
    }

    /// Drops the future (shutdown has taken the task) and settles with the join handle.
    pub(crate) fn shut_down(&self) {
        // SAFETY: `take_for_shutdown` gave the task to this thread alone.
        unsafe { (self.header().vtable.cancel)(self.0) };
        // SAFETY: as above.
        unsafe { self.header().poll_over(true) };
        self.settle(self.header().state.complete());
    }

    /// Gives back this reference, `others` more that the caller holds, and the stock. Only for the
    /// thread that completed the task. `true`: a locked instruction was needed for it.
    pub(crate) fn release_completed(self, others: usize) -> bool {
        let released = self.header().state.release_completed(1 + others);
        // Released just now, so not by the destructor again.
        let header = self.into_raw();
        if released != Released::Kept {
            // SAFETY: those were the last references.
            unsafe { free(header) };
        }
        released != Released::Last
    }

    /// Gives back this reference, which is likely to be the last.
    pub(crate) fn release_perhaps_last(self) {
        let released = self.header().state.release_perhaps_last(1);
        let header = self.into_raw();
        if released != Released::Kept {
            // SAFETY: it was the last reference.
            unsafe { free(header) };
        }
    }

    /// The task is complete, as `completed` says: wakes its join handle, or cleans up for it.
    #[inline]
    pub(crate) fn settle(&self, completed: Completed) {
        let header = self.header();
        match completed {
            Completed::Leave => {}
            // SAFETY: complete, and no join handle is left that could own the output.
            Completed::DropOutput => unsafe { (header.vtable.drop_output)(self.0) },
            Completed::WakeJoin => {
                // SAFETY: COMPLETE and JOIN_WAKER are set: the waker is there, nobody writes the cell any more, and
                // nobody else moves it out or drops it.
                let waker = header
                    .join_waker
                    .with(|waker| unsafe { waker.cast::<Waker>().read() });
                crate::panics::report("a join waker", || {
                    crate::wake::wake_owned(waker, Place::Next);
                });
            }
        }
    }
}

impl Clone for Task {
    fn clone(&self) -> Self {
        self.header().state.retain();
        Self(self.0)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.header().state.release(1) {
            // SAFETY: that was the last reference.
            unsafe { free(self.0) };
        }
    }
}

/// Frees a task's memory.
///
/// # Safety
/// The caller gave back the last reference.
pub(crate) unsafe fn free(header: NonNull<Header>) {
    // SAFETY: nobody else can reach the header any more, and it is still allocated.
    let header_mut = unsafe { &mut *header.as_ptr() };
    let vtable = header_mut.vtable;
    // SAFETY: the one time, and nobody looks at the field any more.
    let shared = unsafe { ManuallyDrop::take(&mut header_mut.shared) };
    // SAFETY: handed on from this function's own contract.
    unsafe { (vtable.free)(header) };
    give_back_shared(shared);
}
