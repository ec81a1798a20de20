"""Goal: with its defaults and any seed, nbssgd learns although every mini-batch may be one update late.
Method: four equal workers train half an epoch of LeNet-5 on Fashion-MNIST in virtual time, with five seeds; the step times
have jitter, and an allreduce takes as long as a batch. With the paper's literal signal at the usual learning rate such jobs
learn little or nothing."""
import os
import pathlib
import unittest

from jobs import JobTest

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
FOUR = """
name = "four"
[[devices]]
name = "equal"
count = 4
seconds_per_batch = 0.03
jitter = 0.05
[link]
bandwidth = 3.3e7
"""


@unittest.skipUnless(
    DATA.exists() or "CI" in os.environ, "Debian's package dataset-fashion-mnist is not installed"
)
class Nbssgd(JobTest):
    def trained(self, seed):
        cluster = self.folder / "four.toml"
        cluster.write_text(FOUR)
        done = self.train(
            "--scheme", "nbssgd", "--network", "lenet5", "--data", "fashion-mnist", "--cluster", cluster, "--virtual-time",
            "--epochs", 0.5, "--seed", seed, "--checkpoint-every", "never", run_dir=str(seed),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.summary(str(seed))

    def test_five_seeds_train_with_defaults(self):
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                summary = self.trained(seed)
                self.assertGreaterEqual(summary["accuracy"], 0.5)
                self.assertGreaterEqual(summary["cluster_efficiency"], 0.97)
                self.assertGreaterEqual(summary["samples"] / summary["rounds"], 200, "as many as with ssgd, 256, or nearly")
                self.assertGreaterEqual(summary["staleness"]["max"], 1, "updates are late")


if __name__ == "__main__":
    unittest.main()
