#!/usr/bin/env python3
"""Counts the instructions of the kernels, the locked ones among them, and the calls of memcpy.

Needs valgrind (with callgrind), objdump, and a Linux on x86-64:

    python3 benches/count.py             prints a table
    python3 benches/count.py --check     compares with benches/instructions.json, and fails where one costs more
    python3 benches/count.py --accept    writes what it counts into that file

Timings are noisy; counts are not, so that a check can guard them. They depend on the compiler, though: counts of
another version than the file's are shown and not judged.

Each kernel runs twice, with a different number of iterations; the difference is what the loop costs.
A locked instruction is one with a lock prefix, or an exchange with memory. A copy is a call of memcpy or memmove,
which is what a message of 1 KiB is moved by; small ones are moved in registers, and not seen.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = "x86_64-unknown-linux-gnu"
FEW, MANY = 13_000, 26_000
EXPECTED = os.path.join(ROOT, "benches", "instructions.json")
# How much more a kernel may cost: a share of it, or so many instructions, or locked instructions.
SHARE, INSTRUCTIONS, LOCKED = 0.03, 1.0, 0.05


def build():
    """Builds the kernels so that addresses in the file are addresses in memory."""
    flags = "-C relocation-model=static -C link-arg=-no-pie"
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "count")
    environment = dict(os.environ, RUSTFLAGS=flags, CARGO_TARGET_DIR=target)
    # An explicit target keeps the flags away from macros and build scripts.
    command = ["cargo", "build", "--profile", "bench", "--target", TARGET]
    command += ["-p", "wakerun-kernels"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return os.path.join(target, TARGET, "release", "wakerun-kernels")


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
    """The instructions of one run, the locked ones among them, and the calls of memcpy."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
             "--compress-strings=no", f"--callgrind-out-file={out}",
             program, kernel, str(iterations)],
            check=True, capture_output=True,
        )
        total = of_locked = copies = 0
        after_call = of_copy = False
        with open(out) as lines:
            for line in lines:
                if line.startswith("cfn="):
                    of_copy = bool(re.match(r"cfn=(__)?mem(cpy|move)", line))
                elif line.startswith("calls="):
                    after_call = True
                    if of_copy:
                        copies += int(line[len("calls="):].split()[0])
                    of_copy = False
                elif line.startswith("0x"):
                    # The line behind a call repeats what the callee's own lines say.
                    if not after_call:
                        address, *_, count = line.split()
                        total += int(count)
                        if int(address, 16) in locked:
                            of_locked += int(count)
                    after_call = False
    return total, of_locked, copies


def count():
    """The instructions, the locked instructions and the copies of one cycle of each kernel, by its name."""
    program = build()
    names = subprocess.run([program], capture_output=True, text=True).stdout.splitlines()
    locked = locked_addresses(program)
    counts = {}
    for name in names:
        print(f"counting: {name}", file=sys.stderr)
        few, many = (run(program, name, cycles, locked) for cycles in (FEW, MANY))
        each = [(b - a) / (MANY - FEW) for a, b in zip(few, many)]
        counts[name] = {
            "instructions": round(each[0], 1),
            "locked": round(each[1], 2),
            "copies": round(each[2], 2),
        }
    return counts


def compiler():
    """The compiler's version, without commit and date."""
    version = subprocess.run(["rustc", "--version"], capture_output=True, text=True, cwd=ROOT, check=True)
    return " ".join(version.stdout.split()[:2])


def table(counts, expected):
    """The counts, beside the expected ones where there are any."""
    print("| operation | instructions | locked | copies |" + (" expected | locked |" if expected else ""))
    print("|---|--:|--:|--:|" + ("--:|--:|" if expected else ""))
    for name, now in counts.items():
        line = f"| {name} | {now['instructions']:.0f} | {now['locked']:.2f} | {now['copies']:.2f} |"
        if expected:
            was = expected.get(name)
            line += f" {was['instructions']:.0f} | {was['locked']:.2f} |" if was else " new | new |"
        print(line)


def differences(counts, expected):
    """What is dearer, and what is cheaper than expected or not as expected at all, in words."""
    dearer, other = [], []
    for name, now in counts.items():
        if name not in expected:
            other.append(f"{name}: is new")
            continue
        for what, least in (("instructions", INSTRUCTIONS), ("locked", LOCKED)):
            was, more = expected[name][what], now[what] - expected[name][what]
            if abs(more) > max(was * SHARE, least):
                words = f"{name}: {now[what]:g} {what}, expected {was:g}"
                if was:
                    words += f" ({more / was:+.1%})"
                (dearer if more > 0 else other).append(words)
    other += [f"{name}: is gone" for name in expected if name not in counts]
    return dearer, other


def check(counts, kept):
    """Judges the counts; the exit status."""
    expected = kept["kernels"]
    table(counts, expected)
    if compiler() != kept["compiler"]:
        print(f"\nnot judged: this is {compiler()}, and the expected counts are of {kept['compiler']}")
        return 0
    dearer, other = differences(counts, expected)
    for words in other:
        print(f"\nnot as expected, which is no failure: {words}")
    for words in dearer:
        print(f"\nDEARER: {words}")
    if dearer or other:
        print(
            "\nWhere that is meant and worth it, accept the new counts, and commit them with the reason:\n"
            "    python3 benches/count.py --accept"
        )
    else:
        print("\nall as expected")
    return 1 if dearer else 0


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--check"], ["--accept"]):
        sys.exit(__doc__)
    counts = count()
    if arguments == ["--check"]:
        with open(EXPECTED) as file:
            sys.exit(check(counts, json.load(file)))
    table(counts, None)
    if arguments == ["--accept"]:
        with open(EXPECTED, "w") as file:
            json.dump({"compiler": compiler(), "kernels": counts}, file, indent=2)
            file.write("\n")
        print(f"\nwritten: {os.path.relpath(EXPECTED, ROOT)}")


if __name__ == "__main__":
    main()
