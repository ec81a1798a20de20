#!/usr/bin/python3
"""Goal:   a PyTorch Lightning script trains with SyncopateStrategy as one process with the whole batch would, and also ends
        with workers of unequal speed; the strategy refuses in one line what a job does not support.
Method: lightning_scripts.py under `syncopate run`, compared with torch in this process. With torch 1, which Debian has, the
        test only checks the message that says what is missing.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

from forked_scripts import ForkServer
from script_cases import SYNCOPATE, TORCH, ScriptTest, clipped_reference, needs, reference

import scripts
import torch

SCRIPTS = str(pathlib.Path(__file__).with_name("lightning_scripts.py"))
UNEQUAL = """name = "unequal"
[[devices]]
name = "fast"
seconds_per_batch = 0.01
[[devices]]
name = "slow"
seconds_per_batch = 0.04
"""


class LightningTest(ScriptTest):
    script, server = SCRIPTS, ForkServer("torch", "lightning")

    def launch(self, run, name, *arguments):
        return self.start([SYNCOPATE, "run", *run, "--run-dir", "-".join(map(str, (name, *arguments))), "--", *self.python,
                           SCRIPTS, name, *arguments])

    def launched(self, name, *arguments, run=("-n", 2)):
        return self.facts(self.launch(run, name, *arguments))


if TORCH >= (2, 0):

    @needs("lightning")
    class Training(LightningTest):
        calls = [("whole_batch",), ("whole_batch", "ssgd", "script"), ("clipped",), ("clipped_by_itself",), ("accumulated",),
                 ("parts_of_epochs",), ("overfits",), ("logs_in_each_step",),
                 ("precise", "bf16-mixed"), ("precise", "bf16-true")]

        def test_training_is_that_of_one_process(self):
            said = self.said("whole_batch")
            self.assertEqual([facts["size"] for facts in said], [2, 2])
            for facts in said:
                self.assert_near(facts["parameters"], reference())
                self.assertTrue(facts["equal"])

        def test_a_distributed_optimizer_of_the_script(self):
            for facts in self.said("whole_batch", "ssgd", "script"):
                self.assert_near(facts["parameters"], reference())

        def test_a_script_by_itself(self):
            self.assertIn("parameters", self.start([*self.python, SCRIPTS, "whole_batch"]).stdout)

        def test_clipping_is_that_of_the_mean_gradient_under_a_schedule(self):
            for facts in self.said("clipped"):
                self.assert_near(facts["parameters"], clipped_reference())
                self.assertEqual(facts["rates"], [0.2, 0.1, 0.1, 0.05, 0.05, 0.025])

        def test_clipping_of_a_module_that_steps_itself_is_that_of_the_mean_gradient(self):
            for facts in self.said("clipped_by_itself"):
                self.assert_near(facts["parameters"], clipped_reference())

        def test_accumulated_batches_weigh_by_their_samples(self):
            for facts in self.said("accumulated"):
                self.assert_near(facts["parameters"], reference())

        def test_a_validation_between_the_passes_of_a_step_changes_nothing(self):
            for workers in (1, 2):
                with self.subTest(workers=workers):
                    calls = [("tested_between_passes", interval) for interval in (0, 3)]
                    found = self.facts_of_each(workers, calls, SCRIPTS)
                    for plain, tested in zip(*found):
                        self.assertEqual([plain["validations"], tested["validations"]], [0, 2 * 16 // workers // 3])
                        self.assertEqual(plain["parameters"], tested["parameters"])

        def test_a_fit_that_a_checkpoint_begins_has_the_order_of_its_epochs(self):
            done = self.start([*self.python, SCRIPTS, "goes_on"])
            self.assertEqual(done.returncode, 0, done.stderr)
            for kind, (whole, first, second) in json.loads(done.stdout).items():
                with self.subTest(kind):
                    for order in whole:
                        self.assertEqual(sorted(order), list(range(scripts.SAMPLES)))
                    self.assertEqual(first + second, whole)
                    self.assertNotEqual(whole[0], whole[2])

        def test_a_fit_from_the_middle_of_an_epoch_trains_the_rest_of_it(self):
            whole, rest = self.launched("rest_of_an_epoch"), self.launched("rest_of_an_epoch", 6)
            self.assertEqual(sorted(whole[0]["order"][:32] + whole[1]["order"][:32]), list(range(scripts.SAMPLES)))
            for one, other in zip(whole, rest):
                self.assertEqual((one["steps"], other["steps"]), (12, 12))
                self.assertEqual(one["order"][6 * 8:], other["order"])
                self.assertEqual(one["parameters"], other["parameters"])

        def test_the_rest_of_an_epoch_needs_as_many_workers(self):
            self.launched("rest_of_an_epoch")
            done = self.launch(("-n", 3), "rest_of_an_epoch", 3)
            self.assertEqual(done.returncode, 1)
            self.assertIn("ConfigError: the checkpoint was saved in the middle of an epoch by 2 workers, found 3: ", done.stderr)

        def test_the_rest_of_an_epoch_of_several_kinds_of_loaders(self):
            done = self.start([*self.python, SCRIPTS, "rests_of_epochs"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("your dataloader is not resumable", done.stderr)
            for kind, (whole, rest) in json.loads(done.stdout).items():
                with self.subTest(kind):
                    steps = 3 * (7 if kind == "drop_last" else 8)
                    self.assertEqual((len(whole[0]), whole[2], rest[2]), (steps * 8, steps, steps))
                    self.assertEqual(whole[0][12 * 8:], rest[0])
                    self.assertEqual(whole[1], rest[1])

        def test_parts_of_an_epoch(self):
            first, second = self.said("parts_of_epochs")
            self.assertEqual((len(first["order"]), first["validations"]), (32, 4))
            self.assertEqual(first["parameters"], second["parameters"])

        def test_overfitting_takes_the_same_batches_in_each_epoch(self):
            for rank, facts in enumerate(self.said("overfits")):
                self.assertEqual(facts["order"], list(range(rank, 16, 2)) * 3)

        def test_the_folder_of_the_logger_in_each_step(self):
            for facts in self.said("logs_in_each_step"):
                self.assertEqual(facts["folders"], ["logs of 0/lightning_logs/version_0"])

        def test_lower_precision(self):
            for precision, of_parameters in (("bf16-mixed", "float32"), ("bf16-true", "bfloat16")):
                with self.subTest(precision):
                    said = self.said("precise", precision)
                    self.assertEqual(said[0]["parameters"], said[1]["parameters"])
                    for found, right in zip(said[0]["parameters"], reference()):
                        self.assertAlmostEqual(found, right, delta=0.05)
                    self.assertNotEqual(said[0]["parameters"], reference())
                    self.assertEqual(said[0]["types"], [f"torch.{of_parameters}"])

    @needs("lightning")
    class Epochs(LightningTest):
        averages = ("ssgd", "esync", "asgd")
        validations = (("local-sgd", "manual"), ("local-sgd", "automatic"), ("esync", "manual"))
        schemes = ("ssgd", "nbssgd", "ssp", "hogwild")
        calls = [*(("epochs", scheme) for scheme in ("esync", *schemes)), *(("averaged", scheme) for scheme in averages),
                 *(("validated", *way) for way in validations), ("tests_the_best",), ("one_batch",)]

        def check(self, said):
            points = scripts.problem()[0]
            for facts in said:
                self.assertLess(facts["loss"], facts["before"])
                self.assertEqual(facts["validations"], 3)
                self.assertAlmostEqual(facts["score"], points[:61, 0].mean().item(), delta=1e-5)
                self.assertTrue(facts["equal"])
                self.assertTrue(facts["saved"])
            self.assertEqual(sum(facts["validated"] for facts in said), 61)

        def options(self):
            cluster = pathlib.Path(self.folder) / "unequal.toml"
            cluster.write_text(UNEQUAL, encoding="utf-8")
            return "--cluster", cluster

        def test_workers_of_unequal_speed(self):
            said = self.said("epochs", "esync")
            self.check(said)
            for facts in said:
                self.assertEqual(facts["samples"], 3 * 63)

        def test_averages_of_weights_are_those_of_worker_0(self):
            for scheme in self.averages:
                with self.subTest(scheme):
                    first, second = self.said("averaged", scheme)
                    self.assertEqual(first["of_the_job"], second["of_the_job"])
                    self.assertNotEqual(first["of_the_job"], first["averages"])
                    for facts in (first, second):
                        self.assertEqual(facts["parameters"], first["averages"])

        def test_replicas_are_those_of_the_training_after_a_validation_of_averages(self):
            for scheme, way in self.validations:
                with self.subTest(scheme=scheme, way=way):
                    for facts in self.said("validated", scheme, way):
                        self.assertEqual(facts["ends"], [True] * (3 if way == "manual" else 6))
                        self.assertTrue(facts["equal"])
                        self.assertEqual(facts["own"], facts["rank"])
                        if scheme == "local-sgd":  # whose workers take equally many steps
                            self.assertAlmostEqual(facts["mean"], 0.5)

        def test_one_batch_of_each_worker_as_a_trial(self):
            for facts in self.said("one_batch"):
                self.assertEqual(facts["steps"], 1)
                self.assertTrue(facts["equal"])

        def test_the_best_checkpoint_is_that_of_worker_0(self):
            first, second = self.said("tests_the_best")
            self.assertTrue(first["is_there"] and second["is_there"])
            self.assertEqual((first["best"], first["all"]), (second["best"], second["all"]))

        def test_every_kind_of_scheme(self):
            for scheme in self.schemes:
                with self.subTest(scheme):
                    self.check(self.said("epochs", scheme))

    @needs("lightning")
    class Failing(LightningTest):
        def test_a_script_that_raises_ends_the_job_with_its_traceback(self):
            done = self.launch(("-n", 2), "raises", 1)
            self.assertEqual(done.returncode, 1)
            traces = [line for line in done.stderr.splitlines() if "Traceback" in line]
            self.assertTrue(traces[0].startswith("[worker 1]"), done.stderr)
            self.assertIn("[worker 1] ValueError: the loss of this script is strange", done.stderr)

        def test_a_callback_that_saves_after_an_error_hides_it_from_nobody(self):
            done = self.launch(("-n", 2), "fails_while_a_callback_saves", 1)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.splitlines()[-1], "worker 1 .* the script left its loop by ValueError: the loss of this "
                                                           "script is strange")
            self.assertNotIn("is elsewhere", done.stderr)

        def test_a_script_that_is_interrupted_ends_the_job(self):
            done = self.launch(("-n", 2), "interrupted", 1)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("the script left its loop by KeyboardInterrupt", done.stderr)

        def test_what_is_not_possible(self):
            [facts] = self.launched("refused", run=("-n", 1))
            refused = facts["refused"]
            for name, pattern in (("devices", "devices=1 and start `syncopate run -n 3`"),
                                  ("LBFGS", "choose another optimizer"),
                                  ("two optimizers", "one optimizer of configure_optimizers, found 2"),
                                  ("no optimizer", "one optimizer of configure_optimizers, found 0"),
                                  ("precision", "32-true, bf16-mixed, bf16-true"),
                                  ("sampler", "found a loader with sampler SubsetRandomSampler"),
                                  ("weight", "a whole number of samples"),
                                  ("several loaders", "one training loader, found several; join datasets by"),
                                  ("finder", "LearningRateFinder trains before the training, and a job trains once"),
                                  ("averaging", "StochasticWeightAveraging replaces the statistics of BatchNorm"),
                                  ("batch norm", "sync_batchnorm=True"),
                                  ("overfit", "overfit_batches takes the same samples in each epoch")):
                self.assertRegex(refused.get(name, ""), f"^ConfigError: .*{pattern}")

        def test_what_is_not_possible_where_an_epoch_has_no_length(self):
            for facts in self.launched("refused_without_a_length"):
                for name, found in (("limit", "a limit_train_batches that is a fraction"),
                                    ("interval", "a val_check_interval that is a fraction"),
                                    ("estimated", "trainer.estimated_stepping_batches")):
                    self.assertIn(f"an epoch of leased samples has no length, so {found} is not possible; choose ",
                                  facts["refused"].get(name, ""))

        def test_a_layer_that_a_callback_unfreezes(self):
            for scheme in ("ssgd", "esync"):
                first, second = self.launched("unfreezes", scheme)
                with self.subTest(scheme):
                    self.assertEqual(first["parameters"], second["parameters"])
                    self.assertEqual(first["has_moved"], [False, True])

        def test_what_is_not_possible_where_workers_take_unequal_steps(self):
            for name, pattern in (("by_steps", "so max_steps would come at different times; set max_epochs instead"),
                                  ("gathers", "all_gather within a step")):
                with self.subTest(name):
                    done = self.launch(("-n", 2), name)
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, f"ConfigError: .*{pattern}")

else:

    @unittest.skipIf(importlib.util.find_spec("lightning"), "lightning is installed beside a torch that these tests do not know")
    class Missing(unittest.TestCase):
        def test_a_line_says_what_to_install(self):
            done = subprocess.run([sys.executable, "-c", "import syncopate_torch.lightning"], capture_output=True,
                                  text=True, check=False)
            self.assertIn("syncopate_torch.lightning needs PyTorch Lightning; pip install lightning", done.stderr)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
