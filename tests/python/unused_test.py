#!/usr/bin/python3
"""Goal:   a parameter that no backward pass uses does not change, not even by weight decay, momentum or the moments of Adam, in
        jobs of one and two workers, under every scheme and every optimizer of torch.optim. A parameter that some workers use
        changes as in one process with all samples, and as in DistributedDataParallel; so does a layer that is frozen at
        first and joins the optimizer later.
Method: a module of several heads. Training with one worker has the same bits as without a job; training with two workers
        (unused_scripts.py) is compared with one process and with torch.
"""
import inspect
import pathlib
import unittest

import torch
from torch.nn import functional

import syncopate_torch as syncopate
import unused_scripts as scripts
from script_cases import SYNCOPATE, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("unused_scripts.py"))
# LBFGS evaluates the loss repeatedly, SparseAdam takes only sparse gradients, and Muon only matrices.
OPTIMIZERS = sorted(name for name, kind in vars(torch.optim).items()
                    if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer)
                    and name not in ("Optimizer", "LBFGS", "SparseAdam", "Muon"))
STEPS_OF_ITS_OWN = ("esync", "local-sgd", "easgd", "hogwild")


def made(name, module):
    kind = getattr(torch.optim, name)
    known = inspect.signature(kind).parameters
    wanted = {"lr": 0.05, "weight_decay": 0.1, "momentum": 0.9}
    return kind(module.parameters(), **{option: value for option, value in wanted.items() if option in known})


def in_one_process(name, use, clips=False, to_none=True):
    """Returns the parameters after the same steps in one process, for schemes whose workers share gradients."""
    module = scripts.problem()[2]
    optimizer = scripts.optimizer_of(module, name)
    for step in range(scripts.STEPS):
        optimizer.zero_grad(set_to_none=to_none)
        for rank in range(2):
            x, y = scripts.samples_of(step, rank)
            loss = functional.cross_entropy(module(x, scripts.head_of(use, step, rank)), y)
            (loss * len(x) / 8).backward()
        if clips:
            torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
        optimizer.step()
    return scripts.parameters_of(module)


class OfOneWorker(unittest.TestCase):
    def train(self, name, wrapped):
        points, labels, module = scripts.problem()
        optimizer = made(name, module)
        if wrapped:
            optimizer = syncopate.Job().DistributedOptimizer(optimizer, module, batch_size=8)
        for step in range(scripts.STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(module(points[step], step % 2), labels[step]).backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in module.parameters()]

    def test_every_optimizer_leaves_the_bits_that_it_leaves_without_a_job(self):
        self.assertGreater(len(OPTIMIZERS), 8)
        for name in OPTIMIZERS:
            with self.subTest(name):
                for own, plain in zip(self.train(name, wrapped=True), self.train(name, wrapped=False)):
                    self.assertTrue(torch.equal(own, plain))

    def test_a_sparse_gradient_is_the_optimizers(self):
        for make in (torch.optim.SparseAdam, torch.optim.SGD):
            trained = []
            for wrapped in (False, True):
                torch.manual_seed(1)
                bag = torch.nn.EmbeddingBag(20, 4, sparse=True)
                optimizer = make(bag.parameters(), lr=0.1)
                if wrapped:
                    optimizer = syncopate.Job().DistributedOptimizer(optimizer, bag, batch_size=8)
                for step in range(3):
                    optimizer.zero_grad()
                    bag(torch.arange(step, step + 6).reshape(2, 3)).sum().backward()
                    optimizer.step()
                trained.append(bag.weight.detach().clone())
            with self.subTest(make.__name__):
                self.assertTrue(torch.equal(*trained))


