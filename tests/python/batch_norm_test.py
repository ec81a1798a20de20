#!/usr/bin/python3
"""Goal:   SyncBatchNorm computes mean and variance over the batches of all workers, and so trains as BatchNorm does in one
        process with all samples; schemes whose workers take steps of their own refuse it.
Method: batch_norm_scripts.py under `syncopate run`, with equal and unequal parts of each batch, compared with torch in this
        process.
"""
import pathlib
import unittest

import torch
from torch.nn import functional

import batch_norm_scripts as scripts
from script_cases import ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("batch_norm_scripts.py"))


def in_one_process(momentum):
    points, labels, network = scripts.problem(torch.nn.BatchNorm1d, momentum)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.2, momentum=0.9)
    for x, y in zip(points, labels):
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    return scripts.values_of(network)


class OfTwoWorkers(ScriptTest):
    script = SCRIPTS
    calls = [("trains", "6", "0.1"), ("trains", "9", "0.1"), ("trains", "9", "none"),
             *(("refused", scheme) for scheme in ("esync", "local-sgd", "asgd"))]

    def test_it_trains_as_batch_norm_does_in_one_process(self):
        for call in self.calls[:3]:
            expected = in_one_process(None if call[2] == "none" else float(call[2]))
            for facts in self.said(*call):
                with self.subTest(call, rank=facts["rank"]):
                    self.assert_near(facts["values"], expected)
                    self.assertEqual((facts["kind"], facts["same"]), ("SyncBatchNorm", True))

    def test_workers_with_steps_of_their_own_are_refused(self):
        for scheme in ("esync", "local-sgd", "asgd"):
            for facts in self.said("refused", scheme):
                self.assertRegex(facts["refused"], f"^1 is a SyncBatchNorm, .* and under {scheme} they do not: choose ssgd, or ")


if __name__ == "__main__":
    unittest.main()
