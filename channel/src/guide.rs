//! The guide: how to choose a channel, how to live with its bound, what can be cancelled when, and how to
//! move here from other channels.
//!
//! | page | its question |
//! |---|---|
//! | [`choosing`] | Which channel is for what, and which are elsewhere? |
//! | [`backpressure`] | What happens when a channel is full, and how are programs made of that? |
//! | [`cancel_safety`] | What does it do to drop each of the futures, or to keep one without polling it? |
//! | [`from_tokio`] | What do the names of `tokio::sync::mpsc` become? |
//! | [`from_async_channel`] | Those of `async-channel`? |
//! | [`from_flume`] | Those of `flume`? |
//!
//! All code on these pages is compiled and run with the tests.

pub mod choosing {
    #![doc = include_str!("../guide/choosing.md")]
}

pub mod backpressure {
    #![doc = include_str!("../guide/backpressure.md")]
}

pub mod cancel_safety {
    #![doc = include_str!("../guide/cancel_safety.md")]
}

pub mod from_tokio {
    #![doc = include_str!("../guide/from_tokio.md")]
}

pub mod from_async_channel {
    #![doc = include_str!("../guide/from_async_channel.md")]
}

pub mod from_flume {
    #![doc = include_str!("../guide/from_flume.md")]
}
