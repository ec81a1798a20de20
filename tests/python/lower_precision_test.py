#!/usr/bin/python3
"""Goal:   a module with parameters and buffers of bfloat16 or float16 trains under every kind of scheme, and workers exchange
        its values in float32.
Method: lower_precision_scripts.py under `syncopate run`, compared to the bit with the same steps in this process for the schemes
        whose result does not depend on time.
"""
import pathlib
import unittest

import torch
from torch.nn import functional

import lower_precision_scripts as scripts
from script_cases import SYNCOPATE, AloneTest, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("lower_precision_scripts.py"))


def mean_into(values, *tensors):
    """Gives each tensor of `tensors` the mean of `values` over the workers, added in float32."""
    mean = sum(value.float() for value in values) / len(values)
    for tensor in tensors:
        tensor.copy_(mean)


def reference(scheme, base, head):
    """Returns the state after the steps of both workers, each with a network of its own in this process."""
    networks = [scripts.Network(base, head) for _ in range(2)]
    optimizers = [scripts.sgd_of(network) for network in networks]
    for step, both in enumerate(zip(*(scripts.batches(rank) for rank in range(2)))):
        for network, optimizer, (points, labels) in zip(networks, optimizers, both):
            optimizer.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
        with torch.no_grad():
            if scheme == "ssgd":
                for one, other in zip(*(network.parameters() for network in networks)):
                    mean_into([one.grad, other.grad], one.grad, other.grad)
            for optimizer in optimizers:
                optimizer.step()
            if scheme == "ssgd" or step % scripts.LOCAL_STEPS == scripts.LOCAL_STEPS - 1:
                for one, other in zip(*(network.state_dict().values() for network in networks)):
                    mean_into([one, other], one, other)
    return scripts.state_of(networks[0])


class OfSeveralWorkers(ScriptTest):
    script = SCRIPTS
    repeated = [(scheme, "bfloat16", "bfloat16") for scheme in ("ssgd", "local-sgd")]
    repeated += [("ssgd", "float16", "float32"), ("local-sgd", "float16", "float16")]
    timed = [("trains", scheme, "bfloat16", "bfloat16", "6") for scheme in ("esync", "diloco", "nbssgd", "asgd")]
    calls = [*(("trains", *call) for call in repeated), *timed, ("overlaps",)]

    def test_it_takes_the_same_steps_as_one_process(self):
        for scheme, *types in self.repeated:
            with self.subTest(scheme, types=types):
                expected = reference(scheme, *(getattr(torch, name) for name in types))
                for facts in self.said("trains", scheme, *types):
                    self.assertEqual(facts["state"], expected)
                    self.assertEqual(facts["types"], sorted({f"torch.{name}" for name in types}))
                    self.assertEqual(facts["of_gradient"], f"torch.{types[0]}")

    def test_all_workers_end_with_one_model_that_has_learned(self):
        for call in self.timed:
            with self.subTest(call[1]):
                said = self.said(*call)
                self.assertEqual(said[0]["state"], said[1]["state"])
                self.assertGreater(said[0]["accuracy"], 0.6)

    def test_sums_are_of_float32(self):
        for facts in self.facts(self.start([SYNCOPATE, "run", "-n", "4", "--run-dir", "sums", "--", *self.python, SCRIPTS, "sums"])):
            self.assertEqual(facts["mean"], [65.0, 65.0])  # 259 / 4, rounded once; bfloat16 would add 1 to 256 in vain
            self.assertEqual(facts["only_one"], [[2.0]])

    def test_overlap_is_refused(self):
        for facts in self.said("overlaps"):
            self.assertIn("overlap on needs a module of float32", facts["refused"])


class OfOneWorker(AloneTest):
    def test_it_trains_as_without_a_job(self):
        states = []
        for wraps in (False, True):
            network = scripts.Network(torch.bfloat16, torch.float32)
            optimizer = scripts.sgd_of(network)
            if wraps:
                optimizer = self.job.DistributedOptimizer(optimizer, network, batch_size=scripts.BATCH)
            for points, labels in scripts.batches(0):
                optimizer.zero_grad()
                functional.cross_entropy(network(points), labels).backward()
                optimizer.step()
            states.append(scripts.state_of(network))
        optimizer.finish()
        self.assertEqual(*states)

    def test_a_gradient_that_is_not_finite_is_found_at_once(self):
        network = torch.nn.Linear(200, 200).bfloat16()  # larger than what is checked in one step otherwise
        optimizer = self.job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=1)
        (network.weight.sum() * torch.nan).backward()
        with self.assertRaisesRegex(scripts.syncopate.NotFinite, "not finite"):
            optimizer.step()


if __name__ == "__main__":
    unittest.main()
