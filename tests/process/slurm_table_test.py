#!/usr/bin/python3
"""Goal:   a user of Slurm gets the table of NBSSGD by submitting examples/nbssgd.sbatch.
Method: real jobs on a private Slurm of four virtual nodes, whose daemons and jobs run as the user of the test.
"""
import unittest

from slurm_tables import SlurmTableTest


class SlurmTable(SlurmTableTest):
    def test_the_sbatch_file_gives_the_table_of_nbssgd(self):
        self.assert_whole_table()

    def test_the_sbatch_file_needs_no_mpi_on_one_node(self):
        text = self.assert_whole_table("--nodes=1", mpi="none")
        self.assertEqual(text.count("5 ranks, started by srun"), 4, text)


if __name__ == "__main__":
    unittest.main()
