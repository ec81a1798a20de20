#!/usr/bin/python3
"""Goal:   `syncopate run` starts programs with a loop of their own as the workers of one job, supervises
        them, and reports how the job ended; under another launcher the same programs form a job, too.
Method: examples/dist_mnist on Fashion-MNIST under each launcher, also with one process killed, and
        system commands that never join.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import jobs
import mnist_files
from mpi_test import LAUNCHERS

DIST_MNIST = os.environ["SYNCOPATE_DIST_MNIST"]
DATA = mnist_files.folder()
SHORT = [DIST_MNIST, DATA, "1", "1024"]


class OwnLoop(jobs.JobTest):
    def run_programs(self, *words):
        command = [jobs.SYNCOPATE, "run", *words]
        return subprocess.run(
            [str(word) for word in command],
            capture_output=True, text=True, timeout=jobs.LIMIT, check=False, cwd=self.folder,
        )

    def test_two_workers_train_the_same_network(self):
        done = self.run_programs("-n", 2, "--run-dir", "run", "--", DIST_MNIST, DATA, 2, 8192)
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

    def test_a_fast_worker_gets_more_of_the_data(self):
        with open(f"{self.folder}/unequal.toml", "w", encoding="utf-8") as file:
            file.write("".join(f'[[devices]]\nname = "{name}"\nsamples_per_second = {speed}\n'
                               for name, speed in (("fast", 1600), ("slow", 400))))
        done = self.run_programs("--scheme", "asgd", "--cluster", "unequal.toml", "--run-dir", "run", "--",
                                 DIST_MNIST, DATA, 1, 2048)
        self.assertEqual(done.returncode, 0, done.stderr)
        fast, slow = (worker["samples"] for worker in self.summary()["workers"])
        self.assertEqual(fast + slow, 2048)
        self.assertGreater(fast, 2 * slow)

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
        self.assertEqual(lines[-1], "syncopate: worker 1 ended with exit status 3 before it joined")

    def test_a_program_that_does_not_exist(self):
        done = self.run_programs("--", "./no-such-program")
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot start ./no-such-program: No such file or directory", done.stderr)

    def test_ctrl_c_ends_the_job(self):
        command = [jobs.SYNCOPATE, "run", "-n", "2", "--json", "--run-dir", "run", "--",
                   DIST_MNIST, DATA, "1000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder) as process:
            for line in process.stdout:
                if json.loads(line)["event"] == "status":
                    break
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=jobs.LIMIT)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("finishing the round", errors)
        self.assertIn("the job has ended (interrupted by Ctrl-C), so the program's loop can take no further step", errors)
        self.assertEqual(self.summary()["ended_because"], "interrupted")


class OtherLaunchers(jobs.JobTest):
    """Worker 0 coordinates. The test sees only the output of the processes and the run folder."""

    def assert_trained(self, lines, workers):
        found = [line for line in lines if "sum of weights" in line]
        self.assertEqual(sorted(re.findall(r"worker (\d) of", "\n".join(found))), [str(i) for i in range(workers)], lines)
        self.assertEqual(len({line.rsplit(" ", 1)[1] for line in found}), 1, lines)
        [summary] = glob.glob(f"{self.folder}/runs/*/summary.json")
        with open(summary, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["ended_because"], "every program has left its loop")

    def under_mpi(self, library):
        words = [*LAUNCHERS[library], "-n", "2", *SHORT]
        if not shutil.which(words[0]):
            self.skipTest(f"{words[0]} is missing")
        done = subprocess.run(words, capture_output=True, text=True, timeout=jobs.LIMIT, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_trained(done.stdout.splitlines(), 2)

    def test_open_mpi(self):
        self.under_mpi("openmpi")

    def test_mpich(self):
        self.under_mpi("mpich")

    def of_torchrun(self, rank, *words):
        """Starts a process with the environment that torchrun gives it."""
        variables = {"TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": str(os.getpid()), "RANK": str(rank), "WORLD_SIZE": "2"}
        return subprocess.Popen([DIST_MNIST, DATA, *words], env={**os.environ, **variables}, cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_torchrun(self):
        processes = [self.of_torchrun(rank, "1", "1024") for rank in (1, 0)]
        outputs = [process.communicate(timeout=jobs.LIMIT) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], outputs)
        self.assert_trained("".join(output for output, _ in outputs).splitlines(), 2)

    def killed(self, rank):
        """Kills one of two workers; returns the exit status and the error output of the other one."""
        processes = [self.of_torchrun(number, "1000") for number in (0, 1)]
        deadline = time.monotonic() + jobs.LIMIT
        lines = None
        while not lines and time.monotonic() < deadline:
            time.sleep(0.05)  # polls: only the run folder shows the first round
            lines = any(os.path.getsize(path) for path in glob.glob(f"{self.folder}/runs/*/workers/*.jsonl"))
        processes[rank].kill()
        processes[rank].communicate(timeout=jobs.LIMIT)
        _, error = processes[1 - rank].communicate(timeout=jobs.LIMIT)
        return processes[1 - rank].returncode, error

    def test_a_killed_worker_ends_the_others(self):
        status, error = self.killed(1)
        self.assertEqual(status, 1, error)
        self.assertRegex(error, r"worker 1 .*(died|lost|ended)")

    def test_a_killed_worker_zero_ends_the_others(self):
        status, error = self.killed(0)
        self.assertEqual(status, 1, error)
        self.assertIn("coordinator", error)


if __name__ == "__main__":
    unittest.main()
