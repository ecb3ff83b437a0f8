//! The sending end: attempts, futures, permits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use super::{
    Corpse, Holding, Lost, MAX_FORGOTTEN, MAX_FUTURES, MAX_LEAKED, MAX_PERMITS, Share, Sides,
    Waiting, agree, leak, pick,
};
use crate::common::Tracked;
use crate::model::channel::{Channel, Ended, Permits, Wait, Way};
use crate::model::lent::Lent;
use crate::model::op::With;
use crate::model::spec::{Id, Kind, Outcome};
use crate::model::watch::Watch;

type Done = Result<(), String>;

/// What an end on this side comes to, and the messages that came back.
fn seen<C: Channel>(ended: &Ended<C>) -> (Outcome, Vec<usize>) {
    let ids = |messages: &[Tracked]| messages.iter().map(|message| message.id).collect();
    match ended {
        Ended::Sent => (Outcome::Sent, Vec::new()),
        Ended::Permits(_) => (Outcome::Permits, Vec::new()),
        Ended::Full(messages) => (Outcome::Full, ids(messages)),
        Ended::TooMany => (Outcome::TooMany, Vec::new()),
        Ended::Closed(messages) => (Outcome::Closed, ids(messages)),
        Ended::Cancelled(message) => (Outcome::Cancelled, vec![message.id]),
        Ended::Received(_) | Ended::Seen(_) => unreachable!("senders do not receive"),
    }
}

/// The message that comes back from an attempt.
fn back(outcome: Outcome, message: usize) -> Vec<usize> {
    match outcome {
        Outcome::Sent => Vec::new(),
        _ => vec![message],
    }
}

impl<C: Channel> Sides<C> {
    fn sender(&self, n: usize) -> Option<&C::Tx> {
        Some(&self.senders[pick(n, self.senders.len())?])
    }

    /// A sender of its own for something that borrows it.
    fn lend_sender(&mut self, n: usize) -> Option<Lent<C::Tx>> {
        let tx = self.sender(n)?.clone();
        self.spec.senders += 1;
        Some(Lent::new(tx))
    }

    fn end_share(&mut self, share: Share<C::Tx>) {
        if let Some(tx) = share.end() {
            drop(tx);
            self.spec.drop_sender();
        }
    }

    // ---- attempts

    pub(super) fn try_send(&mut self, n: usize) -> Done {
        let message = self.ledger.make();
        let number = message.id;
        let Some(tx) = self.sender(n) else {
            return Ok(());
        };
        let Some(ended) = C::try_send(tx, message) else {
            return Ok(());
        };
        let model = self.spec.attempt_now(Kind::Send(number));
        agree("try_send", seen(&ended), (model, back(model, number)))
    }

    pub(super) fn force_send(&mut self, n: usize) -> Done {
        let message = self.ledger.make();
        let number = message.id;
        let Some(tx) = self.sender(n) else {
            return Ok(());
        };
        let Some((ended, oldest)) = C::force_send(tx, message) else {
            return Ok(());
        };
        let (model, makes_way) = self.spec.force_send(number);
        let oldest = oldest.map(|message| message.id);
        agree("force_send", seen(&ended), (model, back(model, number)))?;
        agree("what made way", oldest, makes_way)
    }

    pub(super) fn try_reserve(&mut self, n: usize, way: Way) -> Done {
        if self.permits.len() >= MAX_PERMITS {
            return Ok(());
        }
        let Some(lent) = self.lend_sender(n) else {
            return Ok(());
        };
        // SAFETY: kept beside what borrows it.
        let Some(ended) = C::try_reserve(unsafe { lent.borrow() }, way) else {
            self.end_share(Share::Lent(Arc::new(lent)));
            return Ok(());
        };
        let model = self.spec.attempt_now(Kind::Reserve(way.count()));
        agree("try_reserve", seen(&ended).0, model)?;
        self.hold(ended, lent, way);
        Ok(())
    }

