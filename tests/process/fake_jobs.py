"""Helpers of the tests of fake_job.cpp: they start it, read its events, and wait for the end of processes.

Nothing here sleeps: reads and waits block until their event. Each wait has a limit, so that a test fails
instead of hanging.
"""
import json
import os
import pathlib
import select
import signal
import subprocess

LIMIT_SECONDS = 120


def children_of(pid):
    """The processes that `pid` has started and that still run."""
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_end(descriptor):
    """Blocks until the process behind a pidfd has ended; false when it does not."""
    ready, _, _ = select.select([descriptor], [], [], LIMIT_SECONDS)
    os.close(descriptor)
    return bool(ready)


class RunningProcess:
    """Holds `self.process`; used as a context, it leaves nothing running."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.close_streams()


class Job(RunningProcess):
    """A command with JSON lines on its standard output."""

    def __init__(self, command, environment=None, **options):
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            **options,
        )

    def close_streams(self):
        self.process.stdout.close()
        self.process.stderr.close()

    def next_event(self, kind):
        """Reads events until one of this kind."""
        for line in self.process.stdout:
            event = json.loads(line)
            if event.get("event") == kind:
                return event
        raise AssertionError(f"the job ended before an event '{kind}': {self.process.stderr.read()}")

    def send(self, signal_number):
        self.process.send_signal(signal_number)

    def interrupt(self):
        self.send(signal.SIGINT)

    def end(self):
        """Waits for the end: exit status, rest of standard output, standard error."""
        output, errors = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode, output, errors
