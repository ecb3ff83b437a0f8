//! A direction whose poller tells once.

use loom::sync::{Condvar, Mutex};
use loom::thread;
use polling::Event;

use super::super::arming::oneshot::Arming;
use super::super::direction::{Direction, Interest};
use super::super::wakes::Wakes;
use crate::sync::Arc;
use crate::wake::block_on_thread;

/// A socket with some messages in it, and a poller that tells what it has been asked.
struct AskedSocket {
    direction: Direction,
    arming: Arming,
    poller: Mutex<Question>,
    changed: Condvar,
}

struct Question {
    messages: usize,
    asked: bool,
    over: bool,
}

impl AskedSocket {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            direction: Direction::new(),
            arming: Arming::new(0),
            poller: Mutex::new(Question {
                messages: 0,
                asked: true,
                over: false,
            }),
            changed: Condvar::new(),
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut Question) -> R) -> R {
        let result = change(&mut self.poller.lock().unwrap());
        self.changed.notify_one();
        result
    }

    fn modify(&self, event: Event) -> std::io::Result<()> {
        self.change(|question| question.asked = event.readable);
        Ok(())
    }

    /// The driver: tells of events until all is over.
    fn drive(&self) {
        loop {
            let mut question = self.poller.lock().unwrap();
            while !question.over && !(question.asked && question.messages > 0) {
                question = self.changed.wait(question).unwrap();
            }
            if question.over {
                return;
            }
            question.asked = false;
            drop(question);
            self.arming
                .told(Event::readable(0), |_, rest| self.modify(rest))
                .unwrap();
            let mut wakes = Wakes::default();
            self.direction.set_ready(&mut wakes);
            wakes.fire();
        }
    }

    /// As `Async::read_with`.
    async fn read(&self) -> std::io::Result<()> {
        loop {
            let seen = match self.direction.try_now()? {
                Some(seen) => seen,
                None => self.direction.ready_to_try().await?,
            };
            let taken = self.change(|question| {
                let there = question.messages > 0;
                question.messages -= usize::from(there);
                there
            });
            if taken {
                return Ok(());
            }
            self.direction.clear(seen);
            self.arming
                .ask(0, Interest::Read, |_, event| self.modify(event))?;
        }
    }
}

#[test]
fn a_direction_that_is_not_ready_has_been_asked_for() {
    loom::model(|| {
        let socket = AskedSocket::new();
        let sender = {
            let socket = socket.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    socket.change(|question| question.messages += 1);
                }
            })
        };
        let driver = {
            let socket = socket.clone();
            thread::spawn(move || socket.drive())
        };
        block_on_thread(async {
            socket.read().await.unwrap();
            socket.read().await.unwrap();
        });
        socket.change(|question| question.over = true);
        sender.join().unwrap();
        driver.join().unwrap();
    });
}