    /// Keeps permits, if that is what it comes to.
    fn hold(&mut self, ended: Ended<C>, lent: Lent<C::Tx>, way: Way) {
        let mut share = Share::Lent(Arc::new(lent));
        let Ended::Permits(permits) = ended else {
            self.end_share(share);
            return;
        };
        if way == Way::Owned {
            // It has a sender of its own instead.
            drop(std::mem::replace(&mut share, Share::Owned));
        }
        self.permits.push(Holding { permits, share });
    }

    // ---- futures

    /// Adds a future, if there is a sender and room for it; `make` makes it and its model, if the channel
    /// offers it.
    fn add(
        &mut self,
        n: usize,
        make: impl FnOnce(&mut Self, &'static C::Tx, Id) -> Option<Wait<C>>,
    ) -> Option<&mut Waiting<C, C::Tx>> {
        if self.sends.len() >= MAX_FUTURES {
            return None;
        }
        let lent = self.lend_sender(n)?;
        let id = self.id();
        // SAFETY: kept beside the future.
        let future = make(self, unsafe { lent.borrow() }, id);
        let share = Share::Lent(Arc::new(lent));
        let Some(future) = future else {
            self.end_share(share);
            return None;
        };
        let watch = Watch::new(&mut self.counters);
        self.sends.push(Waiting {
            id,
            future,
            share,
            limit: None,
            cancel: None,
            watch,
        });
        self.sends.last_mut()
    }

    pub(super) fn send(&mut self, n: usize) -> Done {
        self.add(n, |this, tx, id| {
            let message = this.ledger.make();
            let kind = Kind::Send(message.id);
            let future = C::send(tx, message)?;
            this.spec.make(id, kind);
            Some(future)
        });
        Ok(())
    }

    pub(super) fn send_or(&mut self, n: usize) -> Done {
        let cancel = Arc::new(AtomicBool::new(false));
        let added = self.add(n, |this, tx, id| {
            let message = this.ledger.make();
            let number = message.id;
            let future = C::send_or(tx, message, Arc::clone(&cancel))?;
            if this.spec.is_hand_to_hand() {
                this.spec.make(id, Kind::Send(number));
            } else {
                this.spec.make_exact(id, [number]);
            }
            Some(future)
        });
        if let Some(waiting) = added {
            waiting.cancel = Some(cancel);
        }
        Ok(())
    }

    pub(super) fn send_many(&mut self, n: usize, count: usize) -> Done {
        self.add(n, |this, tx, id| {
            let messages: VecDeque<_> = (0..count).map(|_| this.ledger.make()).collect();
            let numbers: Vec<usize> = messages.iter().map(|message| message.id).collect();
            let future = C::send_many(tx, messages)?;
            this.spec.make_exact(id, numbers);
            Some(future)
        });
        Ok(())
    }

    pub(super) fn cancel(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.sends.len())
            && let Some(cancel) = &self.sends[i].cancel
        {
            cancel.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    pub(super) fn reserve(&mut self, n: usize, way: Way) -> Done {
        let added = self.add(n, |this, tx, id| {
            let future = C::reserve(tx, way)?;
            this.spec.make(id, Kind::Reserve(way.count()));
            Some(future)
        });
        if let Some(waiting) = added
            && way == Way::Owned
        {
            // It has a sender of its own instead.
            drop(std::mem::replace(&mut waiting.share, Share::Owned));
        }
        Ok(())
    }

    pub(super) fn closed(&mut self, n: usize) -> Done {
        self.add(n, |this, tx, id| {
            let future = C::closed(tx)?;
            this.spec.make(id, Kind::Closed);
            Some(future)
        });
        Ok(())
    }

    pub(super) fn poll_send(&mut self, n: usize, with: With, task: Option<&Waker>) -> Done {
        let Some(i) = pick(n, self.sends.len()) else {
            return Ok(());
        };
        let waiting = &mut self.sends[i];
        let id = waiting.id;
        let (waker, own) = waiting.watch.next(with, task, &mut self.counters);
        let real = waiting
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&waker));
        let cancelled =
            (waiting.cancel.as_ref()).is_some_and(|cancel| cancel.load(Ordering::SeqCst));
        let model = self.spec.poll(id, own, cancelled);
        let Poll::Ready(ended) = real else {
            return agree("poll", (Outcome::Pending, Vec::new()), model);
        };
        agree("poll", seen(&ended), model)?;
        let Waiting { future, share, .. } = self.sends.remove(i);
        drop(future);
        match ended {
            Ended::Permits(permits) => self.permits.push(Holding { permits, share }),
            _ => self.end_share(share),
        }
        Ok(())
    }

