#!/usr/bin/python3
"""Goal:   the gradient of a step is where a script expects it, has the right weight, and is handled as documented if it is
        not finite, in jobs of one and of two workers.
Method: jobs that consist of this process only, and gradients_scripts.py under `syncopate run`; closed values.
"""
import io
import math
import pathlib
import unittest

import torch

from script_cases import SYNCOPATE, TORCH, ScriptTest
import syncopate_torch as syncopate
from syncopate_torch.training.torch_optimizers import default_rule

SCRIPTS = str(pathlib.Path(__file__).with_name("gradients_scripts.py"))


def optimizer_of(network, **options):
    sgd = torch.optim.SGD(network.parameters(), lr=1.0, weight_decay=0.5)
    return syncopate.Job().DistributedOptimizer(sgd, network, batch_size=1, **options)


class OfOneWorker(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(3, 2))

    def gradients(self):
        return [parameter.grad for parameter in self.network.parameters()]

    def test_it_stays_where_autograd_puts_it(self):
        optimizer = optimizer_of(self.network)
        optimizer.zero_grad()
        self.assertEqual(self.gradients(), [None] * 4)
        self.network[0](torch.ones(1, 3)).sum().backward()
        before = [gradient.data_ptr() if gradient is not None else None for gradient in self.gradients()]
        optimizer.step()
        self.assertEqual([gradient.data_ptr() for gradient in self.gradients()[:2]], before[:2])
        optimizer.zero_grad(set_to_none=False)
        for gradient in self.gradients()[:2]:
            self.assertEqual(gradient.abs().sum(), 0)
        self.assertEqual(self.gradients()[2:], [None, None])

    def test_a_step_without_samples_changes_nothing(self):
        before = [parameter.detach().clone() for parameter in self.network.parameters()]
        optimizer = optimizer_of(self.network)
        self.network[0](torch.ones(1, 3)).sum().backward()
        optimizer.step(weight=0)
        for parameter, old in zip(self.network.parameters(), before):
            self.assertTrue(torch.equal(parameter, old))


class UsualWeights(unittest.TestCase):
    """Weights of steps for which the script passes none."""

    def setUp(self):
        self.job = syncopate.Job()
        self.points = torch.utils.data.TensorDataset(torch.ones(20, 3))

    def optimizer(self, **options):
        network = torch.nn.Linear(3, 1)
        return self.job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, **options)

    def test_they_are_those_of_the_batches_of_the_loop(self):
        train, tests = (self.job.partition_dataset(self.points, size) for size in (8, 64))
        optimizer = self.optimizer()
        self.assertEqual(optimizer.batch_size, 8)
        counts = []
        for _ in train:
            optimizer.step()
            counts.append(optimizer.samples)
        self.assertEqual(counts, [8, 16, 20])
        for _ in tests:
            pass
        for _ in train:
            optimizer.step()
        self.assertEqual(optimizer.samples, 40)

    def test_a_loader_that_is_gone_says_nothing(self):
        data = self.job.partition_dataset(self.points, 16)
        data = self.job.partition_dataset(self.points, 4)
        self.assertEqual(self.optimizer().batch_size, 4)
        del data

    def test_with_a_loader_of_ones_own_they_are_those_of_the_optimizer(self):
        tests = self.job.partition_dataset(self.points, 20)
        optimizer = self.optimizer(batch_size=5)
        for _ in tests:
            pass
        optimizer.step()
        self.assertEqual(optimizer.samples, 5)

    def test_with_a_batch_sampler_they_are_those_of_its_steps(self):
        order = self.job.batch_sampler(self.points, 4)
        tests = self.job.partition_dataset(self.points, 20)
        optimizer = self.optimizer()
        for _ in tests:
            pass
        for _ in torch.utils.data.DataLoader(self.points, batch_sampler=order):
            optimizer.step()
        self.assertEqual(optimizer.samples, 20)

    def test_samplers_of_tests_leave_the_size_of_a_step_known(self):
        data = self.job.partition_dataset(self.points, 4)
        tests = self.job.sampler(self.points)
        self.assertEqual(self.optimizer().batch_size, 4)
        del data, tests


class Rates(unittest.TestCase):
    def test_an_optimizer_that_finds_its_own(self):
        class Halves(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": None})

            @torch.no_grad()
            def step(self):
                for parameter in self.param_groups[0]["params"]:
                    parameter.mul_(0.5)

        network = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(network.weight)
        optimizer = syncopate.Job().DistributedOptimizer(Halves(network.parameters()), network, batch_size=1)
        optimizer.step()
        self.assertEqual(network.weight.item(), 0.5)

    def test_a_schedule_of_functions_is_saved(self):
        job, network = syncopate.Job(), torch.nn.Linear(1, 1)
        optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9), network, batch_size=1)
        job.scheduler(torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1, total_steps=10), optimizer, every=1)
        saved = io.BytesIO()
        torch.save(job.state_dict(), saved)
        self.assertGreater(len(saved.getvalue()), 0)


