//! Handles come and go.

use super::{MAX_HANDLES, Sides, agree, pick};
use crate::model::channel::Channel;
use crate::model::op::End;

type Done = Result<(), String>;

impl<C: Channel> Sides<C> {
    pub(super) fn clone_handle(&mut self, end: End, n: usize) -> Done {
        match end {
            End::Tx if self.senders.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.senders.len()) {
                    let tx = self.senders[i].clone();
                    self.senders.push(tx);
                    self.spec.senders += 1;
                }
            }
            End::Rx if self.receivers.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.receivers.len())
                    && let Some(rx) = C::clone_receiver(&self.receivers[i].rx)
                {
                    self.add_receiver(rx);
                    self.spec.receivers += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn drop_handle(&mut self, end: End, n: usize) -> Done {
        let left = match end {
            End::Tx => self.senders.len(),
            End::Rx => self.receivers.len(),
        };
        if left == 1 && !n.is_multiple_of(4) {
            // What ends the channel, and with it most of what can happen, is rarer.
            return Ok(());
        }
        match end {
            End::Tx => {
                if let Some(i) = pick(n, self.senders.len()) {
                    drop(self.senders.remove(i));
                    self.spec.drop_sender();
                }
            }
            End::Rx => {
                if let Some(i) = self.receiver(n) {
                    let port = self.receivers.remove(i);
                    drop(port.rx);
                    self.spec.drop(port.id);
                    self.spec.drop_receiver();
                }
            }
        }
        Ok(())
    }

    pub(super) fn drop_all(&mut self, end: End) -> Done {
        match end {
            End::Tx => {
                while !self.sends.is_empty() {
                    self.drop_send(0)?;
                }
                while !self.permits.is_empty() {
                    self.permit_drop(0, drop)?;
                }
                while !self.senders.is_empty() {
                    self.drop_handle(end, 0)?;
                }
            }
            End::Rx => {
                while !self.recvs.is_empty() {
                    self.drop_recv(0)?;
                }
                while !self.receivers.is_empty() {
                    self.drop_handle(end, 0)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn downgrade(&mut self, end: End, n: usize) -> Done {
        match end {
            End::Tx if self.weak_senders.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.senders.len()) {
                    self.weak_senders.extend(C::downgrade(&self.senders[i]));
                }
            }
            End::Rx if self.weak_receivers.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.receivers.len()) {
                    let weak = C::downgrade_receiver(&self.receivers[i].rx);
                    self.weak_receivers.extend(weak);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn upgrade(&mut self, end: End, n: usize) -> Done {
        match end {
            End::Tx if self.senders.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.weak_senders.len()) {
                    let up = C::upgrade(&self.weak_senders[i]);
                    agree("upgrade", up.is_some(), self.spec.senders > 0)?;
                    self.spec.senders += usize::from(up.is_some());
                    self.senders.extend(up);
                }
            }
            End::Rx if self.receivers.len() < MAX_HANDLES => {
                if let Some(i) = pick(n, self.weak_receivers.len()) {
                    let up = C::upgrade_receiver(&self.weak_receivers[i]);
                    agree("upgrade", up.is_some(), self.spec.receivers > 0)?;
                    if let Some(rx) = up {
                        self.spec.receivers += 1;
                        self.add_receiver(rx);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn drop_weak(&mut self, end: End, n: usize) -> Done {
        match end {
            End::Tx => {
                if let Some(i) = pick(n, self.weak_senders.len()) {
                    drop(self.weak_senders.swap_remove(i));
                }
            }
            End::Rx => {
                if let Some(i) = pick(n, self.weak_receivers.len()) {
                    drop(self.weak_receivers.swap_remove(i));
                }
            }
        }
        Ok(())
    }
}
