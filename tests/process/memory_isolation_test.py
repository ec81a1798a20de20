"""Goal: nodes that cannot share memory use sockets; if the options require shared memory, the job is refused in one line.
Method: real jobs whose processes the test restricts by file size limits, other users and namespaces."""
import os
import pathlib
import resource
import shutil
import unittest

import privileges
from jobs import ENDLESS, SMALL, SYNCOPATE, JobTest, descendants
from segments import segments_of

SUMS = [*SMALL, "--aggregate", "shm"]


class MemoryIsolation(JobTest):
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
        """Starts a coordinator and two workers. The program `through` isolates the second worker from the first."""
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
        self.assert_all_end_well(job, near, far)
        self.assert_trained_through_sockets()
        shutil.rmtree(self.folder / "run")

        job, near, far = self.joined_by(through, *self.steady(), *ENDLESS)
        job.wait_for_round(10)
        far_segments = segments_of(*descendants(far.process.pid))
        self.assertEqual(bool(far_segments), privileges.may_read(far.process.pid))
        self.assertFalse(far_segments & segments_of(near.process.pid, *job.children()))
        self.stop(job)
        self.assert_all_end_well(near, far)
        shutil.rmtree(self.folder / "run")

        for process in self.joined_by(through, "--aggregate", "shm"):
            status, errors = process.finish()
            self.assertEqual(status, 2, errors)
            self.assertIn("requires that all workers share memory", errors.splitlines()[-1])

    def copies(self, copy):
        """Copies the programs into a folder that every user may enter. Returns the command that starts the copies."""
        self.folder.chmod(0o777)
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ("syncopate", "syncopate-torch"):
            copy(pathlib.Path(SYNCOPATE).with_name(name), folder)
        return ["sh", "-c", f'shift; exec {folder}/syncopate "$@"', "sh"]

    def test_another_user_takes_part_through_sockets(self):
        """If the test cannot change the user, a worker whose memory this user may not read replaces the other user."""
        if privileges.another_user().lacks and not privileges.unreadable_programs().lacks:
            self.assert_cut_off(self.copies(privileges.unreadable_copy))
        else:
            copies = self.copies(shutil.copy)
            other = privileges.another_user(str(self.folder / "bin/syncopate-torch"))
            self.assert_cut_off([*other.require(), *copies])

    def test_another_container_takes_part_through_sockets(self):
        self.assert_cut_off(privileges.processes().require())


if __name__ == "__main__":
    unittest.main()
