//! Which types may cross threads, for messages that may and that may not.
#![cfg(not(wakerun_loom))]

use std::cell::Cell;
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::MutexGuard;

use wakerun_channel::mpsc::error::{SendError, TryRecvError, TrySendError};
use wakerun_channel::mpsc::{Permit, Receiver, Recv, RecvMany, Reserve, Send, Sender, WeakSender};

/// Whether a type is `Send`, `Sync` and `Unpin`: the inherent constant wins where its bound holds.
struct Probe<T: ?Sized>(PhantomData<T>);

trait No {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;
}

impl<T: ?Sized> No for Probe<T> {}

struct SendProbe<T: ?Sized>(PhantomData<T>);
struct SyncProbe<T: ?Sized>(PhantomData<T>);
impl<T: ?Sized> No for SendProbe<T> {}
impl<T: ?Sized> No for SyncProbe<T> {}

impl<T: ?Sized + std::marker::Send> SendProbe<T> {
    const SEND: bool = true;
}

impl<T: ?Sized + Sync> SyncProbe<T> {
    const SYNC: bool = true;
}

impl<T: ?Sized + Unpin> Probe<T> {
    const UNPIN: bool = true;
}

macro_rules! assert_traits {
    ($($type:ty: $send:literal $sync:literal),* $(,)?) => {$(
        assert_eq!(<SendProbe<$type>>::SEND, $send, "{}: Send", stringify!($type));
        assert_eq!(<SyncProbe<$type>>::SYNC, $sync, "{}: Sync", stringify!($type));
    )*};
}

/// `Send`, not `Sync`.
type Movable = Cell<u8>;
/// Neither.
type Bound = Rc<u8>;
/// `Sync`, not `Send`.
type Shared = MutexGuard<'static, u8>;

#[test]
fn messages_that_may_move_make_ends_that_may_be_shared() {
    // B157
    assert_traits! {
        Sender<Movable>: true true,
        WeakSender<Movable>: true true,
        Sender<String>: true true,
        Receiver<String>: true true,
        Permit<'static, String>: true true,
        Send<'static, String>: true true,
        Reserve<'static, String>: true true,
    }
    // Through a shared reference to these, nobody gets at a message.
    assert_traits! {
        SendError<u8>: true true,
        TrySendError<u8>: true true,
        TryRecvError: true true,
    }
    assert!(<SendProbe<Receiver<Movable>>>::SEND);
    assert!(<SendProbe<Permit<'static, Movable>>>::SEND);
    assert!(<SendProbe<Send<'static, Movable>>>::SEND);
    assert!(<SendProbe<Reserve<'static, Movable>>>::SEND);
    assert!(<SendProbe<Recv<'static, Movable>>>::SEND);
    assert!(<SendProbe<RecvMany<'static, Movable>>>::SEND);
}

#[test]
fn messages_that_may_not_move_stay_where_they_are() {
    // B157
    assert_traits! {
        Sender<Bound>: false false,
        WeakSender<Bound>: false false,
        Receiver<Bound>: false false,
        Permit<'static, Bound>: false false,
        Send<'static, Bound>: false false,
        Reserve<'static, Bound>: false false,
        Recv<'static, Bound>: false false,
        RecvMany<'static, Bound>: false false,
        SendError<Bound>: false false,
        TrySendError<Bound>: false false,
    }
    assert_traits! {
        Sender<Shared>: false false,
        WeakSender<Shared>: false false,
        Permit<'static, Shared>: false false,
    }
    assert!(!<SendProbe<Receiver<Shared>>>::SEND);
    assert!(!<SendProbe<Send<'static, Shared>>>::SEND);
    assert!(!<SendProbe<Reserve<'static, Shared>>>::SEND);
    assert!(!<SendProbe<Recv<'static, Shared>>>::SEND);
    assert!(!<SendProbe<RecvMany<'static, Shared>>>::SEND);
}

#[test]
fn ends_may_be_moved_whatever_the_message() {
    assert!(<Probe<Sender<PhantomPinned>>>::UNPIN);
    assert!(<Probe<WeakSender<PhantomPinned>>>::UNPIN);
    assert!(<Probe<Receiver<PhantomPinned>>>::UNPIN);
    assert!(<Probe<Permit<'static, PhantomPinned>>>::UNPIN);
    assert!(<Probe<Recv<'static, PhantomPinned>>>::UNPIN);
    assert!(<Probe<RecvMany<'static, PhantomPinned>>>::UNPIN);
}

#[test]
fn waiting_futures_stay_where_they_are_pinned() {
    // They sit in the channel's line by their address.
    assert!(!<Probe<Send<'static, u8>>>::UNPIN);
    assert!(!<Probe<Reserve<'static, u8>>>::UNPIN);
}

#[test]
fn ends_may_cross_a_caught_panic() {
    fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    unwind_safe::<Sender<Movable>>();
    unwind_safe::<WeakSender<Movable>>();
    unwind_safe::<Receiver<Movable>>();
}

#[test]
fn futures_are_no_larger_than_they_must_be() {
    // Room for a message, a line entry and a few words; a send must not hold two copies.
    assert!(size_of::<Send<'static, [u8; 1024]>>() < 1024 + 256);
    assert!(size_of::<Recv<'static, [u8; 1024]>>() <= 2 * size_of::<usize>());
    assert!(size_of::<Sender<u8>>() <= size_of::<usize>());
}
