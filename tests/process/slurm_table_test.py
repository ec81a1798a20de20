#!/usr/bin/python3
"""Goal:   a user of Slurm gets the table of NBSSGD by one sbatch file.
Method: a real Slurm of four virtual nodes, whose daemons and jobs are of the user who runs the test; real jobs.
"""
import pathlib
import re
import unittest

from jobs import SYNCOPATE
from slurm import SlurmJobTest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SlurmTable(SlurmJobTest):
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


if __name__ == "__main__":
    unittest.main()
