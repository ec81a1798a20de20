#!/usr/bin/python3
"""Goal:   SyncBatchNorm computes mean and variance over the batches of all workers, and so trains as BatchNorm does in one
        process with all samples; schemes whose workers take steps of their own refuse it. A batch that is skipped because
        its gradient is not finite has no part in the statistics of any worker.
Method: batch_norm_scripts.py under `syncopate run`, with equal and unequal parts of each batch, compared with torch in this
        process.
"""
import math
import pathlib
import unittest

import syncopate_torch as syncopate
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
             *(("refused", scheme) for scheme in ("esync", "local-sgd", "asgd")),
             *(("skips", scheme) for scheme in ("ssgd", "esync", "local-sgd", "nbssgd", "asgd"))]

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

    def test_statistics_of_a_skipped_batch_reach_no_worker(self):
        for call in self.calls:
            if call[0] == "skips":
                one, other = self.said(*call)
                with self.subTest(call):
                    self.assertTrue(all(map(math.isfinite, one["values"])))
                    self.assertEqual(one["values"], other["values"])


class OfOneWorker(unittest.TestCase):
    def test_a_skipped_batch_leaves_no_trace(self):
        found = []
        for spoiled in (False, True):
            points, labels, network = scripts.problem(torch.nn.BatchNorm1d)
            job = syncopate.init(options={"on-nan": "skip"})
            optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.2), network, batch_size=scripts.SAMPLES)
            for step, (x, y) in enumerate(zip(points, labels)):
                for batch in (torch.full_like(x, math.nan), x) if spoiled and step == 2 else (x,):
                    optimizer.zero_grad()
                    functional.cross_entropy(network(batch), y).backward()
                    optimizer.step()
            found.append([value for value in network.state_dict().values() if value.is_floating_point()])
        for expected, value in zip(*found, strict=True):
            self.assertTrue(torch.equal(expected, value))


if __name__ == "__main__":
    unittest.main()
