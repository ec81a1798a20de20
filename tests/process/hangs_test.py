#!/usr/bin/python3
"""Goal:   if a thread of a process hangs while its heartbeats continue, the job names that process with its process id,
        and no other, in every role; the first Ctrl-C ends the job.
Method: the test stops the main thread of a process as a debugger does, in several jobs at the same time.
"""
import signal
import unittest

import hanging
import threads


class Hangs(hanging.HangTest):
    def test_the_culprit_is_named_and_no_innocent(self):
        running = self.start_all({
            "ssgd": ["--scheme", "ssgd"],
            "asgd": ["--scheme", "asgd"],
            "hogwild": ["--scheme", "hogwild"],
            "server": ["--scheme", "asgd"],
            "coordinator": ["--scheme", "esync"],
        })
        pids = {name: job.worker_pids()[1] for name, job in running.items()}
        pids["server"] = running["server"].children()[3]  # the coordinator, two workers, the server, the evaluator
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
        with self.subTest("asgd"):
            self.assert_left_out("worker 1", pids["asgd"], running["asgd"])

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
