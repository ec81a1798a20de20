"""Goal: every scheme trains from the command line with its defaults, reports its aggregate and the figures of its servers,
and resumes; divergent training ends with an error that names the worker instead of continuing with NaN.
Method: short jobs of real processes on synthetic data."""
import json
import subprocess
import unittest

from jobs import SYNCOPATE, JobTest

SMALL = ["--network", "mlp", "--data", "synthetic", "--workers", "3", "--batch-size", "50"]
ALONE = {"local"}
SERVED = {"asgd", "dc-asgd", "ssp", "backup", "downpour", "easgd"}


def scheme_names():
    listed = subprocess.run([SYNCOPATE, "schemes", "--json"], stdout=subprocess.PIPE, check=True, text=True)
    return [scheme["name"] for scheme in json.loads(listed.stdout)["schemes"]]


class Schemes(JobTest):
    def test_every_scheme_trains_and_resumes(self):
        for scheme in scheme_names():
            with self.subTest(scheme=scheme):
                workers = ["--workers", "1"] if scheme in ALONE else []
                done = self.train(*SMALL, "--scheme", scheme, "--epochs", "1", *workers, run_dir=scheme)
                self.assertEqual(done.returncode, 0, done.stderr)
                summary = self.summary(scheme)
                self.assertGreaterEqual(summary["accuracy"], 0.5)
                self.assertGreaterEqual(summary["epochs"], 0.99)
                self.assertEqual(len(summary["servers"]), 1 if scheme in SERVED else 0)
                for server in summary["servers"]:
                    self.assertGreater(server["updates"], 0)
                    self.assertGreater(server["busy_ratio"], 0)
                    self.assertGreaterEqual(server["queue_length"]["mean"], 1)
                before = summary["samples"]
                again = subprocess.run(
                    [SYNCOPATE, "train", "--quiet", "--resume", self.folder / scheme, "--epochs", "4"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                )
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertGreater(self.summary(scheme)["samples"], before)

    def test_racy_nbssgd_through_a_server_trains_and_resumes(self):
        racy = ["--scheme", "nbssgd", "--commit", "racy", "--aggregate", "server", "--servers", "2"]
        done = self.train(*SMALL, *racy, "--epochs", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertGreaterEqual(summary["accuracy"], 0.5)
        self.assertGreaterEqual(summary["epochs"], 0.99)
        self.assertEqual(len(summary["servers"]), 2)
        self.assertEqual([server["updates"] for server in summary["servers"]], [summary["rounds"]] * 2)
        again = subprocess.run(
            [SYNCOPATE, "train", "--quiet", "--resume", self.folder / "run", "--epochs", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
        )
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertGreater(self.summary()["samples"], summary["samples"])

    def test_racy_nbssgd_refuses_an_allreduce(self):
        done = self.train(*SMALL, "--scheme", "nbssgd", "--commit", "racy", "--aggregate", "ring")
        self.assert_refused(done, "--aggregate", "--commit racy takes only --aggregate server")

    def test_servers_share_sums_of_ssgd(self):
        done = self.train(*SMALL, "--aggregate", "server", "--servers", "2", "--max-steps", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([server["updates"] for server in self.summary()["servers"]], [20, 20])

    def test_the_aggregate_is_reported(self):
        for aggregate in ("auto", "ring", "binary-blocks", "tree"):
            with self.subTest(aggregate=aggregate):
                done = self.train(*SMALL, "--aggregate", aggregate, "--max-steps", "5", run_dir=aggregate)
                self.assertEqual(done.returncode, 0, done.stderr)
                reported = self.summary(aggregate)["aggregate"]
                self.assertRegex(reported, r"[a-z-]+: 3 ranks, [\d.]+ MB" if aggregate == "auto" else aggregate + ": 3 ranks")
                self.assertIn(f"aggregate: {reported}", done.stderr)

    def test_a_butterfly_of_three_workers_is_refused(self):
        done = self.train(*SMALL, "--aggregate", "butterfly")
        self.assert_refused(done, "power of two", "found 3", "binary-blocks")

    def test_training_that_diverges_is_named_by_worker_and_step(self):
        for scheme in ("ssgd", "asgd"):
            with self.subTest(scheme=scheme):
                done = self.train(*SMALL, "--scheme", scheme, "--learning-rate", "1e38", run_dir=scheme)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"worker \d, step \d+: the gradient of a batch .* is not finite")

    def test_a_lost_model_is_not_trained_for_ever(self):
        done = self.train(*SMALL, "--scheme", "asgd", "--learning-rate", "1e38", "--on-nan", "skip")
        self.assertEqual(done.returncode, 1)
        self.assertIn("100 batches in a row are not finite", done.stderr)


if __name__ == "__main__":
    unittest.main()
