"""Goal:   what launchers start on two hosts trains one model, encrypted by the job's key: under mpirun and mpiexec over SSH, under
        a launcher that sets the variables of torch.distributed, and by `syncopate run` on each host.
Method: two network namespaces with a real sshd each, connected by a virtual cable.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import unittest

import mnist_files
from hosts import ADDRESSES, HostsTest, SshHostsTest
from jobs import LIMIT, SMALL, SYNCOPATE
from mpi_test import LAUNCHERS
from network_test import NIC

DIST_MNIST = os.environ["SYNCOPATE_DIST_MNIST"]
COORDINATOR = f"{ADDRESSES[0]}:9091"
BUILT_IN = [SYNCOPATE, "train", *SMALL[:4], "--max-steps", "20"]


def program(images=1024, epochs=1):
    return [DIST_MNIST, mnist_files.folder(), str(epochs), str(images)]


def sums_in(text):
    """The sums of the workers' parameters that examples/dist_mnist prints, by rank."""
    return dict(re.findall(r"worker (\d) of \d: sum of weights (\S+)", text))


class Part:
    """Processes of one host."""

    def __init__(self, words, folder, variables=()):
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=folder, env=os.environ | dict(variables))

    def finish(self):
        output, errors = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, output, errors

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=LIMIT)


class PartsTest(HostsTest):
    def part(self, host, words, variables=()):
        part = Part(self.hosts[host].words(*words), self.folder, variables)
        self.addCleanup(part.end)
        return part

    def variables(self):
        return {"SYNCOPATE_COORDINATOR": COORDINATOR, "SYNCOPATE_KEY_FILE": str(self.key_file())}


