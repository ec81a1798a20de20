#!/usr/bin/env python3
"""Injects faults into running jobs and writes bench/results/SUITE.md: which faults the jobs survived or reported correctly.

suites:
  pauses   random sets of a job's processes are suspended for a random time; the job must go on
  hangs    one thread of one process is stopped for good; the culprit must be named, or else the job goes on and
           ends when it is asked to
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import measuring

sys.path.append(str(measuring.ROOT / "tests/process"))
import threads  # noqa: E402  (stops single threads)

SCHEMES = ["ssgd", "nbssgd", "asgd", "hogwild", "downpour", "ssp", "backup", "easgd", "local-sgd", "esync"]
# Five devices that mostly sleep: the machine must not be so busy that everything in it is late.
CLUSTER = measuring.ROOT / "clusters/ratio-1.toml"
WAIT_LIMIT = 5  # seconds; --wait-limit of the jobs with a hang
SILENCE_LIMIT = 10  # seconds until silence, or a hang of the coordinator itself, is noticed
SLACK = 2
OBEYED_WITHIN = 4  # time for a requested end: 2 s, and 2 s for the load of the other jobs
SAVING_LIMIT = 10  # the same for a job that writes its last checkpoint
LONG = 120  # seconds after which this script gives a job up
FACTOR = 20  # a step may take this many times its likely time; on a busy machine that exceeds the wait limit
EXPECTED = re.compile(r"\((\S+) s expected at the most\)")
# The form in messages: "NAME (pid N on HOST) hangs", "... for NAME (pid N on HOST), last heard".
CULPRIT = re.compile(
    r"(worker \d+|server \d+|the evaluator|the coordinator) \(pid (\d+) on [^)]*\)(?: hangs|, last heard| no longer answers| died)"
)


class Job:
    """A running job; a thread reads its events."""

    def __init__(self, program, folder, options):
        command = [program, "train", "--json", "--run-dir", folder / "run", "--network", "mlp", "--data", "synthetic",
                   "--epochs", "100000", *options]  # fmt: skip
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=(folder / "stderr").open("wb")
        )
        self.folder = folder
        self.rounds = 0
        self.samples = 0
        self.workers = []
        self.losses = []  # (when, note)
        self.failure = ""
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            kind = event.get("event")  # the summary, which comes last, has none
            with self.changed:
                if kind == "status":
                    self.rounds = event["round"]
                    self.samples = event["samples"]
                elif kind == "started":
                    self.workers = [worker["pid"] for worker in event["workers"]]
                elif kind == "note" and "the job goes on without" in event["text"]:
                    self.losses.append((time.monotonic(), event["text"]))
                elif kind == "failed":
                    self.failure = event["error"]
                self.changed.notify_all()

    def wait_until(self, condition, limit):
        with self.changed:
            return self.changed.wait_for(lambda: condition() or self.process.poll() is not None, limit)

    def wait_for_rounds(self, more, limit=LONG):
        aim = self.rounds + more
        return self.wait_until(lambda: self.rounds >= aim, limit) and self.rounds >= aim

    def goes_on(self):
        """Returns true if the job trains: under esync one round may take minutes after a pause."""
        aim = self.samples + 5000
        return self.wait_until(lambda: self.samples >= aim, LONG) and self.samples >= aim

    def children(self):
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text(encoding="ascii").split()]

    def roles(self):
        """Returns {pid: name} for all processes but the supervisor."""
        children = self.children()
        names = {children[0]: "the coordinator", children[-1]: "the evaluator"}
        names.update({pid: f"worker {rank}" for rank, pid in enumerate(self.workers)})
        servers = [pid for pid in children if pid not in names]
        names.update({pid: f"server {index}" for index, pid in enumerate(servers)})
        return names

    def errors(self):
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@dataclasses.dataclass
class Outcome:
    scheme: str
    where: str
    verdict: str
    seconds: float = 0.0
    text: str = ""

    def is_bad(self):
        return self.verdict.startswith("WRONG")


def options_of(scheme, seed):
    """Returns the options of the scheme's usual job; every third seed keeps the model on a server if the scheme can."""
    options = ["--scheme", scheme, "--seed", str(seed), "--cluster", CLUSTER]
    if scheme in ("ssgd", "nbssgd", "esync", "local-sgd") and seed % 3 == 0:
        options += ["--aggregate", "server"]
    return options


# Pauses


def suspend_some(job, rng):
    """Suspends a random set of the job's processes and returns their names."""
    names = {job.process.pid: "the supervisor", **job.roles()}
    chosen = rng.sample(sorted(names), rng.randint(1, len(names)))
    for pid in chosen:
        os.kill(pid, signal.SIGSTOP)
    return {pid: names[pid] for pid in chosen}


