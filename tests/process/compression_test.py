"""Goal: real jobs compress gradients over sockets and in shared memory, between workers and to servers, report the
saving, and refuse in one line options with which nothing can be compressed.
Method: short jobs on synthetic data. The test checks the bytes that were sent, and no durations."""
import unittest

from jobs import JobTest

SMALL = ["--network", "mlp", "--data", "synthetic", "--workers", "2", "--checkpoint-every", "never", "--max-steps", "20"]


class Compression(JobTest):
    def run_of(self, name, *options):
        done = self.train(*SMALL, *options, run_dir=name)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done, self.summary(name)

    def sent(self, summary):
        return summary["workers"][1]["traffic_bytes"]

    def test_fewer_bytes_leave(self):
        for number, scheme in enumerate((["ssgd"], ["esync", "--epochs", "1"], ["asgd"])):
            with self.subTest(scheme=scheme):
                options = ["--transport", "tcp", "--scheme", *scheme]
                _, whole = self.run_of(f"whole-{number}", *options)
                done, small = self.run_of(f"small-{number}", *options, "--compress", "int8")
                for worker in small["workers"]:
                    self.assertAlmostEqual(worker["compression"]["ratio"], 3.94, delta=0.05)
                    self.assertGreater(worker["compression"]["relative_error"], 0)
                self.assertIsNone(whole["workers"][0]["compression"])
                self.assertEqual((whole["compress"], small["compress"]), ("none", "int8"))
                self.assertRegex(done.stdout, r"compression +int8: 3\.9\d? to 1, relative error")
                if scheme != ["esync", "--epochs", "1"]:  # esync's number of rounds depends on time
                    self.assertLess(self.sent(small), self.sent(whole) / 2)

    def test_a_single_host_does_not_compress_for_links(self):
        _, summary = self.run_of("remote", "--compress", "onebit", "--compress-remote")
        self.assertIsNone(summary["workers"][0]["compression"])
        self.assertRegex(summary["aggregate"], "^shm: ")

    def test_the_folder_of_a_run_keeps_it(self):
        self.run_of("first", "--compress", "topk:0.05")
        config = (self.folder / "first" / "config.toml").read_text()
        self.assertIn("compress = 'topk:0.05'", config)

    def test_refusals_name_the_option(self):
        refused = {
            ("--compress", "topk:2"): ["--compress", "topk:RATIO", "'topk:2'"],
            ("--compress", "zip"): ["--compress", "onebit", "'zip'"],
            ("--compress", "int8", "--aggregate", "tree"): ["compress int8", "aggregate tree"],
            ("--compress", "int8", "--scheme", "easgd"): ["--compress", "asgd"],
            ("--compress-remote",): ["--compress-remote", "--compress"],
        }
        for options, words in refused.items():
            with self.subTest(options=options):
                self.assert_refused(self.train(*SMALL, *options), *words)


if __name__ == "__main__":
    unittest.main()
