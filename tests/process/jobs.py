"""Runs jobs as a user does, for the tests of this folder.

Tests wait for an event of the job or for the end of processes; they never sleep for a fixed time. Each wait fails after
a generous limit.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

SYNCOPATE = os.environ.get("SYNCOPATE", "syncopate")
LIMIT = 120  # seconds after which a wait has failed
SMALL = ["--network", "mlp", "--data", "synthetic", "--workers", "2"]
ENDLESS = ["--epochs", "100000", "--eval-every", "never"]  # a job that trains until the test ends it


class JobTest(unittest.TestCase):
    """A test with its own folder."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-process-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def steady(self, workers=2):
        """Options of emulated devices, so that a job that trains until the test ends it does not keep every processor
        busy."""
        path = self.folder / f"steady-{workers}.toml"
        if not path.exists():  # a running job may be reading an existing file
            path.write_text(f'name = "steady"\n[[devices]]\nname = "steady"\ncount = {workers}\nseconds_per_batch = 0.02\n')
        return ["--cluster", path]

    def stop(self, job):
        """Interrupts an endless job and expects that it ends without an error."""
        job.process.send_signal(signal.SIGINT)
        status, errors = job.finish()
        self.assertEqual(status, 130, errors)

    def assert_all_end_well(self, *processes):
        for process in processes:
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)

    def train(self, *options, run_dir="run", through=(), **more):
        """Runs a job to its end; `through`, if given, is a program that starts it."""
        command = [*through, SYNCOPATE, "train", "--run-dir", self.folder / run_dir, *options]
        return subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False, **more,
        )

    def start(self, *options, run_dir="run"):
        """Starts a job. At the end of the test it is killed if it still runs."""
        job = RunningJob(self.folder / run_dir, options)
        self.addCleanup(job.end)
        return job

    def coordinate(self, *options, address="127.0.0.1:0", run_dir="run", through=()):
        """Starts a coordinator with the key of this test; `join` starts the other members."""
        own = self.with_secret(options)
        job = RunningJob(self.folder / run_dir, ["--listen", address, *own], command="coordinator", through=through)
        self.addCleanup(job.end)
        return job

    def join(self, role, address, *options, through=(), run_dir="run", cwd=None):
        """Starts a worker or a server that joins a coordinator. At the end of the test it is killed if it still runs.
        Without a `run_dir` it writes below the folder `runs` of `cwd`."""
        place = ["--run-dir", self.folder / run_dir] if run_dir else []
        joiner = Joiner([*through, SYNCOPATE, role, "--join", address, *place, *self.with_secret(options)], cwd)
        self.addCleanup(joiner.end)
        return joiner

    def key_file(self, name="job.key", key="the key of the jobs of this test"):
        """Makes a key file that only its owner may read."""
        path = self.folder / name
        if not path.exists():  # a running process may be reading an existing file
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
                file.write(key)
        return path

    def with_secret(self, options):
        """Returns the options, with the key file of this test added unless they name one."""
        return options if "--secret" in options else ["--secret", self.key_file(), *options]

    def summary(self, run_dir="run"):
        return json.loads((self.folder / run_dir / "summary.json").read_text())

    def checkpoints(self, run_dir="run"):
        return sorted((self.folder / run_dir / "checkpoints").glob("*.safetensors"))

    def assert_refused(self, done, *words):
        """Asserts that input was refused: exit status 2, and one line on standard error that contains all of `words`."""
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class RunningJob:
    """A running job, whose events the test reads one by one."""

    def __init__(self, run_dir, options, command="train", through=()):
        self.run_dir = pathlib.Path(run_dir)
        place = [] if "--resume" in options else ["--run-dir", run_dir]
        command = [*through, SYNCOPATE, command, "--json", *place, *options]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.pending = b""
        self.events = []

    def next_event(self):
        deadline = time.monotonic() + LIMIT
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise AssertionError(f"no event for {LIMIT} s; the last ones: {self.events[-3:]}")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                errors = self.process.stderr.read().decode()
                raise AssertionError(f"the job ended early: {errors}")
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        self.events.append(json.loads(line))
        return self.events[-1]

    def wait_for(self, kind, condition=lambda event: True):
        while True:
            event = self.next_event()
            if event["event"] == kind and condition(event):
                return event

    def wait_for_round(self, number):
        return self.wait_for("status", lambda event: event["round"] >= number)

    def wait_for_note(self, words):
        return self.wait_for("note", lambda event: words in event["text"])["text"]

    def address(self):
        """Waits until the coordinator listens and returns its address."""
        return self.wait_for_note("listening at").split()[-1]

    def wait_for_error(self, words):
        """Reads standard error up to the first line that contains `words`."""
        for line in self.process.stderr:
            if words in line.decode():
                return
        raise AssertionError(f"standard error ended without '{words}'")

    def worker_pids(self):
        started = next(event for event in self.events if event["event"] == "started")
        return [worker["pid"] for worker in started["workers"]]

    def children(self):
        """Returns the ids of the job's processes except the supervisor."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def finish(self):
        """Waits for the end; returns exit status and standard error."""
        _, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, errors.decode()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=LIMIT)
        self.process.stdout.close()
        self.process.stderr.close()


class Joiner:
    """A worker or server that was started by a separate command."""

    def __init__(self, words, cwd=None):
        self.process = subprocess.Popen(
            [str(word) for word in words], cwd=cwd,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )

    def wait_for_line(self, words):
        """Reads standard error up to the first line that contains `words`."""
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"'{words}' never came: {lines}")

    def finish(self):
        """Waits for the end; returns exit status and the rest of standard error."""
        _, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, errors

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=LIMIT)
        self.process.stderr.close()


def free_address():
    """An address of this machine at which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def descendants(pid):
    """The process and its descendants that still run."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(below for child in children for below in descendants(int(child)))]


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pids):
    deadline = time.monotonic() + LIMIT
    while left := [pid for pid in pids if is_alive(pid)]:
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {left} are still there")
        time.sleep(0.05)  # polls: a test cannot wait for processes that are not its children


def read_safetensors(path):
    """Reads metadata, and each tensor's shape and bytes, as a Python user would."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (tuple(entry["shape"]), data[8 + length + begin : 8 + length + end])
    return metadata, tensors
