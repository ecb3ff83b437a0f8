//! The result, and what the user hears when there is none.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{folder, random, run, stderr, stdout, write};
use crate::wordcount;

#[test]
fn the_top_is_shown_in_order() {
    let text = b"b a c A B a a a a a a a a, z";
    let output = run(wordcount().args(["--top", "3", "-"]), text);
    assert_eq!(stdout(&output), "10 a\n 2 b\n 1 c\n");
    let output = run(wordcount().args(["--top", "0", "-"]), text);
    assert_eq!(stdout(&output), "");
    let output = run(wordcount().arg("-"), text);
    assert_eq!(stdout(&output), "10 a\n 2 b\n 1 c\n 1 z\n");
}

#[test]
fn a_wrong_command_line_is_explained() {
    for (args, part) in [
        (&[][..], "nothing to count"),
        (&["--nothing", "-"], "unknown option --nothing"),
        (&["--readers", "0", "-"], "--readers must be from 1"),
    ] {
        let output = run(wordcount().args(args), b"");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    let output = run(wordcount().arg("--help"), b"");
    assert!(stdout(&output).starts_with("Count the words"));
    assert!(output.stderr.is_empty());
}

/// As `wordcount … | head -n 1` does.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    // More than a pipe holds, so that the program is still writing when the reader leaves.
    let words = random(5, 1_000_000, b"abcdefghijk ");
    let folder = folder("broken pipe");
    write(folder.join("words"), words);
    let mut child = wordcount()
        .arg("--all")
        .arg(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.ends_with("\ta\n"), "{line}");

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = wordcount()
        .args(["--help"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write the result"));
}
