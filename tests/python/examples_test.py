#!/usr/bin/python3
"""Goal:   the examples in Python run as their first lines say.
Method: each on the first samples of Fashion-MNIST, under `syncopate run`.
"""
import importlib.util
import pathlib
import re
import sys
import unittest

from script_test import SYNCOPATE, ScriptTest

SOURCE = pathlib.Path(__file__).parents[2]
EXAMPLES = SOURCE / "examples/python"
CLUSTER = SOURCE / "clusters/mixed.toml"


class Examples(ScriptTest):
    def output(self, name, *arguments, run=("-n", 2)):
        done = self.start([SYNCOPATE, "run", *run, "--run-dir", "run", "--", sys.executable, "-B", EXAMPLES / f"{name}.py",
                           *arguments])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def accuracy(self, output):
        return float(re.search(r"test accuracy ([0-9.]+)", output)[1])

    def test_ddp_one_word(self):
        ours = self.output("ddp_one_word", "--samples", 8000)
        gloo = self.output("ddp_one_word", "--samples", 8000, "--backend", "gloo", run=("-n", 2))
        self.assertRegex(ours, r"syncopate: 2 ranks, [0-9]+ images/s")
        self.assertAlmostEqual(self.accuracy(ours), self.accuracy(gloo), delta=0.02)
        self.assertGreater(self.accuracy(ours), 0.6)

    if importlib.util.find_spec("lightning"):  # of PyPI, beside that torch

        def test_lightning_ddp(self):
            accuracies = []
            for backend in ("syncopate", "gloo"):
                done = self.start([sys.executable, "-B", EXAMPLES / "lightning_ddp.py", "--samples", 8000, "--backend", backend])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{backend}: 2 ranks", done.stdout)
                accuracies.append(self.accuracy(done.stdout))
            self.assertAlmostEqual(*accuracies, delta=0.02)
            self.assertGreater(min(accuracies), 0.6)

    def test_horovod_mnist(self):
        output = self.output("horovod_mnist", "--samples", 8000)
        self.assertRegex(output, "epoch 1: loss of the last batches")
        self.assertGreater(self.accuracy(output), 0.5)

    def test_esync_unequal(self):
        output = self.output("esync_unequal", "--samples", 8000, run=("--cluster", CLUSTER, "--scheme", "esync"))
        steps = [int(each) for each in re.search(r"steps of each: \[([0-9, ]+)\]", output)[1].split(",")]
        self.assertGreater(max(steps), min(steps), output)
        self.assertGreater(self.accuracy(output), 0.5)

    def test_token_weights(self):
        output = self.output("token_weights", "--steps", 30)
        losses = [float(each) for each in re.findall(r"loss per token ([0-9.]+)", output)]
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    unittest.main()
