"""Goal: with every lossy codec, LeNet-5 reaches the accuracy that it reaches without compression to within half a
percentage point, after the same samples, by SGD with momentum at its usual rate.
Method: two workers train an epoch of Fashion-MNIST in virtual time with real gradients and one seed, with the same bits in
each run on one kind of processor. On another kind, rounding changes the accuracy by a few tenths of a point; with this
seed, no codec is worse than no compression. Without momentum correction, onebit loses more than ten points."""
import os
import pathlib
import unittest

from jobs import JobTest

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
PAIR = """
name = "pair"
[[devices]]
name = "equal"
count = 2
seconds_per_batch = 0.03
"""
CODECS = ("bf16", "fp16", "int8", "onebit", "topk:0.01")


@unittest.skipUnless(
    DATA.exists() or "CI" in os.environ, "Debian's package dataset-fashion-mnist is not installed"
)
class Accuracy(JobTest):
    def accuracy(self, codec):
        cluster = self.folder / "pair.toml"
        cluster.write_text(PAIR)
        done = self.train(
            "--scheme", "ssgd", "--network", "lenet5", "--data", "fashion-mnist", "--cluster", cluster, "--virtual-time",
            "--epochs", 1, "--batch-size", 32, "--optimizer", "momentum", "--schedule", "cosine", "--schedule-factor", 0,
            "--seed", 2, "--checkpoint-every", "never", "--compress", codec, run_dir=codec.replace(":", "-"),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary(codec.replace(":", "-"))
        self.assertEqual((summary["compress"], summary["samples"]), (codec, 60000))
        return summary["accuracy"]

    def test_codecs_keep_it(self):
        whole = self.accuracy("none")
        self.assertGreater(whole, 0.86)
        for codec in CODECS:
            with self.subTest(codec=codec):
                self.assertGreaterEqual(self.accuracy(codec), whole - 0.005)


if __name__ == "__main__":
    unittest.main()
