#!/usr/bin/python3
"""Goal:   an Accelerate script trains in a block `rounds` as one process with the whole batch would.
Method: accelerate_scripts.py under `syncopate run`, compared with torch in this process. With torch 1,
        which Debian has, the test only checks the message that says what is missing.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

import scripts
from forked_scripts import ForkServer
from script_cases import SYNCOPATE, TORCH, ScriptTest, clipped_reference, needs, reference

import torch

SCRIPTS = str(pathlib.Path(__file__).with_name("accelerate_scripts.py"))

if TORCH >= (2, 0):

    @needs("accelerate")
    class Rounds(ScriptTest):
        calls = [("whole_batch",), ("whole_batch", "ssgd", "script"), ("clipped",), ("learns", "esync"), ("saved",)]
        script, server = SCRIPTS, ForkServer("torch", "accelerate")

        def run_script(self, name, *arguments, workers=2):
            return self.start([SYNCOPATE, "run", "-n", workers, "--run-dir", "run", "--", *self.python, SCRIPTS,
                               name, *arguments])

        def test_training_is_that_of_one_process(self):
            said = self.said("whole_batch")
            self.assertEqual([facts["size"] for facts in said], [2, 2])
            for facts in said:
                self.assert_near(facts["parameters"], reference())

        def test_a_distributed_optimizer_of_the_script(self):
            for facts in self.said("whole_batch", "ssgd", "script"):
                self.assert_near(facts["parameters"], reference())

        def test_accumulated_and_clipped_gradients_under_a_schedule(self):
            for facts in self.said("clipped"):
                self.assert_near(facts["parameters"], clipped_reference())
                self.assertAlmostEqual(facts["rate"], 0.025)

        def test_workers_with_steps_of_their_own(self):
            said = self.said("learns", "esync")
            self.assertEqual(said[0]["parameters"], said[1]["parameters"])
            self.assertEqual(said[0]["accuracies"], said[1]["accuracies"])
            self.assertGreater(said[0]["accuracies"][-1], 0.7)

        def test_accelerates_savers_write_all_weights(self):
            for facts in self.said("saved"):
                self.assertEqual(facts["lacks"], [["again.weight"]] * 2)  # saved as first.0.weight, the same tensor
                self.assertTrue(facts["restored"])

        def test_an_epoch_that_a_script_leaves_early(self):
            [facts] = self.facts(self.run_script("leaves_an_epoch", workers=1))
            self.assertEqual(len(facts["epochs"][0]), 8)
            for epoch in facts["epochs"][1:]:
                self.assertEqual(sorted(epoch), list(range(50)))

        def test_batches_that_a_script_skips(self):
            for processes in (0, 2):
                with self.subTest(processes=processes):
                    done = self.start([*self.python, SCRIPTS, "skips", processes])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    facts = json.loads(done.stdout)
                    first, rest, last = facts["epochs"]
                    self.assertEqual(sorted(first), list(range(50)))
                    self.assertEqual((len(set(rest)), facts["length"]), (34, 5))
                    self.assertEqual(sorted(last), list(range(50)))
                    self.assertEqual(facts["places"], [1, 2, 3, [3, 1]])
                    sizes = [8, 8, 8, 8, 8, 8, 2]
                    self.assertEqual(facts["weights"], [*sizes, *[None] * 5, *sizes])  # the job does not see the batches of Accelerate's loader
                    self.assertEqual(facts["prepared"], 34)

        def test_a_block_that_is_not_enabled(self):
            [facts] = self.facts(self.run_script("disabled", workers=1))
            self.assert_near(facts["parameters"], reference())

        def test_one_word(self):
            for facts in self.facts(self.run_script("one_word")):
                self.assertEqual((facts["size"], facts["model"]), (2, "DistributedDataParallel"))
                self.assertEqual(facts["gathered"], [scripts.SAMPLES // 2] * 2)
                self.assert_near(facts["parameters"], reference())

        def test_an_accelerator_of_several_processes(self):
            done = self.run_script("several_processes")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"ConfigError: rounds needs an Accelerator of one process, found 2 ")

else:

    @unittest.skipIf(importlib.util.find_spec("accelerate"), "accelerate is installed beside a torch that these tests do not know")
    class Missing(unittest.TestCase):
        def test_a_line_says_what_to_install(self):
            done = subprocess.run([sys.executable, "-c", "import syncopate_torch.accelerate"], capture_output=True,
                                  text=True, check=False)
            self.assertIn("syncopate_torch.accelerate needs Accelerate; pip install accelerate", done.stderr)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