class Hooks(unittest.TestCase):
    def test_those_of_a_step_are_called_once(self):
        network = torch.nn.Linear(1, 1)
        optimizer = optimizer_of(network)
        self.assertFalse(hasattr(type(optimizer).step, "__wrapped__"))  # torch's wrapper would cost time in each step
        if not hasattr(optimizer, "register_step_post_hook"):
            return  # torch 1.13 has no such hooks
        called = []
        optimizer.register_step_pre_hook(lambda each, *_: called.append(("before", each is optimizer)))
        optimizer.register_step_post_hook(lambda each, *_: called.append(("after", each is optimizer)))
        for _ in range(2):
            network(torch.ones(1, 1)).sum().backward()
            optimizer.step(weight=1)
        self.assertEqual(called, [("before", True), ("after", True)] * 2)


class Rules(unittest.TestCase):
    """For an optimizer without an equivalent rule, schemes and codecs use SGD's momentum only."""

    def test_in_place_of_those_without_words(self):
        def groups(*momenta):
            return [{"params": [torch.nn.Parameter(torch.zeros(1))], "momentum": each, "weight_decay": each}
                    for each in momenta]

        for optimizer, expected in ((torch.optim.SGD(groups(0.5, 0.5), lr=1), {"optimizer": "momentum", "momentum": 0.5}),
                                    (torch.optim.SGD(groups(0, 0.5), lr=1), {"optimizer": "sgd"}),
                                    (torch.optim.SGD(groups(0, 0), lr=1), {"optimizer": "sgd"}),
                                    (torch.optim.NAdam(groups(0.5), lr=1), {"optimizer": "sgd"}),
                                    (torch.optim.RMSprop(groups(0.5), lr=1), {"optimizer": "sgd"})):
            self.assertEqual(default_rule(optimizer), expected)


class NotFiniteAlone(unittest.TestCase):
    """In a large module each step checks only a part of the gradients, in turn."""

    PARTS, VALUES = 8, 4000

    def setUp(self):
        self.network = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(self.VALUES)) for _ in range(self.PARTS)])

    def step(self, optimizer, spoiled=None, value=math.nan):
        for index, parameter in enumerate(self.network):
            parameter.grad = torch.ones(self.VALUES)
            if index == spoiled:
                parameter.grad[-1] = value
        optimizer.step()

    def test_it_is_found_within_eight_steps(self):
        for spoiled, step in ((0, 9), (1, 2), (7, 8)):  # spoiled in the first step, after the first part was checked
            with self.subTest(spoiled=spoiled):
                self.setUp()
                optimizer = optimizer_of(self.network)
                self.step(optimizer, spoiled, math.inf)
                for _ in range(step - 2):
                    self.step(optimizer)
                with self.assertRaisesRegex(syncopate.NotFinite, f"worker 0, step {step}: "):
                    self.step(optimizer)

    def test_its_step_is_left_out_at_once_where_the_job_skips(self):
        optimizer = optimizer_of(self.network, options={"on-nan": "skip"})
        for spoiled in range(self.PARTS):
            self.step(optimizer, spoiled)
        self.assertEqual(optimizer.samples, 0)
        for parameter in self.network:
            self.assertEqual(parameter.abs().max(), 0)
        self.step(optimizer)
        for parameter in self.network:
            self.assertEqual((parameter.min(), parameter.max()), (-1, -1))

    def test_values_whose_sum_is_infinite_are_finite(self):
        optimizer = optimizer_of(self.network)
        for parameter in self.network:
            parameter.grad = torch.full((self.VALUES,), 3e38)
        for _ in range(self.PARTS + 1):
            optimizer.step()
            optimizer.zero_grad()
        self.assertEqual(self.network[0].max(), self.network[7].min())


