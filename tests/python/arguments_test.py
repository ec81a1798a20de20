#!/usr/bin/python3
"""Goal:   an argument of a wrong type or out of range is refused with its name and the expected values, and not converted
        to another number.
Method: calls in this process, which is a job of one worker, and in arguments_scripts.py under `syncopate run`.
"""
import os
import pathlib
import unittest
import warnings
from unittest import mock

import torch

import syncopate_torch as syncopate
from script_cases import SYNCOPATE, AloneTest, ScriptTest
from syncopate_torch.training.flat import FlatTensors, trained_tensors
from syncopate_torch.training.torch_optimizers import rule_of

SCRIPTS = str(pathlib.Path(__file__).with_name("arguments_scripts.py"))


class Steps(AloneTest):
    def test_a_step_of_the_optimizer_that_a_job_trains_with(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # schedulers count the steps and warn about missing ones
            schedulers = [torch.optim.lr_scheduler.StepLR(self.sgd, 1)]
            with self.job.DistributedOptimizer(self.sgd, self.network, batch_size=4) as optimizer:
                schedulers += [torch.optim.lr_scheduler.StepLR(each, 1) for each in (self.sgd, optimizer)]
                self.backward()
                with self.refused("^the job trains with this SGD, and its own step.. would leave out the other workers: call "):
                    self.sgd.step()
                before = self.network[0].weight.clone()
                optimizer.step()
                self.assertFalse(torch.equal(self.network[0].weight, before))
                for scheduler in schedulers:
                    scheduler.step()
        self.sgd.step()


class Numbers(AloneTest):
    def test_numbers_of_an_optimizer_that_no_server_has_to_take(self):
        optim, trained = torch.optim, FlatTensors(trained_tensors(self.network), torch.device("cpu"))
        for make, options, reason in (
                (optim.SGD, {"lr": 0.1, "momentum": 1.0}, "its momentum is a number from 0 to below 1, found 1"),
                (optim.RMSprop, {"alpha": 1.0}, "its alpha is a number from 0 to below 1, found 1"),
                (optim.Adam, {"eps": 0.0}, "its epsilon is above 0 and at most 1000, found 0"),
                (optim.AdamW, {"weight_decay": 5000.0}, "its weight decay is from 0 to 1000, found 5000"),
                (optim.Adagrad, {"eps": torch.tensor(2000.0)}, "its epsilon is above 0 and at most 1000, found 2000"),
                (optim.SGD, {"lr": 0.1, "weight_decay": torch.tensor(0.5)}, None)):
            with self.subTest(make=make, **options):
                optimizer = make(self.network.parameters(), **options)
                rule, found = rule_of(optimizer, trained)
                self.assertEqual(found, reason)
                self.assertEqual(rule, {} if reason else {"optimizer": "sgd", "weight-decay": 0.5})
                with syncopate.Job().DistributedOptimizer(optimizer, torch.nn.Sequential(*self.network), batch_size=4):
                    pass  # a scheme without a server accepts it

    def test_a_batch_size_of_any_whole_form(self):
        for size in (16, 16.0, torch.tensor(16), torch.tensor(16.0), True + 15):
            self.assertEqual(self.job.batch_sampler(self.points, size).step_size, 16)
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=4.0)
        self.assertEqual(optimizer.batch_size, 4)

    def test_a_batch_size_that_is_none(self):
        for size, found in ((2**64 + 16, "18446744073709551632"), (-1, "-1"), (2.5, "2.5"), ("4", "'4'"),
                            (float("nan"), "nan"), (float("inf"), "inf"), (torch.ones(2), "a value of type Tensor"),
                            (self.network, "a value of type Sequential")):
            with self.refused(rf"^batch_size is a whole number from 0 to 18446744073709551615, found {found}$"):
                self.job.partition_dataset(self.points, batch_size=size)
        with self.refused("global_batch samples, divided by the speeds of the devices: give one of them, found none$"):
            self.job.partition_dataset(self.points, batch_size=None)
        with self.refused("^batch_size is a whole number from 0 to 4294967295, found 'four'$"):
            self.job.DistributedOptimizer(self.sgd, self.network, batch_size="four")

    def test_epochs_and_places(self):
        sampler = self.job.batch_sampler(self.points, 16)
        sampler.set_epoch(2.0)
        self.assertEqual(sampler.epoch, 2)
        for epoch in (-1, 2**64, "3"):
            with self.refused("^epoch is a whole number from 0 to "):
                sampler.set_epoch(epoch)
        with self.refused("^step is a whole number from 0 to .*, found -2$"):
            sampler.resume(0, -2)

    def test_weights(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=4)
        self.backward()
        for weight, found in (("4", "'4'"), (torch.ones(2), "a value of type Tensor")):
            with self.refused(f"^a step weighs a whole number of samples or tokens, found {found}$"):
                optimizer.step(weight=weight)
        optimizer.step(weight=torch.tensor(4.0))

    def test_seconds(self):
        self.assertIs(syncopate.init(timeout=None), self.job)
        for timeout, found in (("60", "'60'"), (-3, "-3"), (float("nan"), "nan"), ([60], "a value of type list")):
            with self.refused(f"^timeout is a number of seconds, or None for half an hour, found {found}$".replace("[", r"\[")):
                syncopate.init(timeout=timeout)

    def test_an_option_without_a_value(self):
        with self.refused("^option on-nan has the value None: give it one, or leave it out"):
            syncopate.init(options={"on-nan": None})


