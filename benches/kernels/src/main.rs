//! The operations whose instructions are counted, each in a loop: what `benches/count.py` runs.
//!
//! ```text
//! kernels NAME ITERATIONS
//! ```

use std::env;
use std::future::poll_fn;
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use wakerun_channel::error::TrySendError;
use wakerun_channel::{mpmc, mpsc, unbounded};

/// Does its operation so many times.
type Kernel = fn(usize);

/// The kernels by name.
const KERNELS: [(&str, Kernel); 22] = [
    ("try_send+try_recv", |n| in_task(try_pair(n))),
    ("send+recv", |n| in_task(async_pair(n))),
    ("try_send+try_recv, no runtime", |n| {
        wakerun::wake::block_on_thread(try_pair(n));
    }),
    ("reserve+send+recv", |n| in_task(permit_pair(n))),
    ("send+recv, mpmc", |n| in_task(mpmc_pair(n))),
    ("send+recv, unbounded", |n| in_task(unbounded_pair(n))),
    ("a message through capacity 1, 1 sender", |n| {
        funnel(1, 1, n)
    }),
    ("a message through capacity 1, 13 senders", |n| {
        funnel(13, 1, n)
    }),
    ("a message through capacity 10, 13 senders", |n| {
        funnel(13, 10, n)
    }),
    ("a message through mpmc, 1 to 8", |n| {
        many_receivers(1, 8, n)
    }),
    ("a message through mpmc, 8 to 1", |n| {
        many_receivers(8, 1, n)
    }),
    ("a message through mpmc, 8 to 8", |n| {
        many_receivers(8, 8, n)
    }),
    ("spawn of a task, its run and end", |n| in_task(spawns(n))),
    ("yield", |n| in_task(yields(n))),
    ("a timer set and cancelled", |n| in_task(timers(n))),
    ("try_send+try_recv, 1 KiB", |n| in_task(large_try_pair(n))),
    ("send+recv, 1 KiB", |n| in_task(large_pair(n))),
    ("reserve+send+recv, 1 KiB", |n| {
        in_task(large_permit_pair(n))
    }),
    (
        "a message through capacity 64, 4 senders, 1 KiB",
        large_funnel,
    ),
    ("try_send to a full channel, 1 KiB", |n| {
        in_task(large_refused(n));
    }),
    ("reserve+send_with+recv_ref, 1 KiB", |n| {
        in_task(large_in_place(n));
    }),
    ("send+recv, capacity 10,000", |n| in_task(block_pair(n))),
];

/// A large message: 1 KiB, all of it written, of which the receiver looks at both ends.
struct Large([u64; 128]);

impl Large {
    #[inline]
    fn new(number: usize) -> Self {
        Self([number as u64; 128])
    }

    #[inline]
    fn number(&self) -> usize {
        assert_eq!(self.0[0], self.0[127]);
        self.0[0] as usize
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [name, iterations] = &args[..]
        && let Ok(iterations) = iterations.parse()
        && let Some((_, kernel)) = KERNELS.iter().find(|(kernel, _)| kernel == name)
    {
        kernel(iterations);
        return ExitCode::SUCCESS;
    }
    for (name, _) in KERNELS {
        println!("{name}");
    }
    ExitCode::from(2)
}

/// Runs a task on a current-thread runtime.
fn in_task(task: impl Future<Output = ()> + Send + 'static) {
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    runtime.block_on(runtime.spawn(task)).unwrap();
}

async fn try_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        tx.try_send(i).unwrap();
        assert_eq!(rx.try_recv(), Ok(i));
    }
}

async fn async_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        tx.send(i).await.unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

async fn large_try_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        assert!(tx.try_send(Large::new(i)).is_ok());
        // By reference: the loop moves nothing.
        assert!(matches!(&rx.try_recv(), Ok(large) if large.number() == i));
    }
}

async fn large_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        assert!(tx.send(Large::new(i)).await.is_ok());
        assert!(matches!(&rx.recv().await, Some(large) if large.number() == i));
    }
}

