"""Base classes of the tests of training scripts: they start scripts, read what each worker prints, and compute references."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
from torch.nn import functional

import scripts
from forked_scripts import ForkServer
import syncopate_torch as syncopate

SYNCOPATE = os.environ["SYNCOPATE"]
SCRIPTS = str(pathlib.Path(__file__).with_name("scripts.py"))
LIMIT = 200  # seconds for one command
# Tests of features of a later torch are defined only with such a torch and not skipped: in CI a skip is a failure.
TORCH = tuple(int(number) for number in torch.__version__.split(".")[:2])
os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # PyPI's torch warns if NumPy is missing


def needs(package):
    """Skips a test if a package from PyPI is not installed; in CI the test fails instead."""
    return unittest.skipUnless(importlib.util.find_spec(package) or "CI" in os.environ, f"package {package} is not installed")


def reference():
    """Returns the parameters after the same steps over the whole dataset in one process."""
    points, labels, network = scripts.problem()
    optimizer = scripts.sgd(network)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    return scripts.parameters_of(network)


def clipped_reference():
    """Returns the parameters after the same steps in one process, with clipped gradients and a falling learning rate."""
    points, labels, network = scripts.problem()
    optimizer = scripts.sgd(network)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step()
        schedule.step()
    return scripts.parameters_of(network)


class ScriptTest(unittest.TestCase):
    calls, script, workers, found = (), SCRIPTS, 2, None  # used by `said`
    server = ForkServer()

    @property
    def python(self):
        """The words to use before a script instead of `python3 -B`."""
        return self.server.python

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="syncopate-script-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, command):
        try:
            return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT, check=False,
                                  cwd=self.folder)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}; it wrote:\n{(late.stderr or b'').decode(errors='replace')}") from None

    def launch(self, workers, name, *arguments, options=()):
        options = options if "--run-dir" in options else (*options, "--run-dir", "run")
        return self.start([SYNCOPATE, "run", "-n", workers, *options, "--", *self.python, SCRIPTS, name, *arguments])

    def facts(self, done):
        """Returns what each worker printed by `say`, by rank."""
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [json.loads(line.split("] ", 1)[1]) for line in done.stderr.splitlines() if re.match(r"\[worker \d+\] {", line)]
        return sorted(said, key=lambda facts: facts["rank"])

    def facts_of_each(self, workers, calls, script=SCRIPTS, options=()):
        """Makes several calls of a script's functions, each [name, argument...]. Returns what each worker printed, by rank."""
        calls = [[str(word) for word in call] for call in calls]
        run = f"each-{len(os.listdir(self.folder))}"
        said = self.facts(self.start([SYNCOPATE, "run", *(options or ("-n", workers)), "--run-dir", run, "--", *self.python,
                                      script, "each", json.dumps(calls)]))
        found = [[facts for facts in said if facts["call"] == index] for index in range(len(calls))]
        for call, each in zip(calls, found):
            self.assertEqual([facts["rank"] for facts in each], list(range(workers)), call)
        return found

    def options(self):
        """The launcher's options, which replace the number of workers."""
        return ()

    def said(self, *call):
        """Returns what each worker printed in one of the class's `calls`. A single start of `script` makes all of them."""
        if self.found is None:
            type(self).found = {}  # so that a start that fails is not repeated
            said = self.facts_of_each(self.workers, self.calls, self.script, self.options())
            type(self).found = dict(zip(self.calls, said))
        self.assertIn(call, self.found, "it is none of the class's calls, or their start has failed in another test")
        return self.found[call]

    def assert_near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for value, right in zip(found, expected):
            self.assertAlmostEqual(value, right, delta=1e-5)


class AloneTest(unittest.TestCase):
    """Base class of tests of jobs that consist of this process only."""

    def setUp(self):
        self.points, self.labels, self.network = scripts.problem()
        self.sgd = scripts.sgd(self.network)
        self.job = syncopate.init()

    def backward(self):
        functional.cross_entropy(self.network(self.points), self.labels).backward()

    def refused(self, pattern):
        return self.assertRaisesRegex(syncopate.ConfigError, pattern)
