#!/usr/bin/python3
"""Goal:   the same training has the same result in a C++ program, in a Python script, and by `syncopate train`, under every
        scheme.
Method: examples/dist_mnist, the same program in Python, and `syncopate train` with its network in a file train on the first
        images of Fashion-MNIST. The test compares each parameter of the script with that of `train`, and the sum that the
        C++ program prints. A job has one worker if the order of updates or the steps of a round depend on time.
"""
import array
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

import jobs
import mnist_files

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from forked_scripts import ForkServer  # noqa: E402  (beside the tests in Python)

DIST_MNIST = os.environ["SYNCOPATE_DIST_MNIST"]
PYTHON = os.environ["SYNCOPATE_PYTHON"]
LOOP = pathlib.Path(__file__).with_name("dist_mnist_loop.py")
MODULES = pathlib.Path(__file__).parents[2] / "python"
EPOCHS, IMAGES = 2, 192  # only six steps: each step makes differences by rounding several times larger
STEPS = EPOCHS * IMAGES // 64
OPTIMIZERS = ("optimizer.", "outer.", "server.", "worker.")  # prefixes of optimizer state in checkpoints
REPEATABLE = {  # for each scheme, jobs whose result is reproducible: workers and options
    "ssgd": [(2, ()), (2, ("--aggregate", "server", "--servers", 1))],
    "local-sgd": [(2, ("--local-steps", 2))],
    "diloco": [(2, ("--local-steps", 2))],
    "esync": [(1, ("--pacing", "paper", "--overlap", "off"))],
    "nbssgd": [(2, ("--mini-batches", 1, "--commit", "barrier"))],
    "backup": [(1, ("--backup-workers", 0))],
    "asgd": [(1, ())],
    "dc-asgd": [(1, ())],
    "ssp": [(1, ())],
    "downpour": [(1, ())],
    "easgd": [(1, ("--local-steps", 1, "--moving-rate", 0.5))],  # replica and centre meet halfway
    "hogwild": [(1, ())],
}


class SameTraining(jobs.JobTest):
    server = ForkServer(interpreter=PYTHON)

    def program(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=jobs.LIMIT,
                              check=False, cwd=self.folder, env={**os.environ, "PYTHONPATH": str(MODULES)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def in_cpp(self, *options):
        """Runs the C++ program; returns the sum of the absolute values of all parameters."""
        output = self.program(jobs.SYNCOPATE, "run", *options, "--run-dir", self.new_folder("cpp"), "--", DIST_MNIST,
                              mnist_files.folder(), EPOCHS, IMAGES)
        return float(re.search(r"worker 0 of \d: sum of weights (\S+)", output)[1])

    def in_python(self, *options):
        """Runs the Python script; returns the parameters by name."""
        self.program(jobs.SYNCOPATE, "run", *options, "--run-dir", self.new_folder("python"), "--", *self.server.python, LOOP,
                     "train", mnist_files.folder(), EPOCHS, IMAGES, "parameters.json")
        return json.loads((self.folder / "parameters.json").read_text())

    def by_train(self, workers, *options):
        """Runs `syncopate train`; returns the parameters by name."""
        run_dir = self.new_folder("train")
        done = self.train("--network", self.folder / "net.pt", "--data", "fashion-mnist", "--data-dir",
                          self.folder / "images", "--workers", workers, "--batch-size", 64 // workers,
                          "--learning-rate", 0.05, "--optimizer", "momentum", "--checkpoint-every", "1epoch",
                          "--max-steps", STEPS, "--eval-every", "never", *options, run_dir=run_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, tensors = jobs.read_safetensors(self.checkpoints(run_dir)[-1])
        return {name: array.array("f", content).tolist() for name, (_, content) in tensors.items()
                if not name.startswith(OPTIMIZERS)}

    def new_folder(self, of):
        """Returns the name of a run folder that does not exist yet."""
        return f"{of}-{len(list(self.folder.iterdir()))}"

    def first_images(self):
        """Makes a folder with the first images of the training set, and the whole test set."""
        folder = self.folder / "images"
        folder.mkdir()
        for name, header, size in (("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)):
            content = pathlib.Path(mnist_files.folder(), f"train-{name}-ubyte").read_bytes()
            first = content[:4] + struct.pack(">I", IMAGES) + content[8:header + IMAGES * size]
            (folder / f"train-{name}-ubyte").write_bytes(first)
            (folder / f"t10k-{name}-ubyte").symlink_to(pathlib.Path(mnist_files.folder(), f"t10k-{name}-ubyte"))

    def assert_same(self, script, train, cpp_sum):
        self.assertEqual(set(script), set(train))
        for name, values in script.items():
            self.assertEqual(len(values), len(train[name]), name)
            furthest = max(abs(own - other) for own, other in zip(values, train[name]))
            self.assertLess(furthest, 1e-5, name)
        own_sum = sum(abs(value) for values in script.values() for value in values)
        self.assertAlmostEqual(own_sum, cpp_sum, delta=1e-5 * own_sum)

    def test_every_scheme(self):
        self.program(*self.server.python, LOOP, "script", "net.pt")
        self.first_images()
        listed = json.loads(subprocess.run([jobs.SYNCOPATE, "schemes", "--json"], capture_output=True, check=True).stdout)["schemes"]
        self.assertEqual(set(REPEATABLE), {scheme["name"] for scheme in listed} - {"local"})
        for scheme, cases in REPEATABLE.items():
            for workers, options in cases:
                with self.subTest(scheme=scheme, options=options):
                    of_program = ("-n", workers, "--scheme", scheme, *options)
                    train = self.by_train(workers, "--scheme", scheme, *options)
                    self.assert_same(self.in_python(*of_program), train, self.in_cpp(*of_program))


if __name__ == "__main__":
    unittest.main()
