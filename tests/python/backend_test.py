#!/usr/bin/python3
"""Goal:   a stock script of torch.distributed runs on backend "syncopate" after a change of one word, and gets the same
        results as with Gloo.
Method: backend_scripts.py under `syncopate run`, torchrun and mpirun; backend_programs.py makes random calls of all
        collectives, types and shapes on two to four ranks, each also by Gloo on the same inputs. The test's name has the
        seed.
"""
import inspect
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import unittest

from script_cases import SYNCOPATE, TORCH, ScriptTest
from syncopate_torch.distributed.works import KeptWorks

import torch

SCRIPTS = str(pathlib.Path(__file__).with_name("backend_scripts.py"))
PROGRAMS = str(pathlib.Path(__file__).with_name("backend_programs.py"))
CALLS = 200


class BackendTest(ScriptTest):
    script = SCRIPTS

    def launch(self, workers, name, *arguments, options=()):
        return self.start([SYNCOPATE, "run", "-n", workers, *options, "--run-dir", "run", "--", *self.python,
                           self.script, name, *arguments])

    def started_by_hand(self, ranks, name, *arguments):
        """Starts ranks without a launcher: they find each other by the variables of torch.distributed only."""
        with socket.socket() as first, socket.socket() as second:
            for free in (first, second):
                free.bind(("127.0.0.1", 0))
            ports = {"MASTER_PORT": str(first.getsockname()[1]), "SECOND_PORT": str(second.getsockname()[1])}
        places = [{**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", **ports}
                  for rank in range(ranks)]
        return [subprocess.Popen([*self.python, self.script, name, *arguments], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, env=place, cwd=self.folder) for place in places]

    def by_hand(self, ranks, name):
        """Starts such ranks and returns the output of each."""
        running = self.started_by_hand(ranks, name)
        outputs = [each.communicate(timeout=200)[0] for each in running]
        self.assertEqual([each.returncode for each in running], [0] * ranks, outputs)
        return outputs


class Collectives(BackendTest):
    calls = [("plain_calls",), ("inference_mode",), ("futures_of_ended_works",)]
    if TORCH >= (2, 7):  # with earlier versions the latest 16 works keep their results
        calls.append(("results_that_the_caller_drops",))

    def random_programs(self, ranks, seed):
        said = self.facts(self.start([SYNCOPATE, "run", "-n", ranks, "--run-dir", "run", "--", *self.python, PROGRAMS,
                                      seed, CALLS]))
        self.assertEqual([facts["calls"] for facts in said], [CALLS] * ranks)

    def test_random_program_of_2_ranks_seed_11(self):
        self.random_programs(2, 11)

    def test_random_program_of_3_ranks_seed_12(self):
        self.random_programs(3, 12)

    def test_random_program_of_4_ranks_seed_13(self):
        self.random_programs(4, 13)

    def test_what_gloo_does_not_have(self):
        said = self.facts(self.launch(3, "more_than_gloo"))
        for facts in said:
            rank = facts["rank"]
            self.assertEqual(facts["mean"], [1, 1, 1])
            self.assertEqual(facts["counts"], [1, -1])
            self.assertEqual(facts["halves"], [4.5, 4.5, 4.5])
            self.assertEqual((facts["truth"], facts["every"]), ([True, True, False], [True, False, False]))
            self.assertEqual(facts["complex"], [3, 6])
            self.assertEqual(facts["objects"], [{"rank": 0}, {"rank": 1}, {"rank": 2}])
            self.assertEqual(facts["heard"], ["by 2"])
            self.assertEqual(facts["into"], [0, 0, 1, 1, 2, 2])
            self.assertEqual(facts["part"], [3 * 2 * rank, 3 * (2 * rank + 1)])
            self.assertEqual(facts["received"], (rank - 1) % 3)

    def test_calls_of_the_process_group_without_options(self):
        for facts in self.said("plain_calls"):
            is_root = facts["rank"] == 1
            self.assertEqual(facts["allreduce"], [[3], [2], [2], [2]])
            self.assertEqual(facts["broadcast"], [[2], [1]])
            self.assertEqual(facts["reduce"], [[3], [2]] if is_root else [[1], [1]])
            self.assertEqual((facts["allgather"], facts["gather"]), ([[1, 2]], [[10, 20] if is_root else [1, 2]]))
            self.assertEqual((facts["scatter"], facts["reduce_scatter"]), ([[20 if is_root else 2]],) * 2)
            self.assertEqual(facts["_reduce_scatter_base"], [[30 if is_root else 3]])
            self.assertEqual(facts["alltoall"], [[10, 20] if is_root else [1, 2]])
            self.assertTrue(facts["barrier"])

    def test_collectives_that_begin_in_inference_mode(self):
        for facts in self.said("inference_mode"):
            self.assertEqual((facts["places"], facts["mean"]), ([[1, 1], [2, 2]], [[1.5, 1.5]] * 3))
            self.assertEqual((facts["future"], facts["outside"]), (6, [[0, 0, 0]] * 2))

    def test_the_future_of_a_work_that_has_ended_is_done(self):
        for facts in self.said("futures_of_ended_works"):
            self.assertEqual((facts["done"], facts["value"], facts["after"]), (True, [2, 2], 4))

    def test_ten_thousand_operations_leave_nothing(self):
        """A leak grows the process in each stretch, the heap of a new thread only once. Hence the minimum."""
        for facts in self.facts(self.launch(2, "long_run")):
            self.assertLess(min(facts["growths"]), 64, facts["growths"])

    def test_a_receive_that_waits_beside_many_collectives(self):
        for facts in self.facts(self.launch(2, "a_receive_that_waits")):
            self.assertEqual(facts["stop"], 5)
            self.assertLess(facts["kept"], 20)

    def test_a_handler_at_the_end_of_the_script_uses_the_group(self):
        self.assertEqual([facts["total"] for facts in self.facts(self.launch(2, "at_exit"))], [2, 2])

    def test_each_work_looks_at_few_others(self):
        """A new work checks few others, however many are under way: a script may begin thousands before it waits."""

        class UnderWay:
            looks, ends = 0, False

            def is_number(self):
                return False

            def is_completed(self):
                UnderWay.looks += 1
                return self.ends

        kept, works = KeptWorks(), [UnderWay() for _ in range(1000)]
        for work in works:
            kept.add(work)
        self.assertLessEqual(UnderWay.looks, 8 * len(works))
        self.assertEqual(len(list(kept)), len(works))
        for work in works:
            work.ends = True
        for _ in range(1000):
            kept.add(UnderWay())
        self.assertFalse(set(kept) & set(works))

    def test_a_script_that_ends_while_a_callback_computes(self):
        self.assertEqual([facts["found"] for facts in self.facts(self.launch(2, "callbacks_at_the_end"))], [3, 3])

    if TORCH >= (2, 7):

        def test_results_live_no_longer_than_the_tensors_of_the_caller(self):
            for facts in self.said("results_that_the_caller_drops"):
                self.assertEqual((facts["alive"], facts["result"]), ([False, False], [1, 1, 1, 1]))


class Scripts(BackendTest):
    def test_distributed_data_parallel_trains_as_on_gloo(self):
        said = self.facts(self.launch(2, "data_parallel"))
        for facts in said:
            self.assert_near(facts["ours"], facts["gloo"])
            self.assertEqual(facts["ours"], said[0]["ours"])
            self.assertEqual(facts["many_buckets"], said[0]["many_buckets"])

    def test_two_groups_one_after_the_other(self):
        for rank, output in enumerate(self.by_hand(3, "again")):
            self.assertIn(f'"sums": {[6.0 if rank > 0 else 3.0] * 2}', output)

    def test_a_store_that_outlives_a_job(self):
        for output in self.by_hand(2, "restarted"):
            self.assertIn('"left": [], "sums": [2.0, 2.0]', output)

    def test_loaders_in_forked_processes(self):
        for output in self.by_hand(2, "forked_loaders"):
            self.assertIn('"total": 480.0', output)

    def test_a_group_beside_a_default_one_of_gloo(self):
        for facts in self.facts(self.launch(2, "beside_gloo")):
            self.assertEqual(facts["sum"], 2)

    @unittest.skipUnless(shutil.which("mpiexec.openmpi") and shutil.which("mpiexec.mpich"), "needs both MPIs")
    def test_launchers(self):
        as_root = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        launchers = [["mpiexec.openmpi", "--oversubscribe", "-n", 2], ["mpiexec.mpich", "-n", 2]]
        if int(torch.__version__.split(".")[0]) > 1:  # Debian's torchrun (torch 1) does not start
            launchers.append([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2])
        for launcher in launchers:
            command = [*launcher, *([sys.executable] if "mpi" in launcher[0] else []), SCRIPTS, "more_than_gloo"]
            with self.subTest(launcher[0]):
                done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200,
                                      check=False, cwd=self.folder, env=as_root)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count('"mean": [0.5, 0.5, 0.5]'), 2, done.stdout)


