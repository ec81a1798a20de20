#!/usr/bin/python3
"""Goal:   a training script that fails ends as a Python script does, and the scripts of the other workers end, too, instead
        of hanging.
Method: scripts.py under `syncopate run` and by itself; the test checks exit status and output.
"""
import os
import pathlib
import re
import subprocess
import sys
import threading
import unittest
from concurrent import futures

from script_cases import LIMIT, SCRIPTS, SYNCOPATE, ScriptTest

ENDS = str(pathlib.Path(__file__).with_name("script_ends_scripts.py"))


class Failing(ScriptTest):
    def test_a_script_that_raises_ends_the_job_with_its_traceback(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", f"run{rank}", "--", *self.python, SCRIPTS,
                                   "raises", rank])
                self.assertEqual(done.returncode, 1)
                lines = [line for line in done.stderr.splitlines() if line.startswith("[worker")]
                self.assertEqual(lines[0], f"[worker {rank}] Traceback (most recent call last):")
                self.assertIn(f"[worker {rank}] ValueError: the loss of this script is strange", lines)
                others = [line for line in lines if line.startswith(f"[worker {1 - rank}]")]
                self.assertTrue(any("the loss of this script is strange" in line for line in others) or not others, lines)

    def test_a_collective_of_one_worker_and_a_step_of_another_end_the_job(self):
        cases = (("ssgd", "barrier", "barrier of its program"),
                 ("nbssgd", "allreduce_async", "allreduce of 3 float32 (sum) of its program"),
                 ("local-sgd", "receive", "a send or a receive of its program"))
        with futures.ThreadPoolExecutor() as all_at_once:  # each case waits for seconds
            ends = {scheme: all_at_once.submit(self.launch, 2, "apart", scheme, what,
                                               options=("--run-dir", scheme, "--wait-limit", 6)) for scheme, what, _ in cases}
        for scheme, what, words in cases:
            with self.subTest(scheme):
                done = ends[scheme].result()
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^syncopate: worker 0 \(pid .*\) waits in {re.escape(words)}, and worker 1 "
                                              r"\(pid .*\) waits for it in the step after step \d+, both for \d\.\d s; every")
                self.assertIn("[worker 1] syncopate_torch.ConfigError: worker 0 ", done.stderr)

    def test_a_collective_of_one_worker_and_the_end_of_another_end_the_job(self):
        cases = (("esync", "barrier", "barrier"), ("esync", "align", "align"), ("easgd", "align", "align"),
                 ("ssgd", "align", "align"), ("asgd", "barrier", "barrier"))
        with futures.ThreadPoolExecutor() as all_at_once:  # each waits for seconds
            ends = {(scheme, what): all_at_once.submit(self.launch, 2, "ends_apart", scheme, what,
                                                       options=("--run-dir", f"{scheme}-{what}", "--wait-limit", 6))
                    for scheme, what, _ in cases}
        for scheme, what, words in cases:
            with self.subTest(scheme, what=what):
                done = ends[scheme, what].result()
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^syncopate: worker 0 \(pid .*\) waits in {words} of its program, and worker 1 "
                                              r"\(pid .*\) waits for it at the end of its loop, after step \d+, both for \d")
                self.assertIn("[worker 0] syncopate_torch.ConfigError: worker 0 ", done.stderr)

    def test_modules_that_differ_are_named_by_their_first_difference(self):
        for how, words in (("frozen", r"worker 1 has 2.weight, a trained parameter of "
                                      r"torch.float32 with .*, where that of worker 0 has 0.bias, a trained"),
                           ("buffer", r"worker 1 has scale, a buffer of torch.float32 with the shape \[3\], where that of "
                                      "worker 0 has nothing more"),
                           ("buffer of optimizer", r"worker 1 has first, a buffer .* \[4\], where that of worker 0 has first, .*"),
                           ("type", "worker 1 has 0.weight, a parameter of torch.float64 .*, where that of worker 0 has 0.weight")):
            with self.subTest(how):
                done = self.launch(2, "differs", how, options=("--run-dir", how.replace(" ", "-")))
                self.assertNotEqual(done.returncode, 0)
                self.assertRegex(done.stderr, f"ConfigError: the module of {words}")

    def test_one_request_ends_a_job_whose_programs_wait_for_each_other(self):
        """Under esync worker 1 goes on with its own steps and waits for worker 0 at the end of a round. On a busy machine the
        coordinator may not know of this wait yet; its message then names worker 0 only."""
        for scheme, what, words in (("ssgd", "barrier", r".* in barrier of its program(, and worker 1| after step 3)"),
                                    ("esync", "receive", r".* in a send or a receive of its program(, and worker 1| after step 3)")):
            with self.subTest(scheme):
                # A real interpreter: the client of a fork server handles SIGTERM, which the job treats differently.
                command = [SYNCOPATE, "run", "-n", 2, "--run-dir", scheme, "--wait-limit", 300, "--", sys.executable,
                           SCRIPTS, "apart", scheme, what]
                with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, cwd=self.folder) as running:
                    limit = threading.Timer(LIMIT, running.kill)  # ends the output, on which this test waits
                    limit.start()
                    said = ""
                    while '"waits"' not in said:
                        said = running.stdout.readline()
                        self.assertTrue(said)
                    running.terminate()
                    said = running.communicate()[0]
                    limit.cancel()
                self.assertEqual(running.returncode, 130, said)
                self.assertRegex(said, rf"(?m)^syncopate: .*worker 0 \(pid \d+ on [^)]*\) ?{words}")

    def test_a_worker_that_waits_in_a_collective_learns_why_another_has_ended(self):
        for scheme, what in (("ssgd", "barrier"), ("ssgd", "synchronize"), ("ssgd", "align"), ("esync", "align"),
                             ("asgd", "allreduce")):
            with self.subTest(scheme, what=what):
                pipe = os.path.join(self.folder, f"{scheme}-{what}.pipe")
                os.mkfifo(pipe)
                done = self.launch(2, "raises_while_another_waits", scheme, what, pipe,
                                   options=("--run-dir", f"{scheme}-{what}"))
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r'"caught": "Error: worker 1 .*the script left its loop by ValueError: the loss')

    def test_a_script_that_exits_with_a_status_ends_the_job(self):
        for how, words in (("3", "the script has ended with exit status 3"),
                           ("no such file", "the script has ended with exit status 1: no such file"),
                           ("3, by exit", "the script has ended with exit status 3"),
                           ("3, by quit", "the script has ended with exit status 3"),
                           ("3, in a block", "the script has ended with exit status 3"),
                           ("3, passed on", "the script has ended with exit status 3")):
            with self.subTest(how):
                done = self.launch(2, "exits", how, options=("--run-dir", re.sub(r"\W+", "-", how)))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^\[worker 0\] .*Error: .*{words}$")
                self.assertNotIn('"parameters"', done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^syncopate: worker 1 .*: {words}$")

    def test_a_script_that_exits_without_an_error_ends_its_loop(self):
        for how in ("0", "0, by quit", "0, in a block", "3, caught"):
            with self.subTest(how):
                [facts] = self.facts(self.launch(2, "exits", how, options=("--run-dir", re.sub(r"\W+", "-", how))))
                self.assertEqual((facts["rank"], facts["steps"]), (0, 20))

    def test_a_process_that_ends_without_a_word_is_told_of_with_its_status(self):
        done = self.launch(2, "exits", "7, at once")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^syncopate: worker 1 \(process \d+\) ended with exit status 7$")
        self.assertRegex(done.stderr, r"(?m)^syncopate: worker 1 \(pid \d+ on [^)]*\) died; ")

    def test_an_optimizer_that_raises(self):
        done = self.launch(2, "optimizer_fails")
        self.assertIn('"caught": "of the optimizer"', done.stderr)

    def test_a_callback_that_raises_while_the_script_ends(self):
        for what, words in (("round", "ValueError: no room for round 4"), ("step", "ValueError: no fourth step")):
            with self.subTest(what):
                done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", what, "--", *self.python, ENDS, "late", what])
                self.assertEqual(done.returncode, 1, done.stderr)
                lines = [line for line in done.stderr.splitlines() if line.startswith("[worker")]
                self.assertEqual(lines[0], "[worker 0] Traceback (most recent call last):")
                self.assertEqual(lines.count(f"[worker 0] {words}"), 1, done.stderr)

    def test_the_status_of_a_worker_whose_callback_raises_while_it_ends(self):
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", *self.python, ENDS, "late", "round"])
        self.assertRegex(done.stderr, r"(?m)^syncopate: worker 0 \(process \d+\) ended with exit status 1$")
        self.assertIn("[worker 0] at the end", done.stderr.splitlines())

    def test_the_last_line_names_the_worker_that_failed_first(self):
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", *self.python, ENDS,
                           "raises_before_training", pipe])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[worker 0] syncopate_torch.PeerLost: worker 1 ", done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"^syncopate: worker 1 \(process \d+\) ended with exit status 1$")

    def test_logs_that_cannot_be_written_are_said_once(self):
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", *self.python, ENDS, "on_a_full_disk"])
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.splitlines() if line.startswith("[worker ")]
        run = os.path.join(os.path.realpath(self.folder), "run")
        self.assertEqual(sorted(said), [f"[worker 1] syncopate: cannot write {run}/{file}: File too large; training goes on, and "
                                        "this log lacks lines" for file in ("spans/worker-1.jsonl", "workers/1.jsonl")])

    def test_a_script_that_a_loader_reads_again(self):
        script = os.path.join(self.folder, "unguarded.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write("import torch, syncopate_torch as syncopate\n"
                       "job = syncopate.init()\n"
                       "data = job.partition_dataset(torch.utils.data.TensorDataset(torch.ones(8, 1)), batch_size=4,\n"
                       "                             num_workers=1, multiprocessing_context='spawn')\n"
                       "for batch in data:\n"
                       "    pass\n")
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", sys.executable, "-B", script])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"ConfigError: worker (\d) is in its job already, .*under `if __name__ == \"__main__\":`")

    def test_ranks_that_multiprocessing_starts(self):
        """The script of a worker may start processes that form a job of their own."""
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", sys.executable, "-B", ENDS, "spawns"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("own job: rank 0 of 2, sum 3"), 2, done.stderr)
        self.assertEqual(done.stderr.count("own job: rank 1 of 2, sum 3"), 2, done.stderr)

    def test_another_library(self):
        done = subprocess.run([sys.executable, "-c", "import syncopate_torch"], capture_output=True, text=True, check=False,
                              env={**os.environ, "SYNCOPATE_LIBRARY": "libc.so.6"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "ImportError: cannot load Syncopate's library: the file libc.so.6 that SYNCOPATE_LIBRARY "
                                      "names has no function syncopate_.* another library.*set SYNCOPATE_LIBRARY")

    def test_a_library_that_is_missing(self):
        done = subprocess.run([sys.executable, "-c", "import syncopate_torch"], capture_output=True, text=True, check=False,
                              env={**os.environ, "SYNCOPATE_LIBRARY": "/no/such/libsyncopate.so"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: cannot load Syncopate's library", done.stderr)
        self.assertIn("set SYNCOPATE_LIBRARY", done.stderr)

    def test_ranks_of_mpirun_on_several_hosts_are_refused_at_once(self):
        variables = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                     "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "PMIX_NAMESPACE": "of-this-test"}
        group = "import syncopate_torch, torch; torch.distributed.init_process_group('syncopate')"
        for command, error in (([SCRIPTS, "whole_batch"], "ConfigError: Open MPI's mpirun has started 1 of 2 ranks on this"),
                               (["-c", group], "MASTER_ADDR expected, but not set")):
            done = subprocess.run([sys.executable, "-B", *command], cwd=self.folder, capture_output=True, text=True,
                                  check=False, env={**os.environ, **variables}, timeout=LIMIT)
            self.assertEqual(done.returncode, 1)
            self.assertIn(error, done.stderr)


if __name__ == "__main__":
    unittest.main()
