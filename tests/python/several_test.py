#!/usr/bin/python3
"""Goal:   a job with several optimizers, each with its own module, trains under ssgd as one process would, and under local-sgd
        as its rule says; loops of unequal length end with the same model; contradictory calls are refused on all workers.
Method: a generator and a discriminator. Training with one worker has the same bits as without a job; training with two
        workers (several_scripts.py) is compared with one process.
"""
import pathlib
import unittest

import torch

import several_scripts as scripts
import syncopate_torch as syncopate
from script_cases import ScriptTest

LOCAL_STEPS = 2
REFUSALS = {
    "scheme": ("ConfigError", "under esync it takes no other one: choose ssgd or local-sgd, or give one optimizer"),
    "rounds": ("ConfigError", "option global-lr has no effect on a further optimizer of a job"),
    "parameters": ("ConfigError", "this module has parameters that another optimizer of the job trains"),
    "options": ("ConfigError", "scheme: the job trains already, and a further optimizer has the scheme and the options of the first"),
    "rates": ("ConfigError", "workers step with optimizers of different settings"),
    "nan": ("NotFinite", "a value of the module of SGD, a further optimizer of the job, is not finite after 0 steps"),
    "own step": ("ConfigError", "the job trains with this SGD, and its own step() would leave out the other workers"),
    "late": ("ConfigError", "the loop has finished: the optimizers of the job take no further step"),
}


def weighted(optimizer):
    """Gives the steps of an optimizer of torch.optim a weight argument, as those of a job have."""
    own = optimizer.step
    optimizer.step = lambda weight: own()
    return optimizer


def in_one_process(counts=(scripts.STEPS,)):
    """Takes steps over the samples of both workers in one process; returns the parameters."""
    noise, points, *modules = scripts.problem()
    optimizers = list(map(weighted, scripts.optimizers_of(*modules)))
    for count in counts:
        scripts.take_steps(optimizers, modules, noise, points, count)
    return scripts.parameters_of(*modules)


def with_uneven_ends():
    """Takes four steps over the samples of both workers and two over those of worker 0, in one process."""
    noise, points, *modules = scripts.problem()
    optimizers = list(map(weighted, scripts.optimizers_of(*modules)))
    scripts.take_steps(optimizers, modules, noise, points, scripts.STEPS - 2)
    own = scripts.part_of(0)
    scripts.take_steps(optimizers, modules, noise[-2:, own], points[-2:, own], 2)
    return [*modules, (optimizers, noise, points)]


def with_local_steps():
    """Trains two replicas of each module; after every second step of its optimizer both get their mean by samples."""
    replicas = []
    for rank in range(2):
        noise, points, *modules = scripts.problem()
        part = scripts.part_of(rank)
        replicas.append((scripts.optimizers_of(*modules), modules, noise[:, part], points[:, part]))
    for step in range(scripts.STEPS):
        for index in (1, 0):  # the discriminator first
            for optimizers, modules, noise, points in replicas:
                loss = scripts.losses(*modules, noise[step], points[step])[1 - index]
                optimizers[index].zero_grad()
                loss().backward()
                optimizers[index].step()
            if (step + 1) % LOCAL_STEPS == 0:
                average(*(modules[index] for _, modules, *_ in replicas))
    return scripts.parameters_of(*replicas[0][1])


def average(one, other):
    with torch.no_grad():
        for mine, theirs in zip(one.parameters(), other.parameters()):
            mean = (5 * mine + 3 * theirs) / 8
            mine.copy_(mean)
            theirs.copy_(mean)


class Alone(unittest.TestCase):
    def test_a_job_of_one_worker_leaves_the_bits_that_are_left_without_one(self):
        for scheme in ("ssgd", "esync", "local-sgd"):
            with self.subTest(scheme):
                noise, points, *modules = scripts.problem()
                job = syncopate.Job(scheme)
                optimizers = [job.DistributedOptimizer(own, module, batch_size=8)
                              for own, module in zip(scripts.optimizers_of(*modules), modules)]
                scripts.take_steps(optimizers, modules, noise, points)
                optimizers[1].finish()
                self.assertEqual(scripts.parameters_of(*modules), in_one_process())
                with self.assertRaisesRegex(syncopate.ConfigError, "takes no further step|take no further step"):
                    optimizers[1].step()
                job.leave()


class TwoWorkers(ScriptTest):
    script = str(pathlib.Path(__file__).with_name("several_scripts.py"))
    calls = (("trains", "ssgd"), ("trains", "ssgd", "leads"), ("trains", "ssgd", "short"), ("trains", "ssgd", "aligns"),
             ("trains", "local-sgd", f"local-steps={LOCAL_STEPS}"), ("averages",), ("unused",),
             ("goes_on", "first"), ("goes_on", "second"))

    def both(self, *call):
        """Asserts that both workers have the same parameters and returns them."""
        one, other = ([*facts["generator"], *facts["discriminator"]] for facts in self.said(*call))
        self.assertEqual(one, other)
        return one

    def test_ssgd_is_one_process_with_the_samples_of_all(self):
        self.assert_near(self.both("trains", "ssgd"), in_one_process())
        self.assert_near(self.both("trains", "ssgd", "leads"), in_one_process())

    def test_a_worker_whose_loop_is_shorter_gets_the_steps_of_the_other(self):
        self.assert_near(self.both("trains", "ssgd", "short"), scripts.parameters_of(*with_uneven_ends()[:2]))

    def test_after_an_align_training_goes_on_from_the_last_step_of_any(self):
        *modules, (optimizers, noise, points) = with_uneven_ends()
        scripts.take_steps(optimizers, modules, noise, points, 2)
        self.assert_near(self.both("trains", "ssgd", "aligns"), scripts.parameters_of(*modules))

    def test_local_sgd_takes_the_mean_of_the_parameters(self):
        self.assert_near(self.both("trains", "local-sgd", f"local-steps={LOCAL_STEPS}"), with_local_steps())

    def test_running_statistics_are_averaged(self):
        for facts in self.said("averages"):
            self.assert_near(facts["found"], facts["expected"])

    def test_a_parameter_without_a_gradient_stays_as_it_is(self):
        one, other = self.said("unused")
        self.assertEqual(one["after"], other["after"])
        self.assertEqual([one["never"], other["never"]], [True, True])
        self.assertEqual(one["after"][-3:], one["before"][-3:])
        self.assertTrue(all(now != then for now, then in zip(one["after"][:6], one["before"][:6])))

    def test_a_later_job_goes_on_from_the_state_of_an_earlier_one(self):
        self.said("goes_on", "first")
        for facts in self.said("goes_on", "second"):
            self.assert_near(facts["parameters"], in_one_process())

    def test_what_cannot_be_meant_is_refused_on_all_workers(self):
        for what, (kind, text) in REFUSALS.items():
            with self.subTest(what):
                said = self.facts_of_each(2, [("refused", what)], self.script)[0]
                for facts in said:
                    self.assertEqual(facts["kind"], kind, facts)
                    self.assertIn(text, facts["text"])


if __name__ == "__main__":
    unittest.main()
