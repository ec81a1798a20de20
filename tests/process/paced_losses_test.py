"""Goal: under `esync` a job continues when workers die or hang, names the lost workers, and ends without an error. The loss
of the worker that leads synchronizations ends the job, with an error that names it. No process is left over.
Method: the test kills and stops real processes in the middle of training."""
import os
import signal
import unittest

from jobs import JobTest, wait_until_gone

ESYNC = ["--network", "mlp", "--data", "synthetic", "--scheme", "esync", "--epochs", "100000",
         "--eval-every", "never"]


class PacedLosses(JobTest):
    def test_esync_goes_on_without_a_killed_worker_and_without_a_stopped_one(self):
        jobs = {overlap: self.start(*ESYNC, *self.steady(4), "--overlap", overlap, "--max-time", "18", "--wait-limit", "10",
                                    run_dir=overlap) for overlap in ("on", "off")}
        processes = {}
        for overlap, job in jobs.items():
            job.wait_for_round(10)
            processes[overlap] = job.children(), job.worker_pids()
        for overlap, job in jobs.items():
            pids = processes[overlap][1]
            os.kill(pids[3], signal.SIGKILL)
            job.wait_for_note("died; last heard")
            os.kill(pids[2], signal.SIGSTOP)
        for overlap, job in jobs.items():
            children, pids = processes[overlap]
            self.assertRegex(job.wait_for_note(f"(pid {pids[2]} on"), r"last heard [1-9]\d\.\d s ago")
            status, errors = job.finish()
            self.assertEqual(status, 0, errors)
            whole, other, stopped, killed = self.summary(overlap)["workers"]
            self.assertIn(f"worker 3 (pid {pids[3]} on", killed["dropped_because"])
            self.assertIn(f"worker 2 (pid {pids[2]} on", stopped["dropped_because"])
            for worker in (whole, other):
                self.assertIsNone(worker["dropped_because"])
                self.assertGreater(worker["steps"], stopped["steps"])
            wait_until_gone(children)

    def test_esync_ends_with_the_worker_that_leads(self):
        job = self.start(*ESYNC, *self.steady(4))
        job.wait_for_round(10)
        children, pids = job.children(), job.worker_pids()
        os.kill(pids[0], signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn(f"worker 0 (pid {pids[0]} on", errors.splitlines()[-1])
        wait_until_gone(children)


if __name__ == "__main__":
    unittest.main()
