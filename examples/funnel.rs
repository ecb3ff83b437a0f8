//! The smallest funnel: some producers, one consumer, and little room in between.
//!
//! ```text
//! cargo run --release --example funnel
//! ```

use wakerun_channel::mpsc;

#[wakerun::main]
async fn main() {
    // At most four messages wait at any time, however fast the producers are.
    let (sender, mut receiver) = mpsc::channel(4);

    for producer in 1..=3 {
        // Each producer is a task of its own, and has a sender of its own.
        let sender = sender.clone();
        // Its handle is dropped: nobody waits for it, and it goes on by itself.
        wakerun::spawn(async move {
            for number in 1..=5 {
                // A full channel makes `send` wait: this is the backpressure. It fails only when
                // there is no receiver any more, and then nobody misses the rest.
                if sender.send((producer, number)).await.is_err() {
                    return;
                }
            }
        });
    }
    // The channel ends with its last sender: this one would keep it open for ever.
    drop(sender);

    // The messages of one producer arrive in order, those of several ones in any mixture.
    while let Some((producer, number)) = receiver.recv().await {
        println!("message {number} of producer {producer}");
    }
}
