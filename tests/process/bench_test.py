#!/usr/bin/python3
"""Goal: `syncopate bench` runs each of its benchmarks in each form, and ends cleanly in every case.
Method: the program as users run it, with few rounds. The test asserts names, counts and the relations of
figures, never durations.
"""
import json
import os
import pathlib
import pty
import signal
import subprocess
import tomllib
import unittest

from jobs import LIMIT, SYNCOPATE, JobTest

TIMES = ["median_seconds", "min_seconds", "p90_seconds"]


def bench(*words, **more):
    return subprocess.run(
        [SYNCOPATE, "bench", *map(str, words)],
        stdout=subprocess.PIPE, stderr=more.pop("stderr", subprocess.PIPE), text=True, timeout=LIMIT, check=False,
        **more,
    )  # fmt: skip


def children_of(process):
    path = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(pid) for pid in path.read_text(encoding="ascii").split()]


class Bench(JobTest):
    def results(self, *words):
        done = bench(*words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (line,) = done.stdout.splitlines()
        results = json.loads(line)["results"]
        for result in results:
            self.assertGreater(result["min_seconds"], 0)
            self.assertLessEqual(result["min_seconds"], result["median_seconds"])
            self.assertLessEqual(result["median_seconds"], result["p90_seconds"])
        return results

    def test_a_job_trains_as_on_the_devices_that_were_measured(self):
        cluster = self.folder / "mine.toml"
        words = [SYNCOPATE, "profile", "--network", "mlp", "--batch-size", "8", "--seconds", "0.05"]
        printed = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=True)
        self.assertRegex(printed.stdout, r"^# mlp, mini-batches of 8, 1 CPU thread\n\[\[devices\]\]\nname = \"\S+-cpu\"\n")
        self.assertIn("measuring cpu", printed.stderr)
        for status, add in ((0, []), (2, []), (2, ["--add"])):
            done = subprocess.run([*words, "--out", cluster, *add], capture_output=True, text=True, timeout=LIMIT, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
        devices = tomllib.loads(cluster.read_text(encoding="utf-8"))["devices"]
        self.assertEqual(len(devices), 1)
        done = subprocess.run([SYNCOPATE, "train", "--virtual-time", "--cluster", cluster, "--network", "mlp", "--data", "synthetic",
                               "--epochs", "1", "--run-dir", self.folder / "run"],
                              capture_output=True, text=True, timeout=LIMIT, check=True)  # fmt: skip
        self.assertEqual(done.stdout.count(devices[0]["name"]), devices[0]["count"], done.stdout)

    def test_allreduce(self):
        results = self.results("allreduce", "--transport", "tcp", "--ranks", 3, "--bytes", "1KB,1MiB", "--rounds", 4)
        self.assertEqual([result["bytes"] for result in results], [1000, 1048576])
        for result in results:
            self.assertEqual(
                list(result), ["transport", "algorithm", "ranks", "bytes", *TIMES, "cpu_seconds", "rounds"]
            )
            self.assertEqual((result["transport"], result["algorithm"]), ("tcp", "auto"))
            self.assertEqual((result["ranks"], result["rounds"]), (3, 4))
            self.assertGreater(result["cpu_seconds"], 0)

    def test_fills_the_time_with_rounds(self):
        (result,) = self.results("allreduce", "--bytes", 4, "--seconds", 0.05)
        self.assertGreaterEqual(result["rounds"], 5)

    def test_push_pull(self):
        (result,) = self.results("push-pull", "--workers", 2, "--servers", 2, "--bytes", "1MB", "--rounds", 3)
        self.assertEqual([result[name] for name in ("servers", "workers", "bytes", "rounds")], [2, 2, 1000000, 3])

    def test_latency(self):
        results = self.results("latency", "--bytes", "63,1MB", "--rounds", 3)
        self.assertEqual(
            [(result["pattern"], result["bytes"]) for result in results],
            [("back and forth", 63), ("one way", 1000000), ("both ways", 1000000)],
        )

    def test_kernels(self):
        results = self.results("kernels", "--bytes", "1MB", "--rounds", 2)
        kernels = [(result["kernel"], result["from"]) for result in results]
        for kernel in ("add", "scale_and_add", "scale"):
            self.assertIn((kernel, "L2"), kernels)
            self.assertIn((kernel, "memory"), kernels)
        self.assertIn(("update adam", "memory"), kernels)
        self.assertEqual(len({result["target"] for result in results}), 1)
        self.assertTrue(results[0]["target"])

    def test_codecs(self):
        results = self.results("codecs", "--bytes", "1MB", "--rounds", 2)
        names = ["bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.01/2bit"]
        self.assertEqual(
            {(result["codec"], result["does"], result["from"]) for result in results},
            {(name, does, place) for name in names for does in ("encode", "decode") for place in ("L2", "memory")},
        )
        smaller = {result["codec"]: result["ratio"] for result in results}
        self.assertEqual(sorted(smaller, key=smaller.get), names)
        self.assertLess(abs(smaller["bf16"] - 2), 0.01)

    def test_step(self):
        results = self.results("step", "--network", "mlp", "--batch-size", 8, "--rounds", 3)
        self.assertEqual([result["part"] for result in results], ["backward", "update", "step"])
        for result in results:
            self.assertEqual([result["network"], result["samples"], result["rounds"]], ["mlp", 8, 3])
            self.assertGreater(result["peak_resident_bytes"], 2**20)
        # A step consists of both parts, so fewer samples fit into a second of steps.
        backward, update, step = (result["samples_per_second"] for result in results)
        self.assertLess(step, min(backward, update))

    def test_tables(self):
        table = bench("allreduce", "--bytes", "1KB", "--rounds", 1).stdout.splitlines()
        self.assertRegex(table[0], r"^transport +algorithm +ranks +bytes +median +min +p90 +cpu +rounds$")
        self.assertRegex(table[1], r"^shm +auto +2 +1 kB ")
        markdown = bench("allreduce", "--bytes", "1KB", "--rounds", 1, "--markdown").stdout.splitlines()
        self.assertEqual(markdown[1], "| --- | --- |" + " ---: |" * 7)
        self.assertRegex(markdown[2], r"^\| shm \| auto \| 2 \| 1 kB \|")

    def test_step_of_a_size_and_a_precision(self):
        options = ["step", "--network", "lenet5", "--batch-size", 8, "--rounds", 1]
        usual = self.results(*options)[0]
        self.assertEqual((usual["image_size"], usual["precision"]), (28, "float32"))
        chosen = self.results(*options, "--image-size", 40, "--precision", "bf16")[0]
        self.assertEqual((chosen["image_size"], chosen["precision"]), (40, "bf16"))
        self.assert_refused(bench(*options, "--precision", "half"), "--precision", "float32, bf16", "'half'")
        self.assert_refused(bench(*options, "--image-size", 0), "--image-size", "from 1 to 4096", "'0'")
        small = bench("step", "--network", "lenet5", "--image-size", 3)
        self.assert_refused(small, "lenet5 for images of 3x3: expected at least 12x12; choose --image-size 12 or more")

    def test_shows_progress_on_a_terminal(self):
        ours, terminal = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "LANG": "C.UTF-8"}
        done = bench("allreduce", "--bytes", "1KB", "--rounds", 1, "--json", stderr=terminal, env=environment)
        os.close(terminal)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertEqual(len(json.loads(done.stdout)["results"]), 1)
        self.assertIn("allreduce of 1 kB by auto over shm, 2 ranks", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)

    def test_refuses_mistakes(self):
        self.assert_refused(bench(), "expected one of allreduce, push-pull, latency, kernels, codecs, step")
        self.assert_refused(bench("allreduce", "--bytes", "much"), "--bytes", "44.7MB", "'much'")
        self.assert_refused(bench("allreduce", "--aggregate", "star"), "--aggregate", "ring")
        self.assert_refused(bench("allreduce", "--aggregate", "butterfly", "--ranks", 3), "power of two", "found 3")
        self.assert_refused(bench("allreduce", "--aggregate", "shm", "--transport", "tcp"), "shared memory", "transport tcp")
        self.assert_refused(bench("kernels", "--transport", "tcp"), "bench kernels has no option --transport")

    def start(self, *words):
        process = subprocess.Popen(
            [SYNCOPATE, "bench", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ranks_of(self, process, count):
        """The ranks, once there are `count`. The program does not announce forks, so this polls."""
        while len(children_of(process)) < count:
            self.assertIsNone(process.poll())
        return children_of(process)

    def test_a_killed_rank_ends_it_by_name(self):
        for victim in (0, 2):
            process = self.start("allreduce", "--ranks", "3", "--bytes", "1MB", "--seconds", "3600")
            pid = self.ranks_of(process, 3)[victim]
            os.kill(pid, signal.SIGKILL)
            printed, errors = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, printed), (1, ""))
            self.assertEqual(errors, f"syncopate: rank {victim} (process {pid}) was killed by signal 9 (Killed)\n")

    def test_ctrl_c_ends_it_without_a_word(self):
        process = self.start("allreduce", "--ranks", "2", "--bytes", "1MB", "--seconds", "3600")
        self.ranks_of(process, 2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=LIMIT), ("", ""))
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()
