#!/usr/bin/python3
"""Goal:   a program trains its own module with a job that it starts in its own process: the job forks
        no process and installs no signal handler.
Method: module_job.cpp; while it trains, the test reads its children and its signal handlers from
        /proc, and at the end the result from its output and its run folder.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

EXAMPLE = os.environ["SYNCOPATE_EXAMPLE"]
# The two signals that glibc itself handles in a program with threads.
SIGNALS_OF_GLIBC = 0b11 << 31


def handled_signals(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)[1], 16) & ~SIGNALS_OF_GLIBC


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


class FrontDoor(unittest.TestCase):
    def test_a_module_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            with subprocess.Popen([EXAMPLE, run], stdout=subprocess.PIPE, text=True) as program:
                self.assertEqual(program.stdout.readline(), "started\n")
                self.assertEqual(handled_signals(program.pid), 0)
                self.assertEqual(children(program.pid), [])
                output = program.stdout.read()
            self.assertEqual(program.returncode, 0)
            self.assertIn("parameters equal: yes\n", output)
            self.assertGreater(float(re.search(r"^accuracy (\S+)$", output, re.MULTILINE)[1]), 0.9)
            summary = json.loads((run / "summary.json").read_text())
            self.assertEqual(summary["scheme"], "esync")
            self.assertEqual(len(summary["workers"]), 2)

    def test_a_folder_that_holds_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder)
            (run / "config.toml").write_text("")
            done = subprocess.run([EXAMPLE, run], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "^module_job: .*already")


if __name__ == "__main__":
    unittest.main()
