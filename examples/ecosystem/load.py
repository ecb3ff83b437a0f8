#!/usr/bin/env python3
"""Loads the HTTP service on wakerun and the same one on tokio with wrk, in turns, and prints a table.

    cargo build --release --example http_service --example http_service_on_tokio
    python3 examples/ecosystem/load.py [FOLDER OF THE PROGRAMS]

Needs wrk. Machines drift: only figures of one run compare.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 5
SECONDS = 2
CONNECTIONS = [1, 16, 64, 256]
SERVERS = {"wakerun": "http_service", "tokio": "http_service_on_tokio"}

SCRIPT = """
wrk.method = "POST"
wrk.body = "something has happened at some place, and somebody should know of it"
"""


def microseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) / 1024


def load(program, script, connections):
    server = subprocess.Popen([program, "127.0.0.1:0", "/dev/null"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "-s", script]
        out = subprocess.run(wrk + [f"http://{address}/events"], capture_output=True, text=True, check=True).stdout
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
        return {
            "requests/s": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
            "p50 µs": microseconds(re.search(r"^\s+50%\s+(\S+)", out, re.M)[1]),
            "p99 µs": microseconds(re.search(r"^\s+99%\s+(\S+)", out, re.M)[1]),
            "MiB": resident(server.pid),
            "refused": float(refused[1]) if refused else 0.0,
        }
    finally:
        server.send_signal(signal.SIGINT)
        if server.wait() != 0:
            sys.exit(f"{program} did not end well")


def main():
    root = os.path.join(os.path.dirname(__file__), "../..")
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "target/release/examples")
    results = {}
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT)
        script.flush()
        for _ in range(ROUNDS):
            for connections in CONNECTIONS:
                for name, program in SERVERS.items():
                    figures = load(os.path.join(folder, program), script.name, connections)
                    results.setdefault((connections, name), []).append(figures)
    columns = ["requests/s", "p50 µs", "p99 µs", "MiB", "refused"]
    print("| connections | runtime | " + " | ".join(columns) + " |")
    print("|--:|---|" + "--:|" * len(columns))
    for (connections, name), rounds in results.items():
        medians = [statistics.median(figures[column] for figures in rounds) for column in columns]
        cells = [f"{median:,.1f}" if column == "MiB" else f"{median:,.0f}" for column, median in zip(columns, medians)]
        print(f"| {connections} | {name} | " + " | ".join(cells) + " |")


main()
