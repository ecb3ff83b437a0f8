//! The example programs, as the tests start them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// The example program `name`, ready to get arguments.
///
/// Cargo tells a test where programs are, but not where examples are: they lie beside the folder
/// of the test, and are built with all tests, but not when one test is asked for.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let program = deps
        .with_file_name("examples")
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);

    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let newest = match fs::read_dir(&sources) {
        Ok(folder) => folder
            .map(|entry| modified(&entry.unwrap().path()))
            .max()
            .flatten(),
        Err(_) => modified(&sources.with_extension("rs")),
    };
    assert!(newest.is_some(), "{} has no sources", sources.display());
    assert!(
        modified(&program) >= newest,
        "{} is missing or old: run `cargo build --examples` before this test",
        program.display()
    );
    Command::new(program)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}
