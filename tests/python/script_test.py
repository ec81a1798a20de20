#!/usr/bin/python3
"""Goal:   a training script in Python joins a job by five calls and gets what a single process would compute; it
        fails as a Python script does, and takes the others with it instead of hanging.
Method: scripts.py under `syncopate run` and alone, compared with torch in this process.
"""
import ast
import importlib.util
import inspect
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import torch
from torch.nn import functional

import scripts
import syncopate_torch as syncopate

SYNCOPATE = os.environ["SYNCOPATE"]
SCRIPTS = str(pathlib.Path(__file__).with_name("scripts.py"))
LIMIT = 200  # seconds, of one command
# Tests of what a later torch has are defined there alone, where a lack of it fails them: in CI a skip is a failure.
TORCH = tuple(int(number) for number in torch.__version__.split(".")[:2])
os.environ["PYTHONWARNINGS"] = "ignore::UserWarning"  # PyPI's torch warns where NumPy is missing


def needs(package):
    """Skips a test where a package of PyPI is not installed; in CI the test fails instead."""
    return unittest.skipUnless(importlib.util.find_spec(package) or "CI" in os.environ, f"package {package} is not installed")


def reference():
    """The parameters after the same steps over the whole dataset in one process."""
    points, labels, network = scripts.problem()
    optimizer = scripts.sgd(network)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        optimizer.step()
    return scripts.parameters_of(network)


def clipped_reference():
    """The parameters after the same steps in one process, with clipped gradients and a rate that falls."""
    points, labels, network = scripts.problem()
    optimizer = scripts.sgd(network)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points), labels).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
        optimizer.step()
        schedule.step()
    return scripts.parameters_of(network)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="syncopate-script-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, command):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT, check=False,
                              cwd=self.folder)

    def launch(self, workers, name, *arguments, options=()):
        options = options if "--run-dir" in options else (*options, "--run-dir", "run")
        return self.start([SYNCOPATE, "run", "-n", workers, *options, "--", sys.executable, "-B", SCRIPTS, name, *arguments])

    def facts(self, done):
        """What each worker said, by rank."""
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [json.loads(line.split("] ", 1)[1]) for line in done.stderr.splitlines() if re.match(r"\[worker \d+\] {", line)]
        return sorted(said, key=lambda facts: facts["rank"])

    def assert_near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for value, right in zip(found, expected):
            self.assertAlmostEqual(value, right, delta=1e-5)


