"""Goal: under asynchronous schemes a job continues when workers die or hang, names the lost workers, and ends without an
error. The loss of a server ends the job, with an error that names the server. No process is left over.
Method: the test kills and stops real processes in the middle of training."""
import os
import signal
import unittest

from jobs import JobTest, wait_until_gone

ASYNCHRONOUS = ["--network", "mlp", "--data", "synthetic", "--scheme", "asgd", "--epochs", "100000",
                "--eval-every", "never"]


class Losses(JobTest):
    def started(self, *options, workers=3):
        job = self.start(*ASYNCHRONOUS, "--workers", workers, *self.steady(workers), *options)
        job.wait_for_round(10)
        return job

    def assert_ended_without_worker_1(self, job, pid, how):
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn(f"worker 1 (pid {pid} on", errors)
        self.assertIn("the job goes on without it", errors)
        whole, lost, other = self.summary()["workers"]
        self.assertIn(how, lost["dropped_because"])
        for worker in (whole, other):
            self.assertIsNone(worker["dropped_because"])
            self.assertGreater(worker["steps"], lost["steps"])

    def test_a_killed_worker_leaves_the_others_training(self):
        job = self.started("--max-time", "4")
        children, pid = job.children(), job.worker_pids()[1]
        os.kill(pid, signal.SIGKILL)
        self.assert_ended_without_worker_1(job, pid, "died; last heard")
        wait_until_gone(children)

    def test_a_stopped_worker_leaves_the_others_training(self):
        job = self.started("--max-time", "15", "--wait-limit", "10")
        children, pid = job.children(), job.worker_pids()[1]
        os.kill(pid, signal.SIGSTOP)
        self.assert_ended_without_worker_1(job, pid, "no longer answers")
        wait_until_gone(children)

    def test_a_worker_that_goes_on_after_it_was_dropped_ends(self):
        job = self.coordinate(*ASYNCHRONOUS, *self.steady(3), "--wait-limit", "10")
        address = job.address()
        joiners = [self.join("server", address)]
        joiners += [self.join("worker", address, "--index", index) for index in range(3)]
        job.wait_for_round(10)
        stopped = joiners[2]
        stopped.process.send_signal(signal.SIGSTOP)
        job.wait_for_note("no longer answers")
        stopped.process.send_signal(signal.SIGCONT)
        status, errors = stopped.finish()
        self.assertEqual(status, 1)
        self.assertIn("the job goes on without worker 1", errors)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
        for joiner in (joiners[0], joiners[1], joiners[3]):
            status, errors = joiner.finish()
            self.assertEqual(status, 0, errors)

    def test_the_last_worker_ends_the_job(self):
        job = self.started(workers=1)
        os.kill(job.worker_pids()[0], signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn("worker 0 (pid", errors.splitlines()[-1])

    def test_a_killed_server_ends_the_job_and_is_named(self):
        job = self.started("--servers", "2")
        children = job.children()
        coordinator, workers = children[0], job.worker_pids()
        server = [pid for pid in children if pid not in [coordinator, *workers]][1]
        os.kill(server, signal.SIGKILL)
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn(f"server 1 (pid {server} on", errors.splitlines()[-1])
        wait_until_gone(children)


if __name__ == "__main__":
    unittest.main()
