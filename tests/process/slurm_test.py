"""Goal:   ranks that srun starts train over MPI and over sockets, end together, and resume after they were asked to end.
Method: real jobs on a private Slurm of four virtual nodes, whose daemons and jobs run as the user of the test.
"""
import contextlib
import json
import os
import pathlib
import pty
import re
import subprocess
import unittest

import mnist_files
from jobs import SYNCOPATE
from slurm import SlurmJobTest

PYTHON = os.environ.get("SYNCOPATE_PYTHON", "/usr/bin/python3")  # an interpreter that has torch
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--network", "mlp", "--data", "synthetic"]


class SlurmTest(SlurmJobTest):
    def srun(self, *options, mpi, tasks=4, nodes=4, run_dir="run"):
        return self.slurm.run(
            "srun", f"--mpi={mpi}", f"--nodes={nodes}", f"--ntasks={tasks}", "--kill-on-bad-exit=1",
            SYNCOPATE, "train", "--run-dir", self.folder / run_dir, *options,
        )

    def run_by_open_mpi(self, *command):
        """Starts twice if need be: once in 150 starts on a busy host, Debian's Open MPI 4.1.4 ends in MPI_Init by SIGSEGV. A
        rank that has left MPI_Init early has then sent a message to one that does not yet handle any (tag 65 of btl/tcp)."""
        command = ("srun", "--mpi=pmix", "--kill-on-bad-exit=1", *command)
        done = self.slurm.run(*command)
        return self.slurm.run(*command) if "Segmentation fault" in done.stderr else done

    def train_in_a_batch(self, tasks, command):
        """Submits a job that runs `srun COMMAND` over Open MPI on a node a task, and waits for its first evaluation. Returns the
        number of the job. Starts twice if need be, as `run_by_open_mpi` does."""
        log, evaluations = self.folder / "log", self.folder / "run/evaluations.jsonl"
        for _ in range(2):
            job = self.slurm.run("sbatch", "--parsable", f"--nodes={tasks}", f"--ntasks={tasks}", f"--output={log}", "--wrap",
                                 f"srun --mpi=pmix --kill-on-bad-exit=1 {command}").stdout.strip()
            self.slurm.wait_for(
                f"job {job} to train or to end",
                lambda job=job: evaluations.exists() and evaluations.read_text().count("\n") > 0 or not self.slurm.runs(job), 120)
            if self.slurm.runs(job):
                return job
            said = log.read_text()
            self.assertIn("Segmentation fault", said)
        raise AssertionError(f"two jobs ended before they trained; the second wrote:\n{said}")

    def assert_trained(self, done, scheme, workers, run_dir="run"):
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary(run_dir)
        self.assertEqual((summary["scheme"], len(summary["workers"])), (scheme, workers))
        self.assertGreater(summary["accuracy"], 0.5)

    def test_ranks_on_four_nodes_train_by_open_mpi(self):
        done = self.run_by_open_mpi("--nodes=4", "--ntasks=4", SYNCOPATE, "train", "--run-dir", self.folder / "run", *SMALL,
                                    "--epochs", "2")
        self.assert_trained(done, "ssgd", 4)
        self.assertIn("4 ranks of Open MPI", done.stdout + done.stderr)

    def test_ranks_on_four_nodes_train_by_mpich(self):
        done = self.srun(*SMALL, "--epochs", "2", mpi="pmi2", tasks=4)
        self.assert_trained(done, "ssgd", 4)
        self.assertIn("4 ranks of MPICH", done.stdout + done.stderr)

    def test_ranks_of_one_host_train_without_an_mpi(self):
        # On busy processors the first rounds of esync may have most of two epochs, hence ten.
        done = self.srun(*SMALL, "--epochs", "10", "--scheme", "esync", mpi="none", tasks=4)
        self.assert_trained(done, "esync", 4)
        self.assertIn("4 ranks, started by srun", done.stdout + done.stderr)

    def test_programs_with_loops_of_their_own(self):
        done = self.slurm.run("srun", "--mpi=none", "--nodes=2", "--ntasks=2", f"--chdir={self.folder}",
                              os.environ["SYNCOPATE_DIST_MNIST"], mnist_files.folder(), "1", "1024")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r"worker (\d) of 2: sum of weights", done.stdout)), ["0", "1"], done.stdout)

    def test_scripts_of_torch_distributed_and_with_five_calls(self):
        library = os.environ["SYNCOPATE_LIBRARY"]
        for script, said in (("backend_scripts.py", '"mean": [0.5, 0.5, 0.5]'), ("scripts.py", '"done": true')):
            program = "more_than_gloo" if script == "backend_scripts.py" else "collectives"
            done = self.slurm.run(
                "srun", "--mpi=none", "--nodes=1", "--ntasks=2", "--overcommit", f"--chdir={self.folder}", "env",
                f"PYTHONPATH={ROOT / 'python'}", f"SYNCOPATE_LIBRARY={library}", "PYTHONWARNINGS=ignore",
                PYTHON, "-B", ROOT / "tests/python" / script, program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(said), 2, done.stdout)

    def test_what_a_user_types_into_an_interactive_shell_is_refused_at_once(self):
        own, of_srun = pty.openpty()
        shell = subprocess.Popen(["srun", "--mpi=none", "--nodes=2", "--ntasks=2", "--pty", "bash", "--norc"], start_new_session=True,
                                 env=self.slurm.environment, stdin=of_srun, stdout=of_srun, stderr=of_srun)
        os.close(of_srun)
        self.addCleanup(os.close, own)
        self.addCleanup(shell.kill)
        train = " ".join([SYNCOPATE, "train", *SMALL, "--quiet", "--max-steps", "2", "--run-dir", f"{self.folder}/run"])
        os.write(own, f"{train}; env --unset=SLURM_STEP_ID {train} --workers 2; exit\n".encode())
        said = b""
        with contextlib.suppress(OSError):  # read fails once the shell has ended
            while part := os.read(own, 4096):
                said += part
        self.assertIn(b"this shell is the first of 2 tasks of `srun --pty`", said)
        self.assertEqual(len(self.summary()["workers"]), 2, said)
        self.assertEqual(shell.wait(60), 0)

    def test_a_killed_rank_ends_the_job_everywhere(self):
        ready, devices = self.folder / "ready", " ".join(map(str, self.steady(4)))
        script = self.folder / "task"
        script.write_text(
            f"#!/bin/sh\n[ $SLURM_PROCID != 2 ] || echo $$ > {ready}\n"
            f"exec {SYNCOPATE} train --run-dir {self.folder}/run {' '.join(SMALL)} {devices} --epochs 100000 --eval-every 1s\n"
        )
        script.chmod(0o755)
        job = self.train_in_a_batch(4, script)
        os.kill(int(ready.read_text()), 9)
        self.assertEqual(self.slurm.await_end(job, 60), "FAILED", (self.folder / "log").read_text())

    def test_a_job_that_is_asked_to_end_is_resumed(self):
        devices = " ".join(map(str, self.steady(2)))
        job = self.train_in_a_batch(
            2, f"{SYNCOPATE} train --run-dir {self.folder}/run {' '.join(SMALL)} {devices} --epochs 100000 --eval-every 1s")
        self.slurm.run("scancel", "--signal=TERM", job)
        self.slurm.await_end(job, 60)
        self.assertGreater(len(self.checkpoints()), 0, (self.folder / "log").read_text())
        before = self.summary()["samples"]
        again = self.run_by_open_mpi("--nodes=2", "--ntasks=2", SYNCOPATE, "train", "--resume", self.folder / "run",
                                     "--max-steps", "1")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertGreaterEqual(self.summary()["samples"], before)

    def test_the_doctor_measures_between_nodes(self):
        done = self.run_by_open_mpi("--nodes=4", "--ntasks=4", SYNCOPATE, "doctor", "--data", "synthetic",
                                    "--run-dir", self.folder, "--json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)
        # On a busy machine a link may look slower than the others in every measurement.
        bad = [finding for finding in found["findings"] if not finding["ok"] and "links" not in finding["subject"]]
        self.assertEqual(bad, [])
        self.assertEqual([len(row) for row in found["latency_seconds"]], [4, 4, 4, 4])


if __name__ == "__main__":
    unittest.main()
