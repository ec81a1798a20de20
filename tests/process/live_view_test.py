#!/usr/bin/python3
"""Goal:   on a terminal, a job updates its view in place, fits it to the terminal's size, prints its log above
        it and restores the cursor; only the supervisor receives Ctrl-C.
Method: fake_job.cpp runs with a pseudo-terminal as its controlling terminal. The test reads the output until
        the expected text appears.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import fake_jobs

FAKE_JOB = os.environ["SYNCOPATE_FAKE_JOB_PROGRAM"]
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Terminal(fake_jobs.RunningProcess):
    def __init__(self, kind, environment=None, columns=90, rows=24, command=None, cwd=None):
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        own = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "SYNCOPATE_FAKE_JOB": kind, "NO_COLOR": ""}
        self.process = subprocess.Popen(
            command or [FAKE_JOB, "train", "--workers", "3", "--run-dir", "runs/x"],
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, **own, **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.seen = ""

    def close_streams(self):
        os.close(self.master)

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read_more(self):
        """Reads further output; returns False when the job has closed the terminal."""
        ready, _, _ = select.select([self.master], [], [], fake_jobs.LIMIT_SECONDS)
        if not ready:
            raise AssertionError(f"nothing came for too long after: {self.seen[-500:]!r}")
        try:
            self.seen += os.read(self.master, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def wait_for(self, pattern):
        """Reads until `pattern` is in the unseen output, and marks the output up to it as seen."""
        while not (found := re.search(pattern, self.seen)):
            if not self.read_more():
                raise AssertionError(f"'{pattern}' never came in: {self.seen!r}")
        self.seen = self.seen[found.end() :]
        return found

    def end(self):
        """Waits for the end; returns the exit status and all unseen output."""
        while self.read_more():
            pass
        return self.process.wait(fake_jobs.LIMIT_SECONDS), self.seen


def lines_of(text):
    """Returns the lines without escape sequences for cursor and colours."""
    return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip("\r") for line in text.split("\n")]


class LiveView(unittest.TestCase):
    def test_shows_workers_and_ends_with_the_table(self):
        with Terminal("finish") as terminal:
            status, text = terminal.end()
        self.assertEqual(status, 0)
        self.assertTrue(text.startswith(HIDE_CURSOR))
        self.assertTrue(text.endswith(SHOW_CURSOR))
        table = text[text.rindex("worker  device") :]
        self.assertIn("cpu as device-2", table)
        self.assertIn("run folder          runs/x", table)

    def test_is_redrawn_in_place(self):
        with Terminal("run") as terminal:
            terminal.wait_for("ssgd: lenet5 on fashion-mnist")
            terminal.wait_for(r"\x1b\[\d+A")
            first = int(terminal.wait_for(r"epoch (0\.\d+) of 5")[1][2:])
            later = int(terminal.wait_for(r"epoch (0\.\d+) of 5")[1][2:])
            self.assertGreater(later, first)

    def test_ctrl_c_ends_after_the_round_and_restores_the_cursor(self):
        with Terminal("run") as terminal:
            terminal.wait_for("elapsed")
            terminal.type("\x03")
            terminal.wait_for("finishing the round")
            status, text = terminal.end()
        self.assertEqual(status, 130)
        self.assertTrue(text.endswith(SHOW_CURSOR))
        self.assertNotIn("killed", text)

    def test_ctrl_z_does_not_stop_the_job(self):
        with Terminal("run") as terminal:
            terminal.wait_for("elapsed")
            terminal.type("\x1a")
            for _ in range(5):
                terminal.wait_for("elapsed")

    def test_fits_a_terminal_that_changes(self):
        with Terminal("run", columns=90) as terminal:
            terminal.wait_for("elapsed")
            terminal.resize(50, 12)
            terminal.type("\x03")  # Ctrl-C; what the job draws from now on must have the new size
            terminal.wait_for("finishing the round")
            _, text = terminal.end()
        picture = text[: text.rindex("worker  device")]
        self.assertTrue(all(len(line) <= 50 for line in lines_of(picture)), lines_of(picture))

    def test_log_lines_stay_above(self):
        with Terminal("chatter") as terminal:
            _, text = terminal.end()
        self.assertIn("[worker 0] a line of warning", text)
        self.assertLess(text.index("a line of warning"), text.rindex("worker  device"))

    def test_a_terminal_that_is_held_holds_no_job(self):
        with Terminal("run") as terminal:
            terminal.wait_for("elapsed")
            terminal.type("\x13")  # Ctrl-S: the terminal takes no more output
            time.sleep(1)  # the job would draw its view ten times
            terminal.process.send_signal(signal.SIGINT)
            self.assertEqual(terminal.process.wait(20), 130)

    def test_colours_and_characters_follow_the_environment(self):
        with Terminal("finish") as terminal:
            _, text = terminal.end()
        self.assertIn("\x1b[1m", text)
        self.assertIn("█", text)
        with Terminal("finish", {"NO_COLOR": "1", "LC_ALL": "C"}) as terminal:
            _, text = terminal.end()
        self.assertNotRegex(text, r"\x1b\[[0-9]*m")
        self.assertTrue(text.isascii())

    def test_a_dumb_terminal_gets_plain_lines(self):
        with Terminal("finish", {"TERM": "dumb"}) as terminal:
            _, text = terminal.end()
        self.assertNotIn("\x1b", text)
        self.assertIn("test accuracy 0.8765", text)


if __name__ == "__main__":
    unittest.main()
