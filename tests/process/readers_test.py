#!/usr/bin/python3
"""Goal:   a reader that stops reading a job's events does not block the job: neither its coordinator nor its supervisor
        waits; statuses are dropped, and all other events arrive when the reader reads again.
Method: fake_job.cpp writes to a small pipe that the test does not read, so that it is soon full. The test sleeps only for
        the pauses that it tests.
"""
import fcntl
import json
import os
import pathlib
import select
import signal
import time
import unittest

import fake_jobs


class Readers(unittest.TestCase):
    def start(self, kind="run", **options):
        command = [os.environ["SYNCOPATE_FAKE_JOB_PROGRAM"], "train", "--workers", "8", "--json"]
        return fake_jobs.Job(command, {"SYNCOPATE_FAKE_JOB": kind}, **options)

    def leave_unread(self, job):
        """Waits for the first event, and then reads nothing for a second, in which the pipe fills."""
        fcntl.fcntl(job.process.stdout.fileno(), fcntl.F_SETPIPE_SZ, 8192)
        select.select([job.process.stdout], [], [], fake_jobs.LIMIT_SECONDS)
        time.sleep(1)  # the job writes 20 events of 2 kB

    def wait_for_notice(self, job, words):
        self.assertTrue(select.select([job.process.stderr], [], [], 20)[0], "the supervisor is blocked")
        self.assertIn(words, job.process.stderr.readline())

    def test_a_reader_that_is_away_holds_nobody_and_misses_only_statuses(self):
        with self.start() as job:
            self.leave_unread(job)
            job.interrupt()
            self.wait_for_notice(job, "finishing the round")
            status, text, _ = job.end()
        self.assertEqual(status, 130)
        *events, summary = [json.loads(line) for line in text.splitlines()]
        kinds = [event["event"] for event in events]
        self.assertEqual(kinds[0], "started")
        self.assertEqual(kinds[-2:], ["evaluation", "finished"])
        self.assertLess(kinds.count("status"), 15)
        self.assertEqual(summary, events[-1]["summary"])

    def test_nobody_waits_for_ever_for_a_reader_that_never_returns(self):
        with self.start() as job:
            self.leave_unread(job)
            job.interrupt()
            self.assertEqual(job.process.wait(20), 130)
            self.assertIn("some of the output is lost", job.process.stderr.read())

    def test_an_output_that_is_closed_from_the_start_is_said_to_be_lost(self):
        with self.start("finish", preexec_fn=lambda: os.close(1)) as job:
            status, output, errors = job.end()
        self.assertEqual((status, output), (0, ""))
        self.assertEqual(errors, "syncopate: some of the output is lost: it was not read, or could not be written\n")

    def test_a_reader_that_goes_is_an_end_request(self):
        with self.start() as job:
            job.next_event("status")
            job.process.stdout.close()
            errors = job.process.stderr.read()
            self.assertEqual(job.process.wait(20), 141)
        self.assertEqual(errors, "syncopate: nobody reads the output any more: finishing the round\n")

    def test_events_wait_for_a_supervisor_that_is_suspended(self):
        with self.start() as job:
            job.next_event("status")
            coordinator = fake_jobs.children_of(job.process.pid)[0]
            ended = os.pidfd_open(coordinator)
            job.send(signal.SIGSTOP)
            stat = pathlib.Path(f"/proc/{job.process.pid}/stat")
            while stat.read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "T":
                pass
            time.sleep(3)  # the job writes 60 events, more than a pipe holds
            os.kill(coordinator, signal.SIGTERM)
            self.assertTrue(select.select([ended], [], [], 20)[0], "the coordinator is blocked")
            os.close(ended)
            job.send(signal.SIGCONT)
            self.assertEqual(job.next_event("finished")["reason"], "interrupted")
            self.assertEqual(job.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