class OfTwoWorkers(ScriptTest):
    script = SCRIPTS
    shared = [("trains", "ssgd", "adamw", use, *options)
              for use in ("nobody", "turns", "some", "early")
              for options in ((), ("overlap=on",), ("aggregate=server",), ("aligns",), ("to_zero",))]
    clipped = [("trains", "ssgd", "momentum", use, "clip") for use in ("nobody", "turns", "some", "early")]
    own = [("trains", scheme, "adamw", "some") for scheme in STEPS_OF_ITS_OWN]
    nbssgd = [("trains", "nbssgd", "momentum", use, "mini-batches=1", f"commit={commit}")
              for use in ("nobody", "some") for commit in ("barrier", "overlap", "racy")]
    servers = [("trains", scheme, "sgd", "some") for scheme in ("asgd", "downpour")]
    unfreezing = [("unfreezes", "ssgd"), ("unfreezes", "ssgd", "overlap=on"), ("unfreezes", "ssgd", "aggregate=server")]
    unfreezing_alone = [("unfreezes", "esync"), ("unfreezes", "local-sgd"), ("unfreezes", "nbssgd")]
    calls = [*shared, *clipped, *own, *nbssgd, *servers, ("trains", "ssgd", "adamw", "some", "short"), ("sparse",),
             *unfreezing, *unfreezing_alone]

    def test_a_step_of_all_moves_what_one_process_would_move(self):
        for call in self.shared + self.clipped:
            use, name = call[3], call[2]
            expected = in_one_process(name, use, clips="clip" in call, to_none="to_zero" not in call)
            for facts in self.said(*call):
                with self.subTest(call, rank=facts["rank"]):
                    self.assert_near(facts["parameters"], expected)
                    self.assertEqual(facts["never"], scripts.parameters_of(scripts.problem()[2].never))
                    self.assertEqual(facts["given_up"], [True, True])

    def test_no_scheme_moves_a_layer_that_nobody_uses(self):
        for call in self.own + self.nbssgd + self.servers:
            for facts in self.said(*call):
                with self.subTest(call, rank=facts["rank"]):
                    self.assertEqual(facts["never"], scripts.parameters_of(scripts.problem()[2].never))

    def test_workers_end_with_one_model(self):
        for call in (("trains", "ssgd", "adamw", "some", "short"), *self.own[:2], *self.nbssgd[:2]):
            first, second = self.said(*call)
            with self.subTest(call):
                self.assertEqual(first["parameters"], second["parameters"])

    def test_a_layer_that_is_unfrozen_and_added_moves_as_in_one_process(self):
        module = scripts.problem()[2]
        sgd = torch.optim.SGD(module.heads.parameters(), lr=0.1, momentum=0.9)
        scripts.unfreezing_steps(module, sgd, [0, 1], lambda _count: sgd.step())
        for call in self.unfreezing:
            for facts in self.said(*call):
                with self.subTest(call, rank=facts["rank"]):
                    self.assert_near(facts["parameters"], scripts.parameters_of(module))
        for call in self.unfreezing_alone:
            first, second = self.said(*call)
            with self.subTest(call):
                self.assertEqual((first["parameters"], first["has_moved"]), (second["parameters"], True))

    def test_sparse_gradients_travel_as_dense_ones(self):
        [[alone]] = self.facts_of_each(1, [("sparse",)], SCRIPTS)
        for facts in self.said("sparse"):
            self.assert_near(facts["parameters"], alone["parameters"])

    def test_it_is_as_in_torch(self):
        for use in ("nobody", "turns", "some"):
            done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", use, "--", *self.python, SCRIPTS, "in_torch", use])
            for facts in self.facts(done):
                with self.subTest(use, rank=facts["rank"]):
                    self.assert_near(facts["parameters"], facts["in_torch"])

    def test_a_server_that_would_move_it_refuses(self):
        for scheme, name in (("asgd", "momentum"), ("asgd", "adamw"), ("downpour", "adamw")):
            with self.subTest(scheme=scheme, name=name):
                done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", scheme + name, "--", *self.python, SCRIPTS, "trains",
                                   scheme, name, "turns"])
                self.assertIn("no backward pass of this step has used heads.1.weight, and the parameter server takes steps of "
                              "the whole model", done.stderr)


if __name__ == "__main__":
    unittest.main()
