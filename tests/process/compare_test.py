"""Goal: a comparison tries learning rates, runs every scheme with every seed, writes the figures in three formats,
repeats no run, even after the comparison was killed, and refuses options that contradict each other.
Method: small networks on synthetic data in virtual time."""
import json
import pathlib
import shutil
import signal
import subprocess
import unittest

from jobs import LIMIT, SYNCOPATE, JobTest, wait_until_gone

CLUSTER = """name = "three"
[[devices]]
name = "fast"
count = 2
seconds_per_batch = 0.05
[[devices]]
name = "slow"
seconds_per_batch = 0.5
"""


class Compare(JobTest):
    def setUp(self):
        super().setUp()
        self.cluster = self.folder / "three.toml"
        self.cluster.write_text(CLUSTER)
        self.out = self.folder / "out"
        self.common = ["--cluster", self.cluster, "--network", "mlp", "--data", "synthetic", "--virtual-time",
                       "--no-baselines"]

    def words(self, *options):
        return [str(word) for word in (SYNCOPATE, "compare", *self.common, "--out", self.out, *options)]

    def compare(self, *options):
        return subprocess.run(
            self.words(*options),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False,
        )

    def memory(self):
        return json.loads((self.out / "comparison.json").read_text())

    def contestants(self):
        return {one["label"]: one for one in self.memory()["contestants"]}

    def times_to_target(self, label):
        return [run["time_to_target_seconds"] for run in self.memory()["runs"] if run["label"] == label]

    def finished_runs(self):
        return sorted(path.parent.name for path in self.out.glob("runs/*/summary.json"))

    def test_schemes_stand_side_by_side_at_their_best_learning_rates(self):
        options = [
            "--schemes", "ssgd,asgd", "--seeds", "2", "--learning-rates", "0.02,1e38", "--epochs", "0.5",
            "--eval-every", "0.1epochs", "--target-accuracy", "0.2",
        ]
        done = self.compare(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.contestants()
        self.assertEqual(list(found), ["ssgd", "asgd", "limit"])
        for label, one in found.items():
            self.assertEqual(one["learning_rate"], 0.02, label)  # the rate 1e38 diverges
            self.assertEqual((one["runs"], one["reached"]), (2, 2), label)
            self.assertGreater(one["accuracy"]["mean"], 0.2)
            self.assertGreaterEqual(one["time_to_target_seconds"]["median"], one["time_to_target_seconds"]["least"])
        self.assertEqual(found["ssgd"]["speed_up"], 1)
        self.assertGreater(found["asgd"]["speed_up"], 1)
        self.assertEqual(found["limit"]["distance_to_limit"], 1)
        self.assertLess(found["ssgd"]["distance_to_limit"], 0.2)
        # 3 batches of 64 every 0.5 s; and 2 * 1280 + 128 samples per second of all devices.
        self.assertAlmostEqual(found["ssgd"]["throughput"], 384, delta=4)
        self.assertAlmostEqual(found["limit"]["throughput"], 2688, delta=27)
        self.assertEqual([device["device"] for device in found["ssgd"]["devices"]],
                         ["fast (simulated)", "fast (simulated)", "slow (simulated)"])
        self.assertAlmostEqual(found["ssgd"]["devices"][0]["computing_time_ratio"], 0.1, delta=0.01)
        self.assertEqual(len(self.memory()["tried"]["asgd"]), 2)
        table = (self.out / "comparison.md").read_text()
        for line in ("| ssgd | 0.02 |", "--schemes=ssgd,asgd", "syncopate 0.", "the counted runs: virtual time"):
            self.assertIn(line, table)
        self.assertIn("asgd continues with learning rate 0.02 (the least that was tried)\n", done.stdout)
        self.assertIn("[1/12] ", done.stdout)
        self.assertIn("[12/12] ", done.stdout)
        self.assertIn("Results\nscheme", done.stdout)

        again = self.compare(*options, "--json")
        self.assertEqual(again.returncode, 0, again.stderr)
        lines = [json.loads(line) for line in again.stdout.splitlines()]
        self.assertTrue(all(line["earlier"] for line in lines[:-1]), again.stdout)
        self.assertEqual(len(lines), 12 + 1)
        self.assertEqual(lines[-1], self.memory())
        self.assertEqual(lines[-1]["contestants"], list(found.values()))

    def test_the_baselines_take_part_and_a_report_with_figures_is_written(self):
        self.common.remove("--no-baselines")
        done = self.compare("--schemes", "asgd", "--repeats", "2", "--no-limit", "--epochs", "0.2",
                            "--eval-every", "0.05epochs", "--target-accuracy", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = self.contestants()
        self.assertEqual(list(found), ["asgd", "ssgd", "ssgd-fast", "esync-fast"])
        self.assertEqual([len(one["devices"]) for one in found.values()], [3, 3, 2, 2])
        self.assertAlmostEqual(found["ssgd-fast"]["throughput"], 2560, delta=100)
        self.assertEqual(found["ssgd-fast"]["runs"], 2)
        self.assertIn("report.html", done.stdout)
        page = (self.out / "report.html").read_text()
        for label in found:
            self.assertIn(f'<td class="left">{label}</td>', page)
        for name in ("report.md", "report.tex", "report.json", "fastest-2.toml"):
            self.assertTrue((self.out / name).is_file(), name)
        if shutil.which("gnuplot"):
            for name in ("accuracy-time", "throughput", "time-to-accuracy", "timeline"):
                self.assertTrue((self.out / "figures" / f"{name}.svg").is_file(), name)
                self.assertGreater((self.out / "figures" / f"{name}.png").stat().st_size, 1000, name)
            self.assertIn("<svg", page)
        else:
            self.assertIn("install gnuplot-nox", done.stderr)

    def test_prefixes_show_the_benefit_of_each_device(self):
        done = self.compare("--schemes", "ssgd", "--prefixes", "--seeds", "2", "--no-limit", "--epochs", "1",
                            "--eval-every", "0.1epochs", "--target-accuracy", "0.2", "--until-target")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Benefit of each device", done.stdout)
        self.assertEqual(list(self.contestants()), ["ssgd"])
        benefits = self.memory()["device_benefits"]
        self.assertEqual([(one["label"], one["devices"]) for one in benefits], [("ssgd", 1), ("ssgd", 2), ("ssgd", 3)])
        self.assertIsNone(benefits[0]["benefit"])
        times = [self.times_to_target(f"ssgd-of-{devices}") for devices in (1, 2)] + [self.times_to_target("ssgd")]
        for devices in (1, 2):
            ratios = [before / after for before, after in zip(times[devices - 1], times[devices])]
            self.assertAlmostEqual(benefits[devices]["benefit"], sum(ratios) / 2)
            self.assertAlmostEqual(benefits[devices]["worst_benefit"], min(ratios))
        if shutil.which("gnuplot"):
            self.assertTrue((self.out / "figures" / "time-devices.svg").is_file())

    def test_a_time_to_the_target_and_a_last_accuracy_come_from_one_run_unless_it_ends_at_the_target(self):
        options = ["--schemes", "ssgd", "--seeds", "1", "--no-limit", "--epochs", "1", "--eval-every", "0.1epochs",
                   "--target-accuracy", "0.2"]
        self.assertEqual(self.compare(*options).returncode, 0)
        [run] = self.memory()["runs"]
        self.assertAlmostEqual(run["samples"], 10_000, delta=200)
        self.assertLess(run["time_to_target_seconds"], run["training_seconds"] / 2)
        self.assert_refused(self.compare(*options, "--until-target"), "another comparison", "target-accuracy")
        shutil.rmtree(self.out)
        self.assertEqual(self.compare(*options, "--until-target").returncode, 0)
        self.assertLess(self.memory()["runs"][0]["samples"], 9_000)

    def test_a_killed_comparison_resumes_and_repeats_no_run(self):
        options = ["--schemes", "ssgd,ssgd:batch-size=16", "--seeds", "4", "--no-limit", "--jobs", "1",
                   "--epochs", "2", "--quiet"]
        first = subprocess.Popen(self.words("--json", *options[:-1]), stdout=subprocess.PIPE, text=True)
        self.addCleanup(first.stdout.close)
        finished = [json.loads(first.stdout.readline())["name"] for _ in range(2)]
        children = pathlib.Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        first.kill()
        first.wait(timeout=LIMIT)
        wait_until_gone([int(pid) for pid in children])
        times = {name: (self.out / "runs" / name / "summary.json").stat().st_mtime_ns for name in finished}
        done = self.compare(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.finished_runs()), 8)
        for name, time in times.items():
            self.assertEqual((self.out / "runs" / name / "summary.json").stat().st_mtime_ns, time)
        self.assertNotIn("[", done.stdout)
        for way in ([], ["--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(self.words(*way, *options[:-1]), stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=LIMIT, check=False)
            self.assert_refused(done, "cannot write standard output: No space left on device")

    def test_the_user_ends_it_and_learns_how_to_go_on(self):
        words = self.words("--schemes", "ssgd", "--seeds", "2", "--no-limit", "--jobs", "1", "--epochs", "1000")
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.stdout.readline()
        again = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
        self.assert_refused(again, "another comparison runs in")
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=LIMIT)
        self.assertEqual(running.returncode, 130)
        self.assertRegex(errors, r"^syncopate: interrupted; .* syncopate compare --schemes=ssgd .*--out \S+\n$")
        self.assertEqual(self.finished_runs(), [])

    def test_a_diverged_run_is_a_result(self):
        done = self.compare("--schemes", "ssgd", "--seeds", "2", "--learning-rates", "1e38", "--no-limit", "--epochs", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.contestants()["ssgd"]["accuracy"])
        self.assertRegex(done.stdout, r"\nscheme +rate\nssgd +1e\+38\n")

    def test_more_seeds_and_schemes_may_come_later_and_nothing_else(self):
        options = ["--no-limit", "--epochs", "0.2"]
        self.assertEqual(self.compare("--schemes", "ssgd", "--seeds", "1", *options).returncode, 0)
        self.assertEqual(self.compare("--schemes", "ssgd,asgd", "--seeds", "2", *options).returncode, 0)
        self.assertEqual(len(self.finished_runs()), 4)
        other = self.compare("--schemes", "ssgd", *options, "--batch-size", "32")
        self.assert_refused(other, "batch-size", "another comparison")
        self.cluster.write_text(CLUSTER.replace("0.5", "0.6"))
        self.assert_refused(self.compare("--schemes", "ssgd", *options), "cluster file")
        (self.out / "comparison.json").unlink()
        self.assert_refused(self.compare("--schemes", "ssgd", *options), "holds no comparison")

    def test_combinations_are_checked_before_anything_runs(self):
        self.assert_refused(self.compare("--schemes", "ssgd,easgd:pacing=paper"), "easgd:pacing=paper", "no effect")
        self.assert_refused(self.compare(), "--schemes")
        self.assertFalse(self.out.exists())

    def test_a_run_that_is_refused_ends_the_comparison_by_name(self):
        self.cluster.write_text(CLUSTER.replace("0.05", "0.00001"))
        self.common.remove("--virtual-time")
        done = self.compare("--schemes", "ssgd", "--seeds", "1", "--no-limit")
        self.assert_refused(done, "run ssgd-seed1", "cannot pace")


if __name__ == "__main__":
    unittest.main()