class OfTwoWorkers(ScriptTest):
    script = SCRIPTS
    waits = [("ssgd", "align"), ("ssgd", "finish"), ("ssgd", "align", "aggregate=server"), ("nbssgd", "finish"),
             ("local-sgd", "align")]
    codecs = [("ssgd", "bf16", "0.5"), ("ssgd", "topk:0.1", "0"), ("local-sgd", "topk:0.1", "0"), ("nbssgd", "topk:0.1", "0")]
    # Before torch 2.3 GradScaler works on GPUs only.
    overflows = [(order, policy) for order in ("unscale first", "synchronize first") for policy in ("stop", "skip")
                 if TORCH >= (2, 3)]
    weights = [(kind, synchronizes) for kind in ("uniform", "samples") for synchronizes in ("yes", "no")]
    rate = "tensor" if TORCH >= (2, 5) else "number"
    calls = [("weighed", "3", "1"), ("weighed", "0.5", "1.9"), *(("waits", *way) for way in waits),
             *(("keeps_back", *codec) for codec in codecs), *(("overflows", *way) for way in overflows),
             *(("of_weights", *way) for way in weights), ("of_weights", "data", "yes"),
             *(("many_tokens", scheme) for scheme in ("ssgd", "esync", "asgd")),
             *(("changes_rule", what, "0.5") for what in ("weight_decay", "momentum")), ("changes_rate", "1", rate),
             ("looked_at", "skip", "yes"), ("looked_at", "skip", "no"), ("of_another_default", "bfloat16")]

    def test_its_weight_is_a_whole_number(self):
        for facts in self.said("weighed", "3", "1"):
            self.assertEqual((facts["pulled"], facts["parameters"], facts["samples"]), (1.5, [-1.5], 4))
        for weight, facts in zip((0.5, 1.9), self.said("weighed", "0.5", "1.9")):
            self.assertIn(f"a step weighs a whole number of samples or tokens, found {weight}: multiply the weights",
                          facts["refused"])

    def test_workers_that_wait_take_the_steps_of_a_gradient_of_zero(self):
        for way in self.waits:
            with self.subTest(way):
                first, second = self.said("waits", *way)
                self.assertEqual(first["parameters"], second["parameters"])

    def test_what_a_codec_keeps_back_stays_while_nobody_has_samples(self):
        for codec in self.codecs:
            for facts in self.said("keeps_back", *codec):
                with self.subTest(codec, rank=facts["rank"]):
                    self.assertEqual(facts["waited"], 0)
                    self.assertLess(facts["error"], 2e-5)

    def test_a_loss_scale_decides_about_an_overflow_also_where_gradients_are_clipped(self):
        for way in self.overflows:
            for facts in self.said("overflows", *way):
                with self.subTest(way, rank=facts["rank"]):
                    self.assertAlmostEqual(facts["parameters"][0], -4.0, delta=1e-5)
                    self.assertEqual(facts["scale"], 2.0)

    def test_weights_of_the_mean_that_is_looked_at_are_those_of_the_step(self):
        expected = {"uniform": -2.0, "samples": -3.0 + 2.0 / (2**24 + 1)}
        for way in self.weights:
            for facts in self.said("of_weights", *way):
                with self.subTest(way, rank=facts["rank"]):
                    self.assertAlmostEqual(facts["parameters"][0], expected[way[0]], delta=3e-7)

    def test_weights_by_shares_of_the_data_are_not_known_to_synchronize(self):
        for facts in self.said("of_weights", "data", "yes"):
            self.assertIn("synchronize knows no weights by shares of the data", facts["refused"])

    def test_a_job_of_any_number_of_tokens_goes_on(self):
        for scheme in ("ssgd", "esync", "asgd"):
            for facts in self.said("many_tokens", scheme):
                with self.subTest(scheme, rank=facts["rank"]):
                    self.assertGreater(facts["samples"], 2**33)

    def test_a_single_worker_of_a_launcher_whose_step_weighs_nothing_stays(self):
        [[facts]] = self.facts_of_each(1, [("weighs_nothing",)], SCRIPTS)
        self.assertEqual(facts["parameters"], [1.0])

    def test_a_rule_that_changes_where_a_server_steps(self):
        for what in ("weight_decay", "momentum"):
            for facts in self.said("changes_rule", what, "0.5"):
                with self.subTest(what, rank=facts["rank"]):
                    self.assertIn("the parameter server takes the optimizer's steps by its rule of the beginning",
                                  facts["refused"])

    def test_one_that_is_not_finite_is_left_out_for_its_worker_alone(self):
        for synchronizes in ("yes", "no"):
            for facts in self.said("looked_at", "skip", synchronizes):
                with self.subTest(synchronizes=synchronizes, rank=facts["rank"]):
                    self.assertEqual(facts["parameters"], [-5])  # the means of the three steps are 2, 1 and 2

    def test_one_that_is_not_finite_ends_the_job_in_the_name_of_its_worker(self):
        for synchronizes in ("yes", "no"):
            with self.subTest(synchronizes=synchronizes):
                done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", synchronizes, "--", *self.python, SCRIPTS,
                                   "looked_at", "stop", synchronizes])
                self.assertEqual(done.returncode, 1)
                self.assertIn("worker 1, step 2: the gradient of a batch is not finite", done.stderr)
                self.assertNotIn("worker 0, step", done.stderr)

    def test_the_default_type_of_a_script_changes_nothing(self):
        for facts in self.said("of_another_default", "bfloat16"):
            self.assertEqual(facts["parameters"], [-3])

    def test_a_rate_that_changes_is_refused_where_a_server_takes_the_steps(self):
        for facts in self.said("changes_rate", "1", self.rate):
            self.assertIn("the parameter server takes the optimizer's steps at the rate of the beginning", facts["refused"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
