//! The memory of one task: the header and, behind it, the future or its output.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::header::{Header, VTable};
use super::{Id, JoinError, waker};
use crate::scheduler::Shared;
use crate::sync::UnsafeCell;

/// What the task holds besides its header.
enum Stage<F: Future> {
    Future(F),
    Output(Result<F::Output, JoinError>),
    Taken,
}

/// One allocation: the header first, so that a pointer to either is a pointer to both.
#[repr(C)]
struct Cell<F: Future> {
    header: Header,
    stage: UnsafeCell<Stage<F>>,
}

/// Allocates a task. It counts three references: one for the join handle, one for a queue entry,
/// one for the runtime's list.
pub(crate) fn allocate<F>(
    future: F,
    shared: Arc<Shared>,
    id: Id,
    name: Option<Box<str>>,
) -> NonNull<Header>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let cell = Box::into_raw(Box::<Cell<F>>::new_uninit()).cast::<Cell<F>>();
    // Field by field, so that nothing is built elsewhere and copied.
    // SAFETY: the memory is that of a cell, allocated just now, and the place is inside.
    let header = unsafe { &raw mut (*cell).header };
    // SAFETY: as above.
    let stage = unsafe { &raw mut (*cell).stage };
    // SAFETY: a valid place, without a value that would need a drop.
    unsafe { header.write(Header::new(&Cell::<F>::VTABLE, shared, id, name)) };
    // SAFETY: as above.
    unsafe { stage.write(UnsafeCell::new(Stage::Future(future))) };
    // SAFETY: allocated just now.
    unsafe { NonNull::new_unchecked(cell) }.cast()
}

impl<F: Future> Cell<F> {
    const VTABLE: VTable = VTable {
        poll: Self::poll,
        cancel: Self::cancel,
        drop_output: Self::drop_output,
        take_output: Self::take_output,
        free: Self::free,
    };

    /// # Safety
    /// As `VTable::poll` says.
    unsafe fn poll(header: NonNull<Header>) -> bool {
        // SAFETY: the header is the head of a `Cell<F>`, kept by the caller's reference.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        let polled = catch_unwind(AssertUnwindSafe(|| {
            waker::with_borrowed(header, |waker| {
                let mut cx = Context::from_waker(waker);
                cell.stage.with_mut(|stage| {
                    // SAFETY: the poller is the only one to touch the stage.
                    let stage = unsafe { &mut *stage };
                    let Stage::Future(future) = stage else {
                        unreachable!("a task was polled after it had ended")
                    };
                    // SAFETY: the future is pinned: it never leaves the heap cell, and is dropped
                    // in place by `replace`.
                    unsafe { Pin::new_unchecked(future) }.poll(&mut cx)
                })
            })
        }));
        match polled {
            Ok(Poll::Pending) => false,
            Ok(Poll::Ready(output)) => {
                // SAFETY: this thread is still the poller.
                unsafe { cell.replace(Ok(output)) };
                true
            }
            Err(payload) => {
                // SAFETY: as above.
                unsafe { cell.replace(Err(JoinError::panicked(cell.header.id, payload))) };
                true
            }
        }
    }

    /// # Safety
    /// As `VTable::cancel` says.
    unsafe fn cancel(header: NonNull<Header>) {
        // SAFETY: as in `poll`.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the caller is the poller, or has claimed the task.
        unsafe { cell.replace(Err(JoinError::cancelled(cell.header.id))) };
    }

    /// Drops the future in place and puts its output there. A future that panics while it is
    /// dropped makes the output a panic.
    ///
    /// # Safety
    /// The caller is the poller, or has claimed the task.
    // Not inlined: a poll that is not the last one needs none of the registers.
    #[inline(never)]
    unsafe fn replace(&self, output: Result<F::Output, JoinError>) {
        let dropped = self.stage.with_mut(|stage| {
            // SAFETY: the caller is the only one to touch the stage. The old stage is
            // dropped in place, as pinning demands; if its drop panics, it counts as dropped and
            // `Taken` is written over it below without another drop.
            let dropped = catch_unwind(AssertUnwindSafe(|| unsafe {
                std::ptr::drop_in_place(stage)
            }));
            // SAFETY: the place holds nothing that needs a drop.
            unsafe { std::ptr::write(stage, Stage::Taken) };
            dropped
        });
        let output = match dropped {
            Ok(()) => output,
            Err(payload) => {
                discard(output);
                Err(JoinError::panicked(self.header.id, payload))
            }
        };
        // SAFETY: as above; what stands there, a `Taken`, needs no drop.
        self.stage
            .with_mut(|stage| unsafe { std::ptr::write(stage, Stage::Output(output)) });
    }

    /// # Safety
    /// As `VTable::drop_output` says.
    unsafe fn drop_output(header: NonNull<Header>) {
        // SAFETY: as in `poll`.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the caller owns the output.
        let stage = cell
            .stage
            .with_mut(|stage| unsafe { std::mem::replace(&mut *stage, Stage::Taken) });
        if let Stage::Output(output) = stage {
            discard(output);
        }
    }

    /// # Safety
    /// As `VTable::take_output` says.
    unsafe fn take_output(header: NonNull<Header>, to: *mut ()) {
        // SAFETY: as in `poll`.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the caller owns the output.
        let stage = cell
            .stage
            .with_mut(|stage| unsafe { std::mem::replace(&mut *stage, Stage::Taken) });
        if let Stage::Output(output) = stage {
            let to = to.cast::<Option<Result<F::Output, JoinError>>>();
            // SAFETY: the caller vouches for the pointer and its type.
            unsafe { *to = Some(output) };
        }
    }

    /// # Safety
    /// As `VTable::free` says.
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: `allocate` made it with `Box`, and no reference is left.
        drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
    }
}

/// Drops an output that nobody wants; its destructor is foreign code.
fn discard<T>(output: Result<T, JoinError>) {
    crate::panics::report("the destructor of an unclaimed output", || drop(output));
}
