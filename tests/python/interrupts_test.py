#!/usr/bin/env python3
"""Goal:   Ctrl-C ends every wait of a script for other workers by KeyboardInterrupt, however the script was started, and the
        others get an error that says so; signal handlers may raise and leave the job, but not use it.
Method: two processes with the variables of torchrun; one waits in a call that the other does not make. The test sends SIGINT
        to the waiting process and, when it has ended, a signal to the other one, which then makes the call.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import unittest
from concurrent import futures

from script_cases import LIMIT, SYNCOPATE, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("interrupts_scripts.py"))
BY_INTERRUPT = r"Error: worker 1 \(pid \d+ on [^)]*\): the script left its loop by KeyboardInterrupt"
BY_EXIT = r"Error: worker 1 \(pid \d+ on [^)]*\): the script has ended with exit status 5"


class Interrupts(ScriptTest):
    def setUp(self):
        super().setUp()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = str(probe.getsockname()[1])

    def started(self, rank, *arguments):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.port, "TORCHELASTIC_RUN_ID": "job"}
        running = subprocess.Popen([*self.python, SCRIPTS, *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env={**os.environ, **place}, cwd=self.folder)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def expect(self, words, running):
        while words not in (line := running.stdout.readline()):
            self.assertTrue(line, "a worker has ended before")

    def both(self, *arguments):
        running = [self.started(rank, *arguments) for rank in range(2)]
        for each in running:
            self.expect("ready", each)
        return running

    def interrupted(self, running, *further):
        for number in (signal.SIGINT, *further):
            running.send_signal(number)
        said = running.communicate(timeout=LIMIT)[0]
        self.assertNotIn("Exception ignored", said)
        return running.returncode, said

    def let_come(self, other):
        other.send_signal(signal.SIGUSR1)
        return other.communicate(timeout=LIMIT)[0]

    def test_a_wait_for_workers_that_never_start(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                running = self.started(rank, "waits", "init")
                self.expect("ready", running)
                status, said = self.interrupted(running)
                self.assertEqual(status, -signal.SIGINT)
                self.assertRegex(said, "(?m)^KeyboardInterrupt")

    def test_waits_for_a_worker_that_does_something_else(self):
        for how, status, others in (("optimizer", -signal.SIGINT, "PeerLost"), ("step", -signal.SIGINT, BY_INTERRUPT),
                                    ("finish", -signal.SIGINT, BY_INTERRUPT), ("align", -signal.SIGINT, BY_INTERRUPT),
                                    ("end", 1, BY_INTERRUPT)):
            with self.subTest(how):
                other, waiting = self.both("waits", how)
                found, said = self.interrupted(waiting)
                self.assertEqual(found, status, said)
                self.assertRegex(said, "(?m)^KeyboardInterrupt")
                self.assertRegex(self.let_come(other), others)
                self.assertEqual(other.returncode, 1)

    def test_the_host_of_a_job_waits_for_a_worker_that_does_not_leave(self):
        host, other = self.both("waits", "leave")
        self.assertEqual(self.interrupted(host)[0], -signal.SIGINT)
        self.assertEqual(self.let_come(other), "")
        self.assertEqual(other.returncode, 0)

    def test_a_worker_that_joins_again(self):
        first = self.started(0, "joins_again")
        self.expect("ready", first)
        first.send_signal(signal.SIGINT)
        self.expect("again", first)
        for each in (self.started(1, "joins_again"), first):
            self.assertIn("sum 2.0", each.communicate(timeout=LIMIT)[0])
            self.assertEqual(each.returncode, 0)

    def test_a_callback_that_ends_at_its_first_line(self):
        """ctypes then has no result to give to the library."""
        with futures.ThreadPoolExecutor() as all_at_once:
            ends = {scheme: all_at_once.submit(
                subprocess.run, [SYNCOPATE, "run", "-n", "2", "--scheme", scheme, "--run-dir", f"callback-{scheme}", "--",
                                 *self.python, SCRIPTS, "in_a_callback"], capture_output=True, text=True, cwd=self.folder,
                check=False) for scheme in ("ssgd", "esync", "local-sgd")}
        for scheme, done in ends.items():
            with self.subTest(scheme):
                said = done.result().stderr
                self.assertRegex(said, r"(?m)^\[worker 1\] KeyboardInterrupt")
                self.assertRegex(said, r"(?m)^\[worker 0\] .*" + BY_INTERRUPT)
                self.assertNotIn("signal 11", said)
                self.assertNotIn("Exception ignored", said)

    def test_a_script_that_goes_on_after_an_interrupted_align(self):
        other, waiting = self.both("catches")
        status, said = self.interrupted(waiting)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, BY_INTERRUPT)
        self.assertRegex(self.let_come(other), BY_INTERRUPT)

    def test_handlers_that_do_more_than_to_raise(self):
        for how, status, words, others in (("leaves", 5, "", BY_EXIT), ("exits", 5, "", BY_EXIT),
                                           ("steps", 1, "ConfigError: the handler of a signal came while", "the handler of a signal")):
            with self.subTest(how):
                other, waiting = self.both("handles", how)
                found, said = self.interrupted(waiting)
                self.assertEqual(found, status, said)
                self.assertIn(words, said)
                self.assertEqual("Traceback" in said, how == "steps", said)
                self.assertRegex(self.let_come(other), others)

    def test_sigterm_to_the_launcher_reaches_scripts_that_save(self):
        for how in ("handler", "job"):
            with self.subTest(how):
                running = subprocess.Popen([SYNCOPATE, "run", "-n", "2", "--", sys.executable, SCRIPTS, "saves", how],
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)
                self.addCleanup(running.stdout.close)
                self.addCleanup(running.wait)
                self.addCleanup(running.kill)
                for _ in range(2):
                    self.expect("ready", running)
                running.terminate()
                said = running.communicate(timeout=LIMIT)[0]
                self.assertEqual(running.returncode, 0, said)
                self.assertEqual(sorted(re.findall(r'"saved": (\d)', said)), ["0", "1"], said)
                self.assertIn("SIGTERM has gone to 2 programs with handlers for it", said)

    def test_two_handlers_that_raise(self):
        other, waiting = self.both("handles", "raises twice")
        status, said = self.interrupted(waiting, signal.SIGTERM)
        self.assertIn(status, (-signal.SIGINT, 5), said)
        self.assertIn("Error: worker 1 ", self.let_come(other))

    def test_a_handler_after_which_the_wait_goes_on(self):
        other, waiting = self.both("handles", "goes on")
        waiting.send_signal(signal.SIGINT)
        self.expect("handled", waiting)
        self.assertEqual(self.let_come(other), "")
        self.assertEqual(waiting.communicate(timeout=LIMIT)[0], "")
        self.assertEqual([other.returncode, waiting.returncode], [0, 0])


if __name__ == "__main__":
    unittest.main()
