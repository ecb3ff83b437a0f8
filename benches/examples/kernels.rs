//! The operations whose instructions are counted, each in a loop: what `benches/count.py` runs.
//!
//! ```text
//! kernels NAME ITERATIONS
//! ```

use std::env;
use std::process::ExitCode;

use wakerun_channel::mpsc::{self, Receiver, Sender};

/// Does its operation so many times.
type Kernel = fn(usize);

/// The kernels by name.
const KERNELS: [(&str, Kernel); 6] = [
    ("try_send+try_recv", |n| in_task(64, n, try_pair)),
    ("send+recv", |n| in_task(64, n, async_pair)),
    ("try_send+try_recv, no runtime", |n| {
        let (tx, rx) = mpsc::channel(64);
        wakerun::wake::block_on_thread(try_pair(tx, rx, n));
    }),
    ("reserve+send+recv", |n| in_task(64, n, permit_pair)),
    ("a message through capacity 1, 1 sender", |n| funnel(1, n)),
    ("a message through capacity 1, 13 senders", |n| {
        funnel(13, n)
    }),
];

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

/// Runs a pair of operations in a task of a current-thread runtime.
fn in_task<F>(capacity: usize, n: usize, kernel: fn(Sender<usize>, Receiver<usize>, usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    let (tx, rx) = mpsc::channel(capacity);
    runtime.block_on(runtime.spawn(kernel(tx, rx, n))).unwrap();
}

async fn try_pair(tx: Sender<usize>, mut rx: Receiver<usize>, n: usize) {
    for i in 0..n {
        tx.try_send(i).unwrap();
        assert_eq!(rx.try_recv(), Ok(i));
    }
}

async fn async_pair(tx: Sender<usize>, mut rx: Receiver<usize>, n: usize) {
    for i in 0..n {
        tx.send(i).await.unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

async fn permit_pair(tx: Sender<usize>, mut rx: Receiver<usize>, n: usize) {
    for i in 0..n {
        tx.reserve().await.unwrap().send(i).unwrap();
        assert_eq!(rx.recv().await, Some(i));
    }
}

/// Sends `n` messages through one channel of capacity 1, on one worker.
fn funnel(senders: usize, n: usize) {
    let runtime = wakerun::Builder::new_current_thread().build().unwrap();
    let (tx, mut rx) = mpsc::channel(1);
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