async fn large_permit_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        assert!(tx.reserve().await.unwrap().send(Large::new(i)).is_ok());
        assert!(matches!(&rx.recv().await, Some(large) if large.number() == i));
    }
}

async fn large_in_place(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        let permit = tx.reserve().await.unwrap();
        assert!(permit.send_with(|| Large::new(i)).is_ok());
        assert!(matches!(&rx.recv_ref().await, Some(large) if large.number() == i));
    }
}

/// The slots are in blocks.
async fn block_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(10_000);
    for i in 0..n {
        tx.send(i).await.unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

async fn large_refused(n: usize) {
    let (tx, _rx) = mpsc::channel(1);
    assert!(tx.try_send(Large::new(0)).is_ok());
    for i in 0..n {
        let refused = tx.try_send(Large::new(i));
        assert!(matches!(&refused, Err(TrySendError::Full(large)) if large.number() == i));
    }
}

/// Sends `n` large messages through one channel that is full most of the time, on one worker.
fn large_funnel(n: usize) {
    const SENDERS: usize = 4;
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    let (tx, mut rx) = mpsc::channel(64);
    for _ in 0..SENDERS {
        let tx = tx.clone();
        drop(runtime.spawn(async move {
            for i in 0..n / SENDERS {
                assert!(tx.send(Large::new(i)).await.is_ok());
            }
        }));
    }
    drop(tx);
    let receiver = runtime.spawn(async move {
        let mut sum = 0;
        while let Some(large) = &rx.recv().await {
            sum += large.number();
        }
        sum
    });
    assert!(runtime.block_on(receiver).unwrap() > 0);
}

async fn permit_pair(n: usize) {
    let (tx, mut rx) = mpsc::channel(64);
    for i in 0..n {
        tx.reserve().await.unwrap().send(i).unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

async fn mpmc_pair(n: usize) {
    let (tx, rx) = mpmc::channel(64);
    for i in 0..n {
        tx.send(i).await.unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

async fn unbounded_pair(n: usize) {
    let (tx, rx) = unbounded::channel();
    for i in 0..n {
        tx.send(i).unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

/// Sends `n` messages through one channel, on one worker.
fn funnel(senders: usize, capacity: usize, n: usize) {
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    let (tx, mut rx) = mpsc::channel(capacity);
    let share = n / senders;
    for _ in 0..senders {
        let tx = tx.clone();
        drop(runtime.spawn(async move {
            for i in 0..share {
                tx.send(i).await.unwrap();
            }
        }));
    }
    drop(tx);
    let receiver = runtime.spawn(async move {
        let mut count = 0;
        while rx.recv().await.is_some() {
            count += 1;
        }
        count
    });
    assert_eq!(runtime.block_on(receiver).unwrap(), share * senders);
}

/// Sends `n` messages through one channel of capacity 64 to many receivers, on one worker.
fn many_receivers(senders: usize, receivers: usize, n: usize) {
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    let (tx, rx) = mpmc::channel(64);
    let share = n / senders;
    for _ in 0..senders {
        let tx = tx.clone();
        drop(runtime.spawn(async move {
            for i in 0..share {
                tx.send(i).await.unwrap();
            }
        }));
    }
    drop(tx);
    let receivers: Vec<_> = (0..receivers)
        .map(|_| {
            let rx = rx.clone();
            runtime.spawn(async move {
                let mut count = 0;
                while rx.recv().await.is_some() {
                    count += 1;
                }
                count
            })
        })
        .collect();
    drop(rx);
    runtime.block_on(async move {
        let mut count = 0;
        for receiver in receivers {
            count += receiver.await.unwrap();
        }
        assert_eq!(count, share * senders);
    });
}

async fn spawns(n: usize) {
    for _ in 0..n {
        wakerun::spawn(async {}).await.unwrap();
    }
}

async fn yields(n: usize) {
    for _ in 0..n {
        wakerun::task::yield_now().await;
    }
}

async fn timers(n: usize) {
    for _ in 0..n {
        let mut sleep = pin!(wakerun::time::sleep(Duration::from_secs(3600)));
        poll_fn(|cx| {
            assert!(sleep.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }
}
