#!/usr/bin/env python3
"""Measures the cost of noticing pauses and hangs in a job without faults, and writes bench/results/watching.md.

It compares the CPU time of the threads that only watch with that of all other threads. CPU time shows a difference of a
thousandth; in throughput even 1 % disappears in the differences between two runs.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import measuring

JOBS = {
    "ssgd": ["--scheme", "ssgd", "--workers", "2"],
    "nbssgd": ["--scheme", "nbssgd", "--workers", "2"],
    "asgd": ["--scheme", "asgd", "--workers", "2"],
    "esync, emulated devices": ["--scheme", "esync", "--cluster", str(measuring.ROOT / "clusters/mixed.toml")],
}
WATCHING = ["heartbeat", "control", "clock", "watch"]


def cpu_seconds(pid):
    """Returns {thread name: CPU seconds} of a process; its main thread has no name of its own."""
    seconds = collections.Counter()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = "main" if task.name == str(pid) else (task / "comm").read_text(encoding="ascii").strip()
        seconds[name] += int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    return seconds


def measure(program, options, seconds):
    """Returns the share of each kind of watching thread in the CPU time of a whole job, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "train", "--json", "--run-dir", f"{folder}/run", "--network", "lenet5", "--data", "synthetic",
                   "--epochs", "100000", "--max-time", str(seconds + 60), *options]  # fmt: skip
        job = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            wait_for_training(job, seconds)
            children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text(encoding="ascii").split()
            used = sum((cpu_seconds(pid) for pid in [job.pid, *map(int, children)]), collections.Counter())
        finally:
            job.kill()
            job.wait()
    shares = {name: 100 * used[name] / used.total() for name in WATCHING}
    return {**shares, "together": sum(shares.values())}


def wait_for_training(job, seconds):
    for line in job.stdout:
        event = json.loads(line)
        if event.get("event") == "status" and event["training_seconds"] >= seconds:
            return
    raise RuntimeError("the job ended before it was measured; run it by hand to see why")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=measuring.ROOT / "build/release",
                        help="the build to test [build/release]")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5, help="runs of each job [5]")
    parser.add_argument("--seconds", type=float, default=10, help="training of each run [10]")
    parser.add_argument("--results", type=pathlib.Path, default=measuring.ROOT / "bench/results",
                        help="where the table goes [bench/results]")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.rounds < 1 or not 0 < options.seconds <= 3600:
        parser.error(f"expected at least one round and up to 3600 s, found --rounds {options.rounds} --seconds {options.seconds:g}")
    return options


def main(arguments):
    options = parse(arguments)
    program = options.build / "bin/syncopate"
    contestants = [
        measuring.Contestant(name, lambda job=job: measure(program, job, options.seconds)) for name, job in JOBS.items()
    ]
    results = measuring.interleave(contestants, options.rounds)
    columns = [*WATCHING, "together"]
    rows = [[f"{name}"] + [measuring.with_spread(figures[column]) for column in columns] for name, figures in results.items()]
    lines = [
        measuring.heading("What it costs to watch a job", f"bench/watching.py --rounds {options.rounds} --seconds {options.seconds:g}"),
        "CPU time of the threads that only watch, in percent of that of all threads of the job: those that send heartbeats, take the",
        "coordinator's messages, keep a clock that stands still during a pause, and watch the coordinator's event loop. LeNet-5 on noise,",
        f"{options.seconds:g} s of training.\n",
        measuring.table(["job", *[f"{column}, %" for column in columns]], rows),
    ]
    target = options.results / "watching.md"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
