"""Goal: a coordinator refuses nodes that do not belong to its job, with a reason on both sides, while the job continues.
Method: each role is a separate command, over loopback; a raw node sends the invalid messages."""
import os
import pathlib
import resource
import socket
import unittest

import privileges
import raw_node
from jobs import ENDLESS, LIMIT, SMALL, SYNCOPATE, Joiner, JobTest, RunningJob

LISTENING = "0A"  # a state in /proc/net/tcp


def listening_port(pid):
    """Returns the port at which a process accepts connections from its peers."""
    links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING and fields[9] in sockets:
            return int(fields[1].split(":")[1], 16)
    raise AssertionError(f"process {pid} does not listen")


class Outsiders(JobTest):
    def assert_refused_on_both_sides(self, job, joiner, words):
        status, errors = joiner.finish()
        self.assertEqual(status, 2, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(words, errors)
        self.assertIn(words, job.wait_for_note(words))

    def test_wrong_members_are_refused_and_the_job_goes_on(self):
        job = self.coordinate(*SMALL, "--max-steps", "10")
        address = job.address()
        first = self.join("worker", address, "--index", "0")
        first.wait_for_line("worker 0 joins")
        taken = self.join("worker", address, "--index", "0", "--quiet")
        self.assert_refused_on_both_sides(job, taken, f"its slot is taken by pid {first.process.pid}")
        none_such = self.join("worker", address, "--index", "2", "--quiet")
        self.assert_refused_on_both_sides(job, none_such, "this job has room for 2 workers")
        server = self.join("server", address, "--quiet")
        self.assert_refused_on_both_sides(job, server, "this job has room for 0 servers")
        other = self.join("worker", address, "--network", "resnet18-v1", "--quiet")
        self.assert_refused_on_both_sides(job, other, "--network is resnet18-v1 here, but mlp in the job")
        second = self.join("worker", address, "--network", "mlp")
        self.assert_all_end_well(first, second, job)

    def test_another_version_and_another_agreement_are_refused_and_the_job_goes_on(self):
        job = self.coordinate(*SMALL, "--workers", "1", "--max-steps", "10")
        address = job.address()
        with raw_node.RawNode(address, self.key_file().read_text()) as old:
            kind, reason = old.say_hello(version=99)
            self.assertEqual(kind, raw_node.REFUSED)
            self.assertIn(b"found 99", reason)
        with raw_node.RawNode(address, self.key_file().read_text()) as other:
            self.assertEqual(other.say_hello()[0], raw_node.WELCOME)
            other.join_as_worker(0, "syncopate 99: ssgd of mlp")
            self.assertIn(b'it runs "syncopate 99: ssgd of mlp"', other.receive()[1])
            self.assertIn("worker 0 (pid 99 on raw) cannot join", job.wait_for_note("syncopate 99"))
        self.assert_all_end_well(self.join("worker", address))
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn("turned away a connection", errors)

    def test_a_secret_keeps_others_out(self):
        secret = self.key_file("secret", "open sesame, please\n")
        job = self.coordinate(*SMALL, "--workers", "1", "--max-steps", "5", "--secret", secret)
        address = job.address()
        status, errors = self.join("worker", address, "--quiet").finish()  # with another key
        self.assertEqual((status, len(errors.splitlines())), (2, 1), errors)
        self.assertIn("the job's key is not that of the other side", errors)
        self.assert_all_end_well(self.join("worker", address, "--secret", secret))
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn("the job's key is not that of the other side", errors)

    def test_without_a_secret_a_job_makes_a_key_and_shows_the_command_to_join_with(self):
        options = ["--listen", "127.0.0.1:0", *SMALL, "--workers", "1", "--max-steps", "5"]
        job = RunningJob(self.folder / "run", options, command="coordinator")
        self.addCleanup(job.end)
        address = job.address()
        words = job.wait_for_note("to join: ").removeprefix("to join: ").split()
        key = self.folder / "run" / "job.key"
        self.assertEqual(words, ["syncopate", "worker", "--join", address, "--secret", str(key)])
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        self.assertRegex(key.read_text(), r"^[0-9a-f]{32}\n$")
        with raw_node.RawNode(address) as other:
            kind, reason = other.say_hello()
            self.assertEqual(kind, raw_node.REFUSED)
            self.assertIn(b"the streams of this job are encrypted: join it with its key (--secret)", reason)
        worker = Joiner([SYNCOPATE, *words[1:]])
        self.addCleanup(worker.end)
        self.assert_all_end_well(worker, job)
        self.assertFalse(key.exists())

    def test_silent_connections_end_no_job(self):
        privileges.descriptors(400).require()
        job = self.coordinate(*SMALL, "--workers", "1", *self.steady(1), *ENDLESS, "--checkpoint-every", "1epoch")
        address = job.address()
        worker = self.join("worker", address)
        job.wait_for_round(1)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (128, most))
        port = listening_port(worker.process.pid)
        silent = [socket.create_connection(("127.0.0.1", port), timeout=LIMIT) for _ in range(300)]
        for connection in silent:
            self.addCleanup(connection.close)
        before = self.checkpoints()[-1]
        job.wait_for("status", lambda _: self.checkpoints()[-1] != before)
        for closed in silent[:200]:  # the worker has closed the oldest connections to make room
            self.assertEqual(closed.recv(1), b"")
        self.stop(job)
        self.assert_all_end_well(worker)


if __name__ == "__main__":
    unittest.main()
