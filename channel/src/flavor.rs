//! What tells the two kinds of bounded channel apart: how their receivers wait.

use wakerun::wake::Poller;

use crate::chan::Chan;
use crate::mpmc::receive::Receivers;
use crate::receivers::{News, Source};
use crate::ring::Ring;
use crate::rx_cell::RxCell;

/// Which kind of channel a handle belongs to: [`Mpsc`] or [`Mpmc`]. Sealed.
#[expect(
    private_bounds,
    reason = "sealed: what a flavor does is this crate's business"
)]
pub trait Flavor: Internals {}

/// The flavor of [`mpsc`](crate::mpsc): one receiver.
#[derive(Debug)]
pub enum Mpsc {}

/// The flavor of [`mpmc`](crate::mpmc): receivers that can be cloned.
#[derive(Debug)]
pub enum Mpmc {}

impl Flavor for Mpsc {}
impl Flavor for Mpmc {}

pub(crate) trait Internals: Sized + Send + Sync + 'static {
    /// Whether there can be several receivers. Then PARKED means that one waits, stays set while that
    /// is so, and is changed under the receivers' lock; else whoever brings news clears it, and owns
    /// the wake.
    const MANY: bool;

    /// Where receivers wait.
    type Side<T>;

    fn side<T>(ring: Ring<T>) -> Self::Side<T>;

    /// A poll of a task is over that may have left a wake unused. Whether receivers that wait belong to
    /// tasks of ours.
    fn poll_over<T>(_chan: &Chan<T, Self>, _poller: &Poller<'_>) -> bool
    where
        Self: Flavor,
    {
        false
    }

    /// Wakes receivers: the duty of whoever saw PARKED when it brought news.
    ///
    /// # Safety
    /// Unless there are many receivers, the caller has cleared PARKED, and calls this once for it.
    unsafe fn wake<T>(chan: &Chan<T, Self>, news: News)
    where
        Self: Flavor;
}

impl Internals for Mpsc {
    const MANY: bool = false;

    type Side<T> = RxCell;

    fn side<T>(_ring: Ring<T>) -> RxCell {
        RxCell::new()
    }

    #[inline]
    unsafe fn wake<T>(chan: &Chan<T, Self>, _news: News) {
        // SAFETY: handed on.
        unsafe { chan.rx.side.wake() };
    }
}

impl Internals for Mpmc {
    const MANY: bool = true;

    type Side<T> = Receivers<T>;

    fn side<T>(ring: Ring<T>) -> Receivers<T> {
        Receivers::new(ring)
    }

    #[inline]
    unsafe fn wake<T>(chan: &Chan<T, Self>, news: News) {
        chan.wake_receivers(news);
    }

    fn poll_over<T>(chan: &Chan<T, Self>, poller: &Poller<'_>) -> bool {
        chan.receivers_poll_over(poller)
    }
}