if TORCH >= (2, 4):  # earlier versions lack functions that these scripts call

    class OfTorch2(BackendTest):
        calls = [("device_mesh",), ("default_device",)]

        def test_groups_have_names(self):
            for facts in self.said("device_mesh"):
                self.assertEqual((facts["total"], facts["names"]), (2, ["0", "default_pg", "of two"]))
                self.assertTrue(facts["is_named"])

        def test_checkpoints(self):
            for facts in self.facts(self.launch(2, "checkpoints")):
                self.assertEqual((facts["weight"], facts["states"]), (6, ["bias", "weight"]))
                self.assertEqual(facts["devices"], ["cpu", "cuda"])
                self.assertIn("Set timeout is now only supported" if TORCH < (2, 14) else "set_timeout(0:00:09) does not change it",
                              facts["of_timeout"][-1])

        def test_tensors_of_collectives_are_on_the_cpu_whatever_the_default_device(self):
            for facts in self.said("default_device"):
                self.assertEqual(facts["gathered"], [[0, 0], [1, 1]] * 2)
                self.assertEqual((facts["exchanged"], facts["part"], facts["halves"]), ([0, 1], [1, 1], [1]))
                self.assertTrue(facts["is_finite"])


if TORCH >= (2, 13):

    class OfTorch213(BackendTest):
        calls = [("compiled",), ("functional_collectives",), ("promised_tensors",), ("tensors_in_parts",)]

        def test_compiled_distributed_data_parallel(self):
            for facts in self.said("compiled"):
                self.assert_near(facts["found"], facts["expected"])
            [alone] = self.facts(self.start([SYNCOPATE, "run", "-n", 1, "--", sys.executable, "-B", self.script, "light"]))
            self.assertTrue(alone["is_light"])

        def test_functional_collectives(self):
            for facts in self.said("functional_collectives"):
                self.assertEqual((facts["total"], facts["gathered"]), ([1, 21], [0, 10, 1, 11]))
                self.assertEqual(facts["part"], [21] if facts["rank"] else [1])

        def test_tensors_that_a_functional_collective_has_promised(self):
            for facts in self.said("promised_tensors"):
                self.assertEqual(facts["kind"], "AsyncCollectiveTensor")
                self.assertEqual((facts["reduced"], facts["sent"]), ([2, 6, 10, 14], [1, 3, 5, 7]))
                self.assertEqual((facts["everyone"], facts["parts"]), ([1, 3, 5, 7] * 2, [[1, 3, 5, 7]] * 2))
                self.assertEqual((facts["block"], facts["here"]), ([[2, 6], [10, 14]][facts["rank"]], [1, 3, 5, 7]))
                self.assertRegex(facts["refused"], r"found a DTensor: pass its to_local\(\)")

        def test_tensors_in_parts(self):
            rows = [[0, 1], [2, 3], [4, 5], [6, 7]]
            for facts in self.said("tensors_in_parts"):
                self.assertEqual((facts["rows"], facts["all_rows"]), (rows[2:] if facts["rank"] else rows[:2], rows))
                self.assert_near(facts["parallel"], facts["plain"])
                self.assert_near(facts["sharded"], facts["whole"])


class Failures(BackendTest):
    def test_a_rank_that_raises_ends_the_job_with_its_traceback_first(self):
        done = self.launch(3, "rank_raises")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ValueError: the loss of this script is strange", done.stderr)
        others = [line for line in done.stderr.splitlines() if "PeerLost" in line]
        if others:
            self.assertLess(done.stderr.index("ValueError"), done.stderr.index(others[0]))

    def test_a_rank_that_does_not_come_is_named(self):
        said = self.facts(self.launch(2, "comes_too_late"))
        self.assertRegex(said[0]["caught"], "worker 1|rank 1|1")

    if "timeout" in inspect.signature(torch.distributed.barrier).parameters:

        def test_a_barrier_with_a_limit_of_its_own(self):
            [facts] = self.facts(self.launch(2, "late_for_a_barrier"))
            self.assertEqual(facts["caught"], "an operation of torch.distributed has not ended within 0.5 s")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
