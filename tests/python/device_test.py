#!/usr/bin/env python3
"""Goal:   with tensors on another device than the CPU, collectives, DistributedDataParallel and the five calls give the same
        results as on the CPU, and no code accesses the device's memory as host memory.
Method: a device on which such an access crashes and a backward pass calls its hooks in a separate thread (far_device.cpp);
        each collective runs there and on the CPU; training is compared with the same steps in one process.
"""
import pathlib
import unittest

import torch
from torch.nn import functional

import scripts
from script_cases import SYNCOPATE, TORCH, ScriptTest, reference

SCRIPTS = str(pathlib.Path(__file__).with_name("device_scripts.py"))
FAR = "far:0" if TORCH >= (2, 0) else "privateuseone:0"


def running_mean():
    """Returns the buffer after the steps of `reference` over the whole batch. The workers' mean must equal it, since each
    worker has half of the batch and all outputs have equal weights."""
    points, labels, network = scripts.problem()
    optimizer, mean = scripts.sgd(network), torch.zeros(3)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        outputs = network(points)
        mean += 0.5 * (outputs.detach().mean(0) - mean)
        functional.cross_entropy(outputs, labels).backward()
        optimizer.step()
    return mean.tolist()


class FarDevice(ScriptTest):
    def launch(self, name, *arguments):
        return self.facts(self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "-".join(["run", *arguments]), "--",
                                      *self.python, SCRIPTS, name, *arguments]))

    def test_collectives(self):
        for facts in self.launch("collectives"):
            self.assertEqual(len(facts["results"]), 8)
            for name, (far, near) in facts["results"].items():
                with self.subTest(name, rank=facts["rank"]):
                    self.assertEqual(far, near)

    if TORCH >= (2, 0):  # DistributedDataParallel of torch 1 has no collectives for such a device

        def test_one_word(self):
            for facts in self.launch("one_word"):
                self.assertEqual(facts["device"], FAR)
                self.assert_near(facts["parameters"], reference())

    def test_five_calls(self):
        for facts in self.launch("five_calls", "ssgd"):
            self.assertEqual((facts["device"], facts["sum"]), (FAR, [1, 1, 1]))
            self.assert_near(facts["parameters"], reference())
            self.assert_near(facts["mean"], running_mean())

    def test_a_module_of_lower_precision(self):
        first, second = self.launch("five_calls", "ssgd", "bfloat16")
        self.assertEqual(first["parameters"], second["parameters"])
        for found, right in zip(first["parameters"], reference(), strict=True):
            self.assertAlmostEqual(found, right, delta=0.02)
        self.assertNotEqual(first["parameters"], reference())

    def test_schemes_whose_workers_take_steps_of_their_own(self):
        for scheme in ("esync", "local-sgd", "asgd", "nbssgd"):
            with self.subTest(scheme=scheme):
                first, second = self.launch("five_calls", scheme)
                self.assertEqual(first["parameters"], second["parameters"])
                self.assertNotEqual(first["parameters"], reference())


if __name__ == "__main__":
    unittest.main()
