"""Goal: nodes of one host use the memory that they share, and a job leaves nothing behind after any kind of end.
Method: real jobs, whose processes the test kills. The maps of the processes show the shared segments; an inode identifies a
segment."""
import json
import math
import os
import pathlib
import signal
import time
import unittest

from jobs import ENDLESS, LIMIT, SMALL, JobTest, wait_until_gone
from segments import maps_of, segments_of

SUMS = [*SMALL, "--aggregate", "shm"]


def open_files(pid):
    names = []
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            names.append(os.readlink(descriptor))
        except OSError:  # closed meanwhile
            pass
    return names


def everybody():
    return [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]


def wait_until_unmapped(segments):
    deadline = time.monotonic() + LIMIT
    while left := segments & segments_of(*everybody()):
        if time.monotonic() > deadline:
            raise AssertionError(f"segments {left} are still mapped")
        time.sleep(0.05)  # polls: the system has no event for this


class SharedMemory(JobTest):
    def started(self, *options, run_dir="run"):
        job = self.start(*options, *self.steady(), *ENDLESS, run_dir=run_dir)
        job.wait_for_round(10)
        return job

    def losses(self, run_dir):
        path = self.folder / run_dir / "workers" / "0.jsonl"
        return [json.loads(line)["loss"] for line in path.read_text(encoding="utf-8").splitlines()]

    # The end of a job

    def test_a_killed_worker_is_named_with_every_transport_and_aggregate(self):
        for transport, aggregate in (("shm", "shm"), ("shm", "ring"), ("tcp", "ring")):
            with self.subTest(transport=transport, aggregate=aggregate):
                job = self.started(*SMALL, "--transport", transport, "--aggregate", aggregate,
                                   run_dir=f"{transport}-{aggregate}")  # fmt: skip
                children, pid = job.children(), job.worker_pids()[1]
                segments = segments_of(*children)
                self.assertEqual(bool(segments), transport == "shm")
                os.kill(pid, signal.SIGKILL)
                status, errors = job.finish()
                self.assertEqual(status, 1)
                named = [line for line in errors.splitlines() if line.startswith("syncopate: ")]
                self.assertIn(f"syncopate: worker 1 (pid {pid} on", named[-1])
                self.assertIn("died; last heard", named[-1])
                wait_until_gone(children)
                wait_until_unmapped(segments)

    def wait_until_stuck(self, job, ranks):
        """Waits until two reports in a row find these workers in the same synchronization."""
        seen = None
        while True:
            event = job.wait_for("status")
            rounds = {worker["round"] for worker in event["workers"]
                   if worker["rank"] in ranks and worker["phase"] == "synchronization"}  # fmt: skip
            if len(rounds) == 1 and rounds == seen:
                return
            seen = rounds

    def test_all_others_name_a_worker_killed_in_an_allreduce(self):
        job = self.coordinate(*SUMS, "--workers", "3", *self.steady(3), *ENDLESS)
        address = job.address()
        workers = [self.join("worker", address, "--index", rank) for rank in range(3)]
        job.wait_for_round(10)
        segments = segments_of(*(worker.process.pid for worker in workers))
        self.assertTrue(segments)
        lost = workers.pop(1).process
        lost.send_signal(signal.SIGSTOP)
        self.wait_until_stuck(job, {0, 2})
        lost.kill()
        for process in (job, *workers):
            status, errors = process.finish()
            self.assertEqual(status, 1, errors)
            self.assertIn(f"worker 1 (pid {lost.pid} on", errors.splitlines()[-1])
            self.assertIn("died; last heard", errors.splitlines()[-1])
        wait_until_unmapped(segments)

    def test_nothing_is_left_when_all_are_killed_at_once(self):
        job = self.started(*SUMS)
        children = job.children()
        segments = segments_of(*children)
        self.assertTrue(segments)
        for pid in children:
            self.assertFalse([name for name in open_files(pid) if name.startswith("/dev/shm")])
            self.assertFalse([line for line in maps_of(pid) if "/dev/shm" in line])
        for pid in [job.process.pid, *children]:
            os.kill(pid, signal.SIGKILL)
        wait_until_gone(children)
        wait_until_unmapped(segments)

    def test_servers_go_on_without_a_worker_whose_memory_they_read(self):
        job = self.start(*SMALL, "--workers", "3", *self.steady(3), "--scheme", "asgd", "--max-time", "4", *ENDLESS)
        job.wait_for_round(10)
        children, pid = job.children(), job.worker_pids()[1]
        self.assertTrue(segments_of(pid))
        os.kill(pid, signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn(f"worker 1 (pid {pid} on", errors)
        whole, lost, other = self.summary()["workers"]
        self.assertIn("died; last heard", lost["dropped_because"])
        self.assertGreater(min(whole["steps"], other["steps"]), lost["steps"])
        wait_until_gone(children)

    def test_two_jobs_share_no_memory(self):
        first, second = self.started(*SUMS, run_dir="first"), self.started(*SUMS, run_dir="second")
        segments = segments_of(*first.children())
        self.assertTrue(segments)
        self.assertFalse(segments & segments_of(*second.children()))
        os.kill(first.worker_pids()[0], signal.SIGKILL)
        self.assertEqual(first.finish()[0], 1)
        wait_until_unmapped(segments)
        reached = second.events[-1]["round"]
        second.wait_for_round(reached + 10)
        self.stop(second)

    # The results of an allreduce

    def test_every_sum_trains_the_same_model(self):
        ways = ("shm", "ring", "butterfly", "binary-blocks", "tree")
        for aggregate in ways:
            done = self.train(*SMALL, "--aggregate", aggregate, "--max-steps", "20", run_dir=aggregate)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(self.summary(aggregate)["aggregate"].startswith(f"{aggregate}: 2 ranks"))
        expected = self.losses("shm")
        self.assertEqual(len(expected), 20)
        for aggregate in ways[1:]:
            for one, other in zip(expected, self.losses(aggregate), strict=True):
                self.assertTrue(math.isclose(one, other, rel_tol=1e-5), (aggregate, one, other))

    def test_joining_workers_use_the_transport_of_the_job(self):
        for transport in ("shm", "tcp"):
            job = self.coordinate(*SMALL, "--transport", transport, *self.steady(), *ENDLESS, run_dir=transport)
            address = job.address()
            workers = [self.join("worker", address), self.join("worker", address)]
            job.wait_for_round(10)
            shared = segments_of(workers[0].process.pid) & segments_of(workers[1].process.pid)
            self.assertEqual(bool(shared), transport == "shm")
            self.stop(job)


if __name__ == "__main__":
    unittest.main()
