//! What `#[wakerun::main]` and `#[wakerun::test]` accept, and what they make of it. What they
//! refuse is tested in the macros' own crate.

#![cfg(all(feature = "macros", not(wakerun_loom)))]

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use wakerun::{Handle, RuntimeFlavor};

#[wakerun::main]
async fn default_main() -> RuntimeFlavor {
    Handle::current().flavor()
}

#[wakerun::main(flavor = "current_thread")]
async fn current_thread_main() -> RuntimeFlavor {
    Handle::current().flavor()
}

#[wakerun::main(worker_threads = 3)]
async fn three_workers() -> usize {
    Handle::current().num_workers()
}

#[wakerun::main(worker_threads = 1_usize, flavor = "multi_thread")]
async fn one_worker() -> (RuntimeFlavor, usize) {
    (Handle::current().flavor(), Handle::current().num_workers())
}

#[test]
fn main_runs_on_the_runtime_it_asks_for() {
    assert_eq!(default_main(), RuntimeFlavor::MultiThread);
    assert_eq!(current_thread_main(), RuntimeFlavor::CurrentThread);
    assert_eq!(three_workers(), 3);
    assert_eq!(one_worker(), (RuntimeFlavor::MultiThread, 1));
}

#[wakerun::test]
async fn a_test_runs_on_one_thread() {
    assert_eq!(Handle::current().flavor(), RuntimeFlavor::CurrentThread);
}

#[wakerun::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_can_have_workers() {
    assert_eq!(Handle::current().flavor(), RuntimeFlavor::MultiThread);
    assert_eq!(Handle::current().num_workers(), 2);
}

async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
    text.parse()
}

#[wakerun::main]
async fn sum_of_numbers() -> Result<u32, Box<dyn Error>> {
    Ok(parse("40").await? + parse("2").await?)
}

#[wakerun::main]
async fn not_a_number() -> Result<(), Box<dyn Error>> {
    parse("many").await?;
    Ok(())
}

#[wakerun::main]
async fn returns_early() -> io::Result<&'static str> {
    if parse("1").await.is_ok() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok("late")
}

#[wakerun::main]
async fn returns_something() -> impl Iterator<Item = u32> {
    let start = parse("1").await.unwrap();
    start..start + 3
}

#[test]
fn the_declared_type_is_returned() {
    assert_eq!(sum_of_numbers().unwrap(), 42);
    assert!(not_a_number().is_err());
    assert_eq!(returns_early().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(returns_something().eq([1, 2, 3]));
}

#[wakerun::test]
async fn a_test_can_return_a_result() -> Result<(), Box<dyn Error>> {
    assert_eq!(parse("7").await?, 7);
    Ok(())
}

// These two are only compiled: neither the type nor an unreachable end is a riddle.
#[allow(dead_code)]
#[wakerun::main]
async fn never_returns() -> ! {
    loop {
        wakerun::task::yield_now().await;
    }
}

#[allow(dead_code)]
#[wakerun::main]
async fn loops() {
    loop {
        wakerun::task::yield_now().await;
    }
}

#[wakerun::test]
async fn a_body_may_hold_what_is_not_send() {
    let shared = std::rc::Rc::new(1);
    wakerun::task::yield_now().await;
    assert_eq!(*shared, 1);
}

#[wakerun::test]
async fn a_body_may_begin_with_attributes_and_items() {
    #![allow(non_upper_case_globals)]
    static runs: AtomicUsize = AtomicUsize::new(0);
    fn run() {
        runs.fetch_add(1, Relaxed);
    }
    wakerun::spawn(async { run() }).await.unwrap();
    assert_eq!(runs.load(Relaxed), 1);
}

#[wakerun::test]
#[should_panic(expected = "from the body")]
async fn a_panic_reaches_the_caller() {
    wakerun::task::yield_now().await;
    panic!("from the body");
}

#[wakerun::test]
#[ignore = "fails when attributes behind the macro get lost"]
async fn attributes_behind_the_macro_are_kept() {
    panic!("was not ignored");
}

#[ignore = "fails when attributes before the macro get lost"]
#[wakerun::test]
async fn attributes_before_the_macro_are_kept() {
    panic!("was not ignored");
}

mod visibility {
    /// Documented, and seen by the parent.
    #[wakerun::main(flavor = "current_thread")]
    pub(super) async fn visible() -> u8 {
        1
    }
}

#[test]
fn the_visibility_is_kept() {
    assert_eq!(visibility::visible(), 1);
}

#[test]
fn functions_can_be_local() {
    #[wakerun::main(flavor = "current_thread")]
    async fn main() -> u8 {
        2
    }
    assert_eq!(main(), 2);
}

/// Names that the macros must not take from the place where they are used.
mod own_names {
    mod core {}
    mod wakerun {}
    #[expect(dead_code, reason = "it only has to exist")]
    type Result = ();

    #[::wakerun::test]
    async fn a_path_of_the_macro_is_absolute() {}

    #[::wakerun::main(flavor = "current_thread")]
    async fn body() -> u8 {
        let (build, block_on) = (1, 2);
        build + block_on
    }

    #[test]
    fn a_body_has_its_own_names() {
        assert_eq!(body(), 3);
    }
}

/// A `macro_rules!` macro wraps what it passes on in invisible brackets.
macro_rules! generated {
    ($(#[$meta:meta])* $vis:vis $name:ident, $flavor:literal, $ty:ty, $body:block) => {
        $(#[$meta])*
        #[wakerun::main(flavor = $flavor)]
        $vis async fn $name() -> $ty $body
    };
    (workers $name:ident, $workers:expr, $body:expr) => {
        #[wakerun::main(worker_threads = $workers)]
        async fn $name() -> usize {
            $body
        }
    };
}

generated!(
    /// Documented.
    pub(crate) generated_function, "current_thread", Result<u8, io::Error>, { Ok(4) }
);
generated!(without_visibility, "multi_thread", u8, { 5 });
generated!(workers two_workers, 2, Handle::current().num_workers());

#[test]
fn functions_can_come_from_other_macros() {
    assert_eq!(generated_function().unwrap(), 4);
    assert_eq!(without_visibility(), 5);
    assert_eq!(two_workers(), 2);
}
