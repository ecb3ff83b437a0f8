//! Compares the counts with those of `tr`, `sort` and `uniq`.

use std::path::Path;
use std::process::Command;

use crate::support::{folder, random, run, stdout, write};
use crate::wordcount;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Few letters make the same words again and again.
const TEXT: &[u8] = b"aAbBcC    \n.";

#[test]
fn counts_are_those_of_tr_sort_and_uniq() {
    let folder = folder("counts");
    let expected = reference(&write_texts(&folder));
    for (readers, parsers) in [("1", "1"), ("1", "5"), ("7", "1"), ("4", "3")] {
        let output = run(
            wordcount()
                .args(["--all", "--readers", readers, "--parsers", parsers])
                .arg(&folder),
            b"",
        );
        assert_same(&stdout(&output), &expected);
    }
    let output = run(wordcount().arg("--all").arg(&folder), b"");
    assert_same(&stdout(&output), &expected);
}

#[test]
fn any_bytes_have_the_counts_of_tr_sort_and_uniq() {
    let bytes = random(4, 1_000_000, &(0..=255).collect::<Vec<u8>>());
    let expected = reference(&bytes);
    let output = run(wordcount().args(["--all", "--binary", "-"]), &bytes);
    assert_same(&stdout(&output), &expected);
}

/// Fills a folder with texts of all kinds, and returns all of them together: with a line feed
/// between, since the end of a file ends a word.
fn write_texts(folder: &Path) -> Vec<u8> {
    let chunk = 64 * 1024;
    let mut texts = vec![
        ("empty", Vec::new()),
        ("one", b"one".to_vec()),
        ("no line feed at the end", b"one two\nthree".to_vec()),
        ("only line feeds", b"\n\n\n".to_vec()),
        ("huge word", random(1, 5 * chunk + 3, LETTERS)),
        (
            "huge words/in one",
            [random(2, 2 * chunk, LETTERS), random(2, 2 * chunk, LETTERS)].join(&b' '),
        ),
        (
            "bytes",
            random(3, 3 * chunk, &(1..=255).collect::<Vec<u8>>()),
        ),
        ("-dash", b"dash".to_vec()),
        ("a b\tc\nd", b"name".to_vec()),
    ];
    for size in [chunk - 1, chunk, chunk + 1, 9 * chunk + 5] {
        texts.push(("sizes", random(size as u64, size, TEXT)));
    }
    let mut all = Vec::new();
    for (number, (name, text)) in texts.iter().enumerate() {
        write(folder.join(number.to_string()).join(name), text);
        all.extend_from_slice(text);
        all.push(b'\n');
    }
    for number in 0..300 {
        let text = random(number, number as usize * 7, TEXT);
        write(folder.join(format!("many/{}/{number}", number % 7)), &text);
        all.extend_from_slice(&text);
        all.push(b'\n');
    }
    let deep = (0..100).fold(folder.to_path_buf(), |path, level| {
        path.join(level.to_string())
    });
    write(deep.join("deep"), "deep");
    all.extend_from_slice(b"deep\n");
    all
}

/// The counts of all words in `text` by `tr`, `sort` and `uniq`, in the form of `--all`.
fn reference(text: &[u8]) -> String {
    let script = "tr -cs A-Za-z '\\n' | tr A-Z a-z | sort | uniq -c";
    let output = run(
        Command::new("sh").args(["-c", script]).env("LC_ALL", "C"),
        text,
    );
    stdout(&output)
        .lines()
        // What is before the first word makes an empty line.
        .filter_map(|line| line.trim().split_once(' '))
        .map(|(count, word)| format!("{count}\t{word}\n"))
        .collect()
}

/// Fails with a short message: the texts may be long.
#[track_caller]
fn assert_same(actual: &str, expected: &str) {
    let difference = actual.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(
        actual == expected,
        "{} lines instead of {}, first difference: {difference:?}",
        actual.lines().count(),
        expected.lines().count(),
    );
}
