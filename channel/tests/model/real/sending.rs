//! The sending end: attempts, futures, permits.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{
    Corpse, Holding, Lost, MAX_FORGOTTEN, MAX_FUTURES, MAX_PERMITS, Share, Sides, Waiting, agree,
    leak, pick,
};
use crate::model::channel::{Channel, Ended, Permits, Wait, Way};
use crate::model::lent::Lent;
use crate::model::op::With;
use crate::model::spec::{Kind, Outcome};
use crate::model::watch::Watch;

type Done = Result<(), String>;

/// What an end on this side comes to, and the message that came back.
fn seen<C: Channel>(ended: &Ended<C>) -> (Outcome, Option<usize>) {
    match ended {
        Ended::Sent => (Outcome::Sent, None),
        Ended::Permits(_) => (Outcome::Permits, None),
        Ended::Full(message) => (Outcome::Full, message.as_ref().map(|m| m.id)),
        Ended::TooMany => (Outcome::TooMany, None),
        Ended::Closed(message) => (Outcome::Closed, message.as_ref().map(|m| m.id)),
        Ended::Received(_) => unreachable!("senders do not receive"),
    }
}

/// The message that comes back with an outcome.
fn back(outcome: Outcome, kind: Kind) -> Option<usize> {
    match (outcome, kind) {
        (Outcome::Full | Outcome::Closed, Kind::Send(message)) => Some(message),
        _ => None,
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
        let kind = Kind::Send(message.id);
        let Some(tx) = self.sender(n) else {
            return Ok(());
        };
        let Some(ended) = C::try_send(tx, message) else {
            return Ok(());
        };
        let model = self.spec.attempt_now(kind);
        agree("try_send", seen(&ended), (model, back(model, kind)))
    }

    pub(super) fn force_send(&mut self, n: usize) -> Done {
        let message = self.ledger.make();
        let kind = Kind::Send(message.id);
        let Some(tx) = self.sender(n) else {
            return Ok(());
        };
        let number = message.id;
        let Some((ended, oldest)) = C::force_send(tx, message) else {
            return Ok(());
        };
        let (model, makes_way) = self.spec.force_send(number);
        let oldest = oldest.map(|message| message.id);
        agree("force_send", seen(&ended), (model, back(model, kind)))?;
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

    fn add(
        &mut self,
        n: usize,
        kind: impl FnOnce(&mut Self) -> Kind,
        owned: bool,
        make: impl FnOnce(&mut Self, &'static C::Tx) -> Option<Wait<C>>,
    ) -> Done {
        if self.sends.len() >= MAX_FUTURES {
            return Ok(());
        }
        let Some(lent) = self.lend_sender(n) else {
            return Ok(());
        };
        // SAFETY: kept beside the future.
        let future = make(self, unsafe { lent.borrow() });
        let mut share = Share::Lent(Arc::new(lent));
        let Some(future) = future else {
            self.end_share(share);
            return Ok(());
        };
        if owned {
            drop(std::mem::replace(&mut share, Share::Owned));
        }
        let id = self.id();
        let kind = kind(self);
        self.spec.make(id, kind);
        let watch = Watch::new(&mut self.counters);
        self.sends.push(Waiting {
            id,
            future,
            share,
            limit: None,
            watch,
        });
        Ok(())
    }

    pub(super) fn send(&mut self, n: usize) -> Done {
        let kind = |this: &mut Self| Kind::Send(this.ledger.made() - 1);
        self.add(n, kind, false, |this, tx| C::send(tx, this.ledger.make()))
    }

    pub(super) fn reserve(&mut self, n: usize, way: Way) -> Done {
        let kind = |_: &mut Self| Kind::Reserve(way.count());
        self.add(n, kind, way == Way::Owned, |_, tx| C::reserve(tx, way))
    }

    pub(super) fn closed(&mut self, n: usize) -> Done {
        self.add(n, |_| Kind::Closed, false, |_, tx| C::closed(tx))
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
        let kind = self.spec.waiter(id).kind;
        let model = self.spec.poll(id, own);
        let Poll::Ready(ended) = real else {
            return agree("poll", Outcome::Pending, model);
        };
        agree("poll", seen(&ended), (model, back(model, kind)))?;
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
        let Waiting {
            id,
            future,
            share,
            watch,
            ..
        } = self.sends.remove(i);
        if let Kind::Send(number) = self.spec.waiter(id).kind {
            self.leaked.push(number);
        }
        self.any_leaked = true;
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
        if let Some(i) = pick(n, self.permits.len()) {
            let Holding { permits, share } = self.permits.remove(i);
            std::mem::forget(permits);
            self.any_leaked = true;
            if let Share::Lent(_) = share {
                self.end_share(share);
            }
        }
        Ok(())
    }
}
