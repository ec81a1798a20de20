#!/usr/bin/python3
"""Goal:   a process of which one thread hangs, while its heartbeats come, is named by its number, and no other one is,
        in whatever role; the first Ctrl-C ends its job.
Method: a debugger's stop of the main thread of a running process, in several jobs at the same time.
"""
import re
import signal
import unittest

import jobs
import privileges
import threads

TRAINING = [*jobs.SMALL, "--epochs", "100000", "--wait-limit", "4"]


class Hangs(jobs.JobTest):
    def setUp(self):
        privileges.debugger().require()
        super().setUp()

    def start_all(self, cases):
        """Starts a job for each of `cases`, {name: options}, and waits until all train."""
        running = {name: self.start(*TRAINING, *options, run_dir=name) for name, options in cases.items()}
        for job in running.values():
            job.wait_for_round(5)
        return running

    def end_of(self, job):
        """The reason for which a job ends by itself, as its last line says it."""
        job.wait_for("failed")
        status, errors = job.finish()
        self.assertEqual(status, 1, errors)
        return errors.splitlines()[-1]

    def assert_named(self, name, pid, text):
        """`text` names this process as the culprit, and no other."""
        culprits = re.findall(r"((?:worker|server) \d+|the \w+) \(pid (\d+) on [^)]*\)(?: hangs:|, last heard| no longer answers;)", text)
        self.assertEqual(culprits, [(name, str(pid))], text)

    def test_the_culprit_is_named_and_no_innocent(self):
        running = self.start_all({
            "ssgd": ["--scheme", "ssgd"],
            "asgd": ["--scheme", "asgd"],
            "hogwild": ["--scheme", "hogwild"],
            "server": ["--scheme", "asgd"],
            "evaluator": ["--scheme", "ssgd"],
            "coordinator": ["--scheme", "esync"],
        })
        # Nobody knows how long a first test takes, so a hang in it is found after minutes.
        running["evaluator"].wait_for("evaluation")
        pids = {name: job.worker_pids()[1] for name, job in running.items()}
        pids["server"] = running["server"].children()[3]  # the coordinator, two workers, the server, the evaluator
        pids["evaluator"] = running["evaluator"].children()[-1]
        pids["coordinator"] = running["coordinator"].children()[0]
        for pid in pids.values():
            threads.stop_thread(pid)
        for name in ("ssgd", "hogwild"):
            with self.subTest(name):
                self.assert_named("worker 1", pids[name], self.end_of(running[name]))
        with self.subTest("server"):
            self.assert_named("server 0", pids["server"], self.end_of(running["server"]))
        with self.subTest("coordinator"):
            self.assert_named("the coordinator", pids["coordinator"], self.end_of(running["coordinator"]))
        for name, culprit in (("asgd", "worker 1"), ("evaluator", "the evaluator")):
            with self.subTest(name):
                job = running[name]
                self.assert_named(culprit, pids[name], job.wait_for_note("the job goes on without it"))
                job.process.send_signal(signal.SIGINT)
                self.assertEqual(job.finish()[0], 130)

    def test_the_first_interrupt_ends_a_job_in_which_a_member_hangs(self):
        running = self.start_all({"ssgd": ["--scheme", "ssgd"], "asgd": ["--scheme", "asgd"]})
        for job in running.values():
            threads.stop_thread(job.worker_pids()[1])
            job.process.send_signal(signal.SIGINT)
        for name, job in running.items():
            with self.subTest(name):
                status, errors = job.finish()
                self.assertEqual(status, 130, errors)
                self.assertIn("ended as requested, without the rounds since the last checkpoint", errors.splitlines()[-1])
                self.assert_named("worker 1", job.worker_pids()[1], errors.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
