#!/usr/bin/python3
"""Goal:   with option `overlap` = `on`, gradients are sent during the backward pass of a script, and its parameters have the
        same bits as without overlap; a script that does what overlap forbids gets one clear line.
Method: overlap_scripts.py under `syncopate run` over shared memory and TCP, with and without overlap; wrong calls in jobs
        that consist of this process only.
"""
import json
import pathlib
import unittest

import torch
from torch.nn import functional

import syncopate_torch as syncopate
import syncopate_torch.amp
from script_cases import SYNCOPATE, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("overlap_scripts.py"))
WAYS = {"shm": ("--transport", "shm", "--aggregate", "shm"), "tcp": ("--transport", "tcp", "--aggregate", "ring")}


class Launched(ScriptTest):
    def launch(self, way, *arguments):
        return self.start([SYNCOPATE, "run", "-n", 2, *WAYS[way], "--run-dir", "run", "--", *self.python, SCRIPTS,
                           *arguments])

    def test_parameters_have_the_same_bits_with_and_without(self):
        calls = [(script, overlap) for script in ("trains", "accumulates") for overlap in ("on", "off")]
        for way, options in WAYS.items():
            said = self.facts_of_each(2, calls, SCRIPTS, ("-n", 2, *options))
            for call, on, off in zip(calls[::2], said[::2], said[1::2]):
                with self.subTest(way=way, script=call[0]):
                    self.assertEqual(on[0]["bits"], on[1]["bits"])
                    self.assertEqual([facts["bits"] for facts in on], [facts["bits"] for facts in off])

    def test_gradients_arrive_before_the_step(self):
        for way in WAYS:
            with self.subTest(way=way):
                for facts in self.facts(self.launch(way, "leaves_early")):
                    self.assertTrue(facts["differs"])
                run = pathlib.Path(self.folder) / "run"
                summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
                self.assertRegex(summary["aggregate"], r"in \d+ buckets")
                run.rename(run.with_name(way))

    def test_a_worker_that_raises_between_pass_and_step_ends_the_job(self):
        done = self.launch("tcp", "fails", "raises")
        self.assertEqual(done.returncode, 1)
        lines = [line for line in done.stderr.splitlines() if line.startswith("[worker")]
        self.assertEqual(lines[0], "[worker 1] Traceback (most recent call last):")
        self.assertIn("[worker 1] RuntimeError: the disk is full", lines)

    def test_a_gradient_that_is_not_finite_is_named(self):
        done = self.launch("tcp", "fails", "nan")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"worker 1, step 2: the gradient of a batch is not finite")


class Alone(unittest.TestCase):
    """Jobs that consist of this process only, to which the same rules apply."""

    def setUp(self):
        self.network = torch.nn.Linear(4, 3)
        self.sgd = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.job = syncopate.init(options={"overlap": "on"})
        self.points, self.labels = torch.randn(8, 4), torch.randint(3, (8,))

    def optimizer(self, **options):
        return self.job.DistributedOptimizer(self.sgd, self.network, **options)

    def backward(self, scale=1):
        (scale * functional.cross_entropy(self.network(self.points), self.labels)).backward()

    def refused(self, pattern):
        return self.assertRaisesRegex(syncopate.ConfigError, pattern)

    def test_a_second_pass_before_the_step(self):
        optimizer = self.optimizer(batch_size=8)
        self.backward()
        with self.refused(r"second backward pass before step has reached (weight|bias), .* optimizer\.no_sync"):
            self.backward()

    def test_gradients_that_are_changed_on_their_way(self):
        optimizer = self.optimizer(batch_size=8)
        self.backward(scale=1000)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 0.1)
        with self.refused("a gradient was changed between its backward pass and the step"):
            optimizer.step()

    def test_gradients_that_are_taken_away_on_their_way(self):
        for other in (None, torch.zeros(3)):
            with self.subTest(other=other):
                self.setUp()
                optimizer = self.optimizer(batch_size=8)
                self.backward()
                self.network.bias.grad = other
                with self.refused("a gradient was changed between its backward pass and the step"):
                    optimizer.step()

    def test_calls_between_a_pass_and_its_step(self):
        optimizer = self.optimizer(batch_size=8)
        self.backward()
        for what in (optimizer.zero_grad, optimizer.synchronize, optimizer.align):
            with self.subTest(what.__name__), self.refused(f"{what.__name__} between a backward pass and its step"):
                what()
        with self.refused("call expect before backward"):
            optimizer.expect(4)
        optimizer.step()
        optimizer.zero_grad()

    def test_samples_that_nobody_has_said(self):
        self.job.sampler(range(8), 8)
        optimizer = self.optimizer()
        with self.refused(r"are to be known before backward: .* optimizer\.expect"):
            self.backward()
        optimizer.expect(8)
        self.backward()
        with self.refused("weight of 4, but its gradients left with one of 8"):
            optimizer.step(weight=4)

    def test_samples_that_were_said_hold_for_one_step(self):
        optimizer = self.optimizer(batch_size=8)
        optimizer.expect(3)
        self.backward()
        optimizer.step(weight=3)
        optimizer.zero_grad()
        self.backward()
        optimizer.step(weight=8)
        self.assertEqual(optimizer.samples, 11)
        with self.refused("from 0 to 4294967295 samples"):
            optimizer.expect(-1)

    def test_a_loader_knows_the_samples(self):
        data = self.job.partition_dataset(torch.utils.data.TensorDataset(self.points, self.labels), 3, num_workers=1)
        optimizer = self.optimizer()
        for x, y in data:
            optimizer.zero_grad()
            functional.cross_entropy(self.network(x), y).backward()
            optimizer.step()
        self.assertEqual(optimizer.samples, 8)  # batches of 3, 3 and 2

    def test_it_trains_as_torch_does(self):
        reference = torch.nn.Linear(4, 3)
        reference.load_state_dict(self.network.state_dict())
        sgd = torch.optim.SGD(reference.parameters(), lr=0.1)
        optimizer = self.optimizer(batch_size=8)
        for _ in range(3):
            optimizer.zero_grad()
            self.backward()
            optimizer.step()
            sgd.zero_grad()
            functional.cross_entropy(reference(self.points), self.labels).backward()
            sgd.step()
        for ours, theirs in zip(self.network.parameters(), reference.parameters()):
            self.assertTrue(torch.equal(ours, theirs))

    def test_a_loss_scale_is_refused(self):
        optimizer = self.optimizer(batch_size=8)
        scaler = syncopate_torch.amp.GradScaler(self.job, enabled=True)
        if not scaler.is_enabled():
            return  # torch 1 has a GradScaler only for CUDA
        scaler.scale(functional.cross_entropy(self.network(self.points), self.labels)).backward()
        with self.refused("with overlap on|with overlap"):
            scaler.step(optimizer)


if __name__ == "__main__":
    unittest.main()
