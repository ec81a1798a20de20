"""Goal: however a job ends, each of its processes ends within seconds; the job prints the reason, keeps its results, and
leaves no process behind.
Method: the test kills, stops and interrupts real processes in the middle of training."""
import os
import signal
import unittest

from jobs import ENDLESS, SMALL, JobTest, wait_until_gone

TRAINING = [*SMALL, *ENDLESS]


class Ends(JobTest):
    def started(self, *options):
        job = self.start(*TRAINING, *self.steady(), *options)
        job.wait_for_round(10)
        return job

    def test_a_killed_worker_ends_the_job_and_is_named(self):
        job = self.started()
        children = job.children()
        os.kill(job.worker_pids()[1], signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn(f"worker 1 (pid {job.worker_pids()[1]} on", errors)
        self.assertIn("died; last heard", errors)
        wait_until_gone(children)

    def test_a_killed_coordinator_ends_the_job(self):
        job = self.started()
        children = job.children()
        others = {*job.worker_pids()}
        coordinator = children[0]
        self.assertNotIn(coordinator, others)
        os.kill(coordinator, signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn("coordinator", errors)
        wait_until_gone(children)

    def test_a_stopped_worker_is_named_too(self):
        job = self.started("--wait-limit", "10")
        children = job.children()
        os.kill(job.worker_pids()[0], signal.SIGSTOP)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn(f"worker 0 (pid {job.worker_pids()[0]} on", errors)
        self.assertRegex(errors, r"last heard 1\d\.\d s ago")
        wait_until_gone(children)

    def test_an_interrupt_ends_cleanly_with_a_checkpoint(self):
        job = self.started()
        children = job.children()
        job.process.send_signal(signal.SIGINT)
        status, _ = job.finish()
        self.assertEqual(status, 130)
        summary = self.summary()
        self.assertEqual(summary["ended_because"], "interrupted")
        # The folder also has the checkpoints of earlier epochs.
        self.assertIn(f"{summary['rounds']:010}", self.checkpoints()[-1].name)
        wait_until_gone(children)

    def test_a_second_interrupt_ends_at_once(self):
        job = self.started()
        children = job.children()
        for pid in children:
            os.kill(pid, signal.SIGSTOP)  # so that no process can react to the first interrupt
        job.process.send_signal(signal.SIGINT)
        job.wait_for_error("Ctrl-C again")
        job.process.send_signal(signal.SIGINT)
        status, _ = job.finish()
        self.assertEqual(status, 130)
        wait_until_gone(children)

    def test_the_death_of_the_supervisor_leaves_no_orphan(self):
        job = self.started()
        children = job.children()
        self.assertEqual(len(children), 4)  # coordinator, two workers, evaluator
        job.process.kill()
        wait_until_gone(children)


if __name__ == "__main__":
    unittest.main()
