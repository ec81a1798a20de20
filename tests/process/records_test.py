"""Goal: a user can check a run by its files: its first step can be recomputed from its checkpoints, optimizer state is
stored for each parameter under torch's names, and the logs have the time of each worker by phase.
Method: small jobs of LeNet-5 and the MLP in real processes; the test recomputes their steps in Python."""
import json
import struct
import unittest

from jobs import SMALL, JobTest, read_safetensors

ONE_STEP = ["--network", "lenet5", "--data", "synthetic", "--scheme", "local", "--max-steps", 1,
            "--checkpoint-every", "1steps", "--eval-every", "1steps"]
LENET5 = {"conv1.weight": (6, 1, 5, 5), "fc3.bias": (10,)}


def tensors_of(path):
    """Returns the metadata, and each tensor's shape and values."""
    metadata, tensors = read_safetensors(path)
    return metadata, {name: (shape, struct.unpack(f"<{len(data) // 4}f", data)) for name, (shape, data) in tensors.items()}


def distance(found, expected):
    """Returns the distance relative to the norm of the expected vector."""
    squares = sum((one - other) ** 2 for one, other in zip(found, expected, strict=True))
    return (squares / sum(value**2 for value in expected)) ** 0.5


class Records(JobTest):
    def one_step(self, *options):
        done = self.train(*ONE_STEP, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, last = self.checkpoints()
        self.assertIn("0000000000", first.name)
        (at_first, before), (metadata, after) = tensors_of(first), tensors_of(last)
        self.assertEqual(at_first["step"], "0")
        names = [name for name in before if not name.startswith("optimizer.")]
        for name, shape in LENET5.items():
            self.assertEqual(before[name][0], shape)
        return names, before, after, metadata

    def test_the_first_step_can_be_done_again_with_momentum(self):
        names, before, after, metadata = self.one_step("--learning-rate", 0.05)
        self.assertEqual(metadata["by_parameter"].split(), ["optimizer.momentum_buffer"])
        for name in names:
            shape, velocity = after[f"optimizer.momentum_buffer.{name}"]
            self.assertEqual(shape, before[name][0])
            moved = [(old - new) / 0.05 for old, new in zip(before[name][1], after[name][1], strict=True)]
            self.assertLess(distance(moved, velocity), 1e-3, name)

    def test_the_first_step_can_be_done_again_with_adam_and_its_options(self):
        beta1, beta2, epsilon, rate = 0.8, 0.95, 0.01, 0.001
        names, before, after, metadata = self.one_step(
            "--optimizer", "adam", "--learning-rate", rate, "--beta1", beta1, "--beta2", beta2, "--epsilon", epsilon)
        self.assertEqual(metadata["by_parameter"].split(), ["optimizer.exp_avg", "optimizer.exp_avg_sq"])
        self.assertEqual(metadata["optimizer.step"], "1")
        for name in names:
            means, squares = after[f"optimizer.exp_avg.{name}"][1], after[f"optimizer.exp_avg_sq.{name}"][1]
            expected = [
                rate * mean / (1 - beta1) / ((square / (1 - beta2)) ** 0.5 + epsilon)
                for mean, square in zip(means, squares, strict=True)
            ]
            moved = [old - new for old, new in zip(before[name][1], after[name][1], strict=True)]
            self.assertLess(distance(moved, expected), 1e-2, name)

    def test_each_phase_is_told_apart(self):
        done = self.train(*SMALL, "--max-steps", 10, "--eval-every", "5steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in (0, 1):
            lines = [json.loads(line) for line in (self.folder / "run/workers" / f"{rank}.jsonl").read_text().splitlines()]
            phases = [lines[-1][f"{phase}_seconds"] for phase in ("forward", "backward", "update")]
            for seconds in phases:
                self.assertGreater(seconds, 0)
            self.assertAlmostEqual(sum(phases), lines[-1]["compute_seconds"], places=6)
            self.assertEqual([line["own_steps"] for line in lines], [1] * 10)
            self.assertEqual([line["own_samples"] for line in lines], [64] * 10)
        evaluations = [json.loads(line) for line in (self.folder / "run/evaluations.jsonl").read_text().splitlines()]
        self.assertEqual(len(evaluations), 2)
        for evaluation in evaluations:
            self.assertGreater(evaluation["evaluation_seconds"], 0)
            self.assertIsNone(evaluation["batch_norm"], "the MLP has none")

    def test_the_speed_of_a_real_device_by_itself_is_measured_where_its_steps_are_cut(self):
        done = self.train(*SMALL, "--scheme", "nbssgd", "--max-steps", 20)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        alone = [worker["stand_alone_throughput"] for worker in summary["workers"]]
        for speed in alone:
            self.assertGreater(speed, 0)
        self.assertAlmostEqual(summary["cluster_efficiency"] * sum(alone) / summary["throughput"], 1, delta=0.01)

    def test_evaluations_with_recomputed_statistics_change_no_training(self):
        options = ["--network", "mobilenet-v2", "--data", "synthetic", "--workers", 1, "--scheme", "local", "--batch-size", 8,
                   "--max-steps", 2]
        accuracy = {}
        for name in ("running", "recomputed"):
            done = self.train(*options, "--batch-norm", name, run_dir=name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("a step may take as few as 8 samples", done.stderr)
            [evaluation] = self.summary(name)["evaluations"]
            self.assertEqual(evaluation["batch_norm"], name)
            accuracy[name] = evaluation["loss"]
        self.assertNotEqual(accuracy["running"], accuracy["recomputed"])
        self.assertEqual(read_safetensors(self.checkpoints("running")[-1])[1],
                         read_safetensors(self.checkpoints("recomputed")[-1])[1])

    def test_each_worker_may_have_a_device_of_its_own(self):
        done = self.train(*SMALL, "--max-steps", 2, "--device", "cpu,cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([worker["device"] for worker in self.summary()["workers"]], ["cpu", "cpu"])
        self.assert_refused(self.train(*SMALL, "--device", "cpu,cpu,cpu", run_dir="long"),
                            "device cpu,cpu,cpu lists 3 devices for 2 workers")

    def test_a_device_of_the_list_that_is_not_there_ends_the_job_by_name(self):
        done = self.train(*SMALL, "--device", "cpu,cuda:93")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cuda:93", done.stderr)


if __name__ == "__main__":
    unittest.main()
