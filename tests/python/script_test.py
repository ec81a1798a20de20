#!/usr/bin/python3
"""Goal:   a training script in Python joins a job by five calls and gets the result that a single process would compute.
Method: scripts.py under `syncopate run` and by itself, compared with torch in this process.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import unittest

import torch
from torch.nn import functional

import scripts
from script_cases import LIMIT, SCRIPTS, SYNCOPATE, TORCH, ScriptTest, reference


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


class Training(ScriptTest):
    schemes_that_learn = ("ssgd", "esync", "nbssgd", "asgd", "hogwild")
    schemes_that_align = ("ssgd", "esync", "local-sgd", "nbssgd", "asgd", "ssp", "backup", "hogwild")
    calls = [("clipped", "ssgd"), ("clipped", "esync"), ("clipped_unequally", "finishes"), ("clipped_unequally", "has none"),
             ("works_that_nobody_keeps",), *((name, scheme) for name in ("adapter", "sampled") for scheme in ("ssgd", "esync")),
             ("unequal_parts",), *(("learns", scheme) for scheme in schemes_that_learn),
             *(("aligned", scheme) for scheme in schemes_that_align)]
    if TORCH >= (2, 0):
        calls.append(("whole_batch", "ssgd", "aot_eager"))
    if TORCH >= (2, 3):  # earlier versions have no GradScaler for CPUs
        calls.append(("scaled",))

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
        for facts in self.said("clipped", "ssgd"):
            self.assert_near(facts["parameters"], scripts.parameters_of(network))
            self.assertEqual(facts["rates"], rates)
            self.assertEqual(facts["samples"], scripts.STEPS * scripts.SAMPLES)
        facts = self.said("clipped", "esync")
        self.assertEqual(facts[0]["parameters"], facts[1]["parameters"])

    def test_gradients_that_are_clipped_in_loops_of_unequal_length(self):
        for end in ("finishes", "ends", "has none"):  # by `finish`, at the end of the script, or by `finish` without a step
            points, labels, network = scripts.problem()
            optimizer = scripts.sgd(network)
            for step in range(scripts.STEPS):
                part = slice(0 if end != "has none" and step < scripts.STEPS - 3 else 10, scripts.SAMPLES)
                optimizer.zero_grad()
                functional.cross_entropy(network(points[part]), labels[part]).backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 0.1)
                optimizer.step()
            if end == "ends":
                facts = self.facts(self.launch(2, "clipped_unequally", end))
            else:
                facts = self.said("clipped_unequally", end)
            self.assert_near(facts[1]["parameters"], scripts.parameters_of(network))

    def test_works_that_nobody_keeps_go_on(self):
        facts = self.said("works_that_nobody_keeps")
        self.assertEqual(facts[1]["sums"], [[number, number, 120_000] for number in range(50)])
        self.assertEqual(facts[0]["junk"], -100_000)

    if TORCH >= (2, 3):

        def test_all_workers_leave_out_a_step_that_overflows_on_one(self):
            for facts in self.said("scaled"):
                self.assertEqual(facts["scale"], 512 if facts["rank"] == 0 else 128)
                self.assert_near(facts["parameters"], reference())

    if TORCH >= (2, 0):

        def test_a_compiled_module(self):
            for facts in self.said("whole_batch", "ssgd", "aot_eager"):
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
                said = self.facts(self.start([SYNCOPATE, "run", "-n", 2, *run, "--run-dir", scheme, "--", *self.python, SCRIPTS,
                                              "whole_batch"]))
                self.assertEqual([facts["size"] for facts in said], [2, 2])
                self.assertEqual(said[0]["parameters"], said[1]["parameters"])
                if scheme == "ssgd":  # with local steps each worker has its own momentum
                    self.assert_near(said[0]["parameters"], reference())

    def test_a_job_that_goes_on_in_another_one_trains_to_the_same_bits(self):
        ways = ((0, "1:2"), (2, "2:1"), (0, "1:-"))
        never_stops, *firsts = self.facts_of_each(2, [("resumed", 0, 4), *(
            ("resumed", processes, 4, saved_at, f"state-{saved_at}-") for processes, saved_at in ways)])
        seconds = self.facts_of_each(2, [("resumed", processes, 4, "-", f"state-{saved_at}-") for processes, saved_at in ways])
        for (processes, saved_at), first, second in zip(ways, firsts, seconds):
            with self.subTest(processes=processes, saved_at=saved_at):
                for whole, before, after in zip(never_stops, first, second):
                    self.assertEqual(before["order"] + after["order"], whole["order"])
                    for name in ("state", "rate", "samples"):
                        self.assertEqual(after[name], whole[name], name)

    def test_a_job_that_goes_on_with_another_number_of_workers_begins_its_epoch_again(self):
        self.facts(self.launch(2, "resumed", 0, 4, "1:2", "state", options=("--run-dir", "first")))
        done = self.start([*self.python, SCRIPTS, "resumed", 0, 2, "-", "state"])
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
            recorded = json.loads(pathlib.Path(self.folder, scheme, "summary.json").read_text(encoding="utf-8"))
            self.assertEqual([(worker["steps"], worker["samples"]) for worker in recorded["workers"]],
                             [(worker["steps"], worker["samples"]) for worker in every["workers"]])
            self.assertEqual(recorded["epochs"], scripts.STEPS)
            self.assertAlmostEqual(every["samples_per_second"], every["samples"] / every["seconds"])
            lines = said[0]["table"].splitlines()
            self.assertRegex(lines[0], r"worker +steps +samples +rounds +seconds +samples/s +computing")
            self.assertEqual(len(lines), 3)

    def test_a_script_by_itself(self):
        done = self.start([*self.python, SCRIPTS, "whole_batch"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_near(json.loads(done.stdout)["parameters"], reference())
        self.assertEqual(os.listdir(self.folder), [])

    def test_frozen_parameters_and_buffers_of_other_types(self):
        for scheme in ("ssgd", "esync"):
            with self.subTest(scheme):
                said = self.said("adapter", scheme)
                self.assertEqual(said[0]["state"], said[1]["state"])
                for facts in said:
                    self.assertEqual(facts["types"], ["bfloat16", "float32", "float32", "float32", "float64", "int64"])
                    self.assertEqual(facts["base"], [0.5, 0.5])  # the untrained values of worker 0
                    self.assertEqual(facts["scale"], torch.tensor(0.1).item())
                    self.assertNotEqual(facts["head"], 0.25)

    def test_samplers_of_several_workers(self):
        for scheme in ("ssgd", "esync"):
            with self.subTest(scheme):
                said = self.said("sampled", scheme)
                for epoch in range(2):
                    self.assertEqual(sorted(said[0]["samples"][epoch] + said[1]["samples"][epoch]), list(range(63)))
                self.assertEqual([facts["epoch"] for facts in said], [5, 5])
                for facts in said:
                    if scheme == "ssgd":  # 63 samples in steps of 4 for each of two workers
                        self.assertEqual(facts["lengths"], [len(facts["samples"][0]), 8])
                    else:
                        self.assertRegex(facts["lengths"], "^NoLength: an epoch of leased samples has no length, .* fixed$")

    def test_gradients_weigh_by_their_samples(self):
        said = self.said("unequal_parts")
        for facts in said:
            self.assert_near(facts["parameters"], reference())

    def test_every_kind_of_scheme_learns(self):
        for scheme in self.schemes_that_learn:
            with self.subTest(scheme):
                said = self.said("learns", scheme)
                for facts in said:
                    self.assertGreater(facts["accuracy"], 0.7, said)
                    self.assertGreater(facts["rounds"], 0)
                    self.assertGreater(facts["samples"], 0)

    def test_workers_with_unequal_numbers_of_steps_align(self):
        for scheme in self.schemes_that_align:
            with self.subTest(scheme):
                for facts in self.said("aligned", scheme):
                    self.assertEqual(facts["equal"], [True] * 4)

    def test_workers_that_align_at_two_places(self):
        done = self.launch(2, "elsewhere")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"ConfigError: .*worker ([01]) waits for all workers at place \1, but worker [01] is elsewhere")

    def test_collectives(self):
        for rank, facts in enumerate(self.facts(self.launch(3, "collectives"))):
            self.assertEqual(set(map(tuple, facts["sums"].values())), {(0, 6, 12, 18, 24)})
            self.assertEqual(facts["columns"], [[6.0] * 3] * 2)
            self.assertTrue(facts["done"])
            self.assertEqual(facts["first"], [7, 3])
            self.assertEqual(facts["all"], [[0, 0], [1, 2], [2, 4]])
            self.assertEqual(facts["rank"], rank)


if __name__ == "__main__":
    unittest.main()
