//! The receiving end: attempts, futures, and receivers that are polled themselves.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{
    Corpse, Lost, MAX_FORGOTTEN, MAX_FUTURES, MAX_LEAKED, Port, Share, Sides, Waiting, agree, leak,
    pick,
};
use crate::model::channel::{Channel, Ended};
use crate::model::lent::Lent;
use crate::model::op::With;
use crate::model::spec::{Id, Kind, Received};
use crate::model::watch::Watch;

type Done = Result<(), String>;

/// The messages of a receive; `None`: it found nothing, or waits.
fn seen<C: Channel>(ended: &Ended<C>) -> Option<Vec<usize>> {
    match ended {
        Ended::Received(messages) => Some(messages.iter().map(|message| message.id).collect()),
        Ended::Seen(message) => Some(vec![*message]),
        _ => None,
    }
}

impl<C: Channel> Sides<C> {
    pub(super) fn add_receiver(&mut self, rx: C::Rx) {
        let id = self.id();
        self.spec.make(id, Kind::Receive);
        let watch = Watch::new(&mut self.counters);
        self.receivers.push(Port { rx, id, watch });
    }

    /// The `n`-th receiver. The only one there can be is taken from the future that has it, which goes.
    pub(super) fn receiver(&mut self, n: usize) -> Option<usize> {
        if !C::MANY && !self.recvs.is_empty() {
            let _ = self.drop_recv(0);
        }
        pick(n, self.receivers.len())
    }

    /// A future that had a receiver is gone.
    fn end_receive(&mut self, share: Share<C::Rx>) {
        match share.end() {
            Some(Some(rx)) if !C::MANY => self.add_receiver(rx),
            Some(rx) => {
                drop(rx);
                self.spec.drop_receiver();
            }
            None => unreachable!("receivers are not shared"),
        }
    }

    pub(super) fn recv(&mut self, n: usize, limit: Option<usize>) -> Done {
        let Some(i) = pick(n, self.receivers.len()) else {
            return Ok(());
        };
        if self.recvs.len() >= MAX_FUTURES {
            return Ok(());
        }
        let rx = match C::clone_receiver(&self.receivers[i].rx) {
            Some(rx) => {
                self.spec.receivers += 1;
                rx
            }
            None => self.receivers.remove(i).rx,
        };
        let lent = Lent::new(rx);
        // SAFETY: kept beside the future, and not used while that is there.
        let future = unsafe { C::recv(&lent, limit) };
        let share = Share::Lent(Arc::new(lent));
        let Some(future) = future else {
            self.end_receive(share);
            return Ok(());
        };
        let id = self.id();
        self.spec.make(id, Kind::Receive);
        let watch = Watch::new(&mut self.counters);
        self.recvs.push(Waiting {
            id,
            future,
            share,
            limit,
            cancel: None,
            watch,
        });
        Ok(())
    }

    /// What a poll for up to `limit` messages comes to.
    fn model_poll(&mut self, id: Id, own: bool, limit: Option<usize>) -> Option<Vec<usize>> {
        if limit == Some(0) {
            return Some(Vec::new());
        }
        match self.spec.poll_recv(id, own) {
            Received::Nothing => None,
            Received::End => Some(Vec::new()),
            Received::Message(first) => {
                let more = limit.map_or(0, |limit| limit - 1);
                let mut all = vec![first];
                all.extend(self.spec.take_more(more));
                Some(all)
            }
        }
    }

    pub(super) fn poll_recv(&mut self, n: usize, with: With, task: Option<&Waker>) -> Done {
        let Some(i) = pick(n, self.recvs.len()) else {
            return Ok(());
        };
        let waiting = &mut self.recvs[i];
        let (id, limit) = (waiting.id, waiting.limit);
        let (waker, own) = waiting.watch.next(with, task, &mut self.counters);
        let real = match waiting
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
        {
            Poll::Ready(ended) => seen(&ended),
            Poll::Pending => None,
        };
        let ready = real.is_some();
        let model = self.model_poll(id, own, limit);
        agree("recv", real, model)?;
        if ready {
            self.drop_recv(i)?;
        }
        Ok(())
    }

    pub(super) fn drop_recv(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.recvs.len()) {
            let waiting = self.recvs.remove(i);
            drop(waiting.future);
            self.spec.drop(waiting.id);
            self.end_receive(waiting.share);
        }
        Ok(())
    }

    /// The only receiver there can be is not kept away for ever.
    pub(super) fn forget_recv(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.recvs.len())
            && C::MANY
            && self.lost.len() < MAX_FORGOTTEN
        {
            let Waiting {
                id,
                future,
                share,
                watch,
                ..
            } = self.recvs.remove(i);
            let kept = (Corpse::<C>(future), share);
            self.lost.push(Lost {
                id,
                watch,
                _kept: Some(Box::new(kept)),
            });
        }
        Ok(())
    }

    pub(super) fn leak_recv(&mut self, n: usize) -> Done {
        if let Some(i) = pick(n, self.recvs.len())
            && self.leaks < MAX_LEAKED
        {
            let Waiting {
                id,
                future,
                share,
                watch,
                ..
            } = self.recvs.remove(i);
            self.leaks += 1;
            leak(Corpse::<C>(future));
            self.lost.push(Lost {
                id,
                watch,
                _kept: None,
            });
            self.end_receive(share);
        }
        Ok(())
    }

    pub(super) fn try_recv(&mut self, n: usize) -> Done {
        let Some(i) = self.receiver(n) else {
            return Ok(());
        };
        let real = seen(&C::try_recv(&mut self.receivers[i].rx));
        let model = match self.spec.try_recv() {
            Received::Message(number) => Some(vec![number]),
            Received::Nothing => None,
            Received::End => Some(Vec::new()),
        };
        agree("try_recv", real, model)
    }

    pub(super) fn try_recv_ref(&mut self, n: usize, moved: bool) -> Done {
        let Some(i) = self.receiver(n) else {
            return Ok(());
        };
        let Some(ended) = C::try_recv_ref(&mut self.receivers[i].rx, moved) else {
            return Ok(());
        };
        let model = match self.spec.try_recv() {
            Received::Message(number) => Some(vec![number]),
            Received::Nothing => None,
            Received::End => Some(Vec::new()),
        };
        agree("try_recv_ref", seen(&ended), model)
    }

    pub(super) fn poll_receiver(
        &mut self,
        n: usize,
        with: With,
        task: Option<&Waker>,
        limit: Option<usize>,
        poll: impl FnOnce(&mut C::Rx, &mut Context<'_>) -> Poll<Ended<C>>,
    ) -> Done {
        let Some(i) = self.receiver(n) else {
            return Ok(());
        };
        let port = &mut self.receivers[i];
        let id = port.id;
        if limit == Some(0) {
            // It is over before it looks at its waker.
            let ended = poll(&mut port.rx, &mut Context::from_waker(Waker::noop()));
            return agree("a receive of none", ended.is_ready(), true);
        }
        let (waker, own) = port.watch.next(with, task, &mut self.counters);
        let real = match poll(&mut port.rx, &mut Context::from_waker(&waker)) {
            Poll::Ready(ended) => seen(&ended),
            Poll::Pending => None,
        };
        let model = self.model_poll(id, own, limit);
        agree("poll_recv", real, model)
    }

    pub(super) fn close(&mut self, n: usize) -> Done {
        if let Some(i) = self.receiver(n) {
            C::close(&mut self.receivers[i].rx);
            self.spec.close();
        }
        Ok(())
    }
}
