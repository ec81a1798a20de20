"""Goal: a job follows its options and writes the documented files; the configuration that it writes repeats it, and a job
that resumes from a checkpoint ends as an uninterrupted one.
Method: small jobs on synthetic data; the test compares results bit for bit."""
import json
import subprocess
import unittest

from jobs import SMALL, SYNCOPATE, JobTest, read_safetensors


class Train(JobTest):
    def test_leaves_a_run_folder_with_the_records_of_the_job(self):
        done = self.train(*SMALL, "--max-steps", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertEqual(summary["scheme"], "ssgd")
        self.assertEqual(summary["rounds"], 20)
        self.assertEqual(summary["samples"], 20 * 2 * 64)
        self.assertEqual([worker["steps"] for worker in summary["workers"]], [20, 20])
        self.assertEqual(len(summary["evaluations"]), 1)
        self.assertEqual(summary["accuracy"], summary["evaluations"][-1]["accuracy"])
        for worker in summary["workers"]:
            shares = worker["computing_time_ratio"] + worker["communication_ratio"] + worker["wait_ratio"]
            self.assertAlmostEqual(shares, 1, delta=0.1)
        for rank in (0, 1):
            lines = (self.folder / "run" / "workers" / f"{rank}.jsonl").read_text().splitlines()
            self.assertEqual([json.loads(line)["round"] for line in lines], list(range(1, 21)))
        self.assertIn("run folder", done.stdout)

    def test_checkpoints_hold_the_module_under_its_own_names(self):
        self.train(*SMALL, "--network", "lenet5", "--max-steps", "3")
        metadata, tensors = read_safetensors(self.checkpoints()[-1])
        self.assertEqual(metadata["step"], "3")
        parameters = {name: shape for name, (shape, _) in tensors.items() if not name.startswith("optimizer.")}
        self.assertEqual(sorted(parameters.values())[0], (6,))
        sizes = 0
        for shape in parameters.values():
            size = 1
            for extent in shape:
                size *= extent
            sizes += size
        self.assertEqual(sizes, 61_706)

    def test_the_resolved_configuration_runs_again_to_the_same_bits(self):
        self.train(*SMALL, "--max-steps", "15", "--optimizer", "adam")
        again = self.train("--config", self.folder / "run" / "config.toml", run_dir="again")
        self.assertEqual(again.returncode, 0, again.stderr)
        first = read_safetensors(self.checkpoints()[-1])[1]
        second = read_safetensors(self.checkpoints("again")[-1])[1]
        self.assertEqual(first, second)

    def test_flags_win_over_the_configuration(self):
        self.train(*SMALL, "--max-steps", "15")
        self.train("--config", self.folder / "run" / "config.toml", "--max-steps", "4", run_dir="again")
        self.assertEqual(self.summary("again")["rounds"], 4)

    def test_resuming_equals_not_having_stopped(self):
        options = [*SMALL, "--network", "resnet18-v1", "--batch-size", "4", "--split-by-class"]
        self.train(*options, "--max-steps", "6", run_dir="whole")
        self.train(*options, "--max-steps", "3", run_dir="cut")
        resumed = subprocess.run(
            [SYNCOPATE, "train", "--resume", str(self.folder / "cut"), "--max-steps", "6"],
            capture_output=True, text=True, timeout=300, check=False,
        )
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        whole = read_safetensors(self.checkpoints("whole")[-1])[1]
        cut = read_safetensors(self.checkpoints("cut")[-1])[1]
        self.assertEqual(sorted(whole), sorted(cut))
        for name, tensor in whole.items():
            self.assertEqual(tensor, cut[name], name)
        rounds = [
            json.loads(line)["round"]
            for line in (self.folder / "cut" / "workers" / "1.jsonl").read_text().splitlines()
        ]
        self.assertEqual(rounds, list(range(1, 7)))

    def test_a_run_that_ended_before_its_first_checkpoint_begins_again(self):
        self.train(*SMALL, "--max-steps", "3")
        whole = read_safetensors(self.checkpoints()[-1])[1]
        killed = self.folder / "killed"
        (killed / "checkpoints").mkdir(parents=True)
        (killed / "workers").mkdir()
        (killed / "config.toml").write_text((self.folder / "run" / "config.toml").read_text())
        resume = [SYNCOPATE, "train", "--resume", str(killed), "--max-steps"]
        refused = subprocess.run([*resume, "no"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        resumed = subprocess.run([*resume, "3"], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn(f"syncopate: the run in {killed} ended before its first checkpoint: it begins again\n", resumed.stderr)
        after = read_safetensors(max((killed / "checkpoints").glob("*.safetensors")))[1]
        self.assertEqual(after, whole)

    def test_a_resumed_run_may_have_another_learning_rate(self):
        self.train(*SMALL, "--max-steps", "3")
        before = read_safetensors(self.checkpoints()[-1])[1]
        resumed = subprocess.run(
            [SYNCOPATE, "train", "--resume", str(self.folder / "run"), "--max-steps", "4", "--learning-rate", "1e-30"],
            capture_output=True, text=True, timeout=300, check=False,
        )
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.summary()["learning_rate"], 1e-30)
        after = read_safetensors(self.checkpoints()[-1])[1]
        parameters = [name for name in before if not name.startswith("optimizer.") and name.endswith((".weight", ".bias"))]
        self.assertTrue(parameters, sorted(before))
        for name in parameters:
            self.assertEqual(after[name], before[name], name)

    def test_every_event_is_a_line_of_json_and_the_last_line_is_the_summary(self):
        done = self.train(*SMALL, "--max-steps", "5", "--json")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(events[0]["event"], "started")
        self.assertEqual(events[-2]["event"], "finished")
        self.assertEqual(events[-1], self.summary())

    def test_an_emulated_cluster_runs_at_the_pace_of_its_profile(self):
        cluster = self.folder / "cluster.toml"
        cluster.write_text(
            'name = "two"\n[[devices]]\nname = "fast"\nseconds_per_batch = 0.05\n'
            '[[devices]]\nname = "slow"\nseconds_per_batch = 0.2\n'
        )
        options = ["--network", "mlp", "--data", "synthetic", "--cluster", cluster, "--max-steps", "10"]
        done = self.train(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        # A machine under load can be late, never early.
        self.assertGreaterEqual(summary["training_seconds"], 10 * 0.2 * 0.99)
        self.assertLess(summary["workers"][0]["computing_time_ratio"], 0.5)
        self.assertIn("slow (emulated)", summary["workers"][1]["device"])

    def test_two_jobs_on_one_machine_do_not_meet(self):
        first = self.start(*SMALL, "--max-steps", "30", run_dir="first")
        second = self.start(*SMALL, "--max-steps", "40", run_dir="second")
        self.assertEqual(first.finish()[0], 0)
        self.assertEqual(second.finish()[0], 0)
        self.assertEqual(self.summary("first")["rounds"], 30)
        self.assertEqual(self.summary("second")["rounds"], 40)


if __name__ == "__main__":
    unittest.main()
