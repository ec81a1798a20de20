#!/usr/bin/python3
"""Goal:   workers whose loops have unequal lengths or end early have the same model; a module keeps its buffers, and owns its
        memory after the training; workers resume only from states that were saved at the same moment.
Method: loops_scripts.py under `syncopate run`, and with only the variables of torch.distributed; the test compares with
        closed values and with torch in this process.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import unittest

import torch
from torch.nn import functional

import loops_scripts as scripts
from script_cases import LIMIT, SYNCOPATE, TORCH, ScriptTest
from syncopate_torch.training.flat import FlatTensors, trained_tensors
from syncopate_torch.training.torch_optimizers import rule_of

SCRIPTS = str(pathlib.Path(__file__).with_name("loops_scripts.py"))


class Launched(ScriptTest):
    def launch(self, workers, *arguments):
        return self.start([SYNCOPATE, "run", "-n", workers, "--run-dir", "-".join(map(str, (workers, *arguments))), "--",
                           *self.python, SCRIPTS, *arguments])


class UnequalLoops(ScriptTest):
    script = SCRIPTS
    calls = [("scheduled",), ("drops_last",), ("followed",), ("forks",), ("accumulated",),
             *(("shows_a_batch", scheme) for scheme in ("ssgd", "esync")),
             *(("counts", scheme) for scheme in ("easgd", "downpour", "esync")),
             *(("goes_on_with_ssgd", scheme) for scheme in ("esync", "hogwild")),
             *(("counts_its_own", scheme) for scheme in ("easgd", "downpour"))]

    def test_workers_take_equally_many_steps_of_a_dataset_that_does_not_divide(self):
        first, second = self.said("scheduled")
        self.assertEqual(first["sizes"], [16, 16, 1] * 4)
        self.assertEqual(second["sizes"], [16, 8, 8] * 4)
        self.assertEqual([first["length"], second["length"]], [3, 3])
        self.assertEqual(first["parameters"], second["parameters"])

    def test_drop_last_leaves_out_what_is_no_whole_step(self):
        for facts in self.said("drops_last"):
            self.assertEqual(facts["sizes"], {"129": [64], "300": [64, 64]})

    def test_a_worker_that_takes_no_steps_follows_the_schedule_of_the_others(self):
        first, second = self.said("followed")
        self.assertEqual(first["aligned"], second["aligned"])
        self.assertEqual(first["parameters"], second["parameters"])
        self.assertEqual([first["rate"], second["rate"]], [0.2 / 2 ** 8] * 2)  # 192 samples; the rate halves every 24

    def test_a_look_at_a_batch_is_no_epoch(self):
        for scheme in ("ssgd", "esync"):
            for facts in self.said("shows_a_batch", scheme):
                with self.subTest(scheme, rank=facts["rank"]):
                    self.assertEqual(facts["epochs"], [[1] * scripts.SAMPLES] * 3)
                    self.assertEqual(facts["numbers"], [1, 2, 3])
                    if facts["rank"] == 0:
                        looks = facts["looks"]  # two looks, then in turn the first batch of an epoch and a look
                        self.assertEqual([looks[0]] * 2, looks[1:3])
                        self.assertEqual(looks[3:7:2], looks[4:8:2])

    def test_all_workers_know_the_samples_of_all_once_they_have_waited_for_each_other(self):
        for scheme in ("easgd", "downpour", "esync"):
            for facts in self.said("counts", scheme):
                with self.subTest(scheme, rank=facts["rank"]):
                    self.assertEqual((facts["known"][1], facts["known"][3], facts["saved"]), (80, 160, 160))
                    if scheme != "downpour":  # a worker of downpour estimates the others' samples in between
                        self.assertAlmostEqual(facts["rate"], 0.2 / 2 ** 6)
                    if scheme != "esync":  # esync reports all samples only at the end of each round
                        self.assertGreaterEqual(facts["known"][0], 8 * (4 + 2 * facts["rank"]))

    def test_optimizers_of_workers_by_themselves_become_one(self):
        for scheme in ("esync", "hogwild"):
            with self.subTest(scheme):
                first, second = self.said("goes_on_with_ssgd", scheme)
                self.assertNotEqual(first["own"], second["own"])
                self.assertEqual(first["parameters"], second["parameters"])

    def test_a_step_counts_once_and_one_that_is_skipped_does_not(self):
        for scheme in ("easgd", "downpour"):
            with self.subTest(scheme):
                first, second = self.said("counts_its_own", scheme)
                self.assertEqual(first["known"], [8, 16, 24, 24, 32, 40, 48, 56])
                for facts in (first, second):
                    self.assertEqual((facts["samples"], facts["steps"]), (56, 7))

    def test_a_forked_child_ends_in_any_way_and_its_parent_goes_on(self):
        first, second = self.said("forks")
        self.assertEqual([first["statuses"], second["statuses"]], [[7, 1, 7]] * 2)
        self.assertEqual(first["parameters"], second["parameters"])

    def test_gradients_stay_through_an_alignment(self):
        points, labels, network = scripts.problem()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.2)
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
        [[alone]] = self.facts_of_each(1, [("accumulated",)], SCRIPTS)
        for facts in (alone, *self.said("accumulated")):
            self.assert_near(facts["parameters"], scripts.parameters_of(network))


class Drifting(Launched):
    def assert_refused(self, words, *call):
        done = self.launch(2, *call)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(words, done.stderr.splitlines()[-1])

    def test_settings_that_differ_end_a_job_whose_workers_share_gradients(self):
        rates = "the learning rate is 0.2 on worker 0 and 0.1 on worker 1"
        self.assert_refused(rates, "steps_with_other_settings", "ssgd", "lr", 0.1)
        self.assert_refused("differs between workers 0 and 1", "steps_with_other_settings", "ssgd", "weight_decay", 0.1)

    def test_settings_may_differ_where_each_worker_has_steps_of_its_own(self):
        first, second = self.facts(self.launch(2, "steps_with_other_settings", "local-sgd", "lr", 0.1))
        self.assertEqual(first["parameters"], second["parameters"])

    def test_a_job_ends_with_one_model_or_an_error(self):
        self.assert_refused("that of worker 1 is not that of worker 0", "changes_its_module", 2)
        first, second = self.facts(self.launch(2, "changes_its_module", 1))
        self.assertEqual(first["parameters"], second["parameters"])

    def test_devices_that_round_differently_have_one_model(self):
        first, second = self.facts(self.launch(2, "changes_its_module", 1.0001))
        self.assertNotEqual(first["parameters"], second["parameters"])


class Resumed(Launched):
    def test_a_job_goes_on_whose_workers_have_unequal_rates(self):
        schemes = ("esync", "easgd")
        calls = [[("goes_on_at_unequal_rates", scheme, *file) for scheme in schemes] for file in ((), ("{}.{}",))]
        first, second = (self.facts_of_each(2, each, SCRIPTS) for each in calls)
        for scheme, before, after in zip(schemes, first, second):
            with self.subTest(scheme):
                self.assertNotEqual(before[0]["rate"], before[1]["rate"])
                self.assertNotEqual(before[0]["momentum"], before[1]["momentum"])
                self.assertEqual([facts["samples"] for facts in (*before, *after)], [72, 72, 144, 144])

    def test_states_of_several_moments_are_refused_by_all_workers(self):
        same = ": load states that all workers saved at the same moment"
        every = (": before the DistributedOptimizer every worker loads the state that it saved at the same moment, or none "
                 "does")
        schemes = ("ssgd", "esync")
        states = [[pathlib.Path(self.folder) / f"{scheme}.{rank}" for rank in range(2)] for scheme in schemes]
        os.mkfifo(pathlib.Path(self.folder) / "saved")
        self.saves_until(1, schemes)
        for scheme in schemes:
            self.assertEqual(self.launch(2, "saves_each_epoch", scheme, 2, "killed").returncode, 1)
        self.refused_by_both("the state of worker 0 is of epoch 2, step 0, that of worker 1 of epoch 1, step 0" + same, schemes, 3)
        for _, second in states:
            second.unlink()
        self.refused_by_both("worker 0 has loaded a state of epoch 2, step 0, and worker 1 none" + every, schemes, 4)
        for first, second in states:
            first.rename(second)
        self.refused_by_both("worker 1 has loaded a state of epoch 2, step 0, and worker 0 none" + every, schemes, 5)
        for first, second in states:
            shutil.copy(second, first)
        for first, second in self.saves_until(6, schemes):
            self.assertEqual((first["refused"], first["parameters"]), ("", second["parameters"]))

    def saves_until(self, epochs, schemes):
        return self.facts_of_each(2, [("saves_each_epoch", scheme, epochs) for scheme in schemes], SCRIPTS)

    def refused_by_both(self, message, schemes, epochs):
        for scheme, found in zip(schemes, self.saves_until(epochs, schemes)):
            with self.subTest(scheme, epochs=epochs):
                self.assertEqual([facts["refused"] for facts in found], [message] * 2)

    def test_moments_that_differ(self):
        place = "epoch 1, step 3"
        pairs = [(place, "epoch 2, step 3"), (place + ", job 3f", place + ", job 4a"),
                 (place + ", 2 calls of align", place + ", 3 calls of align"),
                 (place + ", round 7", "epoch 1, step 4, round 8"), (place + ", 2 workers", place + ", 3 workers"),
                 (place + ", round 7", "round 8"), (place, "epoch 2, step 3"), None]
        says = [f"the state of worker 0 is of {pair[0]}, that of worker 1 of {pair[1]}: load states that all workers saved at "
                "the same moment" if pair else "" for pair in pairs]
        first, second = self.facts(self.launch(2, "of_moments"))
        self.assertIn(f"worker 0 has loaded a state of {place}, and worker 1 none: ", first["says"][0])
        self.assertEqual(first["says"][1:], says)
        self.assertEqual(second["says"], first["says"])


class Modules(ScriptTest):
    script = SCRIPTS
    masks = ["ssgd", "local-sgd", "esync", "nbssgd", "diloco", "hogwild", "asgd", "nbssgd commit=racy"]
    sets = ["ssgd", "local-sgd", "diloco", "esync", "esync aggregate=server", "nbssgd", "nbssgd commit=racy",
            "nbssgd commit=racy aggregate=server", "asgd", "asgd servers=2 compress=int8", "dc-asgd", "ssp", "backup", "easgd",
            "downpour server-learning-rate=1e-6", "hogwild"]
    calls = [*(("masked", *way.split()) for way in masks), *(("set_in_the_middle", *way.split()) for way in sets),
             ("owns_memory",), *(("some_parameters", scheme) for scheme in ("asgd", "ssp", "esync"))]

    def test_masks_and_caches_stay(self):
        for way in self.masks:
            for facts in self.said("masked", *way.split()):
                with self.subTest(way, rank=facts["rank"]):
                    self.assertEqual(facts["mask"], "[[0.0, -inf], [0.0, 0.0]]")
                    self.assertEqual(facts["cache"], f"[inf, {facts['rank']}.0]")

    def test_training_goes_on_from_parameters_that_the_script_has_set(self):
        for way in self.sets:
            for facts in self.said("set_in_the_middle", *way.split()):
                with self.subTest(way, rank=facts["rank"]):
                    self.assertEqual(facts["buffers"], [7, 7, 7])
                    for expected, values in zip((7, 7, 9, 9), facts["found"]):
                        for value in values:
                            self.assertAlmostEqual(value, expected, delta=1e-3)

    def test_tensors_have_memory_of_their_own_after_the_training(self):
        for facts in self.said("owns_memory"):
            self.assertEqual(set(facts["shapes"]), {"0.weight", "0.bias", "2.weight", "2.bias", "3.weight", "3.bias",
                                                    "3.running_mean", "3.running_var", "3.num_batches_tracked"})
            for name, (values, stored) in facts["shapes"].items():
                self.assertEqual(values, stored, name)
            self.assertTrue(facts["same"])

    def test_a_server_that_would_train_what_the_optimizer_does_not_have(self):
        for scheme in ("asgd", "ssp"):
            for facts in self.said("some_parameters", scheme):
                self.assertEqual(facts["refused"], f"the server of scheme {scheme} takes the optimizer's steps, but it steps the "
                                 "whole module, and 0.weight is in no group of the optimizer: freeze that by "
                                 "requires_grad_(False)")
        self.assertEqual([facts["refused"] for facts in self.said("some_parameters", "esync")], [""] * 2)

    if TORCH >= (2, 6):
        def test_adam_that_decays_weights_as_adamw(self):
            network = torch.nn.Linear(2, 1)
            adam = torch.optim.Adam(network.parameters(), weight_decay=0.1, decoupled_weight_decay=True)
            rule, reason = rule_of(adam, FlatTensors(trained_tensors(network), torch.device("cpu")))
            self.assertEqual((rule["optimizer"], rule["weight-decay"], reason), ("adamw", 0.1, None))


class RatesUnderNbssgd(ScriptTest):
    def trained(self, way):
        """Runs workers on emulated devices, one eight times as fast as the other: they do not wait for sums, even if they have
        no core to spare."""
        cluster = pathlib.Path(self.folder) / "cluster.toml"
        cluster.write_text('name = "pair"\n' + "".join(f'[[devices]]\nname = "{name}"\nseconds_per_batch = {seconds}\n'
                                   for name, seconds in (("fast", 0.004), ("slow", 0.032))), encoding="utf-8")
        return self.start([SYNCOPATE, "run", "--cluster", cluster, "--run-dir", f"run {way}", "--", *self.python, SCRIPTS,
                           "rates_under_nbssgd", way])

    def test_each_round_has_the_rate_of_its_samples(self):
        for way, rate in (("by samples", 0.5 * 0.9 ** (3 * 18 * 8 // 24)), ("aligned", 0.5 * 0.9 ** 3)):
            with self.subTest(way):
                first, second = self.facts(self.trained(way))
                self.assertEqual(first["parameters"], second["parameters"])
                for facts in (first, second):
                    self.assertAlmostEqual(facts["rate"], rate)

    def test_a_rate_that_follows_the_own_steps_is_refused(self):
        for facts in self.facts(self.trained("by steps")):
            self.assertIn("changes learning rates or groups between two steps, and under nbssgd workers take different numbers of steps",
                          facts["refused"])


class Leaving(Launched):
    def ranks(self, *arguments):
        """Runs two ranks that find each other by the variables of torch.distributed; returns their results."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        ranks = [subprocess.Popen([*self.python, SCRIPTS, *arguments], cwd=self.folder, text=True,
                                  env={**os.environ, **variables, "RANK": str(rank)}, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) for rank in range(2)]
        self.addCleanup(lambda: [rank.kill() for rank in ranks])
        return [(*rank.communicate(timeout=LIMIT), rank.returncode) for rank in ranks]

    def test_a_worker_leaves_while_its_optimizer_is_alive(self):
        for how in ("finish", "block"):
            with self.subTest(how=how):
                said = []
                for out, err, status in self.ranks("leaves", how):
                    self.assertEqual(status, 0, err)
                    said.append(json.loads(out))
                self.assertEqual([facts["left"] for facts in said], [True, True])
                self.assertEqual(said[0]["parameters"], said[1]["parameters"])

    def test_an_error_before_the_training_stays_what_it_is(self):
        [facts] = self.facts(self.launch(1, "unfit"))
        self.assertIn("of torch.float64: a job trains parameters of float32, bfloat16 and float16", facts["caught"])
        self.assertTrue(facts["left"])

    def test_an_error_in_the_block_of_the_job_ends_it_for_all(self):
        for _, err, status in self.ranks("leaves", "error"):
            self.assertEqual(status, 1)
            self.assertIn("ZeroDivisionError: of worker 1", err)


if __name__ == "__main__":
    unittest.main()
