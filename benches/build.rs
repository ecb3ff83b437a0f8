//! Hands the harness facts that only the build knows: the compiler, the commit, and the locked version of each
//! dependency.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");

    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string());
    println!(
        "cargo::rustc-env=BENCH_RUSTC={}",
        version.unwrap_or_default()
    );

    println!("cargo::rustc-env=BENCH_COMMIT={}", commit());
    println!("cargo::rerun-if-changed=../.git/logs/HEAD");

    let lock = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    println!("cargo::rustc-env=BENCH_LOCK={}", packages(&lock));
}

/// `name version` of each package in the lock file, separated by commas.
fn packages(lock: &str) -> String {
    let quoted = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        value.strip_suffix('"').map(str::to_string)
    };
    let mut packages = Vec::new();
    let mut name = String::new();
    for line in lock.lines() {
        if let Some(found) = quoted(line, "name") {
            name = found;
        } else if let Some(version) = quoted(line, "version") {
            packages.push(format!("{name} {version}"));
        }
    }
    packages.join(",")
}

/// The commit that is checked out, with a plus where files differ from it; empty where git knows none.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let out = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).trim().to_string();
        out.status.success().then_some(text)
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return String::new();
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let clean = changed.is_some_and(|changed| changed.is_empty());
    format!("{commit}{}", if clean { "" } else { "+" })
}
