//! Hands the harness two facts that only the build knows: the compiler, and the locked version of each dependency.

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