    pub(super) fn drop_send(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.sends.len()) {
            let waiting = self.sends.remove(i);
            drop(waiting.future);
            self.spec.drop(waiting.id);
            self.end_share(waiting.share);
        }
        Ok(())
    }

    pub(super) fn forget_send(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.sends.len())
            && self.lost.len() < MAX_FORGOTTEN
        {
            let Waiting {
                id,
                future,
                share,
                watch,
                ..
            } = self.sends.remove(i);
            let kept = (Corpse::<C>(future), share);
            self.lost.push(Lost {
                id,
                watch,
                _kept: Some(Box::new(kept)),
            });
        }
        Ok(())
    }

    pub(super) fn leak_send(&mut self, n: usize) -> Done {
        let Some(i) = pick(n, self.sends.len()) else {
            return Ok(());
        };
        if self.leaks >= MAX_LEAKED {
            return Ok(());
        }
        let Waiting {
            id,
            future,
            share,
            watch,
            ..
        } = self.sends.remove(i);
        self.leaked.extend(self.spec.messages_of(id));
        self.leaks += 1;
        leak(Corpse::<C>(future));
        self.lost.push(Lost {
            id,
            watch,
            _kept: None,
        });
        if let Share::Lent(_) = share {
            self.end_share(share);
        }
        Ok(())
    }

    // ---- permits

    pub(super) fn permit_send(&mut self, n: usize, count: usize) -> Done {
        let Some(i) = pick(n, self.permits.len()) else {
            return Ok(());
        };
        let Holding { permits, share } = self.permits.remove(i);
        let held = permits.count();
        let mut messages: Vec<_> = (0..count).map(|_| self.ledger.make()).collect();
        let numbers: Vec<usize> = messages.iter().map(|message| message.id).collect();
        let sent = permits.send(&mut messages);
        let left: Vec<usize> = messages.iter().map(|message| message.id).collect();
        drop(messages);
        let used = count.min(held);
        let model = self.spec.send_permits(&numbers[..used], held);
        // To send nothing is to give the permits back, by whatever name.
        if used > 0 {
            agree("a permit's send", sent, model == Outcome::Sent)?;
        }
        let stay = if model == Outcome::Sent { used } else { 0 };
        agree("messages not sent", &left[..], &numbers[stay..])?;
        self.end_share(share);
        Ok(())
    }

    pub(super) fn permit_next(&mut self, n: usize) -> Done {
        let Some(i) = pick(n, self.permits.len()) else {
            return Ok(());
        };
        let room = self.permits.len() < MAX_PERMITS;
        let Holding { permits, share } = &mut self.permits[i];
        if room
            && let Share::Lent(lent) = share
            && let Some(permits) = permits.next()
        {
            let share = Share::Lent(Arc::clone(lent));
            self.permits.push(Holding { permits, share });
        }
        Ok(())
    }

    pub(super) fn permit_drop(&mut self, n: usize, go: impl FnOnce(Box<dyn Permits<C>>)) -> Done {
        if let Some(i) = pick(n, self.permits.len()) {
            let Holding { permits, share } = self.permits.remove(i);
            let held = permits.count();
            go(permits);
            self.spec.return_permits(held);
            self.end_share(share);
        }
        Ok(())
    }

    pub(super) fn permit_leak(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.permits.len())
            && self.leaks < MAX_LEAKED
        {
            let Holding { permits, share } = self.permits.remove(i);
            leak(permits);
            self.leaks += 1;
            if let Share::Lent(_) = share {
                self.end_share(share);
            }
        }
        Ok(())
    }
}
