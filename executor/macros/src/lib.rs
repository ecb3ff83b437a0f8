//! The attribute macros of the [wakerun] runtime: [`macro@main`] and [`macro@test`].
//!
//! Use them as `#[wakerun::main]` and `#[wakerun::test]`; this crate is an implementation detail.
//!
//! The macros never look inside a function body. They find the few tokens that matter in front of
//! it, so they need no parser for the whole language and no dependencies:
//!
//! | module | does | works on |
//! |---|---|---|
//! | `token` | reduces token trees to what the macros ask about | compiler tokens |
//! | `args` | reads `(flavor = "…", worker_threads = N)` | reduced tokens |
//! | `signature` | finds `async`, the name, the parameters and the body | reduced tokens |
//! | `expand` | writes the new function, or the errors | compiler tokens |
//!
//! The two modules in the middle hold all decisions and know places instead of compiler spans, so
//! that they can be unit-tested outside of a compiler.
//!
//! [wakerun]: https://docs.rs/wakerun

mod args;
mod error;
mod expand;
mod signature;
mod token;

use proc_macro::TokenStream;

/// Which of the two macros is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Main,
    Test,
}

impl Kind {
    /// The macro's name as users write it.
    fn attribute(self) -> &'static str {
        match self {
            Kind::Main => "#[wakerun::main]",
            Kind::Test => "#[wakerun::test]",
        }
    }
}

/// Runs an `async fn` on a new runtime, and returns what it returns.
///
/// ```
/// #[wakerun::main]
/// async fn main() {
///     let task = wakerun::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// }
/// ```
///
/// The function becomes a plain one that starts a runtime, blocks until the future is done, and
/// shuts the runtime down. It need not be called `main`. Attributes, visibility and return type
/// stay as they are, so `?` works as in any other function:
///
/// ```
/// use std::error::Error;
///
/// #[wakerun::main]
/// async fn main() -> Result<(), Box<dyn Error>> {
///     let answer: u32 = "42".parse()?;
///     assert_eq!(answer, 42);
///     Ok(())
/// }
/// ```
///
/// # Arguments
///
/// - `flavor = "multi_thread"` (the default): several worker threads that share the tasks.
///   `flavor = "current_thread"`: all tasks run on the calling thread, while it waits for the
///   function's future.
/// - `worker_threads = N`: how many workers a multi-thread runtime has, an integer above 0. Without
///   it, as many as [`Builder`] gives.
///
/// ```
/// #[wakerun::main(flavor = "multi_thread", worker_threads = 2)]
/// async fn main() {
///     assert_eq!(wakerun::Handle::current().num_workers(), 2);
/// }
/// ```
///
/// For anything else, build the runtime by hand. A function `run` with these arguments stands for:
///
/// ```
/// fn run() {
///     async fn run() {
///         assert_eq!(wakerun::Handle::current().num_workers(), 2);
///     }
///     wakerun::Builder::new_multi_thread()
///         .worker_threads(2)
///         .build()
///         .expect("failed to start the wakerun runtime")
///         .block_on(run())
/// }
/// # run();
/// ```
///
/// # What it refuses
///
/// A function that is not `async`:
///
/// ```compile_fail
/// #[wakerun::main]
/// fn main() {}
/// ```
///
/// Parameters, since nobody could pass them, and generics:
///
/// ```compile_fail
/// #[wakerun::main]
/// async fn main(arguments: Vec<String>) {}
/// ```
///
/// ```compile_fail
/// #[wakerun::main]
/// async fn run<T: Default>() {}
/// # fn main() {}
/// ```
///
/// Arguments and values that it does not know, and the same argument twice:
///
/// ```compile_fail
/// #[wakerun::main(threads = 2)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[wakerun::main(flavor = "single_thread")]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[wakerun::main(worker_threads = 2, worker_threads = 3)]
/// async fn main() {}
/// ```
///
/// No workers at all, and workers for a flavor that has none:
///
/// ```compile_fail
/// #[wakerun::main(worker_threads = 0)]
/// async fn main() {}
/// ```
///
/// ```compile_fail
/// #[wakerun::main(flavor = "current_thread", worker_threads = 2)]
/// async fn main() {}
/// ```
///
/// A body that does not fit the return type is the compiler's own error, at its usual place:
///
/// ```compile_fail,E0308
/// #[wakerun::main]
/// async fn main() -> Result<(), std::io::Error> {
///     "not a result"
/// }
/// ```
///
/// # Panics
///
/// The new function panics when the runtime cannot be started, for example because the operating
/// system refuses a thread. A panic of the function's future goes on in the calling thread.
///
/// [`Builder`]: https://docs.rs/wakerun/latest/wakerun/struct.Builder.html
#[proc_macro_attribute]
pub fn main(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Kind::Main, args, item)
}

/// Makes a test of an `async fn`, which runs on a new runtime of its own.
///
/// ```
/// # fn main() {} // documentation tests only run this
/// #[wakerun::test]
/// async fn a_task_returns_its_value() {
///     let task = wakerun::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// }
/// ```
///
/// It takes the arguments of [`macro@main`], with one difference: the flavor is `"current_thread"`
/// unless given, so that a test has one thread and few surprises. Other attributes of tests, such
/// as `#[should_panic]` and `#[ignore]`, work as usual, and so do tests that return a `Result`.
///
/// ```
/// # fn main() {} // documentation tests only run this
/// #[wakerun::test(flavor = "multi_thread", worker_threads = 2)]
/// async fn two_workers() -> Result<(), wakerun::task::JoinError> {
///     let (left, right) = (wakerun::spawn(async { 1 }), wakerun::spawn(async { 2 }));
///     assert_eq!(left.await? + right.await?, 3);
///     Ok(())
/// }
/// ```
///
/// # What it refuses
///
/// All that [`macro@main`] refuses; since the default flavor has no workers, also their number
/// alone:
///
/// ```compile_fail
/// # fn main() {}
/// #[wakerun::test(worker_threads = 2)]
/// async fn which_flavor() {}
/// ```
///
/// A second `#[test]`, which would run the test twice:
///
/// ```compile_fail
/// # fn main() {}
/// #[wakerun::test]
/// #[test]
/// async fn twice() {}
/// ```
#[proc_macro_attribute]
pub fn test(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(Kind::Test, args, item)
}
