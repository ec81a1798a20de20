#!/usr/bin/python3
"""Goal:   a script for Horovod runs by a changed import, and trains as one process with the whole batch would.
Method: horovod_scripts.py under `syncopate run`, compared with torch in this process.
"""
import pathlib
import sys
import unittest

from script_test import SYNCOPATE, ScriptTest, reference

import torch

SCRIPTS = str(pathlib.Path(__file__).with_name("horovod_scripts.py"))


class HorovodTest(ScriptTest):
    def said(self, workers, name, *arguments):
        return self.facts(self.start([SYNCOPATE, "run", "-n", workers, "--run-dir", "run", "--", sys.executable, "-B", SCRIPTS,
                                      name, *arguments]))

    def test_training_is_that_of_one_process(self):
        said = self.said(2, "training")
        for facts in said:
            self.assert_near(facts["parameters"], reference())
            self.assertTrue(facts["is_torchs"])
        self.assertEqual(said[0]["parameters"], said[1]["parameters"])

    def test_gradients_as_float16(self):
        said = self.said(2, "training", "fp16")
        for found, right in zip(said[0]["parameters"], reference()):
            self.assertAlmostEqual(found, right, delta=0.01)
        self.assertNotEqual(said[0]["parameters"], reference())

    def test_two_passes_a_step_and_gradients_before_it(self):
        for facts in self.said(2, "two_passes"):
            self.assert_near(facts["parameters"], reference())
            self.assertGreater(facts["norm"], 0)

    def test_a_worker_with_fewer_steps_joins(self):
        said = self.said(2, "unequal_counts")
        self.assert_near(said[0]["parameters"], reference())
        self.assertEqual([facts["last"] for facts in said], [0, 0])

    def test_collectives(self):
        for facts in self.said(3, "collectives"):
            self.assertEqual((facts["size"], facts["mean"], facts["sum"]), (3, [1, 1], [3, 3]))
            self.assertEqual((facts["integers"], facts["half"], facts["greatest"]), ([4], [1.5], [2]))
            self.assertEqual(facts["rows"], [[0, 0], [1, 1], [1, 1], [2, 2], [2, 2], [2, 2]])
            self.assertEqual((facts["heard"], facts["object"], facts["objects"]), ([1], {"from": 1}, ["", "x", "xx"]))
            self.assertEqual((facts["rate"], facts["done"]), (1.5, True))
            rank = facts["rank"]
            self.assertEqual((facts["grouped"], facts["in_place"]), ([[6.0], [[3]]], [[1.0], [1.0, 2.0]]))
            self.assertEqual(facts["exchanged"], [rank, 10 + rank, 20 + rank])
            self.assertEqual(facts["unequal"], [[[0], [1], [1], [2], [2], [2]], [1, 2, 3]] if rank == 2 else [[], [0, 0, 0]])
            self.assertEqual((facts["part"], facts["later"]), ([[3.0, 6.0], [9.0], [12.0]][rank], [0, 1, 2]))
            self.assertEqual(facts["built"], [False] * 7)

    def test_workers_of_one_host(self):
        for facts in self.said(2, "places"):
            self.assertEqual((facts["local"], facts["cross"]), ([facts["rank"], 2], [0, 1]))
            self.assertEqual((facts["homogeneous"], facts["enabled"]), (True, [False] * 3))

    def test_misuse_says_what_to_do(self):
        for facts in self.said(2, "misuse"):
            refused = facts["refused"]
            self.assertRegex(refused["before init"], r"call hvd\.init\(\) first")
            self.assertRegex(refused["two words"], "not both")
            self.assertRegex(refused["names"], "lacks 4 parameters")
            self.assertRegex(refused["zero_grad"], "skip_synchronize")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
