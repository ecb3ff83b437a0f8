#!/usr/bin/env python3
"""Counts the instructions of the kernels, and the locked ones among them, as a table.

Needs valgrind (with callgrind), objdump, and a Linux on x86-64:

    python3 benches/count.py

Each kernel runs twice, with a different number of iterations; the difference is what the loop costs.
A locked instruction is one with a lock prefix, or an exchange with memory.
"""

import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = "x86_64-unknown-linux-gnu"
FEW, MANY = 13_000, 26_000


def build():
    """Builds the kernels so that addresses in the file are addresses in memory."""
    flags = "-C relocation-model=static -C link-arg=-no-pie"
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "count")
    environment = dict(os.environ, RUSTFLAGS=flags, CARGO_TARGET_DIR=target)
    # An explicit target keeps the flags away from macros and build scripts.
    command = ["cargo", "build", "--profile", "bench", "--target", TARGET]
    command += ["-p", "wakerun-benches", "--example", "kernels"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return os.path.join(target, TARGET, "release", "examples", "kernels")


def locked_addresses(program):
    """The addresses of locked instructions."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True
    ).stdout
    found = set()
    for line in listing.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if match and (
            match[2].startswith("lock ") or re.match(r"xchg\w*\s.*\(%", match[2])
        ):
            found.add(int(match[1], 16))
    return found


def run(program, kernel, iterations, locked):
    """The instructions of one run, and the locked ones among them."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
             "--compress-strings=no", f"--callgrind-out-file={out}",
             program, kernel, str(iterations)],
            check=True, capture_output=True,
        )
        total = of_locked = 0
        after_call = False
        with open(out) as lines:
            for line in lines:
                if line.startswith("calls="):
                    after_call = True
                elif line.startswith("0x"):
                    # The line behind a call repeats what the callee's own lines say.
                    if not after_call:
                        address, *_, count = line.split()
                        total += int(count)
                        if int(address, 16) in locked:
                            of_locked += int(count)
                    after_call = False
    return total, of_locked


def main():
    program = build()
    names = subprocess.run([program], capture_output=True, text=True).stdout.splitlines()
    locked = locked_addresses(program)
    print("| operation | instructions | locked |\n|---|--:|--:|")
    for name in names:
        few, many = (run(program, name, count, locked) for count in (FEW, MANY))
        each, locked_each = ((b - a) / (MANY - FEW) for a, b in zip(few, many))
        print(f"| {name} | {each:.0f} | {locked_each:.2f} |")


if __name__ == "__main__":
    main()
