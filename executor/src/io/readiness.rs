//! Waiting for readiness alone, and operations as futures.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Async;
use crate::driver::Interest;
use crate::sys;
use crate::wake;

impl<T> Async<T> {
    /// Whoever waits for readiness alone does not tell us when it is over. So the system is asked
    /// whether what an event has said still holds.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<()> {
        poll_fn(wake::poll_budget).await;
        let direction = self.registration.direction(interest);
        loop {
            let seen = direction.ready().await?;
            if self.is_ready(interest) {
                return Ok(());
            }
            self.registration.clear(interest, seen)?;
        }
    }

    pub(super) fn poll_ready(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(wake::poll_budget(cx));
        let direction = self.registration.direction(interest);
        loop {
            let Poll::Ready(seen) = direction.poll_ready(cx) else {
                wake::refund_budget();
                return Poll::Pending;
            };
            let seen = seen?;
            if self.is_ready(interest) {
                return Poll::Ready(Ok(()));
            }
            self.registration.clear(interest, seen)?;
        }
    }

    /// Asks the system, without waiting.
    fn is_ready(&self, interest: Interest) -> bool {
        let wanted = match interest {
            Interest::Read => sys::READABLE,
            Interest::Write => PollFlags::OUT,
        };
        let mut fds = [PollFd::from_borrowed_fd(self.registration.fd(), wanted)];
        // A call that fails says nothing: the operation will tell.
        poll(&mut fds, Some(&Timespec::default())).is_err() || !fds[0].revents().is_empty()
    }

    pub(super) async fn with<R>(
        &self,
        interest: Interest,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        poll_fn(wake::poll_budget).await;
        let direction = self.registration.direction(interest);
        loop {
            let seen = match direction.try_now()? {
                Some(seen) => seen,
                None => direction.ready_to_try().await?,
            };
            match op(&self.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.registration.clear(interest, seen)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}
