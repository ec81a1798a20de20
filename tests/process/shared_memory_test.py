"""Goal: nodes of one host use the memory that they share, other nodes use sockets, and a job leaves nothing behind after
any kind of end.
Method: real jobs, whose processes the test kills, limits, and isolates from each other by means of the system. The maps
of the processes show the shared segments; an inode identifies a segment."""
import json
import math
import os
import pathlib
import resource
import shutil
import signal
import time
import unittest

import privileges
from jobs import LIMIT, SMALL, SYNCOPATE, JobTest, descendants, wait_until_gone

SUMS = [*SMALL, "--aggregate", "shm"]
ENDLESS = ["--epochs", "100000", "--eval-every", "never"]


def maps_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    except OSError:  # it has ended
        return []


def segments_of(*pids):
    """The inodes of the segments that these processes have mapped."""
    return {line.split()[4] for pid in pids for line in maps_of(pid) if "memfd:syncopate" in line}


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

    def stop(self, job):
        """Interrupts an endless training, which then ends well."""
        job.process.send_signal(signal.SIGINT)
        status, errors = job.finish()
        self.assertEqual(status, 130, errors)

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

    # Nodes that cannot share memory

    def assert_trained_through_sockets(self, run_dir="run"):
        summary = self.summary(run_dir)
        self.assertEqual([worker["steps"] for worker in summary["workers"]], [20, 20])
        self.assertNotIn("shm", summary["aggregate"])

    def test_files_that_may_not_be_long_enough_leave_sockets(self):
        short = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))}
        done = self.train(*SMALL, "--max-steps", "20", **short)
        self.assertEqual(done.returncode, 0, done.stderr)
        warnings = [line for line in done.stderr.splitlines() if "shared memory" in line]
        self.assertEqual(len(warnings), 4, done.stderr)  # coordinator, evaluator, two workers
        for warning in warnings:
            self.assertRegex(warning, r"shared memory needs files of \d+ bytes, and the limit .*\(ulimit -f\) is 67108864;")
        self.assert_trained_through_sockets()
        refused = self.train(*SUMS, "--max-steps", "20", run_dir="refused", **short)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("requires that all workers share memory", refused.stderr.splitlines()[-1])

    def test_a_full_dev_shm_is_nobodys_business(self):
        namespace = privileges.mounts("/dev/shm").require()
        full = "mount -t tmpfs -o size=4k full /dev/shm && head -c 4096 /dev/zero > /dev/shm/full && exec \"$@\""
        done = self.train(*SUMS, "--max-steps", "20", through=[*namespace, "sh", "-c", full, "sh"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.summary()["aggregate"].startswith("shm: 2 ranks"))

    def joined_by(self, through, *options):
        """A job of two workers. The program `through` starts the second one, isolated from the first."""
        self.folder.chmod(0o777)
        self.addCleanup(os.umask, os.umask(0))  # a worker of another user writes its log to the run's folder
        job = self.coordinate(*SMALL, *options)
        address = job.address()
        key = self.key_file("far.key")
        if "setpriv" in through:
            os.chown(key, privileges.NOBODY, privileges.NOBODY)
        far = self.join("worker", address, "--secret", key, through=through)
        return job, self.join("worker", address), far

    def assert_cut_off(self, through):
        job, near, far = self.joined_by(through, "--max-steps", "20")
        for process in (job, near, far):
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)
        self.assert_trained_through_sockets()
        shutil.rmtree(self.folder / "run")

        job, near, far = self.joined_by(through, *self.steady(), *ENDLESS)
        job.wait_for_round(10)
        far_segments = segments_of(*descendants(far.process.pid))
        self.assertEqual(bool(far_segments), privileges.may_read(far.process.pid))
        self.assertFalse(far_segments & segments_of(near.process.pid, *job.children()))
        self.stop(job)
        for process in (near, far):
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)
        shutil.rmtree(self.folder / "run")

        for process in self.joined_by(through, "--aggregate", "shm"):
            status, errors = process.finish()
            self.assertEqual(status, 2, errors)
            self.assertIn("requires that all workers share memory", errors.splitlines()[-1])

    def copies(self, copy):
        """Starts copies of the programs, in a folder that everybody may enter."""
        self.folder.chmod(0o777)
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ("syncopate", "syncopate-torch"):
            copy(pathlib.Path(SYNCOPATE).with_name(name), folder)
        return ["sh", "-c", f'shift; exec {folder}/syncopate "$@"', "sh"]

    def test_another_user_takes_part_through_sockets(self):
        """Where this user cannot be another one, a worker whose memory it may not read stands for the other one's."""
        if privileges.another_user().lacks and not privileges.unreadable_programs().lacks:
            self.assert_cut_off(self.copies(privileges.unreadable_copy))
        else:
            copies = self.copies(shutil.copy)
            other = privileges.another_user(str(self.folder / "bin/syncopate-torch"))
            self.assert_cut_off([*other.require(), *copies])

    def test_another_container_takes_part_through_sockets(self):
        self.assert_cut_off(privileges.processes().require())

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
