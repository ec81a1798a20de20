#!/usr/bin/python3
"""Goal:   the examples in Python run as their first lines say.
Method: each example runs under `syncopate run`: on the first samples of Fashion-MNIST, on a few images that the test writes
        in CIFAR-10's format, or on the text that the example makes.
"""
import importlib.util
import pathlib
import re
import unittest

import torch

from script_cases import SYNCOPATE, TORCH, ScriptTest, needs

SOURCE = pathlib.Path(__file__).parents[2]
EXAMPLES = SOURCE / "examples/python"
CLUSTER = SOURCE / "clusters/mixed.toml"


class Examples(ScriptTest):
    def output(self, name, *arguments, run=("-n", 2)):
        options = run if "--run-dir" in run else (*run, "--run-dir", "run")
        done = self.start([SYNCOPATE, "run", *options, "--", *self.python, EXAMPLES / f"{name}.py", *arguments])
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

    if TORCH >= (2, 0):

        @needs("lightning")
        def test_lightning_ddp(self):
            accuracies = []
            for backend in ("syncopate", "gloo"):
                done = self.start([*self.python, EXAMPLES / "lightning_ddp.py", "--samples", 8000, "--backend", backend])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{backend}: 2 ranks", done.stdout)
                accuracies.append(self.accuracy(done.stdout))
            self.assertAlmostEqual(*accuracies, delta=0.02)
            self.assertGreater(min(accuracies), 0.6)

        @needs("lightning")
        def test_lightning_strategy(self):
            self.expect_unequal_steps(self.output("lightning_strategy", "--samples", 16000, run=("--cluster", CLUSTER)))

        @needs("accelerate")
        def test_accelerate_rounds(self):
            self.expect_unequal_steps(self.output("accelerate_rounds", "--samples", 16000, run=("--cluster", CLUSTER)))

    def test_horovod_mnist(self):
        output = self.output("horovod_mnist", "--samples", 8000)
        self.assertRegex(output, "epoch 1: loss of the last batches")
        self.assertGreater(self.accuracy(output), 0.5)

    def test_esync_unequal(self):
        self.expect_unequal_steps(
            self.output("esync_unequal", "--samples", 16000, run=("--cluster", CLUSTER, "--scheme", "esync")))

    def expect_unequal_steps(self, output):
        steps = [int(each) for each in re.search(r"steps of each: \[([0-9, ]+)\]", output)[1].split(",")]
        self.assertGreater(max(steps), min(steps), output)
        self.assertGreater(self.accuracy(output), 0.5)

    def write_images(self, name, count):
        """Writes a file in CIFAR-10's binary format: red and green of an image depend on its class, blue only on the pixel.
        Returns its bytes, [images, 3073]."""
        generator = torch.Generator().manual_seed(len(name))
        labels = torch.arange(count, dtype=torch.uint8) % 10
        noise = torch.randint(0, 20, (count, 2, 1024), generator=generator)
        colours = torch.stack([labels % 5 * 50, labels // 5 * 200], dim=1).unsqueeze(2) + noise
        blue = (torch.arange(1024) % 256).expand(count, 1, 1024)
        rows = torch.cat([labels.unsqueeze(1), colours.flatten(1), blue.flatten(1)], dim=1).to(torch.uint8)
        (self.cifar / name).write_bytes(bytes(rows.flatten().tolist()))
        return rows

    def write_cifar(self):
        self.cifar = pathlib.Path(self.folder) / "cifar"
        self.cifar.mkdir()
        for number in range(1, 6):
            self.write_images(f"data_batch_{number}.bin", 32)
        return self.write_images("test_batch.bin", 40)

    def test_cifar10_resnet9(self):
        self.write_cifar()
        output = self.output("cifar10_resnet9", "--data", self.cifar, "--epochs", 12, "--batch-size", 16)
        said = re.findall(r"epoch (\d+): loss ([0-9.]+), accuracy ([0-9.]+), [0-9.]+ s$", output, re.MULTILINE)
        self.assertEqual([int(epoch) for epoch, _, _ in said], list(range(1, 13)), output)
        losses = [float(loss) for _, loss, _ in said]
        self.assertLess(losses[-1], losses[0] / 2, output)
        self.assertGreater(float(said[-1][2]), 0.6, output)

    def test_images_of_cifar10(self):
        rows = self.write_cifar()
        example = self.example("cifar10_resnet9")
        images, labels = example.cifar10(self.cifar, example.TEST_FILES).tensors
        self.assertEqual(labels.tolist(), rows[:, 0].tolist())
        self.assertEqual(list(images.shape), [40, 3, 32, 32])
        for at, (channel, row, column) in ((1, (0, 0, 0)), (1 + 1024 + 2 * 32 + 5, (1, 2, 5)), (3072, (2, 31, 31))):
            expected = (rows[:, at].float() / 255 - 0.473) / 0.251
            self.assertTrue(torch.allclose(images[:, channel, row, column], expected), (channel, row, column))
        self.assertEqual(len(example.cifar10(self.cifar, example.TRAINING_FILES)), 5 * 32)

    def test_images_of_cifar10_that_are_damaged(self):
        self.write_cifar()
        example = self.example("cifar10_resnet9")
        path = self.cifar / "test_batch.bin"
        path.write_bytes(path.read_bytes()[:-1])
        with self.assertRaisesRegex(SystemExit, "expected whole records of 3073 bytes, found 122919 bytes"):
            example.cifar10(self.cifar, example.TEST_FILES)
        path.write_bytes(bytes([10]) + bytes(3072))
        with self.assertRaisesRegex(SystemExit, "expected labels below 10, found 10"):
            example.cifar10(self.cifar, example.TEST_FILES)
        path.unlink()
        with self.assertRaisesRegex(SystemExit, "test_batch.bin is missing: .* --data FOLDER"):
            example.cifar10(self.cifar, example.TEST_FILES)

    def example(self, name):
        """Imports an example as a module."""
        described = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(described)
        described.loader.exec_module(module)
        return module

    def test_hugging_face_style_loop(self):
        losses = self.losses(self.output("hugging_face_style_loop", "--max_train_steps", 30))
        self.assertLess(losses[-1], losses[0] / 2)

    def test_hugging_face_style_loop_counts_every_token_once(self):
        """Two workers that share the sentences of a step train as one process with all of them, although they have unequal
        numbers of sentences and tokens."""
        options = ("--sentences", 9, "--per_device_train_batch_size", 3, "--max_train_steps", 12, "--logging_steps", 2,
                   "--gradient_accumulation_steps")
        alone = self.losses(self.output("hugging_face_style_loop", *options, 4, run=("-n", 1, "--run-dir", "alone")))
        shared = self.losses(self.output("hugging_face_style_loop", *options, 2))
        self.assertEqual(len(alone), 7)
        for one, two in zip(alone, shared):
            self.assertAlmostEqual(one, two, delta=1e-4)

    def losses(self, output):
        return [float(each) for each in re.findall(r"loss per token ([0-9.]+)", output)]


if __name__ == "__main__":
    unittest.main()
