//! Which types may cross threads, for messages that may and that may not.

use std::cell::Cell;
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::MutexGuard;

use crate::flavor::error::{ReserveError, SendError, TryRecvError, TryReserveError, TrySendError};
use crate::flavor::future::{Recv, RecvMany, Reserve, ReserveMany, ReserveOwned, Send};
use crate::flavor::{OwnedPermit, Permit, PermitIterator, Receiver, Sender, WeakSender};

/// Answers whether a type has a trait: the inherent constant wins where its bound holds.
pub(crate) struct IsSend<T: ?Sized>(PhantomData<T>);
pub(crate) struct IsSync<T: ?Sized>(PhantomData<T>);
pub(crate) struct IsUnpin<T: ?Sized>(PhantomData<T>);

pub(crate) trait No {
    const ANSWER: bool = false;
}

impl<T: ?Sized> No for IsSend<T> {}
impl<T: ?Sized> No for IsSync<T> {}
impl<T: ?Sized> No for IsUnpin<T> {}

impl<T: ?Sized + std::marker::Send> IsSend<T> {
    pub(crate) const ANSWER: bool = true;
}

impl<T: ?Sized + Sync> IsSync<T> {
    pub(crate) const ANSWER: bool = true;
}

impl<T: ?Sized + Unpin> IsUnpin<T> {
    pub(crate) const ANSWER: bool = true;
}

macro_rules! assert_trait {
    ($probe:ident is $answer:literal for $($type:ty),* $(,)?) => {$(
        assert_eq!(<$probe<$type>>::ANSWER, $answer, "{}", stringify!($type));
    )*};
}

// For the tests of one kind.
#[allow(unused_imports)]
pub(crate) use assert_trait;

/// `Send`, not `Sync`.
type Movable = Cell<u8>;
/// Neither.
type Bound = Rc<u8>;
/// `Sync`, not `Send`.
type Shared = MutexGuard<'static, u8>;

#[test]
fn messages_that_may_move_make_ends_that_may_be_shared() {
    // B157
    assert_trait! { IsSend is true for
        Sender<Movable>, WeakSender<Movable>, Receiver<Movable>, Permit<'static, Movable>,
        OwnedPermit<Movable>, PermitIterator<'static, Movable>, ReserveMany<'static, Movable>,
        ReserveOwned<Movable>, ReserveError, TryReserveError,
        Send<'static, Movable>, Reserve<'static, Movable>, Recv<'static, Movable>,
        RecvMany<'static, Movable>, SendError<Movable>, TrySendError<Movable>, TryRecvError,
    }
    // Nobody gets at a message through a shared reference to a sender.
    assert_trait! { IsSync is true for
        Sender<Movable>, WeakSender<Movable>, Receiver<String>, Permit<'static, String>,
        OwnedPermit<String>, PermitIterator<'static, String>, ReserveMany<'static, String>,
        ReserveOwned<String>,
        Send<'static, String>, Reserve<'static, String>, SendError<u8>, TrySendError<u8>,
        TryRecvError,
    }
}

#[test]
fn messages_that_may_not_move_stay_where_they_are() {
    // B157
    assert_trait! { IsSend is false for
        Sender<Bound>, WeakSender<Bound>, Receiver<Bound>, Permit<'static, Bound>,
        OwnedPermit<Bound>, PermitIterator<'static, Bound>, ReserveMany<'static, Bound>,
        ReserveOwned<Bound>,
        Send<'static, Bound>, Reserve<'static, Bound>, Recv<'static, Bound>,
        RecvMany<'static, Bound>, SendError<Bound>, TrySendError<Bound>,
        Sender<Shared>, WeakSender<Shared>, Receiver<Shared>, Permit<'static, Shared>,
        Send<'static, Shared>, Reserve<'static, Shared>, Recv<'static, Shared>,
        RecvMany<'static, Shared>,
    }
    assert_trait! { IsSync is false for
        Sender<Bound>, WeakSender<Bound>, Receiver<Bound>, Permit<'static, Bound>,
        OwnedPermit<Bound>, PermitIterator<'static, Bound>, ReserveMany<'static, Bound>,
        ReserveOwned<Bound>,
        Send<'static, Bound>, Reserve<'static, Bound>, Recv<'static, Bound>,
        RecvMany<'static, Bound>, SendError<Bound>, TrySendError<Bound>,
        Sender<Shared>, WeakSender<Shared>, Permit<'static, Shared>,
    }
}

#[test]
fn ends_may_be_moved_whatever_the_message() {
    assert_trait! { IsUnpin is true for
        Sender<PhantomPinned>, WeakSender<PhantomPinned>, Receiver<PhantomPinned>,
        Permit<'static, PhantomPinned>, OwnedPermit<PhantomPinned>,
        PermitIterator<'static, PhantomPinned>,
    }
}

#[test]
fn waiting_futures_stay_where_they_are_pinned() {
    // They sit in the channel's line by their address.
    assert_trait! { IsUnpin is false for
        Send<'static, u8>, Reserve<'static, u8>, ReserveMany<'static, u8>, ReserveOwned<u8>,
    }
}

#[test]
fn ends_may_cross_a_caught_panic() {
    fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    unwind_safe::<Sender<Movable>>();
    unwind_safe::<WeakSender<Movable>>();
    unwind_safe::<Receiver<Movable>>();
    unwind_safe::<OwnedPermit<Movable>>();
}

#[test]
fn futures_are_no_larger_than_they_must_be() {
    // Room for a message, a line entry and a few words; a send must not hold two copies.
    assert!(size_of::<Send<'static, [u8; 1024]>>() < 1024 + 256);
    assert!(size_of::<Recv<'static, [u8; 1024]>>() < 256);
    assert!(size_of::<Reserve<'static, u8>>() < 256);
    assert!(size_of::<Sender<u8>>() <= size_of::<usize>());
}
