#!/usr/bin/python3
"""Goal:   a job ends as a whole: with the right exit status, one clear line, and no process left over.
Method: the real command line and supervisor run processes that train nothing (fake_job.cpp) and end in
        every possible way. The test waits for the end of processes by pidfd, never for a fixed time.
"""
import json
import os
import signal
import unittest

import fake_jobs

FAKE_JOB = os.environ["SYNCOPATE_FAKE_JOB_PROGRAM"]


def start(kind, *options, **more):
    command = [FAKE_JOB, "train", "--workers", "3", *(options or ("--json",))]
    return fake_jobs.Job(command, {"SYNCOPATE_FAKE_JOB": kind}, **more)


class Supervision(unittest.TestCase):
    def test_a_job_that_ends_well(self):
        with start("finish") as job:
            status, output, errors = job.end()
        self.assertEqual((status, errors), (0, ""))
        lines = [json.loads(line) for line in output.splitlines()]
        self.assertEqual([line["event"] for line in lines[:-1]], ["started", "status", "evaluation", "finished"])
        self.assertEqual(lines[-1], lines[-2]["summary"])

    def test_plain_lines_and_the_final_table_where_there_is_no_terminal(self):
        with start("finish", "--run-dir", "runs/x") as job:
            status, output, errors = job.end()
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("ssgd: lenet5 on fashion-mnist, 3 workers, runs/x", output)
        self.assertIn("test accuracy 0.8765", output)
        self.assertIn("cpu as device-2", output)
        self.assertIn("cluster efficiency  90.0 %", output)
        self.assertNotIn("\x1b", output)

    def test_quiet_leaves_the_final_table(self):
        with start("finish", "--quiet") as job:
            _, output, _ = job.end()
        self.assertTrue(output.startswith("worker  device"), output)

    def test_lines_of_processes_come_under_their_names(self):
        with start("chatter") as job:
            _, _, errors = job.end()
        self.assertIn("[worker 0] a line of information\n", errors)
        self.assertIn("[worker 0] a line of warning\n", errors)

    def test_quiet_leaves_warnings(self):
        with start("chatter", "--quiet") as job:
            _, _, errors = job.end()
        self.assertEqual(errors, "[worker 0] a line of warning\n")

    def test_the_first_signal_asks_for_an_end(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), start("run") as job:
                job.next_event("status")
                job.send(number)
                self.assertEqual(job.next_event("finished")["reason"], "interrupted")
                status, _, errors = job.end()
                self.assertEqual(status, 130)
                self.assertIn("finishing the round; Ctrl-C again ends at once", errors)

    def test_the_second_interrupt_ends_at_once(self):
        with start("stubborn") as job:
            job.next_event("status")
            children = [os.pidfd_open(child) for child in fake_jobs.children_of(job.process.pid)]
            self.assertEqual(len(children), 4)
            job.interrupt()
            self.assertIn("finishing the round", job.process.stderr.readline())
            job.interrupt()
            self.assertEqual(job.end()[0], 130)
            self.assertTrue(all([fake_jobs.wait_for_end(child) for child in children]))

    def test_a_signal_after_the_end_changes_no_status(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), start("finish") as job:
                job.next_event("finished")
                job.send(number)
                status, _, errors = job.end()
                self.assertEqual((status, errors), (0, ""))

    def test_a_hangup_is_nothing_to_a_job_under_nohup(self):
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with start("run", preexec_fn=ignore) as job:
            job.next_event("status")
            job.send(signal.SIGHUP)
            for _ in range(5):
                job.next_event("status")
            job.interrupt()
            status, _, errors = job.end()
            self.assertEqual(status, 130)
            self.assertEqual(errors.count("finishing the round"), 1)

    def test_no_process_outlives_a_killed_supervisor(self):
        for kind in ("run", "stubborn"):
            with self.subTest(kind), start(kind) as job:
                job.next_event("status")
                children = [os.pidfd_open(child) for child in fake_jobs.children_of(job.process.pid)]
                self.assertEqual(len(children), 4)
                job.process.kill()
                self.assertTrue(all([fake_jobs.wait_for_end(child) for child in children]))

    def test_a_killed_worker_fails_the_job_by_name(self):
        with start("crash") as job:
            status, _, errors = job.end()
        self.assertEqual(status, 1)
        lines = errors.splitlines()
        self.assertRegex(lines[0], r"^syncopate: worker 1 \(process \d+\) was killed by signal 9 \(Killed\)$")
        self.assertEqual(lines[1:], ["syncopate: worker 1 is gone"])

    def test_a_killed_worker_that_may_be_lost_is_one_line(self):
        with start("spare") as job:
            status, output, errors = job.end()
        self.assertEqual(status, 0)
        self.assertRegex(errors, r"\Asyncopate: worker 1 \(process \d+\) was killed by signal 9 \(Killed\)\n\Z")
        self.assertEqual(json.loads(output.splitlines()[-1])["accuracy"], 0.8765)

    def test_processes_that_do_not_end_by_themselves_are_ended(self):
        with start("silent") as job:
            status, _, errors = job.end()
        self.assertEqual(status, 1)
        self.assertRegex(errors.splitlines()[-1], r"^syncopate: worker 1 \(process \d+\) was killed by signal 9")

    def test_a_refused_job_is_one_line_and_status_2(self):
        with start("refuse", "--quiet") as job:
            self.assertEqual(job.end(), (2, "", "syncopate: this machine cannot pace device-1\n"))


if __name__ == "__main__":
    unittest.main()
