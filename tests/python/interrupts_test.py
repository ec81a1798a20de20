#!/usr/bin/env python3
"""Goal:   Ctrl-C ends every wait of a script for the other workers by KeyboardInterrupt, whatever has started the script, and the
        others get an error that says so.
Method: two processes with the variables of torchrun, of which one waits in what the other does not come to: SIGINT to that
        one, and when it has ended a signal to the other, which then comes.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest

from script_cases import LIMIT, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("interrupts_scripts.py"))
BY_LIBRARY = r"Error: worker 1 \(pid \d+ on [^)]*\): the program was interrupted while it waited for the other workers"
BY_SCRIPT = r"Error: worker 1 \(pid \d+ on [^)]*\): the script left its loop by KeyboardInterrupt"


class Interrupts(ScriptTest):
    def started(self, ranks, how):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        running = []
        for rank in ranks:
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": how}
            running.append(subprocess.Popen([sys.executable, "-B", SCRIPTS, "waits", how], stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True, env={**os.environ, **place}, cwd=self.folder))
            self.addCleanup(running[-1].stdout.close)
            self.addCleanup(running[-1].kill)
        for each in running:
            while "ready" not in (line := each.stdout.readline()):
                self.assertTrue(line, "a worker has ended before")
        return running

    def interrupted(self, running):
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=LIMIT)[0]
        self.assertRegex(said, "(?m)^KeyboardInterrupt", said)
        return running.returncode

    def test_a_wait_for_workers_that_never_start(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                [running] = self.started([rank], "init")
                self.assertEqual(self.interrupted(running), -signal.SIGINT)

    def test_waits_for_a_worker_that_does_something_else(self):
        for how, status, others in (("optimizer", -signal.SIGINT, "PeerLost"),
                                    ("step", -signal.SIGINT, BY_LIBRARY), ("finish", -signal.SIGINT, BY_LIBRARY),
                                    ("align", -signal.SIGINT, BY_SCRIPT), ("end", 1, BY_LIBRARY)):
            with self.subTest(how):
                other, waiting = self.started([0, 1], how)
                self.assertEqual(self.interrupted(waiting), status)
                other.send_signal(signal.SIGUSR1)
                said = other.communicate(timeout=LIMIT)[0]
                self.assertRegex(said, others)
                self.assertEqual(other.returncode, 1)

    def test_the_host_of_a_job_waits_for_a_worker_that_does_not_leave(self):
        host, other = self.started([0, 1], "leave")
        self.assertEqual(self.interrupted(host), -signal.SIGINT)
        other.send_signal(signal.SIGUSR1)
        self.assertEqual(other.communicate(timeout=LIMIT)[0], "")
        self.assertEqual(other.returncode, 0)


if __name__ == "__main__":
    unittest.main()
