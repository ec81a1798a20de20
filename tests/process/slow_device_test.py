"""Goal: in every synchronous scheme, workers wait for a device whose mini-batch takes longer than the wait limit; a device
that hangs ends the job, with its name.
Method: real processes with a wait limit of 1 s, a device of 3 s for a mini-batch beside one of 0.05 s, and a device
that stands still for a while."""
import re
import unittest

from jobs import JobTest

FAST_AND_SLOW = """
name = "slow"
[[devices]]
name = "fast"
seconds_per_batch = 0.05
[[devices]]
name = "slow"
seconds_per_batch = 3.0
"""

# From the eighth second on, one device stands still for the longest time that a cluster file allows.
STANDING_STILL = """
name = "still"
[[devices]]
name = "d"
count = 2
seconds_per_batch = 0.05
[pauses]
every = 8.0
lasting = 7.9
"""

JOB = ["--network", "mlp", "--data", "synthetic", "--eval-every", "never", "--checkpoint-every", "never",
       "--wait-limit", "1"]


class SlowDevices(JobTest):
    def train_on(self, cluster, *options, run_dir):
        path = self.folder / f"{run_dir}.toml"
        path.write_text(cluster)
        return self.train(*JOB, "--cluster", path, *options, run_dir=run_dir)

    def assert_trains_with_the_slow_one(self, *options, run_dir):
        result = self.train_on(FAST_AND_SLOW, *options, run_dir=run_dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        fast, slow = self.summary(run_dir)["workers"]
        for worker in (fast, slow):
            self.assertIsNone(worker["dropped_because"])
        self.assertGreater(slow["samples"], 0)
        self.assertEqual(self.summary(run_dir)["samples"], fast["samples"] + slow["samples"])

    def test_ssgd(self):
        for aggregate in ("auto", "ring", "server"):
            self.assert_trains_with_the_slow_one("--scheme", "ssgd", "--aggregate", aggregate, "--max-steps", "2",
                                                 run_dir=aggregate)

    def test_esync_at_the_pace_of_its_paper(self):
        for overlap in ("on", "off"):
            self.assert_trains_with_the_slow_one("--scheme", "esync", "--pacing", "paper", "--overlap", overlap,
                                                 "--max-time", "4", run_dir=overlap)

    def test_esync_through_a_server(self):
        self.assert_trains_with_the_slow_one("--scheme", "esync", "--pacing", "paper", "--aggregate", "server",
                                             "--max-time", "4", run_dir="server")

    def test_stale_synchronous_parallel(self):
        self.assert_trains_with_the_slow_one("--scheme", "ssp", "--slack", "0", "--max-steps", "2", run_dir="ssp")

    def test_one_that_hangs_is_named(self):
        result = self.train_on(STANDING_STILL, "--scheme", "ssgd", "--max-time", "60", run_dir="still")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr.splitlines()[-1],
                         r"waited .* for worker [01] \(pid .*\), last heard [\d.]+ s ago, in backward of step \d+ for "
                         r"[1-7]\.\d s \(0\.\d+ s expected at the most\)$")
        culprit, pid = re.search(r"for (worker [01]) \(pid (\d+)", result.stderr.splitlines()[-1]).groups()
        self.assertEqual(re.findall(r"\[(.*)\] this process is said to hang: ", result.stderr), [culprit])
        self.assertRegex(result.stderr, rf"\[{culprit}\] thread {pid} \(main\), sleeps.*:\n"
                                        rf"(\[{culprit}\]     .*\n)*\[{culprit}\]     syncopate::")


if __name__ == "__main__":
    unittest.main()
