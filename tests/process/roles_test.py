"""Goal: coordinator, workers and servers that are started by hand find each other in any order, train as
`train` does, and refuse wrong members with their names, on both sides, while the job continues.
Method: each role is a separate command, over loopback; a raw node sends the invalid messages."""
import os
import pathlib
import resource
import signal
import socket
import unittest

import privileges
import raw_node
from jobs import LIMIT, SMALL, SYNCOPATE, Joiner, JobTest, RunningJob, free_address, wait_until_gone

LISTENING = "0A"  # a state in /proc/net/tcp
SERVED = [*SMALL, "--scheme", "asgd", "--servers", "1"]


def listening_port(pid):
    """The port at which a process takes connections of its peers."""
    links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:[")}
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENING and fields[9] in sockets:
            return int(fields[1].split(":")[1], 16)
    raise AssertionError(f"process {pid} does not listen")


class Roles(JobTest):
    def assert_all_end_well(self, *processes):
        for process in processes:
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)

    def assert_refused_on_both_sides(self, job, joiner, words):
        status, errors = joiner.finish()
        self.assertEqual(status, 2, errors)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn(words, errors)
        self.assertIn(words, job.wait_for_note(words))

    def test_start_in_any_order(self):
        for number, order in enumerate((
            ("coordinator", "server", "worker", "worker"),
            ("worker", "server", "coordinator", "worker"),
            ("worker", "worker", "server", "coordinator"),
        )):
            with self.subTest(order):
                address, run_dir = free_address(), f"run{number}"
                processes = [
                    self.coordinate(*SERVED, "--max-steps", "20", address=address, run_dir=run_dir)
                    if role == "coordinator" else self.join(role, address, run_dir=run_dir)
                    for role in order
                ]
                self.assert_all_end_well(*processes)
                self.assertEqual([worker["steps"] for worker in self.summary(run_dir)["workers"]], [20, 20])
                self.assertGreater(self.summary(run_dir)["accuracy"], 0.2)
                self.assertEqual(len(self.checkpoints(run_dir)), 2)  # the first model and the last

    def test_several_servers_and_places_by_number(self):
        job = self.coordinate(*SMALL, "--scheme", "asgd", "--servers", "2", "--max-steps", "10")
        address = job.address()
        places = [("worker", 1), ("server", 1), ("worker", 0), ("server", 0)]
        joiners = [self.join(role, address, "--index", index) for role, index in places]
        started = job.wait_for("started")
        by_rank = {worker["rank"]: worker["pid"] for worker in started["workers"]}
        self.assertEqual(by_rank, {1: joiners[0].process.pid, 0: joiners[2].process.pid})
        self.assert_all_end_well(job, *joiners)

    def test_servers_may_share_the_process_of_the_coordinator(self):
        job = self.coordinate(*SERVED, "--server-process", "shared", "--max-steps", "10")
        address = job.address()
        self.assert_all_end_well(self.join("worker", address), self.join("worker", address), job)

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
        with raw_node.RawNode(address) as old:
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
        self.assertIn("the job token is wrong", errors)
        self.assert_all_end_well(self.join("worker", address, "--secret", secret))
        status, errors = job.finish()
        self.assertEqual(status, 0, errors)
        self.assertIn("the job token is wrong", errors)

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
            self.assertIn(b"the job token is wrong", reason)
        worker = Joiner([SYNCOPATE, *words[1:]])
        self.addCleanup(worker.end)
        self.assert_all_end_well(worker, job)
        self.assertFalse(key.exists())

    def test_silent_connections_end_no_job(self):
        privileges.descriptors(400).require()
        job = self.coordinate(*SMALL, "--workers", "1", *self.steady(1), "--epochs", "100000", "--eval-every", "never",
                              "--checkpoint-every", "1epoch")
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
        for closed in silent[:200]:  # the oldest have made room
            self.assertEqual(closed.recv(1), b"")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
        self.assert_all_end_well(worker)

    def test_nobody_waits_for_ever(self):
        job = self.coordinate(*SMALL, "--gather-limit", "5")
        self.join("worker", job.address()).wait_for_line("worker 0 joins")
        status, errors = job.finish()
        self.assertEqual(status, 1)
        self.assertIn("there is still no sign of worker 1", errors)
        status, errors = self.join("worker", free_address(), "--gather-limit", "1.5").finish()
        self.assertEqual(status, 1)
        self.assertIn("waiting for the coordinator at", errors.splitlines()[0])
        self.assertIn("nobody answers at", errors.splitlines()[1])

    def test_an_address_in_use_is_refused_before_anything_is_written(self):
        job = self.coordinate(*SMALL)
        other = self.coordinate(*SMALL, address=job.address(), run_dir="other")
        status, errors = other.finish()
        self.assertEqual((status, len(errors.splitlines())), (2, 1), errors)
        self.assertIn("Address already in use", errors)
        self.assertFalse((self.folder / "other").exists())

    def test_an_interrupt_of_the_coordinator_ends_all_with_a_checkpoint(self):
        job = self.coordinate(*SERVED, *self.steady(), "--epochs", "100000", "--eval-every", "never")
        address = job.address()
        joiners = [self.join(role, address) for role in ("worker", "worker", "server")]
        job.wait_for_round(10)
        children = job.children()
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish()[0], 130)
        self.assert_all_end_well(*joiners)
        # On a fast machine, an epoch's checkpoint precedes the last one.
        last = self.checkpoints()[-1].stem
        self.assertEqual(int(last.removeprefix("round-")), self.summary()["rounds"])
        wait_until_gone(children)

    def test_the_death_of_the_coordinator_ends_all(self):
        job = self.coordinate(*SERVED, *self.steady(), "--epochs", "100000", "--eval-every", "never")
        address = job.address()
        joiners = [self.join(role, address) for role in ("worker", "worker", "server")]
        job.wait_for_round(10)
        children = job.children()
        job.process.kill()
        for joiner in joiners:
            status, errors = joiner.finish()
            self.assertEqual(status, 1, errors)
            self.assertIn("the coordinator died", errors)
        wait_until_gone(children)

    def test_a_joiner_writes_below_a_folder_of_its_own_and_says_where_its_checkpoints_are(self):
        job = self.coordinate(*SMALL, "--workers", "1", "--max-steps", "5")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        worker = self.join("worker", job.address(), run_dir=None, cwd=elsewhere)
        note = job.wait_for_note("checkpoints go to")
        self.assert_all_end_well(worker, job)
        (own,) = (elsewhere / "runs").iterdir()
        self.assertIn(str(own), note)
        self.assertEqual(sorted(path.name for path in own.iterdir()), ["checkpoints", "spans", "workers"])
        self.assertEqual(len((own / "workers" / "0.jsonl").read_text().splitlines()), 5)
        self.assertEqual(list((self.folder / "run" / "workers").iterdir()), [])
        self.assertEqual(self.checkpoints(), [])

    def test_a_run_is_resumed_by_hand(self):
        for options in (["--max-steps", "5"], ["--resume", self.folder / "run", "--max-steps", "9"]):
            base = SMALL if "--resume" not in options else []
            job = self.coordinate(*base, *options)
            address = job.address()
            self.assert_all_end_well(self.join("worker", address), self.join("worker", address), job)
        self.assertEqual(self.summary()["rounds"], 9)


if __name__ == "__main__":
    unittest.main()
