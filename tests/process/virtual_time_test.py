"""Goal: a job in virtual time differs from a real one only by its clock: its cluster file sets the times, the same seed
gives the same job, it ends and resumes like a real job, and a job without step times is refused.
Method: LeNet-5 on synthetic data and a cluster file with four fast devices and two of 3.5 s a step."""
import json
import pathlib
import signal
import subprocess
import unittest

from jobs import SYNCOPATE, JobTest, read_safetensors

PAPER = pathlib.Path(__file__).resolve().parents[2] / "clusters" / "paper.toml"
JOB = ["--virtual-time", "--cluster", PAPER, "--network", "lenet5", "--data", "synthetic"]


def without_place(summary):
    """Returns the summary without its run folder. Compared folders must have names of equal length, since messages contain
    the paths of checkpoints."""
    return {name: value for name, value in summary.items() if name != "run_dir"}


class VirtualTime(JobTest):
    def test_steps_of_ssgd_take_as_long_as_the_slowest_device(self):
        done = self.train(*JOB, "--scheme", "ssgd", "--max-steps", "4", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertTrue(summary["virtual_time"])
        self.assertAlmostEqual(summary["training_seconds"], 4 * 3.5, delta=0.01)
        self.assertEqual(summary["samples"], 4 * 6 * 64)
        self.assertEqual(summary["workers"][0]["device"], "gpu (simulated)")
        self.assertAlmostEqual(summary["workers"][0]["wait_ratio"], 1 - 0.03 / 3.5, delta=0.001)
        self.assertAlmostEqual(summary["workers"][5]["computing_time_ratio"], 1, delta=0.001)
        started = json.loads(done.stdout.splitlines()[0])
        self.assertTrue(started["virtual_time"])

    def test_workers_of_asgd_keep_their_own_pace(self):
        done = self.train(*JOB, "--scheme", "asgd", "--epochs", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in virtual time", done.stdout)
        workers = self.summary()["workers"]
        steps = [worker["steps"] for worker in workers]
        self.assertGreater(min(steps[:4]), 5)
        # The fast devices train on all samples before the slow ones end their first step.
        self.assertEqual(steps[4:], [0, 0])
        self.assertEqual([worker["cancelled_steps"] for worker in workers[4:]], [1, 1])

    def test_the_same_seed_gives_the_same_run_and_another_one_does_not(self):
        options = [*JOB, "--scheme", "asgd", "--epochs", "1", "--eval-every", "0.2epochs"]
        for run, seed in (("one", 1), ("two", 1), ("other", 2)):
            done = self.train(*options, "--seed", seed, run_dir=run)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(without_place(self.summary("one")), without_place(self.summary("two")))
        self.assertGreater(len(self.summary("one")["evaluations"]), 3)
        self.assertNotEqual(self.summary("one")["loss"], self.summary("other")["loss"])

    def test_memory_is_shared_as_between_processes(self):
        done = self.train(*JOB, "--scheme", "hogwild", "--epochs", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.summary()["staleness"]["max"], 0)

    def test_it_runs_again_from_its_configuration_and_resumes(self):
        self.train(*JOB, "--scheme", "ssgd", "--max-steps", "6", run_dir="whole")
        self.train(*JOB, "--scheme", "ssgd", "--max-steps", "3", run_dir="cut")
        again = self.train("--config", self.folder / "cut" / "config.toml", run_dir="new")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(without_place(self.summary("new")), without_place(self.summary("cut")))
        resumed = subprocess.run(
            [SYNCOPATE, "train", "--resume", str(self.folder / "cut"), "--max-steps", "6"],
            capture_output=True, text=True, timeout=120, check=False,
        )
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(
            read_safetensors(self.checkpoints("whole")[-1])[1], read_safetensors(self.checkpoints("cut")[-1])[1]
        )
        # The job and its resumption each measure the links, which takes some milliseconds.
        self.assertAlmostEqual(self.summary("cut")["training_seconds"], 6 * 3.5, delta=0.03)

    def test_the_user_ends_it_with_a_checkpoint(self):
        job = self.start(*JOB, "--scheme", "ssgd", "--epochs", "100000")
        job.wait_for_round(2)
        job.process.send_signal(signal.SIGINT)
        status, errors = job.finish()
        self.assertEqual(status, 130, errors)
        self.assertEqual(self.summary()["ended_because"], "interrupted")
        rounds = self.summary()["rounds"]
        self.assertEqual(read_safetensors(self.checkpoints()[-1])[0]["step"], str(rounds))

    def test_training_that_diverges_ends_by_name(self):
        done = self.train(*JOB, "--scheme", "ssgd", "--learning-rate", "1e38")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"worker \d, step \d+: the gradient of a batch .* is not finite")

    def test_it_is_refused_without_device_profiles_and_by_hand(self):
        self.assert_refused(self.train("--virtual-time"), "--cluster", "virtual time")
        command = [SYNCOPATE, "coordinator", "--listen", "127.0.0.1:0", *JOB, "--run-dir", self.folder / "run"]
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=120, check=False
        )
        self.assert_refused(done, "virtual time", "train")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main()
