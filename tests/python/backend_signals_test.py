#!/usr/bin/python3
"""Goal:   a rank that waits for a collective of backend "syncopate" ends on Ctrl-C, by KeyboardInterrupt, and on SIGTERM.
Method: two processes without a launcher; rank 1 waits for a collective that rank 0 never begins. The test signals rank 1,
        and rank 0 only after rank 1 has ended, since an earlier end of rank 0 would be an error for rank 1.
"""
import pathlib
import signal
import unittest

from backend_test import BackendTest


class Signals(BackendTest):
    script = str(pathlib.Path(__file__).with_name("backend_signals_scripts.py"))

    def after(self, sent, how):
        """Starts both ranks, sends them the signal, and returns their exit statuses and outputs."""
        running = self.started_by_hand(2, "waits", how)
        try:
            for each in running:
                while "ready" not in (line := each.stdout.readline()):
                    self.assertTrue(line, "a rank has ended before")
            outputs = []
            for each in reversed(running):
                each.send_signal(sent)
                outputs.append(each.communicate(timeout=60)[0])
        finally:
            for each in running:
                each.kill()
        return [each.returncode for each in running], outputs

    def test_interrupts(self):
        for how in ("collective", "message", "future", "callback"):
            with self.subTest(how):
                statuses, outputs = self.after(signal.SIGINT, how)
                self.assertEqual(statuses, [-signal.SIGINT] * 2, outputs)
                for output in outputs:
                    self.assertIn("KeyboardInterrupt", output)

    def test_a_request_to_end(self):
        statuses, outputs = self.after(signal.SIGTERM, "collective")
        self.assertEqual(statuses, [-signal.SIGTERM] * 2, outputs)


if __name__ == "__main__":
    unittest.main()
