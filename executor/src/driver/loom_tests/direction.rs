//! A direction: an event against the operation that would block, and those who wait.

use std::future::poll_fn;
use std::task::Poll;

use loom::thread;

use super::super::direction::Direction;
use super::super::wakes::Wakes;
use super::count;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::wake::block_on_thread;

/// A socket with some messages in it.
struct Socket {
    direction: Direction,
    messages: AtomicUsize,
}

impl Socket {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            direction: Direction::new(),
            messages: AtomicUsize::new(0),
        })
    }

    /// A message, and the turn of the driver that tells of it.
    fn arrive(&self) {
        self.messages.fetch_add(1, Ordering::AcqRel);
        let mut wakes = Wakes::default();
        self.direction.set_ready(&mut wakes);
        wakes.fire();
    }

    fn take(&self) -> bool {
        let mut now = self.messages.load(Ordering::Acquire);
        while now > 0 {
            match self
                .messages
                .compare_exchange(now, now - 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// As `Async::read_with`.
    async fn read(&self) -> std::io::Result<()> {
        loop {
            let seen = match self.direction.try_now()? {
                Some(seen) => seen,
                None => self.direction.ready_to_try().await?,
            };
            if self.take() {
                return Ok(());
            }
            self.direction.clear(seen);
        }
    }

    /// As `Async::poll_read_with`.
    async fn poll_read(&self) -> std::io::Result<()> {
        poll_fn(|cx| {
            loop {
                let seen = match self.direction.poll_try(cx) {
                    Poll::Ready(seen) => seen?,
                    Poll::Pending => return Poll::Pending,
                };
                if self.take() {
                    return Poll::Ready(Ok(()));
                }
                self.direction.clear(seen);
            }
        })
        .await
    }
}

#[test]
fn an_event_between_the_operation_and_its_failure_is_not_lost() {
    loom::model(|| {
        let socket = Socket::new();
        let reader = {
            let socket = socket.clone();
            thread::spawn(move || {
                block_on_thread(socket.read()).unwrap();
                block_on_thread(socket.poll_read()).unwrap();
            })
        };
        socket.arrive();
        socket.arrive();
        reader.join().unwrap();
    });
}

#[test]
fn two_readers_and_two_messages_come_together() {
    loom::model(|| {
        let socket = Socket::new();
        let other = {
            let socket = socket.clone();
            thread::spawn(move || block_on_thread(socket.read()).unwrap())
        };
        socket.arrive();
        socket.arrive();
        block_on_thread(socket.poll_read()).unwrap();
        other.join().unwrap();
    });
}

#[test]
fn a_wait_that_is_dropped_under_an_event_leaves_nothing() {
    loom::model(|| {
        let socket = Socket::new();
        let (count, waker) = count();
        let seen = socket.direction.try_now().unwrap().unwrap();
        socket.direction.clear(seen);
        let driver = {
            let socket = socket.clone();
            thread::spawn(move || socket.arrive())
        };
        {
            let mut wait = std::pin::pin!(socket.direction.ready());
            let mut cx = std::task::Context::from_waker(&waker);
            let _ = wait.as_mut().poll(&mut cx);
        }
        driver.join().unwrap();
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&count), 1);
        assert!(count.get() <= 1);
        assert!(socket.direction.try_now().unwrap().is_some());
    });
}

#[test]
fn whoever_comes_to_wait_when_the_runtime_ends_is_told() {
    loom::model(|| {
        let socket = Socket::new();
        let end = {
            let socket = socket.clone();
            thread::spawn(move || {
                let mut wakes = Wakes::default();
                socket.direction.close(&mut wakes);
                wakes.fire();
            })
        };
        assert!(block_on_thread(socket.read()).is_err());
        end.join().unwrap();
    });
}