class Types(unittest.TestCase):
    def test_the_stub_has_the_names_and_arguments_of_the_sources(self):
        stub = ast.parse(pathlib.Path(syncopate.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        named = [node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
        self.assertEqual({node.name for node in named}, set(syncopate.__all__))
        for node in named:
            with self.subTest(node.name):
                self.compare(node, getattr(syncopate, node.name))

    def compare(self, node, source):
        if isinstance(node, ast.FunctionDef):
            self.assertEqual([argument.arg for argument in node.args.args], list(inspect.signature(source).parameters))
            return
        functions = [member for member in node.body if isinstance(member, ast.FunctionDef) and not member.name.startswith("__")]
        listed = {member.name for member in functions}
        own = {name for name, member in vars(source).items() if inspect.isfunction(member) or isinstance(member, property)}
        hidden = {"handle", "follow_samples", "follow", "keep_state", "job_state", "take_job_state", "summary_row", "batches",
                  "resume", "expect_no_pass", "expect_step_size", "ends_first"}
        self.assertEqual({name for name in own if not name.startswith("_")} - hidden, listed)
        for member in functions:
            found = getattr(source, member.name)
            if not isinstance(found, property) and member.args.kwarg is None and member.name != "DistributedOptimizer":
                self.assertEqual([argument.arg for argument in member.args.args], list(inspect.signature(found).parameters))

    def test_the_stubs_of_other_modules_have_their_names_and_arguments(self):
        for name in ("accelerate", "amp", "horovod", "lightning"):
            path = pathlib.Path(syncopate.__file__).with_name(f"{name}.py")
            source, stub = (self.declared(each) for each in (path, path.with_suffix(".pyi")))
            with self.subTest(name):
                self.assertEqual({each for each in source if "." not in each}, {each for each in stub if "." not in each})
                for each, arguments in stub.items():
                    self.assertEqual(arguments, source[each], each)

    def declared(self, path):
        """The arguments of the functions of a module and its classes, by name; None for a class."""
        found = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                found[node.name] = arguments_of(node)
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        found[f"{node.name}.{member.name}"] = arguments_of(member)
        return found


def arguments_of(node):
    return [each.arg for each in node.args.args] if isinstance(node, ast.FunctionDef) else None


class PlainVariables(ScriptTest):
    def test_scripts_that_only_the_variables_of_torch_distributed_tell_of_each_other(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
        processes = [subprocess.Popen([sys.executable, "-B", SCRIPTS, "whole_batch"], cwd=self.folder, text=True,
                                      env={**os.environ, **variables, "RANK": str(rank)}, stdout=subprocess.PIPE)
                     for rank in range(2)]
        said = [json.loads(process.communicate(timeout=LIMIT)[0]) for process in processes]
        self.assertEqual([(facts["rank"], facts["size"]) for facts in said], [(0, 2), (1, 2)])
        for facts in said:
            self.assert_near(facts["parameters"], reference())


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


class Training(ScriptTest):
    def test_gradients_that_are_accumulated_and_clipped_under_a_schedule_by_samples(self):
        points, labels, network = scripts.problem()
        optimizer = scripts.sgd(network)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        rates = []
        for _ in range(scripts.STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(network(points), labels).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
            optimizer.step()
            schedule.step()
            rates.append(schedule.get_last_lr()[0])
        for facts in self.facts(self.launch(2, "clipped", "ssgd")):
            self.assert_near(facts["parameters"], scripts.parameters_of(network))
            self.assertEqual(facts["rates"], rates)
            self.assertEqual(facts["samples"], scripts.STEPS * scripts.SAMPLES)
        facts = self.facts(self.launch(2, "clipped", "esync", options=("--run-dir", "of-esync")))
        self.assertEqual(facts[0]["parameters"], facts[1]["parameters"])

    def test_gradients_that_are_clipped_in_loops_of_unequal_length(self):
        for end in ("finishes", "ends", "has none"):  # by a call, with the script, or by a call without a step
            points, labels, network = scripts.problem()
            optimizer = scripts.sgd(network)
            for step in range(scripts.STEPS):
                part = slice(0 if end != "has none" and step < scripts.STEPS - 3 else 10, scripts.SAMPLES)
                optimizer.zero_grad()
                functional.cross_entropy(network(points[part]), labels[part]).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
                optimizer.step()
            facts = self.facts(self.launch(2, "clipped_unequally", end, options=("--run-dir", end.replace(" ", "-"))))
            self.assert_near(facts[1]["parameters"], scripts.parameters_of(network))

    def test_works_that_nobody_keeps_go_on(self):
        facts = self.facts(self.launch(2, "works_that_nobody_keeps"))
        self.assertEqual(facts[1]["sums"], [[number, number, 120_000] for number in range(50)])
        self.assertEqual(facts[0]["junk"], -100_000)

    if TORCH >= (2, 3):  # before, there is no GradScaler for CPUs

        def test_all_workers_leave_out_a_step_that_overflows_on_one(self):
            for facts in self.facts(self.launch(2, "scaled")):
                self.assertEqual(facts["scale"], 512 if facts["rank"] == 0 else 128)
                self.assert_near(facts["parameters"], reference())

    if TORCH >= (2, 0):

        def test_a_compiled_module(self):
            for facts in self.facts(self.launch(2, "whole_batch", "ssgd", "aot_eager")):
                self.assert_near(facts["parameters"], reference())

        def test_a_module_that_is_compiled_to_machine_code(self):
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = self.folder
            self.addCleanup(os.environ.pop, "TORCHINDUCTOR_CACHE_DIR")
            [facts] = self.facts(self.launch(1, "whole_batch", "ssgd", "inductor"))
            self.assert_near(facts["parameters"], reference())

    def test_workers_that_share_a_batch_train_as_one_process(self):
        for scheme in ("ssgd", "local-sgd"):
            options = ("--local-steps", "1") if scheme == "local-sgd" else ()
            with self.subTest(scheme):
                run = ("--scheme", scheme, *options)
                said = self.facts(self.start([SYNCOPATE, "run", "-n", 2, *run, "--run-dir", scheme, "--", sys.executable,
                                              "-B", SCRIPTS, "whole_batch"]))
                self.assertEqual([facts["size"] for facts in said], [2, 2])
                self.assertEqual(said[0]["parameters"], said[1]["parameters"])
                if scheme == "ssgd":  # local steps have a momentum of their own
                    self.assert_near(said[0]["parameters"], reference())

    def test_a_job_that_goes_on_in_another_one_trains_to_the_same_bits(self):
        def job(processes, *more):
            runs = f"run{len(os.listdir(self.folder))}"
            return self.facts(self.launch(2, "resumed", processes, 4, *more, options=("--run-dir", runs)))

        never_stops = job(0)
        for processes, saved_at in ((0, "1:2"), (2, "2:1"), (0, "1:-")):
            with self.subTest(processes=processes, saved_at=saved_at):
                first, second = job(processes, saved_at, "state"), job(processes, "-", "state")
                for whole, before, after in zip(never_stops, first, second):
                    self.assertEqual(before["order"] + after["order"], whole["order"])
                    for name in ("state", "rate", "samples"):
                        self.assertEqual(after[name], whole[name], name)

    def test_a_job_that_goes_on_with_another_number_of_workers_begins_its_epoch_again(self):
        self.facts(self.launch(2, "resumed", 0, 4, "1:2", "state", options=("--run-dir", "first")))
        done = self.start([sys.executable, "-B", SCRIPTS, "resumed", 0, 2, "-", "state"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        facts = json.loads(done.stdout)
        self.assertEqual([epoch for epoch, _ in facts["order"]], [1] * 4)
        self.assertEqual(facts["samples"], 64 + 2 * 16 + 64)

    def test_summaries(self):
        for scheme in ("ssgd", "esync"):
            said = self.facts(self.launch(2, "summarized", scheme, options=("--run-dir", scheme)))
            every = said[0]["every"]
            self.assertEqual(every, said[1]["every"])
            self.assertEqual([worker["rank"] for worker in every["workers"]], [0, 1])
            self.assertEqual(every["samples"], scripts.STEPS * scripts.SAMPLES)
            for facts, worker in zip(said, every["workers"]):
                [own] = facts["own"]["workers"]
                self.assertEqual((own["steps"], own["samples"]), (worker["steps"], worker["samples"]))
                shares = [worker[name] for name in ("computing_time_ratio", "communication_ratio", "wait_ratio")]
                self.assertTrue(all(0 <= share <= 1.01 for share in shares), worker)
                self.assertGreater(shares[0], 0)
            lines = said[0]["table"].splitlines()
            self.assertRegex(lines[0], r"worker +steps +samples +rounds +seconds +samples/s +computing")
            self.assertEqual(len(lines), 3)

    def test_memory_does_not_grow_with_the_steps(self):
        for facts in self.facts(self.launch(2, "many_steps", "ssgd")):
            before, after = facts["before"], facts["after"]
            self.assertLess(after["own"] - before["own"], 256)  # a leak of 32 bytes a step
            # Bytes go round in two rings of 1 MiB for each pair of workers; pages count once they were used.
            self.assertLess(after["shared"], 2 * 1024 + 1024)

    def test_a_script_by_itself(self):
        done = self.start([sys.executable, "-B", SCRIPTS, "whole_batch"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_near(json.loads(done.stdout)["parameters"], reference())
        self.assertEqual(os.listdir(self.folder), [])

    def test_frozen_parameters_and_buffers_of_other_types(self):
        for scheme in ("ssgd", "esync"):
            with self.subTest(scheme):
                said = self.facts(self.launch(2, "adapter", scheme, options=("--run-dir", scheme)))
                self.assertEqual(said[0]["state"], said[1]["state"])
                for facts in said:
                    self.assertEqual(facts["types"], ["bfloat16", "float32", "float32", "float32", "float64", "int64"])
                    self.assertEqual(facts["base"], [0.5, 0.5])  # of worker 0, and not trained
                    self.assertEqual(facts["scale"], torch.tensor(0.1).item())
                    self.assertNotEqual(facts["head"], 0.25)

    def test_samplers_of_several_workers(self):
        for scheme in ("ssgd", "esync"):
            with self.subTest(scheme):
                said = self.facts(self.launch(2, "sampled", scheme, options=("--run-dir", scheme)))
                for epoch in range(2):
                    self.assertEqual(sorted(said[0]["samples"][epoch] + said[1]["samples"][epoch]), list(range(63)))
                self.assertEqual([facts["epoch"] for facts in said], [5, 5])
                for facts in said:
                    if scheme == "ssgd":  # of 63 samples, in steps of 4
                        self.assertEqual(facts["lengths"], [len(facts["samples"][0]), 8])
                    else:
                        self.assertRegex(facts["lengths"], "^NoLength: an epoch of leased samples has no length, .* fixed$")

    def test_gradients_weigh_by_their_samples(self):
        said = self.facts(self.launch(2, "unequal_parts"))
        for facts in said:
            self.assert_near(facts["parameters"], reference())

    def test_every_kind_of_scheme_learns(self):
        for scheme in ("ssgd", "esync", "nbssgd", "asgd", "hogwild"):
            with self.subTest(scheme):
                said = self.facts(self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", scheme, "--", sys.executable, "-B",
                                              SCRIPTS, "learns", scheme]))
                for facts in said:
                    self.assertGreater(facts["accuracy"], 0.7, said)
                    self.assertGreater(facts["rounds"], 0)
                    self.assertGreater(facts["samples"], 0)

    def test_workers_with_unequal_numbers_of_steps_align(self):
        for scheme in ("ssgd", "esync", "local-sgd", "nbssgd", "asgd", "ssp", "backup", "hogwild"):
            with self.subTest(scheme):
                for facts in self.facts(self.launch(2, "aligned", scheme, options=("--run-dir", scheme))):
                    self.assertEqual(facts["equal"], [True] * 4)

    def test_workers_that_align_at_two_places(self):
        done = self.launch(2, "elsewhere")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "ConfigError: worker 0 waits for all workers at place 0, but worker 1 is elsewhere")

    def test_collectives(self):
        for rank, facts in enumerate(self.facts(self.launch(3, "collectives"))):
            self.assertEqual(set(map(tuple, facts["sums"].values())), {(0, 6, 12, 18, 24)})
            self.assertEqual(facts["columns"], [[6.0] * 3] * 2)
            self.assertTrue(facts["done"])
            self.assertEqual(facts["first"], [7, 3])
            self.assertEqual(facts["all"], [[0, 0], [1, 2], [2, 4]])
            self.assertEqual(facts["rank"], rank)


class Failing(ScriptTest):
    def test_a_script_that_raises_ends_the_job_with_its_traceback(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", f"run{rank}", "--", sys.executable, "-B", SCRIPTS,
                                   "raises", rank])
                self.assertEqual(done.returncode, 1)
                lines = [line for line in done.stderr.splitlines() if line.startswith("[worker")]
                self.assertEqual(lines[0], f"[worker {rank}] Traceback (most recent call last):")
                self.assertIn(f"[worker {rank}] ValueError: the loss of this script is strange", lines)
                others = [line for line in lines if line.startswith(f"[worker {1 - rank}]")]
                self.assertTrue(any("the loss of this script is strange" in line for line in others) or not others, lines)

    def test_a_collective_of_one_worker_and_a_step_of_another_end_the_job(self):
        for scheme, what, words in (("ssgd", "barrier", "barrier of its program"),
                                    ("nbssgd", "allreduce_async", "allreduce of 3 float32 (sum) of its program"),
                                    ("local-sgd", "receive", "a send or a receive of its program")):
            with self.subTest(scheme):
                done = self.launch(2, "apart", scheme, what, options=("--run-dir", scheme, "--wait-limit", 6))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^syncopate: worker 0 \(pid .*\) waits in {re.escape(words)}, and worker 1 "
                                              r"\(pid .*\) waits for it in the step after step \d+, both for \d\.\d s; every")
                self.assertIn("[worker 1] syncopate_torch.errors.ConfigError: worker 0 ", done.stderr)

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
        """Under esync worker 1 goes on with steps of its own."""
        for scheme, what, words in (("ssgd", "barrier", "waits in barrier of its program, and worker 1"),
                                    ("esync", "receive", r".*, in a send or a receive of its program after step 3")):
            with self.subTest(scheme):
                command = [SYNCOPATE, "run", "-n", 2, "--run-dir", scheme, "--wait-limit", 300, "--", sys.executable, "-B",
                           SCRIPTS, "apart", scheme, what]
                with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, cwd=self.folder) as running:
                    limit = threading.Timer(LIMIT, running.kill)  # then its output ends
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
                           ("3, in a block", "the script has ended with exit status 3"),
                           ("3, passed on", "the script has ended with exit status 3")):
            with self.subTest(how):
                done = self.launch(2, "exits", how, options=("--run-dir", re.sub(r"\W+", "-", how)))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^\[worker 0\] .*Error: .*{words}$")
                self.assertNotIn('"parameters"', done.stderr)
                self.assertRegex(done.stderr, rf"(?m)^syncopate: worker 1 .*: {words}$")

    def test_a_script_that_exits_without_an_error_ends_its_loop(self):
        for how in ("0", "0, in a block", "3, caught"):
            with self.subTest(how):
                [facts] = self.facts(self.launch(2, "exits", how, options=("--run-dir", re.sub(r"\W+", "-", how))))
                self.assertEqual((facts["rank"], facts["steps"]), (0, 20))

    def test_an_optimizer_that_raises(self):
        done = self.launch(2, "optimizer_fails")
        self.assertIn('"caught": "of the optimizer"', done.stderr)

    def test_a_library_that_is_missing(self):
        done = subprocess.run([sys.executable, "-c", "import syncopate_torch"], capture_output=True, text=True, check=False,
                              env={**os.environ, "SYNCOPATE_LIBRARY": "/no/such/libsyncopate.so"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: cannot load Syncopate's library", done.stderr)
        self.assertIn("set SYNCOPATE_LIBRARY", done.stderr)


if __name__ == "__main__":
    unittest.main()
