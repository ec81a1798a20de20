"""Goal:   a user of Slurm gets the table of NBSSGD by one sbatch file; ranks of srun train over MPI and over sockets, end
        together, and resume where they were asked to end.
Method: a real Slurm of four virtual nodes, whose daemons and jobs are of the user who runs the test; real jobs.
"""
import json
import os
import pathlib
import re
import shutil
import unittest

import mnist_files
from jobs import SYNCOPATE, JobTest
from slurm import Slurm, Unavailable

PYTHON = os.environ.get("SYNCOPATE_PYTHON", "/usr/bin/python3")  # that has torch
ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["--network", "mlp", "--data", "synthetic"]


class SlurmTest(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm()
        try:
            cls.enterClassContext(cls.slurm)
        except Unavailable as unavailable:
            raise unittest.SkipTest(str(unavailable)) from None

    def srun(self, *options, mpi="pmix", tasks=4, nodes=4, run_dir="run"):
        return self.slurm.run(
            "srun", f"--mpi={mpi}", f"--nodes={nodes}", f"--ntasks={tasks}", "--kill-on-bad-exit=1",
            SYNCOPATE, "train", "--run-dir", self.folder / run_dir, *options,
        )

    def assert_trained(self, done, scheme, workers, run_dir="run"):
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary(run_dir)
        self.assertEqual((summary["scheme"], len(summary["workers"])), (scheme, workers))
        self.assertGreater(summary["accuracy"], 0.5)

    def test_ranks_on_four_nodes_train_by_open_mpi(self):
        done = self.srun(*SMALL, "--epochs", "2", tasks=4)
        self.assert_trained(done, "ssgd", 4)
        self.assertIn("4 ranks of Open MPI", done.stdout + done.stderr)

    def test_ranks_on_four_nodes_train_by_mpich(self):
        done = self.srun(*SMALL, "--epochs", "2", mpi="pmi2", tasks=4)
        self.assert_trained(done, "ssgd", 4)
        self.assertIn("4 ranks of MPICH", done.stdout + done.stderr)

    def test_ranks_of_one_host_train_without_an_mpi(self):
        # On busy processors its first rounds may have most of two epochs.
        done = self.srun(*SMALL, "--epochs", "10", "--scheme", "esync", mpi="none", tasks=4)
        self.assert_trained(done, "esync", 4)
        self.assertIn("4 ranks, started by srun", done.stdout + done.stderr)

    def test_programs_with_loops_of_their_own(self):
        done = self.slurm.run("srun", "--mpi=none", "--nodes=2", "--ntasks=2", f"--chdir={self.folder}",
                              os.environ["SYNCOPATE_DIST_MNIST"], mnist_files.folder(), "1", "1024")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r"worker (\d) of 2: sum of weights", done.stdout)), ["0", "1"], done.stdout)

    def experiment(self, *options, mpi="pmix"):
        """Runs examples/nbssgd.sbatch; gives how the job ended, its log, and the schemes that the table has."""
        log = self.folder / "log"
        done = self.slurm.run(
            "sbatch", "--parsable", f"--output={log}", f"--chdir={self.folder}", *options,
            f"--export=ALL,SYNCOPATE={SYNCOPATE},MPI={mpi},NETWORK=mlp,DATA=synthetic,TARGET=0.7,EPOCHS=2",
            ROOT / "examples/nbssgd.sbatch",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        state = self.slurm.await_end(done.stdout.strip(), 240)
        text = log.read_text()
        rows = set(re.findall(r"^(nbssgd|asgd|downpour|ssgd|hogwild) +[0-9.]+ +", text, re.MULTILINE))
        return state, text, sorted(rows)

    def assert_whole_table(self, *options, **how):
        state, text, schemes = self.experiment(*options, **how)
        self.assertEqual(state, "COMPLETED", text)
        self.assertEqual(schemes, ["asgd", "downpour", "hogwild", "nbssgd", "ssgd"], text)
        return text

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

    def test_the_sbatch_file_gives_the_table_of_nbssgd(self):
        self.assert_whole_table()

    def test_the_sbatch_file_needs_no_mpi_on_one_node(self):
        text = self.assert_whole_table("--nodes=1", mpi="none")
        self.assertEqual(text.count("5 ranks, started by srun"), 4, text)

    def test_the_sbatch_file_spreads_distributed_schemes_over_nodes(self):
        state, text, schemes = self.experiment("--nodes=4", mpi="pmi2")
        self.assertEqual(state, "FAILED", text)
        self.assertEqual(schemes, ["asgd", "downpour", "nbssgd", "ssgd"], text)
        self.assertIn("hogwild is dropped: it needs 4 processors of one node, found 2", text)
        self.assertEqual(text.count("5 ranks of MPICH"), 4, text)

    def test_the_sbatch_file_finds_processors_of_one_node_for_hogwild(self):
        text = self.assert_whole_table("--nodes=4", "--cpus-per-task=4")
        self.assertEqual(text.count("5 ranks of Open MPI"), 4, text)

    def test_a_killed_rank_ends_the_job_everywhere(self):
        ready = self.folder / "ready"
        script = self.folder / "task"
        script.write_text(
            f"#!/bin/sh\n[ $SLURM_PROCID != 2 ] || echo $$ > {ready}\n"
            f"exec {SYNCOPATE} train --run-dir {self.folder}/run {' '.join(SMALL)} --epochs 100000 --eval-every 1s\n"
        )
        script.chmod(0o755)
        job = self.slurm.run("sbatch", "--parsable", "--nodes=4", "--ntasks=4", f"--output={self.folder}/log", "--wrap",
                             f"srun --mpi=pmix --kill-on-bad-exit=1 {script}").stdout.strip()
        evaluations = self.folder / "run/evaluations.jsonl"
        self.slurm.wait_for("the job to train", lambda: evaluations.exists() and evaluations.read_text().count("\n") > 0, 120)
        os.kill(int(ready.read_text()), 9)
        self.assertEqual(self.slurm.await_end(job, 60), "FAILED", (self.folder / "log").read_text())

    def test_a_job_that_is_asked_to_end_is_resumed(self):
        job = self.slurm.run(
            "sbatch", "--parsable", "--nodes=2", "--ntasks=2", f"--output={self.folder}/log", "--wrap",
            f"srun --mpi=pmix {SYNCOPATE} train --run-dir {self.folder}/run {' '.join(SMALL)} --epochs 100000 --eval-every 1s",
        ).stdout.strip()
        evaluations = self.folder / "run/evaluations.jsonl"
        self.slurm.wait_for("the job to train", lambda: evaluations.exists() and evaluations.read_text().count("\n") > 0, 120)
        self.slurm.run("scancel", "--signal=TERM", job)
        self.slurm.await_end(job, 60)
        self.assertGreater(len(self.checkpoints()), 0, (self.folder / "log").read_text())
        before = self.summary()["samples"]
        again = self.slurm.run("srun", "--mpi=pmix", "--nodes=2", "--ntasks=2", SYNCOPATE, "train", "--resume",
                               self.folder / "run", "--max-steps", "1")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertGreaterEqual(self.summary()["samples"], before)

    def test_the_doctor_measures_between_nodes(self):
        done = self.slurm.run("srun", "--mpi=pmix", "--nodes=4", "--ntasks=4", SYNCOPATE, "doctor", "--data", "synthetic",
                              "--run-dir", self.folder, "--json")
        found = json.loads(done.stdout)
        self.assertTrue(found["ok"], found)
        self.assertEqual([len(row) for row in found["latency_seconds"]], [4, 4, 4, 4])


if __name__ == "__main__":
    unittest.main()
