//! Backpressure: however much there is to read, little of it is in memory.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::random;
use crate::wordcount;

#[test]
fn memory_does_not_grow_with_the_input() {
    const INPUT: usize = 24 << 20;
    const LIMIT: usize = 16 << 20;

    let mut child = wordcount()
        .args(["--parsers", "2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let block = random(6, 1 << 20, b"aAbBcC    \n.");
    for _ in 0..INPUT / block.len() {
        stdin.write_all(&block).unwrap();
    }
    // All but a pipe's worth is read, and the program still waits for the end.
    let peak = peak_memory(child.id());
    drop(stdin);

    let mut top = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut top)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(top.lines().count(), 10);
    assert!(
        peak < LIMIT,
        "{peak} bytes of memory for {INPUT} bytes of input"
    );
}

/// The most memory that a process ever had, in bytes.
fn peak_memory(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .unwrap();
    kib.parse::<usize>().unwrap() * 1024
}
