#!/usr/bin/python3
"""Goal:   a script that a fork server runs behaves and ends as one that an interpreter runs.
Method: both run small scripts; the test compares output, exit status and the effect of signals.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from forked_scripts import ForkServer

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "process"))
import privileges  # noqa: E402
from network_test import Namespace  # noqa: E402

LIMIT = 60  # seconds
REAL = [sys.executable, "-B"]
SEES = """import os, sys
print(sys.argv[1:], __name__, __file__, sys.path[0], os.getcwd(), os.environ["FACT"], sys.stdin.read())
"""
ENDS = {"by its last line": "print('said')",
        "by sys.exit": "import sys\nsys.exit(7)",
        "by sys.exit with a text": "import sys\nsys.exit('no such file')",
        "by an exception": "def fails():\n    raise ValueError('strange')\nfails()",
        "at once": "import os\nos._exit(9)",
        "by a signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
        "with exit functions": "import atexit\natexit.register(print, 'at the end')\nkept = print('first')",
        "with a thread": "import threading, time\nthreading.Timer(0.01, print, ['of a thread']).start()",
        "by a SyntaxError": "what is this"}
WAITS = """import signal, sys
print("ready", flush=True)
signal.pause()
"""


class ForkedScripts(unittest.TestCase):
    server = ForkServer("json")

    @classmethod
    def setUpClass(cls):
        cls.server.python  # the first use of an own server returns a real interpreter
        cls.forked = cls.server.python

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="syncopate-forked-")
        self.addCleanup(folder.cleanup)
        self.script = pathlib.Path(folder.name, "script.py")

    def run_by(self, python, *arguments, **options):
        done = subprocess.run([*python, self.script, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False,
                              cwd=self.script.parent, **options)
        own = "forked_scripts.py"  # its frames come before those of a SystemExit or a SyntaxError
        return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if own not in line]

    def test_it_is_another_way_to_start(self):
        self.assertEqual(self.forked[-2], "client")

    def test_what_a_script_sees(self):
        self.script.write_text(SEES, encoding="utf-8")
        seen = [self.run_by(python, "one", "two words", input="typed", env={**os.environ, "FACT": "known"})
                for python in (REAL, self.forked)]
        self.assertEqual(seen[0], seen[1])
        self.assertIn("['one', 'two words'] __main__", seen[1][1])

    def test_the_network_and_the_name_of_a_host(self):
        privileges.linked_networks().require()
        host = Namespace()
        self.addCleanup(host.end)
        self.script.write_text("import os, socket\nprint(socket.gethostname(), os.readlink('/proc/self/ns/net'))", encoding="utf-8")
        named = host.words("unshare", "--uts", "sh", "-c", 'hostname another && exec "$@"', "sh")
        here, real, forked = (self.run_by(python) for python in (REAL, [*named, *REAL], [*named, *self.forked]))
        self.assertEqual(real, forked)
        self.assertIn("another", real[1])
        self.assertNotEqual(real[1].split()[1], here[1].split()[1])

    def test_each_kind_of_end(self):
        for how, text in ENDS.items():
            with self.subTest(how):
                self.script.write_text(text, encoding="utf-8")
                real, forked = self.run_by(REAL), self.run_by(self.forked)
                self.assertEqual(real[:2], forked[:2])
                self.assertEqual(real[2][-1:], forked[2][-1:])
                if how == "by an exception":
                    self.assertEqual(real[2], forked[2])

    def started(self, text=WAITS):
        self.script.write_text(text, encoding="utf-8")
        running = subprocess.Popen([*self.forked, self.script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.kill)
        self.assertEqual(running.stdout.readline(), "ready\n")
        return running

    def test_signals_reach_the_script(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(number):
                running = self.started()
                running.send_signal(number)
                errors = running.communicate(timeout=LIMIT)[1]
                self.assertEqual(running.returncode, -number)
                self.assertEqual("KeyboardInterrupt" in errors, number == signal.SIGINT)

    def test_a_script_whose_client_is_killed_ends(self):
        running = self.started(WAITS.replace("import", "import os, subprocess,").replace(
            "signal.pause()", "subprocess.Popen(['sleep', '1000'])\nsignal.pause()"))
        running.kill()
        running.communicate(timeout=LIMIT)  # returns when script and child have closed the output


if __name__ == "__main__":
    unittest.main()
