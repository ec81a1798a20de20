#!/usr/bin/python3
"""Goal:   examples/nbssgd.sbatch makes its table on several nodes; hogwild, which needs a single node, is dropped or runs
        on one.
Method: real jobs on a private Slurm of four virtual nodes, whose daemons and jobs run as the user of the test.
"""
import unittest

from slurm_tables import SlurmTableTest


class SlurmTableNodes(SlurmTableTest):
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
