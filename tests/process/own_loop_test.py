#!/usr/bin/python3
"""Goal:   `syncopate run` starts programs with a loop of their own as the workers of one job, supervises
        them, and says how the job has ended.
Method: examples/dist_mnist.cpp on synthetic images, and programs of the system that never join.
"""
import json
import os
import re
import signal
import subprocess
import unittest

import jobs

DIST_MNIST = os.environ["SYNCOPATE_DIST_MNIST"]
SHORT = [DIST_MNIST, "synthetic", "1", "1024"]


class OwnLoop(jobs.JobTest):
    def run_programs(self, *words):
        command = [jobs.SYNCOPATE, "run", *words]
        return subprocess.run(
            [str(word) for word in command],
            capture_output=True, text=True, timeout=jobs.LIMIT, check=False, cwd=self.folder,
        )

    def test_two_workers_train_the_same_network(self):
        done = self.run_programs("-n", 2, "--run-dir", "run", "--", DIST_MNIST, "synthetic", 2, 8192)
        self.assertEqual(done.returncode, 0, done.stderr)
        sums = re.findall(r"^\[worker \d\] worker (\d) of 2: sum of weights (\S+)$", done.stderr, re.MULTILINE)
        self.assertEqual(sorted(rank for rank, _ in sums), ["0", "1"], done.stderr)
        self.assertEqual(sums[0][1], sums[1][1])
        self.assertRegex(done.stderr, r"(?m)^\[worker 0\] epoch 2: accuracy 0\.[5-9]")
        summary = self.summary()
        self.assertEqual(summary["scheme"], "ssgd")
        self.assertEqual(summary["ended_because"], "every program has left its loop")
        self.assertEqual(sum(worker["samples"] for worker in summary["workers"]), 2 * 8192)

    def test_a_scheme_with_a_server_and_events(self):
        done = self.run_programs(
            "-n", 2, "--scheme", "asgd", "--servers", 2, "--json", "--run-dir", "run", "--", *SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        started = next(event for event in events if event.get("event") == "started")
        self.assertEqual((started["scheme"], len(started["workers"])), ("asgd", 2))
        self.assertEqual(len(self.summary()["servers"]), 2)

    def test_a_program_by_itself_needs_no_launcher(self):
        done = subprocess.run(SHORT, capture_output=True, text=True, timeout=jobs.LIMIT, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("worker 0 of 1: ", done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertEqual(os.listdir(self.folder), [])

    def test_programs_that_never_join(self):
        done = self.run_programs("-n", 2, "--", "sh", "-c", "echo $SYNCOPATE_RANK of $SYNCOPATE_SIZE")
        self.assertEqual((done.returncode, sorted(done.stderr.splitlines())),
                         (0, ["[worker 0] 0 of 2", "[worker 1] 1 of 2"]))

    def test_a_program_that_fails_ends_the_job(self):
        fails_late = 'test $SYNCOPATE_RANK = 0 || { echo last words >&2; exit 3; }; exec "$@"'
        done = self.run_programs("-n", 2, "--", "sh", "-c", fails_late, "sh", *SHORT)
        self.assertEqual(done.returncode, 1)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[0], "[worker 1] last words")
        self.assertRegex(lines[-1], r"^syncopate: worker 1 \(process \d+\) ended with exit status 3$")

    def test_a_program_that_does_not_exist(self):
        done = self.run_programs("--", "./no-such-program")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot start ./no-such-program: No such file or directory", done.stderr)

    def test_ctrl_c_ends_the_job(self):
        command = [jobs.SYNCOPATE, "run", "-n", "2", "--json", "--run-dir", "run", "--",
                   DIST_MNIST, "synthetic", "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder) as process:
            for line in process.stdout:
                if json.loads(line)["event"] == "status":
                    break
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=jobs.LIMIT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("finishing the round", errors)
        self.assertEqual(self.summary()["ended_because"], "interrupted")


if __name__ == "__main__":
    unittest.main()