class Slips(AloneTest):
    def test_the_module_before_the_optimizer(self):
        with self.refused(r"takes an optimizer of torch.optim and then its module, found Sequential and SGD: job\.Dist"):
            self.job.DistributedOptimizer(self.network, self.sgd)
        with self.refused("and then its module, found SGD and generator"):
            self.job.DistributedOptimizer(self.sgd, self.network.parameters())
        self.job.DistributedOptimizer(self.sgd, self.network, batch_size=4)  # the refused calls have started no training

    def test_the_samples_of_a_step_in_the_place_of_its_closure(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=4)
        with self.refused(r"^step takes a function that computes the loss first, found 4: .* call step\(weight=n\)$"):
            optimizer.step(4)

    def test_what_has_no_parameters(self):
        with self.refused(r"takes a module, or its state_dict\(\), found an object of type SGD: "):
            self.job.broadcast_parameters(self.sgd)


class Launched(ScriptTest):
    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(mock.patch.dict(os.environ, {
            "PYTHONWARNINGS": os.environ["PYTHONWARNINGS"] + ",default::UserWarning:syncopate_torch.distributed.rendezvous"}))

    def launch(self, workers, name, *arguments, options=()):
        return self.start([SYNCOPATE, "run", "-n", workers, *options, "--run-dir", "run", "--", *self.python, SCRIPTS, name,
                           *arguments])

    def test_messages_to_ranks_and_under_tags_that_do_not_exist(self):
        for rank, facts in enumerate(self.facts(self.launch(2, "messages"))):
            self.assertEqual(facts["refused"], {
                "tag": "tag is a whole number from 0 to 4095, found 4294967303",
                "to": f"to, a rank in the group, is a whole number from 0 to 1, found {2**32 + 1 - rank}",
                "to none": "to, a rank in the group, is a whole number from 0 to 1, found None",
                "sender": "sender, a rank in the group, is a whole number from 0 to 1, found -1",
                "sender of a kind": "sender, a rank in the group, is a whole number from 0 to 1, found '1'",
                "ranks": "a rank of open_group is a whole number from 0 to 1, found 4294967297",
                "root": "root 0.5 is no worker of this group, which has 2",
                "timeout": "timeout is a number of seconds, or None for half an hour, found 'soon'",
                "timeout of init": "timeout is a number of seconds, or None for half an hour, found 'soon'"})
            self.assertEqual(facts["received"], [1 - rank] * 2)

    def test_calls_for_other_types_and_roots(self):
        for facts in self.facts(self.launch(2, "unequal_calls")):
            for name in ("allgather", "broadcast"):
                self.assertRegex(facts["refused"][name], f"worker 0 calls {name} of 8 bytes of int32.*, worker 1 {name} of 8 bytes "
                                                         "of float32")
            self.assertRegex(facts["refused"]["roots"], "worker 0 calls broadcast .* with root 0, worker 1 .* with root 1")

    def test_calls_of_torch_for_other_types(self):
        for facts in self.facts(self.launch(2, "unequal_calls_of_torch")):
            self.assertEqual(len(facts["refused"]), 4)
            for name, refused in facts["refused"].items():
                self.assertRegex(refused, f"worker 0 calls {name.replace('_', '').replace('single', '')} .*of int32.*, worker 1 "
                                          ".*of float32")

    def test_reductions_of_torch_for_other_results(self):
        calls = {
            "mean": ("allreduce of 4 float32 (sum)", "allreduce of 4 float32 (sum) for the mean of float32"),
            "mean of blocks": ("reduce_scatter of 4 float32 (sum)", "reduce_scatter of 4 float32 (sum) for the mean of float32"),
            "truth": ("allreduce of 3 uint8 (max)", "allreduce of 3 uint8 (max) for the max of bool"),
            "sparse": ("allreduce of 3 float32 (sum)", "allgather of 536 bytes of shapes, for a sum of sparse float32"),
            "mean of sparse": ("allgather of 536 bytes of shapes, for a sum of sparse float32",
                               "allgather of 536 bytes of shapes, for a mean of sparse float32")}
        for facts in self.facts(self.launch(2, "unequal_reductions_of_torch")):
            self.assertEqual(list(facts["refused"]), list(calls))
            for name, (first, second) in calls.items():
                self.assertIn(f"worker 0 calls {first}, worker 1 {second}; every worker", facts["refused"][name])

    def test_tags_of_a_process_group(self):
        for facts in self.facts(self.launch(2, "group_messages")):
            self.assertEqual(facts["refused"], {"tag": "tag is a whole number from 0 to 4095, found 4294967303",
                                                "tag of a receive": "tag is a whole number from 0 to 4095, found -1"})

    def test_parameters_by_a_state(self):
        for facts in self.facts(self.launch(2, "state")):
            self.assertEqual(facts["values"], [1] * 7)
            self.assertRegex(facts["refused"]["other keys"], "worker 1 has of 1, a tensor of .*, where that of worker 0 has of 0")

    def test_options_of_a_scheme_are_said_to_have_no_effect_on_a_process_group(self):
        done = self.launch(2, "group_messages", options=("--scheme", "esync", "--compress", "int8"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("UserWarning: --compress int8 and --scheme esync of `syncopate run` have no effect on a "
                                           "process group of torch.distributed: leave out"), 1, done.stderr)

    def test_five_calls_beside_a_process_group_have_the_options(self):
        for facts in self.facts(self.launch(2, "both_levels", options=("--scheme", "esync"))):
            self.assertFalse(facts["shares"])

    def test_options_without_effect_on_horovods_calls_are_refused(self):
        for options, words in ((("--scheme", "esync"), "--scheme esync of `syncopate run` has no effect on syncopate_torch.horovod: "),
                               (("--seed", 4, "--overlap", "on"), "--overlap on and --seed 4 of `syncopate run` have no effect")):
            with self.subTest(options):
                done = self.launch(2, "horovod", "hvd", options=(*options, "--run-dir", options[0].strip("-")))
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"ConfigError: {words}", done.stderr)
        for first, options in (("hvd", ("--transport", "tcp", "--scheme", "ssgd")), ("init", ("--scheme", "esync"))):
            with self.subTest(first):
                self.assertEqual(len(self.facts(self.launch(2, "horovod", first, options=options))), 2)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
