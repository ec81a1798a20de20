"""Goal: a job trains a user's own network from a TorchScript file and saves it with the network's own parameter names;
members with different files do not train together; a file that does not fit the data is refused in one line.
Method: small jobs on synthetic data with a linear classifier, whose file a test program writes."""
import os
import subprocess
import unittest

from jobs import JobTest, read_safetensors

WRITE_SCRIPT = os.environ.get("SYNCOPATE_WRITE_SCRIPT", "syncopate_write_script")


class OwnNetwork(JobTest):
    def script(self, classes=10, largest_weight=0.1):
        path = self.folder / "mine.pt"
        subprocess.run([WRITE_SCRIPT, path, "linear", str(classes), str(largest_weight)], check=True, timeout=120)
        return path

    def options(self, path, *more):
        return ["--network", path, "--data", "synthetic", "--workers", "2", "--max-steps", "30", *more]

    def test_is_trained_from_its_own_values_and_under_its_own_names(self):
        path = self.script()
        done = self.train(*self.options(path, "--precision", "bf16", "--learning-rate", "0.02"))
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertEqual(summary["network"], "mine.pt")
        self.assertGreater(summary["accuracy"], 0.3)  # guessing gives 0.1
        self.assertIn("mine.pt", done.stdout)
        config = (self.folder / "run" / "config.toml").read_text()
        self.assertIn(f"network = '{path}'", config)
        self.assertIn("precision = 'bf16'", config)
        _, tensors = read_safetensors(self.checkpoints()[-1])
        shapes = {name: shape for name, (shape, _) in tensors.items() if not name.startswith("optimizer.")}
        self.assertEqual(shapes, {"weight": (10, 784), "bias": (10,)})

    def test_is_refused_in_one_line_where_it_does_not_fit_the_data(self):
        path = self.script(classes=7)
        self.assert_refused(self.train(*self.options(path)), "expected outputs [samples, 10]", "found [2, 7]")
        resized = self.train(*self.options(self.script(), "--resize", "14"))
        self.assert_refused(resized, "script failed", "shape")
        path.write_text("no script")
        self.assert_refused(self.train(*self.options(path)), "not a whole TorchScript file", "torch.jit.script")
        path.unlink()
        self.assert_refused(self.train(*self.options(path)), "--network", "found none at", str(path))

    def test_is_the_same_file_for_all_members(self):
        job = self.coordinate(*self.options(self.script()))
        address = job.address()
        first = self.join("worker", address)
        first.wait_for_line("worker 0 joins")
        self.script(largest_weight=0.2)
        status, errors = self.join("worker", address, "--quiet").finish()
        self.assertNotEqual(status, 0)
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertRegex(errors, r"mine\.pt \(checksum \w{8}, 7850 float32 parameters\).* but this job is ")
        self.script()
        second = self.join("worker", address)
        for process in (first, second, job):
            status, errors = process.finish()
            self.assertEqual(status, 0, errors)


if __name__ == "__main__":
    unittest.main()
