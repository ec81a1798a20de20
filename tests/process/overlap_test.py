"""Goal: real jobs of `ssgd` have the same losses with and without overlap; with overlap they report a gradient that is not
finite, and in virtual time they hide the allreduce behind the backward pass.
Method: short jobs on synthetic data, with a network whose gradient has several buckets."""
import json
import unittest

from jobs import JobTest

LARGE = ["--network", "resnet18-v1", "--data", "synthetic", "--batch-size", "4", "--eval-every", "never",
         "--checkpoint-every", "never"]
CLUSTER = """name = "slow-network"
batch_samples = 4
[[devices]]
name = "gpu"
seconds_per_batch = 1.0
count = 2
[link]
bandwidth = 1.25e8
"""


class Overlap(JobTest):
    def losses(self, run_dir):
        lines = (self.folder / run_dir / "workers" / "0.jsonl").read_text().splitlines()
        return [json.loads(line)["loss"] for line in lines]

    def pair(self, name, *options):
        """Runs a job with overlap and one without, asserts equal losses, and returns both summaries."""
        runs = [f"{name}-{overlap}" for overlap in ("on", "off")]
        for overlap, run in zip(("on", "off"), runs):
            done = self.train(*LARGE, *options, "--max-steps", "4", "--overlap", overlap, run_dir=run)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.losses(runs[0])), 4)
        self.assertEqual(self.losses(runs[0]), self.losses(runs[1]))
        return [self.summary(run) for run in runs]

    def test_losses_are_the_same(self):
        for transport, aggregate in (("shm", "shm"), ("tcp", "ring")):
            with self.subTest(transport=transport):
                way = ["--transport", transport, "--aggregate", aggregate]
                for summary in self.pair(transport, "--workers", "2", *way):
                    self.assertRegex(summary["aggregate"], r"in \d+ buckets")

    def test_a_gradient_that_is_not_finite_is_named(self):
        done = self.train(*LARGE, "--workers", "2", "--learning-rate", "1e38", "--overlap", "on")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"worker \d, step \d+: the gradient of a batch .* is not finite")

    def test_virtual_time_hides_sums(self):
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER)
        hidden, shown = self.pair("virtual", "--cluster", cluster, "--virtual-time")
        # An allreduce of 44.7 MB at 125 MB/s takes 0.36 s; that of the first step does not overlap.
        self.assertAlmostEqual(shown["training_seconds"], 4 * 1.36, delta=0.1)
        self.assertLess(hidden["training_seconds"], 4 + 0.36 + 3 * 0.12)
        self.assertGreater(hidden["training_seconds"], 4 + 0.36)

    def test_it_is_refused_where_a_server_adds(self):
        self.assert_refused(self.train("--overlap", "on", "--aggregate", "server"), "--overlap", "server")


if __name__ == "__main__":
    unittest.main()
