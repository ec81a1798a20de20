"""Goal: in every synchronous scheme, workers wait for a device whose mini-batch takes longer than the wait limit; a device
that hangs ends the job, with an error that names its worker.
Method: real processes with a wait limit of 1 s on emulated devices: mini-batches of 3 s beside mini-batches of 0.05 s, and
a device that hangs for a while."""
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

# From the eighth second on, one device hangs for the longest time that a cluster file allows.
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
    def options_on(self, cluster, run_dir):
        path = self.folder / f"{run_dir}.toml"
        path.write_text(cluster)
        return [*JOB, "--cluster", path]

    def assert_train_with_the_slow_one(self, **options):
        """Runs jobs with these options, by run folder, at the same time. Emulated devices need hardly any processor."""
        jobs = {run_dir: self.start(*self.options_on(FAST_AND_SLOW, run_dir), *own, run_dir=run_dir)
                for run_dir, own in options.items()}
        for run_dir, job in jobs.items():
            status, errors = job.finish()
            self.assertEqual(status, 0, errors)
            fast, slow = self.summary(run_dir)["workers"]
            for worker in (fast, slow):
                self.assertIsNone(worker["dropped_because"])
            self.assertGreater(slow["samples"], 0)
            self.assertEqual(self.summary(run_dir)["samples"], fast["samples"] + slow["samples"])

    def test_each_kind_of_scheme_waits_for_the_slow_one(self):
        """`identity_tests` covers all schemes and aggregates in the simulator."""
        self.assert_train_with_the_slow_one(
            ssgd=["--scheme", "ssgd", "--max-steps", "2"],
            server=["--scheme", "ssgd", "--aggregate", "server", "--max-steps", "2"],
            esync=["--scheme", "esync", "--pacing", "paper", "--max-time", "4"],
            ssp=["--scheme", "ssp", "--slack", "0", "--max-steps", "2"])

    def test_one_that_hangs_is_named(self):
        result = self.train(*self.options_on(STANDING_STILL, "still"), "--scheme", "ssgd", "--max-time", "60",
                            run_dir="still")
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