def pause_one_job(options, number):
    """Runs a job, suspends it time and again, and then ends it."""
    rng = random.Random(options.seed * 1000 + number)
    scheme = SCHEMES[number % len(SCHEMES)]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-pauses-"))
    job = Job(options.program, folder, options_of(scheme, number))
    outcomes = []
    try:
        alive = job.wait_for_rounds(5)
        if not alive:
            outcomes.append(Outcome(scheme, "start", "WRONG: did not start", 0, last_of(job)))
            options.say(outcomes[-1])
        for _ in range(options.faults // options.jobs):
            if not alive:
                break
            suspended = suspend_some(job, rng)
            pause = rng.uniform(1, 60)
            time.sleep(pause)
            for pid in suspended:
                os.kill(pid, signal.SIGCONT)
            alive = job.goes_on() and not job.losses
            where = "all" if len(suspended) == len(job.roles()) + 1 else ", ".join(sorted(suspended.values()))
            outcomes.append(Outcome(scheme, where, "went on" if alive else "WRONG: did not go on", pause, last_of(job)))
            options.say(outcomes[-1])
        if alive:
            problem = problem_of_end(job)
            if problem:
                outcomes.append(Outcome(scheme, "the end", f"WRONG: {problem}", 0, last_of(job)))
                options.say(outcomes[-1])
    finally:
        job.end()
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def problem_of_end(job):
    """Ends the job like Ctrl-C; returns the problem of its end, or an empty text."""
    job.process.send_signal(signal.SIGINT)
    try:
        status = job.process.wait(LONG)
    except subprocess.TimeoutExpired:
        return f"no end within {LONG} s of Ctrl-C"
    return "" if status == 130 else f"exit status {status}, expected 130"


def last_of(job):
    lines = job.errors().strip().splitlines()
    return job.failure or (lines[-1] if lines else "")


# Hangs


def hang_one_job(options, number):
    rng = random.Random(options.seed * 1000 + number)
    scheme = SCHEMES[number % len(SCHEMES)]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-hangs-"))
    job = Job(options.program, folder, [*options_of(scheme, number // len(SCHEMES)), "--wait-limit", WAIT_LIMIT])
    try:
        if not job.wait_for_rounds(rng.randint(3, 100)):
            return [Outcome(scheme, "start", "WRONG: did not start", 0, last_of(job))]
        names = job.roles()
        role = rng.choice(sorted({name.split(" ")[0] if name[0] != "t" else name for name in names.values()}))
        pid = rng.choice([pid for pid, name in names.items() if name.startswith(role)])
        tasks = threads.threads_of(pid)
        thread = rng.choice(sorted(tasks))
        where = f"{names[pid]}, {'main' if thread == pid else tasks[thread]}"
        time.sleep(rng.uniform(0, 0.5))  # a random phase
        begun = time.monotonic()
        threads.stop_thread(thread)
        outcome = judge_hang(job, scheme, where, (names[pid], pid), begun)
        options.say(outcome)
        return [outcome]
    finally:
        job.end()
        shutil.rmtree(folder, ignore_errors=True)


def judge_hang(job, scheme, where, culprit, begun):
    """Judges the reaction to the hang. The job may go on for some time without the thread: the hang counts from the
    moment at which the job no longer trains."""
    limit = (SILENCE_LIMIT if must_be_silent(where) else 1.5 * WAIT_LIMIT) + SLACK
    rounds, still_since = job.rounds, begun
    while time.monotonic() < still_since + LONG:
        verdict = verdict_of(job)
        if verdict:
            when, text = verdict
            return Outcome(scheme, where, judge_words(text, culprit, when - still_since, limit), when - still_since, text)
        job.wait_until(lambda: job.failure or job.losses, 0.1)
        if job.rounds != rounds and not where.endswith("main"):
            rounds, still_since = job.rounds, time.monotonic()
        if time.monotonic() > begun + limit and time.monotonic() < still_since + 1:
            return judge_request(job, scheme, where, culprit)
    return Outcome(scheme, where, "WRONG: not noticed", LONG, last_of(job))


def judge_words(text, culprit, took, limit):
    """Judges a message: it must name only the culprit, and must come in time."""
    if CULPRIT.findall(text) != [(culprit[0], str(culprit[1]))]:
        return "WRONG: named"
    expected = [float(seconds) for seconds in EXPECTED.findall(text)]
    return "named" if took <= max([limit, *(FACTOR * seconds + SLACK for seconds in expected)]) else "WRONG: late"


def must_be_silent(where):
    """Returns true if silence reveals the hang, or the coordinator itself hangs."""
    return where.startswith("the coordinator") or where.endswith(("tcp", "heartbeat", "clock"))


def verdict_of(job):
    """Returns when and why the job ended or went on without a member; None if neither has happened."""
    if job.losses:
        return job.losses[0]
    if job.failure:
        return time.monotonic(), job.failure
    if job.process.poll() is not None:
        return time.monotonic(), last_of(job)
    return None


def judge_request(job, scheme, where, culprit):
    """Judges the end of a job that still trains: it must end on request. If the thread that hangs writes snapshots, the
    message must name its process."""
    saves = where.endswith("snapshots")
    limit = SAVING_LIMIT + SLACK if saves else OBEYED_WITHIN
    asked = time.monotonic()
    job.process.send_signal(signal.SIGINT)
    try:
        job.process.wait(limit)
    except subprocess.TimeoutExpired:
        return Outcome(scheme, where, "WRONG: does not end", limit, last_of(job))
    took = time.monotonic() - asked
    if saves:
        return Outcome(scheme, where, judge_words(last_of(job), culprit, took, limit), took, last_of(job))
    return Outcome(scheme, where, "harmless", took, last_of(job))


# Tables


def page_of_pauses(outcomes):
    bad = [outcome for outcome in outcomes if outcome.is_bad()]
    seconds = sorted(outcome.seconds for outcome in outcomes)
    rows = []
    for scheme in SCHEMES:
        own = [outcome for outcome in outcomes if outcome.scheme == scheme]
        rows.append([f"`{scheme}`", str(len(own)), str(sum(outcome.is_bad() for outcome in own))])
    rows.append(["all", str(len(outcomes)), str(len(bad))])
    yield f"{len(outcomes)} pauses of {seconds[0]:.0f} to {seconds[-1]:.0f} s, {sum(seconds):.0f} s in all.\n"
    yield measuring.table(["scheme", "pauses", "false deaths"], rows)
    yield from faults_in(bad)


def page_of_hangs(outcomes):
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[re.sub(r" \d+", "", outcome.where)].append(outcome)
    rows = []
    for where, own in [*sorted(groups.items()), ("all", outcomes)]:
        named = [outcome.seconds for outcome in own if outcome.verdict == "named"]
        rows.append([where, str(len(own)), str(len(named)), measuring.with_spread(named) if named else "",
                     str(sum(outcome.verdict == "harmless" for outcome in own)),
                     str(sum(outcome.is_bad() for outcome in own))])  # fmt: skip
    yield (
        f"`--wait-limit {WAIT_LIMIT}`; the limit is {1.5 * WAIT_LIMIT:g} s, of silence and of the coordinator {SILENCE_LIMIT} s, of a step "
        f"{FACTOR} times what the message expects of it, and {SLACK} s more. Harmless: the job trains on, and ends within "
        f"{OBEYED_WITHIN} s of Ctrl-C: {obeyed_after(outcomes)}.\n"
    )
    yield measuring.table(["role, thread", "hangs", "named", "after s", "harmless", "wrong"], rows)
    yield from faults_in([outcome for outcome in outcomes if outcome.is_bad()])


def obeyed_after(outcomes):
    seconds = [outcome.seconds for outcome in outcomes if outcome.verdict == "harmless"]
    return f"{measuring.with_spread(seconds)} s" if seconds else "there was none"


def faults_in(bad):
    if bad:
        yield "\nWrong:\n"
    for outcome in bad:
        yield f"- `{outcome.scheme}`, {outcome.where}: {outcome.verdict[7:]} after {outcome.seconds:.1f} s: {outcome.text}"


SUITES = {
    "pauses": (pause_one_job, page_of_pauses, "Random pauses of random sets of processes"),
    "hangs": (hang_one_job, page_of_hangs, "Hangs of one thread of one process"),
}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", metavar="SUITE", choices=SUITES)
    parser.add_argument("--build", type=pathlib.Path, default=measuring.ROOT / "build/release",
                        help="the build to test [build/release]")  # fmt: skip
    parser.add_argument("--faults", type=int, default=200, help="how many [200]")
    parser.add_argument("--jobs", type=int, default=4, help="jobs at the same time [4]")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices [1]")
    parser.add_argument("--results", type=pathlib.Path, default=measuring.ROOT / "bench/results",
                        help="where the tables go [bench/results]")  # fmt: skip
    options = parser.parse_args(arguments)
    if min(options.faults, options.jobs) < 1 or options.faults < options.jobs:
        parser.error(f"expected at least one job and one fault for each, found --jobs {options.jobs} --faults {options.faults}")
    options.program = options.build / "bin/syncopate"
    return options


def main(arguments):
    options = parse(arguments)
    # A shell's background jobs ignore SIGINT, and the processes that this script starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in options.suites:
        run, page, title = SUITES[name]
        count = options.jobs if name == "pauses" else options.faults
        options.say = lambda outcome: print(f"  {outcome.scheme}, {outcome.where}: {outcome.verdict} "
                                            f"({outcome.seconds:.1f} s)  {outcome.text}", flush=True)  # fmt: skip
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            outcomes = [outcome for part in pool.map(lambda number: run(options, number), range(count)) for outcome in part]
        command = f"bench/resilience.py --faults {options.faults} --jobs {options.jobs} --seed {options.seed} {name}"
        target = options.results / f"{name}.md"
        target.write_text("\n".join([measuring.heading(title, command), *page(outcomes)]) + "\n", encoding="utf-8")
        print(f"written to {target}")


if __name__ == "__main__":
    main(sys.argv[1:])
