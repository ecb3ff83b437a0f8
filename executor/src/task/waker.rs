//! The waker of a task: its vtable, and the shortcuts for wakers known to be ours.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::header::{Header, Task, free};
use super::state::Wake;
use crate::context;
use crate::scheduler::{Place, schedule};

/// One table for all tasks, so that its address tells our wakers from others.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Lends a waker that counts no reference: the poller's own keeps the task.
#[inline]
pub(crate) fn with_borrowed<R>(header: NonNull<Header>, f: impl FnOnce(&Waker) -> R) -> R {
    // SAFETY: the table's functions expect a header pointer, and the task is kept by the caller's
    // reference for as long as this waker lives: it is never dropped and only lent.
    let waker = ManuallyDrop::new(unsafe { Waker::new(header.as_ptr().cast(), &VTABLE) });
    f(&waker)
}

/// The task behind a waker of ours.
#[inline]
pub(crate) fn task_of(waker: &Waker) -> Option<NonNull<Header>> {
    std::ptr::eq(waker.vtable(), &raw const VTABLE)
        // SAFETY: with this table it is a header, never null.
        .then(|| unsafe { NonNull::new_unchecked(waker.data().cast_mut().cast()) })
}

/// Clones a waker; inside the own poll of its task without a locked instruction.
#[inline]
pub(crate) fn clone_waker(waker: &Waker) -> Waker {
    if let Some(header) = task_of(waker)
        && context::is_current_task(header)
    {
        // SAFETY: the waker keeps the task.
        let state = unsafe { &header.as_ref().state };
        if state.retain_from_stock() {
            // SAFETY: the new waker owns the reference that just left the stock.
            return unsafe { Waker::new(header.as_ptr().cast(), &VTABLE) };
        }
    }
    waker.clone()
}

/// Drops a waker; inside the own poll of its task without a locked instruction.
#[inline]
pub(crate) fn recycle(waker: Waker) {
    if let Some(header) = task_of(&waker)
        && context::is_current_task(header)
    {
        std::mem::forget(waker);
        // SAFETY: the poll in progress keeps the task. The reference of the waker moves on.
        unsafe { header.as_ref() }.state.release_to_stock();
        return;
    }
    drop(waker);
}

/// Wakes the task and gives the waker's reference away; returns the queue entry, if it is to be
/// queued by the caller.
///
/// # Safety
/// `header` is alive and the caller owns the reference that it gives away.
#[inline]
pub(crate) unsafe fn wake_owned(header: NonNull<Header>) -> Option<Task> {
    // SAFETY: the caller's reference keeps the header until the transition.
    match unsafe { header.as_ref() }.state.wake_owned() {
        // SAFETY: the transition turned the waker's reference into the entry's.
        Wake::Submit => Some(unsafe { Task::from_raw(header) }),
        Wake::Done => None,
        Wake::Free => {
            // SAFETY: the transition gave the last reference back.
            unsafe { free(header) };
            None
        }
    }
}

/// Wakes the task and keeps the waker's reference; returns the queue entry, if there is one.
///
/// # Safety
/// `header` is alive during the call.
#[inline]
pub(crate) unsafe fn wake_kept(header: NonNull<Header>) -> Option<Task> {
    // SAFETY: alive, says the caller.
    match unsafe { header.as_ref() }.state.wake_by_ref() {
        // SAFETY: the transition counted a reference for the entry.
        Wake::Submit => Some(unsafe { Task::from_raw(header) }),
        Wake::Done | Wake::Free => None,
    }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: `data` is the header of a task that the cloned waker keeps.
    let header = unsafe { &*data.cast::<Header>() };
    header.state.retain();
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: `data` is a header, never null.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast()) };
    // SAFETY: the waker is consumed, its reference is ours to give.
    if let Some(task) = unsafe { wake_owned(header) } {
        schedule(task, Place::Next);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: as in `wake`.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast()) };
    // SAFETY: the borrowed waker keeps the task.
    if let Some(task) = unsafe { wake_kept(header) } {
        schedule(task, Place::Next);
    }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: `data` is a header, never null.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast()) };
    // SAFETY: the waker is consumed, its reference is ours to give back.
    drop(unsafe { Task::from_raw(header) });
}
