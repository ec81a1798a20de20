"""Goal:   the doctor finds faults that stop a job or slow it down, prints the remedy, and exits with status 1; on a sound
        host it exits with 0.
Method: the real command on set-ups with one deliberate fault each, by itself and under launchers.
"""
import json
import os
import re
import resource
import subprocess
import unittest

import privileges
from jobs import LIMIT, SYNCOPATE, JobTest, free_address

MPICH = ["mpirun.mpich", "-n", "3"]


class DoctorTest(JobTest):
    def setUp(self):
        privileges.descriptors(1024).require()  # the doctor requires this many
        super().setUp()

    def doctor(self, *options, through=(), data=("--data", "synthetic"), **more):
        command = [*through, SYNCOPATE, "doctor", *data, "--run-dir", self.folder, *options]
        return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT, check=False, **more)

    def findings(self, *options, **more):
        done = self.doctor("--json", *options, **more)
        found = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if found["ok"] else 1, done.stderr)
        self.assertEqual(found["ok"], all(one["ok"] for one in found["findings"]))
        return found

    def assert_only_problem(self, found, subject, words, advice):
        problems = [one for one in found["findings"] if not one["ok"]]
        self.assertEqual([one["subject"] for one in problems], [subject], problems)
        self.assertIn(words, problems[0]["text"])
        self.assertIn(advice, problems[0]["advice"])

    def test_a_host_that_is_well_gets_a_line_for_each_thing(self):
        done = self.doctor()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for subject in ("processor", "memory", "shared memory", "open files", "locked memory", "clock", "loopback",
                        "dataset", "disk", "BLAS", "GPUs", "training", "MPI"):
            self.assertRegex(done.stdout, rf"(?m)^ok +{subject} ")
        self.assertTrue(done.stdout.endswith("\nno problem found\n"))

    def test_a_problem_stands_above_its_remedy(self):
        done = self.doctor(data=("--data", "mnist", "--data-dir", self.folder))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^problem +dataset +.*\n +→ choose another one with --data")
        self.assertTrue(done.stdout.endswith("\nproblems found: see the advice above\n"))

    def test_missing_data(self):
        found = self.findings(data=("--data", "mnist", "--data-dir", self.folder))
        self.assert_only_problem(found, "dataset", str(self.folder), "--data-dir")

    def test_a_blas_for_an_old_processor(self):
        slow = {**os.environ, "OPENBLAS_CORETYPE": "PRESCOTT"}
        found = self.findings(env=slow)
        [blas] = [one["text"] for one in found["findings"] if one["subject"] == "BLAS"]
        if blas.startswith("MKL "):  # MKL detects the processor by itself
            self.assertTrue(found["ok"], found)
        else:
            self.assert_only_problem(found, "BLAS", "Prescott", "unset OPENBLAS_CORETYPE")

    def test_shared_memory_that_is_too_small(self):
        limit = 16 << 20
        found = self.findings(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assert_only_problem(found, "shared memory", "89407056 bytes", "ulimit -f unlimited")

    def test_too_few_open_files(self):
        found = self.findings(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        self.assert_only_problem(found, "open files", "256", "ulimit -n")

    def test_a_network_without_loopback(self):
        found = self.findings(through=privileges.network().require())
        self.assert_only_problem(found, "loopback", "127.0.0.1", "ip link set lo up")

    def test_a_folder_that_cannot_be_written_to(self):
        found = json.loads(self.doctor("--json", "--run-dir", "/proc/nowhere").stdout)
        self.assert_only_problem(found, "disk", "/proc", "--run-dir")

    def test_a_coordinator_that_is_not_there(self):
        address = free_address()
        self.assert_only_problem(self.findings("--join", address), "coordinator", address, "firewall")

    def test_a_coordinator_that_answers_does_not_mind(self):
        job = self.coordinate("--network", "mlp", "--data", "synthetic", "--workers", "1", "--epochs", "1")
        address = job.address()
        self.assertTrue(self.findings("--join", address, "--secret", self.key_file())["ok"])
        self.assert_only_problem(self.findings("--join", address), "coordinator", "join it with its key", "--secret")
        worker = self.join("worker", address)
        self.assertEqual(worker.finish()[0], 0)
        self.assertEqual(job.finish()[0], 0)

    def test_ranks_are_measured_with_each_other(self):
        for launcher in (["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"], MPICH):
            for transport in ("mpi", "tcp"):
                with self.subTest(launcher=launcher[0], transport=transport):
                    found = self.findings("--transport", transport, through=launcher)
                    # The speed of the links depends on the test machine.
                    others = [one for one in found["findings"] if one["subject"] != "links within hosts"]
                    self.assertTrue(all(one["ok"] for one in others), others)
                    self.assertEqual(found["hosts"], [0, 0, 0])
                    path = {"mpi": "MPI", "tcp": "127.0.0.1, not encrypted"}[transport]
                    self.assertEqual(found["paths"], [[path if other != one else "" for other in range(3)] for one in range(3)])
                    for figures in (found["latency_seconds"], found["bytes_per_second"]):
                        for one in range(3):
                            self.assertEqual(figures[one][one], 0)
                            self.assertTrue(all(figures[one][other] > 0 for other in range(3) if other != one))
                    self.assertEqual({one.get("rank") for one in found["findings"]}, {0, 1, 2, None})

    def test_ranks_are_shown_in_tables(self):
        done = self.doctor(through=MPICH)
        # The speed of the links depends on the test machine.
        self.assertEqual(set(re.findall(r"(?m)^problem +(.*?)  ", done.stdout)) - {"links within hosts"}, set(), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^latency, µs +rank 0 +rank 1 +rank 2$")
        self.assertRegex(done.stdout, r"(?m)^rank 2( +\d+\.\d+){2} +·$")
        self.assertRegex(done.stdout, r"(?m)^rank 1 +MPI +· +MPI$")
        self.assertEqual(len(re.findall(r"(?m)^ok +dataset", done.stdout)), 1)

    def test_a_launcher_of_an_mpi_that_syncopate_was_not_built_with(self):
        nowhere = {**os.environ, "SYNCOPATE_MPI_MODULES": str(self.folder)}
        done = self.doctor(through=MPICH, env=nowhere)
        self.assertRegex(done.stdout, r"(?m)^problem +MPI +started by MPICH's mpiexec, but no MPI module")
        self.assertIn("libmpich-dev", done.stdout)

    def test_ranks_that_do_not_come_together(self):
        forged = {**os.environ, "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}
        found = self.findings("--transport", "mpi", env=forged)
        self.assert_only_problem(found, "ranks", "4", "launcher")

    def test_options_are_checked(self):
        self.assert_refused(self.doctor("--transport", "udp"), "--transport", "udp")
        self.assert_refused(self.doctor(data=("--data", "mnits")), "--data", "mnist")


if __name__ == "__main__":
    unittest.main()
