#!/usr/bin/python3
"""Goal:   the same training has the same result in a program in C++, in a script in Python, and by `syncopate train`.
Method: examples/dist_mnist, its twin in Python, and its network in a file, on the first images of Fashion-MNIST.
        Parameters of the twin and of `train` are compared one by one; of the program in C++ the sum that it prints.
        Under esync a job of one worker repeats: with more, the number of steps of a round depends on time.
"""
import array
import json
import os
import pathlib
import re
import struct
import subprocess
import unittest

import jobs
import mnist_files

DIST_MNIST = os.environ["SYNCOPATE_DIST_MNIST"]
PYTHON = os.environ["SYNCOPATE_PYTHON"]
LOOP = pathlib.Path(__file__).with_name("dist_mnist_loop.py")
MODULES = pathlib.Path(__file__).parents[2] / "python"
EPOCHS, IMAGES = 2, 192  # six steps: rounding differs, and each step makes its differences several times larger
PAPER = ("--pacing", "paper", "--overlap", "off")


class SameTraining(jobs.JobTest):
    def program(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=jobs.LIMIT,
                              check=False, cwd=self.folder, env={**os.environ, "PYTHONPATH": str(MODULES)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def in_cpp(self, *options):
        """The sum of the absolute values of all parameters."""
        output = self.program(jobs.SYNCOPATE, "run", *options, "--run-dir", "cpp", "--", DIST_MNIST,
                              mnist_files.folder(), EPOCHS, IMAGES)
        return float(re.search(r"worker 0 of \d: sum of weights (\S+)", output)[1])

    def in_python(self, *options):
        """The parameters by their names."""
        self.program(jobs.SYNCOPATE, "run", *options, "--run-dir", "python", "--", PYTHON, "-B", LOOP, "train",
                     mnist_files.folder(), EPOCHS, IMAGES, "parameters.json")
        return json.loads((self.folder / "parameters.json").read_text())

    def by_train(self, workers, *options):
        self.program(PYTHON, "-B", LOOP, "script", "net.pt")
        done = self.train("--network", self.folder / "net.pt", "--data", "fashion-mnist",
                          "--data-dir", self.first_images(), "--workers", workers, "--batch-size", 64 // workers,
                          "--learning-rate", 0.05, "--optimizer", "momentum", "--checkpoint-every", "1epoch", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        _, tensors = jobs.read_safetensors(self.checkpoints()[-1])
        return {name: array.array("f", content).tolist() for name, (_, content) in tensors.items()
                if "optimizer." not in name}

    def first_images(self):
        """A folder with the first images of the training set, and the whole test set."""
        folder = self.folder / "images"
        folder.mkdir()
        for name, header, size in (("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)):
            content = pathlib.Path(mnist_files.folder(), f"train-{name}-ubyte").read_bytes()
            first = content[:4] + struct.pack(">I", IMAGES) + content[8:header + IMAGES * size]
            (folder / f"train-{name}-ubyte").write_bytes(first)
            (folder / f"t10k-{name}-ubyte").symlink_to(pathlib.Path(mnist_files.folder(), f"t10k-{name}-ubyte"))
        return folder

    def assert_same(self, script, train, cpp_sum):
        self.assertEqual(set(script), set(train))
        for name, values in script.items():
            self.assertEqual(len(values), len(train[name]), name)
            furthest = max(abs(own - other) for own, other in zip(values, train[name]))
            self.assertLess(furthest, 1e-5, name)
        own_sum = sum(abs(value) for values in script.values() for value in values)
        self.assertAlmostEqual(own_sum, cpp_sum, delta=1e-5 * own_sum)

    def test_ssgd_of_two_workers(self):
        options = ("-n", 2, "--scheme", "ssgd")
        train = self.by_train(2, "--scheme", "ssgd", "--epochs", EPOCHS)
        self.assert_same(self.in_python(*options), train, self.in_cpp(*options))

    def test_esync_of_one_worker(self):
        options = ("-n", 1, "--scheme", "esync", *PAPER)
        train = self.by_train(1, "--scheme", "esync", *PAPER, "--max-steps", EPOCHS * IMAGES // 64)
        self.assert_same(self.in_python(*options), train, self.in_cpp(*options))


if __name__ == "__main__":
    unittest.main()
