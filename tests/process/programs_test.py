#!/usr/bin/python3
"""Goal:   `syncopate run` ends the job, and all that its programs have started, when a program ends before the others
        have found it, when the user interrupts, and when a program is refused.
Method: c_interface.py and commands of the system as programs, some behind a shell.
"""
import os
import subprocess
import sys
import unittest

import jobs

PROGRAM = [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "c_interface.py")]
# Does the first thing as worker 1, and calls the program as the others.
AS_WORKER_1 = ["sh", "-c", 'test $SYNCOPATE_RANK = 1 && { eval "$0"; }; exec "$@"']


class ProgramsTest(jobs.JobTest):
    def command(self, *words):
        return [str(word) for word in (jobs.SYNCOPATE, "run", *words)]

    def run_programs(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=jobs.LIMIT, check=False,
                              cwd=self.folder)


class EarlyEnds(ProgramsTest):
    """A program that ends before it joins. The limit of the processes is far below that of the others' wait."""

    def first_of_three(self, action):
        done = self.run_programs("-n", 3, "--", *AS_WORKER_1, action, *PROGRAM, "join_or_say")
        said = sorted(line for line in done.stderr.splitlines() if line.startswith("[worker "))
        return done, said

    def assert_told(self, action, how, status):
        done, said = self.first_of_three(action)
        error = f"worker 1 {how} before it joined"
        self.assertEqual(said, [f"[worker {rank}] status 1: {error}" for rank in (0, 2)], done.stderr)
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (status, f"syncopate: {error}"))

    def test_without_an_error(self):
        self.assert_told("exit 0", "ended with exit status 0", 1)

    def test_with_an_error(self):
        self.assert_told("exit 7", "ended with exit status 7", 1)

    def test_by_a_signal(self):
        self.assert_told("kill -SEGV $$", "was killed by signal 11 (Segmentation fault)", 1)

    def test_a_script_that_raises(self):
        self.assert_told(f'exec {sys.executable} -c "raise SystemExit(3)"', "ended with exit status 3", 1)

    def test_programs_that_never_join(self):
        done = self.run_programs("-n", 2, "--", *AS_WORKER_1, "exit 0", "sh", "-c", "read line < /dev/null; echo went on")
        self.assertEqual((done.returncode, done.stderr), (0, "[worker 0] went on\n"))


if __name__ == "__main__":
    unittest.main()
