//! What the tests of a program need: the program itself, and a folder for its files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

/// Runs a program with `input` on its standard input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    thread::scope(|scope| {
        // A program may write before it has read all, or not read at all.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("the program ends")
    })
}

/// An empty folder for the files of one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from the last time.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// Writes a file, and the folders it lies in.
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).unwrap();
    fs::write(path, content).unwrap();
}

/// Random bytes out of `alphabet`; the same ones for the same seed.
pub(crate) fn random(seed: u64, len: usize, alphabet: &[u8]) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[(state >> 32) as usize % alphabet.len()]
    };
    (0..len).map(|_| byte()).collect()
}

/// The standard output of a program that must have gone well.
#[track_caller]
pub(crate) fn stdout(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        stderr(output)
    );
    String::from_utf8(output.stdout.clone()).expect("the output is text")
}

/// The standard error of a program. Names of files may be any bytes.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
