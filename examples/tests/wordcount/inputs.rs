//! Files, folders and all else that can be named or found.

use crate::support::{folder, run, stderr, stdout, write};
use crate::wordcount;

#[test]
fn inputs_add_up_in_any_number() {
    let folder = folder("inputs");
    write(folder.join("a"), "one two");
    write(folder.join("b/b"), "two three");
    let output = run(
        wordcount()
            .args(["--all", "-", "a", "b", "./b/b"])
            .current_dir(&folder),
        b"three",
    );
    assert_eq!(stdout(&output), "1\tone\n3\tthree\n3\ttwo\n");
    assert!(stderr(&output).contains("7 words (3 distinct) in 4 files; 30 B"));
}

#[test]
fn binary_files_count_when_asked_for() {
    let folder = folder("binary");
    write(folder.join("text"), "some text");
    write(folder.join("binary"), "some \0 bytes");
    // A zero byte that comes late does not make a file binary.
    write(
        folder.join("late"),
        [vec![b' '; 100_000], b"some\0late".to_vec()].concat(),
    );

    let output = run(wordcount().arg("--all").arg(&folder), b"");
    assert_eq!(stdout(&output), "1\tlate\n2\tsome\n1\ttext\n");
    assert!(stderr(&output).contains("binary: binary, skipped"));
    assert!(stderr(&output).contains("1 binary file skipped"));

    let output = run(wordcount().args(["--all", "--binary"]).arg(&folder), b"");
    assert_eq!(stdout(&output), "1\tbytes\n1\tlate\n3\tsome\n1\ttext\n");
}

#[test]
fn what_cannot_be_found_is_told_and_the_rest_counts() {
    let folder = folder("missing");
    write(folder.join("text"), "text");
    let output = run(
        wordcount()
            .args(["--all", "missing", "text"])
            .current_dir(&folder),
        b"",
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"1\ttext\n");
    assert!(stderr(&output).contains("wordcount: missing: "));
    assert!(stderr(&output).contains("; 1 error"));
}

/// A file that can be opened and not read, even by an administrator.
#[cfg(target_os = "linux")]
#[test]
fn an_error_in_the_middle_is_told_and_the_rest_counts() {
    let output = run(wordcount().args(["--all", "/proc/self/mem", "-"]), b"text");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"1\ttext\n");
    assert!(stderr(&output).contains("wordcount: /proc/self/mem: "));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    #[test]
    fn links_in_folders_are_not_followed_and_named_ones_are() {
        let folder = folder("links");
        write(folder.join("down/text"), "text");
        symlink("..", folder.join("down/up")).unwrap();
        symlink("itself", folder.join("itself")).unwrap();
        symlink("text", folder.join("down/link")).unwrap();
        symlink("nowhere", folder.join("dangling")).unwrap();
        symlink("down", folder.join("also down")).unwrap();
        for path in [".", "also down", "down/link"] {
            let output = run(wordcount().args(["--all", path]).current_dir(&folder), b"");
            assert_eq!(stdout(&output), "1\ttext\n", "{path}");
        }
        let output = run(wordcount().arg("itself").current_dir(&folder), b"");
        assert_eq!(output.status.code(), Some(1));
    }

    #[test]
    fn names_may_be_any_bytes() {
        let folder = folder("names");
        let name = OsStr::from_bytes(b"caf\xe9");
        if fs::create_dir(folder.join(name)).is_err() {
            eprintln!("skipped: this file system has only names in UTF-8");
            return;
        }
        write(folder.join(name).join(name), "text");
        write(folder.join(name).join("binary"), "\0");
        for path in [&folder, &folder.join(name), &folder.join(name).join(name)] {
            let output = run(wordcount().arg("--all").arg(path), b"");
            assert_eq!(stdout(&output), "1\ttext\n");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_counts() {
        let folder = folder("unreadable");
        write(folder.join("text"), "text");
        write(folder.join("secret"), "secret");
        write(folder.join("secrets/secret"), "secret");
        for name in ["secret", "secrets"] {
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        if fs::File::open(folder.join("secret")).is_ok() {
            eprintln!("skipped: this user may read everything");
        } else {
            let output = run(wordcount().arg("--all").arg(&folder), b"");
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(output.stdout, b"1\ttext\n");
            assert!(stderr(&output).contains("secret: "), "{}", stderr(&output));
            assert!(stderr(&output).contains("2 errors"), "{}", stderr(&output));
        }
        // The next run must be able to remove it.
        fs::set_permissions(folder.join("secrets"), fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Without a writer, opening a named pipe waits for ever.
    #[test]
    fn a_pipe_in_a_folder_is_not_opened() {
        let folder = folder("pipe");
        write(folder.join("text"), "text");
        let made = Command::new("mkfifo").arg(folder.join("pipe")).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: mkfifo makes no pipe here");
            return;
        }
        let output = run(wordcount().arg("--all").arg(&folder), b"");
        assert_eq!(stdout(&output), "1\ttext\n");
        assert!(stderr(&output).contains("pipe: not a regular file, skipped"));
    }

    #[test]
    fn a_named_pipe_is_read() {
        let output = run(wordcount().args(["--all", "/dev/stdin"]), b"some text");
        assert_eq!(stdout(&output), "1\tsome\n1\ttext\n");
    }
}
