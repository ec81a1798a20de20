#!/usr/bin/python3
"""Goal:   a suspended process is not taken for dead. A job goes on after all of its processes, its coordinator or its
        supervisor were suspended for longer than a member may be silent; and it ends when its reader has gone.
Method: the test stops processes of several jobs at the same time and waits until /proc shows them as stopped. The pause
        that follows is the only wait for a fixed time, since the pause is what is tested.
"""
import os
import pathlib
import signal
import time
import unittest

import jobs

PAUSE = 12  # seconds; a member that is silent for 10 s without having been suspended counts as dead
TRAINING = [*jobs.SMALL, *jobs.ENDLESS]


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


def suspend(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + jobs.LIMIT
    while any(state_of(pid) != "T" for pid in pids):
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {pids} did not stop")
        time.sleep(0.01)  # polls: a process cannot wait until its grandchild has stopped


def resume(pids):
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


class Pauses(jobs.JobTest):
    def test_a_job_goes_on_after_all_its_coordinator_or_its_supervisor_were_suspended(self):
        everything = lambda job: [job.process.pid, *job.children()]
        coordinator = lambda job: job.children()[:1]
        supervisor = lambda job: [job.process.pid]
        cases = (
            ("all", "ssgd", everything),
            ("all", "asgd", everything),
            ("coordinator", "esync", coordinator),
            ("supervisor", "ssgd", supervisor),
        )
        running = [self.start(*TRAINING, *self.steady(), "--scheme", scheme, run_dir=who + scheme) for who, scheme, _ in cases]
        for job in running:
            job.wait_for_round(5)
        stopped = [pid for job, (_, _, pids) in zip(running, cases) for pid in pids(job)]
        suspend(stopped)
        time.sleep(PAUSE)
        resume(stopped)
        for job, (who, scheme, _) in zip(running, cases):
            with self.subTest(who, scheme=scheme):
                for _ in range(10):
                    job.wait_for("status")
                job.process.send_signal(signal.SIGINT)
                status, errors = job.finish()
                self.assertEqual(status, 130, errors)
                self.assertNotIn("last checkpoint", errors)
                summary = self.summary(who + scheme)
                self.assertEqual([worker["dropped_because"] for worker in summary["workers"]], [None, None])
                self.assertEqual(summary["ended_because"], "interrupted")
                self.assertNotIn("no longer answers", errors)

    def test_a_reader_that_goes_ends_the_job_as_an_interrupt_does(self):
        job = self.start(*TRAINING, *self.steady(), "--scheme", "ssgd")
        job.wait_for("started")
        job.process.stdout.close()
        errors = job.process.stderr.read().decode()
        self.assertEqual(job.process.wait(jobs.LIMIT), 141)
        lines = [line for line in errors.splitlines() if line.startswith("syncopate: ")]
        self.assertEqual(lines, ["syncopate: nobody reads the output any more: finishing the round"])
        summary = self.summary()
        self.assertEqual(summary["ended_because"], "interrupted")
        self.assertIn(f"{summary['rounds']:010}", self.checkpoints()[-1].name)


if __name__ == "__main__":
    unittest.main()
