#!/usr/bin/python3
"""Goal:   workers of unequal speed divide a global batch by their speeds, and every sample is trained on once an epoch.
Method: two emulated devices, one four times as fast. Under ssgd the model is that of one process which takes the batches of
        both workers as one.
"""
import json
import pathlib
import statistics
import unittest

import torch

import by_speed_scripts as scripts
from script_cases import SYNCOPATE, ScriptTest

SCRIPTS = str(pathlib.Path(__file__).with_name("by_speed_scripts.py"))
DEVICES = """name = "pair"
[[devices]]
name = "fast"
seconds_per_batch = 0.05
[[devices]]
name = "slow"
seconds_per_batch = 0.2
"""


def in_one_process(steps_of_workers):
    """Returns the parameters after the same steps of one process."""
    points, values, module = scripts.problem()
    optimizer = torch.optim.SGD(module.parameters(), lr=scripts.RATE)
    for number in range(max(map(len, steps_of_workers))):
        batch = [index for steps in steps_of_workers if number < len(steps) for index in steps[number][1]]
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(points[batch]), values[batch]).backward()
        optimizer.step()
    return scripts.parameters_of(module)


class BySpeed(ScriptTest):
    def on_the_pair(self, *call):
        path = pathlib.Path(self.folder) / "pair.toml"
        path.write_text(DEVICES)
        return self.facts(self.start([SYNCOPATE, "run", "--cluster", path, "--run-dir", f"run-{'-'.join(call)}", "--",
                                      *self.python, SCRIPTS, *call]))

    def train(self, scheme, kind):
        found = self.on_the_pair("trains", scheme, kind)
        for epoch in range(scripts.EPOCHS):
            taken = sorted(index for facts in found for number, indices in facts["steps"] if number == epoch for index in indices)
            self.assertEqual(taken, list(range(scripts.SAMPLES)), f"epoch {epoch} of {scheme}")
        self.assertEqual(*(facts["parameters"] for facts in found))
        return found

    def expect_parts(self, found):
        """Expects most steps of the last epoch to follow the speeds, 32 and 8 of 40 samples; on a busy machine less exactly."""
        fast, slow = (statistics.median_low(len(indices) for epoch, indices in facts["steps"] if epoch == scripts.EPOCHS - 1)
                      for facts in found)
        self.assertGreater(fast, 2 * slow)

    def test_steps_of_ssgd_are_those_of_one_process(self):
        for kind in ("usual", "ahead", "own"):
            found = self.train("ssgd", kind)
            self.assertTrue(found[0]["together"])
            self.expect_parts(found)
            steps = 38  # the last one of an epoch has 20 samples
            self.assertEqual([(facts["length"], len(facts["steps"])) for facts in found], [(steps, steps * scripts.EPOCHS)] * 2)
            for number, (first, second) in enumerate(zip(*(facts["steps"] for facts in found))):
                whole = number % steps < steps - 1
                self.assertEqual((len(first[1]) + len(second[1]), first[0]), (40 if whole else 20, second[0]), number)
                self.assertGreaterEqual(min(len(first[1]), len(second[1])), 2)
            expected = torch.tensor(in_one_process([facts["steps"] for facts in found]))
            torch.testing.assert_close(torch.tensor(found[0]["parameters"]), expected, rtol=1e-5, atol=1e-5)

    def test_rounds_of_esync(self):
        self.expect_parts(self.train("esync", "usual"))

    def test_what_scripts_do_after_an_epoch(self):
        found = self.on_the_pair("with_an_epoch_s_idioms")
        self.assertEqual(*(facts["parameters"] for facts in found))
        self.assertEqual(found[0]["tested"], 300)
        self.assertEqual([sum(parts) for parts in zip(*(facts["sizes"] for facts in found))], ([40] * 37 + [20]) * scripts.EPOCHS)

    def test_a_job_goes_on_in_the_middle_of_an_epoch(self):
        before, after = ([index for facts in self.on_the_pair("resumed", saves) for index in facts["taken"]] for saves in ("yes", "no"))
        self.assertEqual(len(before), 7 * 40)
        self.assertEqual(sorted(before + after), list(range(scripts.SAMPLES)))

    def test_other_schemes_divide_once_by_the_cluster_file(self):
        found = self.train("local-sgd", "usual")
        sizes = [len(facts["steps"][0][1]) for facts in found]
        self.assertEqual(sizes, [32, 8])

    def test_what_is_not_possible(self):
        reasons = {"none": "give one of them, found none", "both": "give one of them, found both",
                   "fixed": "leave out --data-order fixed", "leased": "leave out --data-order leased",
                   "size": "leave out the optimizer's option batch_size",
                   "small": "at least 2 samples for each of 2 workers, 4 in all, and at most the 1500 samples .* found 3",
                   "large": "at most the 1500 samples of the dataset; found 1501", "second": "has one already"}
        calls = [["refused", kind] for kind in reasons]
        for (kind, reason), call in zip(reasons.items(), calls):
            found = self.facts(self.start([SYNCOPATE, "run", "-n", "2", "--run-dir", f"run-{kind}", "--", *self.python, SCRIPTS,
                                           *call]))
            for facts in found:
                self.assertRegex(facts["reason"] or "", reason, json.dumps(facts))

    def test_a_loader_of_the_script_says_the_samples_of_each_step(self):
        done = self.start([SYNCOPATE, "run", "-n", "2", "--run-dir", "run", "--", *self.python, SCRIPTS, "refused", "weight"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"pass the samples of each batch, step\(weight=len\(x\)\)")

    def test_the_command_line_names_the_argument(self):
        for option in (("--balance",), ("--global-batch", "40")):
            done = self.start([SYNCOPATE, "run", "-n", "2", *option, "--", "true"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("a program passes global_batch to partition_dataset", done.stderr)


if __name__ == "__main__":
    unittest.main()