class LaunchersOverSsh(PartsTest, SshHostsTest):
    def launcher_words(self, library):
        agent = self.folder / "ssh"
        agent.write_text(f'#!/bin/sh\nexec {" ".join(map(str, self.ssh))} "$@"\n')
        agent.chmod(0o755)
        hosts = ",".join(ADDRESSES)
        if library == "openmpi":
            passed = [word for name in self.variables() for word in ("-x", name)]
            return [LAUNCHERS[library][0], "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, *passed, "--host", hosts]
        return [LAUNCHERS[library][0], "-launcher", "ssh", "-launcher-exec", agent, "-hosts", hosts]

    def test_mpirun_starts_the_job_from_one_command(self):
        for library in LAUNCHERS:
            for name, words in (("built-in", [*BUILT_IN, "--run-dir", library]), ("program", program())):
                with self.subTest(library, job=name):
                    words = [*self.launcher_words(library), "-n", "2", *words]
                    status, output, errors = self.part(0, words, self.variables()).finish()
                    self.assertEqual(status, 0, errors)
                    if name == "program":
                        self.assertEqual(len(sums_in(output)), 2, output)
                        self.assertEqual(len(set(sums_in(output).values())), 1, output)
                    else:
                        self.assertGreater(self.summary(library)["accuracy"], 0.2)
                        self.assertNotIn("ranks of", output, "MPI carries nothing")

    def test_a_part_is_started_over_ssh(self):
        words = [SYNCOPATE, "run", "-n", "2", "--secret", self.key_file(), "--run-dir", self.folder / "run"]
        first = self.part(0, [*words, "--ranks", "0", "--listen", COORDINATOR, "--", *program()])
        second = self.part(0, [*self.ssh, ADDRESSES[1], *words, "--ranks", "1", "--join", COORDINATOR, "--", *program()])
        ends = [first.finish(), second.finish()]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        sums = sums_in(ends[0][2]) | sums_in(ends[1][2])
        self.assertEqual(sorted(sums), ["0", "1"])
        self.assertEqual(sums["0"], sums["1"])


class LauncherOfTorch(PartsTest):
    """Ranks with the variables that torchrun and others set."""

    def ranks(self, *words, of_rank=lambda rank: {}, variables=None):
        variables = self.variables() if variables is None else variables
        return [self.part(rank, words, {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": ADDRESSES[0],
            "MASTER_PORT": "29500", **variables, **of_rank(rank)}) for rank in range(2)]

    def finished(self, *words, **more):
        return [part.finish() for part in self.ranks(*words, **more)]

    def test_a_built_in_network_and_a_program(self):
        trained = self.finished(*BUILT_IN, "--scheme", "esync", "--run-dir", self.folder / "run")
        self.assertEqual([end[0] for end in trained], [0, 0], trained)
        self.assertEqual(len(self.summary()["workers"]), 2)
        own = self.finished(*program())
        sums = sums_in(own[0][1] + own[1][1])
        self.assertEqual((sorted(sums), len(set(sums.values()))), (["0", "1"], 1), own)

    def test_the_doctor_shows_the_links_that_a_job_takes(self):
        self.connect_by_a_fast_cable()
        doctor = [SYNCOPATE, "doctor", "--data", "synthetic", "--run-dir", self.folder, "--json"]
        for interface, network in ({}, "10.86.0"), ({"SYNCOPATE_INTERFACE": NIC}, "10.85.0"):
            with self.subTest(interface):
                found = json.loads(self.finished(*doctor, variables={**self.variables(), **interface})[0][1])
                self.assertEqual(found["hosts"], [0, 1])
                self.assertEqual(found["paths"], [["", f"{network}.2, TLS 1.3"], [f"{network}.1, TLS 1.3", ""]])
                of_mpi = next(finding["text"] for finding in found["findings"] if finding["subject"] == "MPI")
                self.assertIn(f"meet at {COORDINATOR}, encrypted", of_mpi)
        other = {"SYNCOPATE_KEY_FILE": str(self.key_file("other.key", "another key than that of rank 0"))}
        ends = self.finished(*doctor, of_rank=lambda rank: other if rank == 1 else {})
        self.assertEqual([end[0] for end in ends], [1, 1], ends)
        self.assertIn("rank 1: the job's key is not that of the other side", ends[1][2])

    def test_what_is_not_enough(self):
        for lacks, variables, message in (
            ("a key", {"SYNCOPATE_COORDINATOR": COORDINATOR}, "SYNCOPATE_KEY_FILE must name the key"),
            ("a port", self.variables() | {"SYNCOPATE_COORDINATOR": ADDRESSES[0]}, "expected HOST:PORT of the host of rank 0"),
            ("a coordinator", {}, "set SYNCOPATE_COORDINATOR=HOST:PORT"),
        ):
            with self.subTest(lacks):
                for status, _, errors in self.finished(*program(), variables=variables):
                    self.assertNotEqual(status, 0)
                    self.assertIn(message, errors)
        status, _, errors = self.part(0, program(), self.variables()).finish()
        self.assertNotEqual(status, 0)
        self.assertIn("no launcher numbers it", errors)

    def test_an_interface_that_the_other_host_does_not_reach(self):
        self.connect_by_a_fast_cable()
        # Both hosts have its address. If one rank had another address, the other one could reach it, and both would use that.
        for status, _, errors in self.finished(*program(), of_rank=lambda _rank: {"SYNCOPATE_INTERFACE": "bridge"}):
            self.assertEqual(status, 1, errors)
            self.assertRegex(errors, r"worker [01] \(pid .*172\.17\.0\.1:\d+\) is lost: Connection refused; .* SYNCOPATE_INTERFACE")

    def test_an_address_of_another_host_is_refused(self):
        elsewhere = self.variables() | {"SYNCOPATE_COORDINATOR": f"{ADDRESSES[1]}:9091"}
        first = self.ranks(*BUILT_IN, "--run-dir", "run", variables=elsewhere)[0]
        status, _, errors = first.finish()
        self.assertEqual(status, 2, errors)
        self.assertIn(f"SYNCOPATE_COORDINATOR: cannot listen at {ADDRESSES[1]}:9091", errors)


class RunOnEachHost(PartsTest):
    def run_part(self, host, ranks, words, *options, workers=2, run_dir="run", variables=()):
        meets = "--join" if host else "--listen"
        return self.part(host, [SYNCOPATE, "run", "-n", workers, "--ranks", ranks, meets, COORDINATOR, "--secret", self.key_file(),
                                *([] if host else ["--run-dir", run_dir]), *options, "--", *words], variables)

    def test_four_workers_on_two_hosts_compute_what_they_compute_on_one(self):
        parts = [self.run_part(1, "2-3", program(), workers=4), self.run_part(0, "0-1", program(), workers=4)]
        ends = [part.finish() for part in parts]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertEqual([sorted(sums_in(end[2])) for end in ends], [["2", "3"], ["0", "1"]])
        alone = subprocess.run([SYNCOPATE, "run", "-n", "4", "--", *map(str, program())], capture_output=True, text=True,
                               timeout=LIMIT, check=True, cwd=self.folder)
        expected = sums_in(alone.stderr)["0"]
        self.assertEqual(set(sums_in(ends[0][2] + ends[1][2]).values()), {expected})
        for _, output, errors in ends:
            self.assertIn("ssgd: program on its own data, 4 workers", output + errors, "each host shows the job")

    def test_a_program_that_fails_ends_the_job_on_both_hosts(self):
        parts = [self.run_part(0, "0", program()), self.run_part(1, "1", ["sh", "-c", "exit 3"])]
        for status, _, errors in (part.finish() for part in parts):
            self.assertEqual(status, 1)
            self.assertIn("syncopate: worker 1 ended with exit status 3", errors.splitlines()[-1])

    def test_a_program_that_fails_after_the_training_ends_the_job_on_both_hosts(self):
        ends = [part.finish() for part in (
            self.run_part(0, "0", ["sh", "-c", '"$@"; sleep 600', "sh", *program()]),
            self.run_part(1, "1", ["sh", "-c", '"$@"; exit 5', "sh", *program()]))]
        for status, _, errors in ends:
            self.assertEqual(status, 1, ends)
            self.assertIn("syncopate: worker 1 ended with exit status 5", errors.splitlines()[-1])

    def test_programs_of_a_refused_host_do_not_start(self):
        first = self.run_part(0, "0", program())
        second = self.run_part(1, "1", ["sh", "-c", 'while ! [ -e refused ]; do sleep 0.1; done; exec "$@"', "sh", *program()])
        self.wait_for(lambda: self.connected(1))
        status, _, errors = self.run_part(1, "1", ["touch", "started"]).finish()
        self.assertEqual(status, 2, errors)
        self.assertIn("workers from 1 to 1 are started on another host already; give each host its own --ranks", errors)
        (self.folder / "refused").touch()
        ends = [first.finish(), second.finish()]
        self.assertEqual([end[0] for end in ends], [0, 0], ends)
        self.assertFalse((self.folder / "started").exists())
        self.assertIn("refused `syncopate run` of", ends[0][1] + ends[0][2])

    def connected(self, host):
        """Whether a process of the host has a connection to the coordinator."""
        sockets = pathlib.Path(f"/proc/{self.hosts[host].process.pid}/net/tcp").read_text(encoding="ascii")
        return ":2383 01 " in sockets  # established, to port 9091

    def wait_for(self, happens):
        deadline = time.monotonic() + LIMIT
        while not happens():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)  # polls: a connection of another process has no event

    def trains(self, part):
        """Waits until the job trains."""
        limit = threading.Timer(LIMIT, part.process.kill)
        self.addCleanup(limit.cancel)
        limit.start()
        for line in part.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                if json.loads(line)["event"] == "status":
                    limit.cancel()
                    return
        self.fail("the job never trained")

    def endless(self, run_dir="run"):
        return [self.run_part(host, str(host), program(images=60000, epochs=1000), "--json", run_dir=run_dir) for host in range(2)]

    def test_a_host_that_is_lost_ends_the_job(self):
        first, second = self.endless()
        self.trains(second)
        second.process.kill()
        status, _, errors = first.finish()
        self.assertEqual(status, 1)
        self.assertRegex(errors.splitlines()[-1], r"^syncopate: worker 1 \(pid \d+ on \S+\) died")

    def test_ctrl_c_on_either_host_ends_the_job_on_both(self):
        for interrupted in range(2):
            with self.subTest(host=interrupted):
                parts = self.endless(f"run{interrupted}")
                self.trains(parts[interrupted])
                parts[interrupted].process.send_signal(signal.SIGINT)
                ends = [part.finish() for part in parts]
                self.assertEqual(ends[interrupted][0], 130, ends)
                for _, output, _ in ends:
                    self.assertIn('"event":"finished"', output)
                if interrupted == 1:
                    self.assertRegex(ends[0][1], r'"event":"note","text":"the end was requested on \S+"')

    def listens(self, host, port):
        """Whether something listens at that port of the host's address in the network between the hosts."""
        number = int.from_bytes(map(int, ADDRESSES[host].split(".")), "little")
        sockets = pathlib.Path(f"/proc/{self.hosts[host].process.pid}/net/tcp").read_text(encoding="ascii")
        return f" {number:08X}:{port:04X} 00000000:0000 0A " in sockets

    def test_programs_listen_at_ports_that_a_firewall_lets_pass(self):
        words = program(images=60000, epochs=1000)
        options = ["--json", "--scheme", "asgd", "--servers", "1", "--ports", "9100-9101", "--interface", NIC]
        first = self.run_part(0, "0", words, *options)
        second = self.run_part(1, "1", words, *options[:-4], variables={"SYNCOPATE_PORTS": "9102"})
        self.trains(second)
        self.assertTrue(self.listens(0, 9100) and self.listens(0, 9101), "worker 0 and the server")
        self.assertTrue(self.listens(1, 9102))
        first.process.send_signal(signal.SIGINT)
        self.assertEqual(first.finish()[0], 130)
        second.finish()
        for option, value, message in (("--ports", "9100-90", "--ports: expected FIRST-LAST"), ("--interface", "nic7", "nic7")):
            with self.subTest(option):
                status, _, errors = self.run_part(1, "1", words, option, value).finish()
                self.assertEqual(status, 2, errors)
                self.assertIn(message, errors)

    def test_parts_that_do_not_fit_are_refused(self):
        key = ["--secret", str(self.key_file())]
        for options, message in (
            (["--ranks", "0"], "--ranks is for a job on several hosts"),
            (["--listen", COORDINATOR, *key], "needs --ranks on each"),
            (["--listen", COORDINATOR, "--join", COORDINATOR, "--ranks", "0", *key], "give one"),
            (["--listen", COORDINATOR, "--ranks", "1", *key], "the host that listens starts worker 0"),
            (["--join", COORDINATOR, "--ranks", "0", *key], "worker 0 is on the host that listens"),
            (["--join", COORDINATOR, "--ranks", "1-2", *key], "--ranks: expected FIRST-LAST or one rank, below the 2 workers"),
            (["--join", "node1", "--ranks", "1", *key], "--join: expected HOST:PORT"),
            (["--join", COORDINATOR, "--ranks", "1"], "needs a key"),
        ):
            with self.subTest(options):
                done = subprocess.run([SYNCOPATE, "run", "-n", "2", *options, "--", "true"], capture_output=True, text=True,
                                      timeout=LIMIT, check=False, cwd=self.folder)
                self.assert_refused(done, message)


if __name__ == "__main__":
    unittest.main()
