#!/usr/bin/python3
"""Goal:   a script for Horovod runs after a change of its import, and trains as one process with the whole batch would.
Method: horovod_scripts.py under `syncopate run`, compared with torch in this process.
"""
import ast
import pathlib
import unittest

import scripts
import syncopate_torch.horovod as hvd
from forked_scripts import ForkServer
from script_cases import SYNCOPATE, TORCH, ScriptTest, reference

import torch
from torch.nn import functional

SCRIPTS = str(pathlib.Path(__file__).with_name("horovod_scripts.py"))


class HorovodTest(ScriptTest):
    script, server = SCRIPTS, ForkServer(real_first=True)

    def check_differentiated(self):
        for facts in self.said("differentiated"):
            self.assertEqual(len(facts["errors"]), 10)
            for name, error in facts["errors"].items():
                self.assertLess(error, 1e-12, name)


class OfTwoWorkers(HorovodTest):
    calls = [("training",), ("training", "fp16"), ("two_passes",), ("overflows", "by hand"), ("differentiated",),
             ("of_float64",), ("calls_of_horovod",), ("two_optimizers", "equal"), ("unequal_counts",), ("named", "equal"),
             ("named", "unequal"), ("joins_before_a_metric",), ("integers",), ("scheduler_before",), ("later_parameters",),
             ("unpicklable",), ("rows",), ("places",), ("misuse",), ("halves",), ("keeps_sparse",),
             ("names_at_once",),
             *(("unequal_use", what) for what in ("op", "named op", "factor", "sparse", "optimizer")),
             *(("unequal_broadcast", what) for what in ("types", "roots", "shapes"))]
    if TORCH >= (2, 0):
        calls.append(("hooks",))
    if TORCH >= (2, 3):  # earlier versions have no GradScaler for CPUs
        calls.append(("overflows", "torch"))

    def run_by(self, workers, name, *arguments):
        folder = "-".join(map(str, (name, workers, *arguments)))
        return self.start([SYNCOPATE, "run", "-n", workers, "--run-dir", folder, "--", *self.python, SCRIPTS, name,
                           *arguments])

    def test_training_is_that_of_one_process(self):
        said = self.said("training")
        for facts in said:
            self.assert_near(facts["parameters"], reference())
            self.assertTrue(facts["is_torchs"])
        self.assertEqual(said[0]["parameters"], said[1]["parameters"])

    def test_gradients_as_float16(self):
        said = self.said("training", "fp16")
        for found, right in zip(said[0]["parameters"], reference()):
            self.assertAlmostEqual(found, right, delta=0.01)
        self.assertNotEqual(said[0]["parameters"], reference())

    def test_two_passes_a_step_and_gradients_before_it(self):
        for facts in self.said("two_passes"):
            self.assert_near(facts["parameters"], reference())
            self.assertGreater(facts["norm"], 0)

    def test_a_loss_scale_that_leaves_a_step_out(self):
        for facts in self.said("overflows", "by hand"):
            self.assertEqual(facts["scale"], 512)
            self.assert_near(facts["parameters"], reference())

    if TORCH >= (2, 3):

        def test_torchs_loss_scale(self):
            for facts in self.said("overflows", "torch"):
                self.assertEqual(facts["scale"], 512)
                self.assert_near(facts["parameters"], reference())

    def test_gradients_through_collectives_are_those_of_one_process(self):
        self.check_differentiated()

    def test_gradients_of_float64(self):
        for facts in self.said("of_float64"):
            self.assertEqual((facts["gradient"], facts["type"]), (1 + 2**-41, "torch.float32"))

    def test_calls_as_horovod_has_them(self):
        for facts in self.said("calls_of_horovod"):
            self.assertEqual((facts["twice"], facts["listed"]), ([1.5, 1.5], [6, 8]))
            self.assertEqual((facts["grouped"], facts["integers"]), ([12, 6], 4))
            self.assertEqual((facts["object"], facts["objects"]), (True, [[0], [1]]))

    def test_a_worker_joins_with_two_optimizers(self):
        said = self.said("two_optimizers", "equal")
        self.assertEqual([facts["last"] for facts in said], [0, 0])
        self.assertEqual(said[0]["values"], [-1.25, -1, -1])
        self.assertEqual(said[1]["values"], [-0.5, -0.5, -0.5])

    def test_two_optimizers_in_unequal_order(self):
        done = self.run_by(2, "two_optimizers", "unequal")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "this worker steps optimizer 1 of its job while another one steps optimizer 2")

    def test_a_worker_with_fewer_steps_joins(self):
        said = self.said("unequal_counts")
        points, labels, network = scripts.problem()
        optimizer = scripts.sgd(network)
        for step in range(scripts.STEPS):
            optimizer.zero_grad()
            contributed = 2 if step < scripts.STEPS - 2 else 1  # workers
            (functional.cross_entropy(network(points), labels) * contributed / 2).backward()
            optimizer.step()
        self.assert_near(said[0]["parameters"], scripts.parameters_of(network))
        self.assertEqual([facts["last"] for facts in said], [0, 0])

    def test_names_in_unequal_order(self):
        others = [[0, 1], None, 7, "x", [1, 1]]
        for facts in self.said("named", "equal"):
            others[1] = [facts["rank"]] * 2
            self.assertEqual((facts["refused"], facts["values"], facts["others"]), ([None] * 2, [2, 20], others))
        for facts in self.said("named", "unequal"):
            for refused in (*facts["refused"], facts["unequal"]):
                self.assertRegex(refused, "worker . calls a collective named '.*' where worker . calls the one named .*: ")
            self.assertRegex(facts["unequal"], f"named 'of {facts['rank']} .*' where worker . .* named 'of {1 - facts['rank']} ")

    def test_sums_for_different_results(self):
        mean = r"worker 0 calls allreduce of 3 float32 \(sum\), worker 1 .* for op mean;"
        for what, message in (("op", mean), ("named op", mean), ("sparse", "named 's.indices for op (sum|mean)' where worker"),
                              ("optimizer", "worker 1 .* for op mean of an optimizer;"),
                              ("factor", r"worker 1 allreduce of 3 float32 \(sum\) for op sum with factors 2, 1;")):
            for facts in self.said("unequal_use", what):
                self.assertRegex(facts["refused"], message)

    def test_two_collectives_of_one_name_at_once(self):
        first, second = self.said("names_at_once")
        self.assertRegex(first["refused"], "hvd.allreduce has been called with the name 'loss' again, before the first one has")
        for facts in (first, second):
            self.assertEqual(facts["sums"], [[2, 2]] * 4)

    def test_a_worker_joins_where_the_next_call_is_no_step(self):
        for facts in self.said("joins_before_a_metric"):
            self.assertRegex(facts["refused"], r"same order; after a worker has called hvd.join\(\), the next call of the")

    def test_integers_are_exact(self):
        for facts in self.said("integers"):
            self.assertEqual((facts["mean"], facts["half"]), ([2**60 + 1, -2**60 - 1, -1], 8194))
            self.assertEqual((facts["scaled"], facts["parts"]), (12 * (2**53 + 1), [True] * 99))

    def test_a_scheduler_that_is_made_before(self):
        for facts in self.said("scheduler_before"):
            self.assertEqual((facts["warned"], facts["ends"]), ([], [[-3, 0.25]] * 2))

    if TORCH >= (2, 0):  # optimizers of torch 1 have no step hooks

        def test_hooks_run_once_a_step(self):
            for facts in self.said("hooks"):
                self.assertEqual(facts["calls"], ["before", "after"])

    def test_parameters_that_are_unfrozen_and_added(self):
        for facts in self.said("later_parameters"):
            self.assertEqual(facts["values"], [[-4.5] * 2, [-3] * 2, [-1.5] * 2])

    def test_broadcasts_that_differ(self):
        for what, own in (("types", r"\[2\] torch.float32 from 0"), ("roots", r"\[2\] torch.float32 from 0"),
                          ("shapes", r"\[2\] torch.float32 from 0")):
            for facts in self.said("unequal_broadcast", what):
                self.assertRegex(facts["refused"], rf"calls a collective named '.*{own}' where|the one named '.*{own}'")

    def test_halves_are_scaled_in_float32(self):
        for facts in self.said("halves"):
            self.assertEqual(facts["scaled"], facts["expected"])

    def test_sparse_gradients_stay_sparse(self):
        first, second = self.said("keeps_sparse")
        self.assertEqual(first["weight"], second["weight"])
        for facts in (first, second):
            self.assertEqual(len(facts["warned"]), 1)
            self.assertIn("without optimizer.skip_synchronize() reduces the gradients again", facts["warned"][0])

    def test_objects_that_cannot_be_pickled(self):
        for facts in self.said("unpicklable"):
            for refused in facts["refused"]:
                self.assertRegex(refused, "worker 0 cannot pickle its object of type function: .*lambda.*install cloudpickle")
            self.assertEqual(facts["objects"], ["by cloudpickle", "plain"])

    def test_rows_of_several_tensors(self):
        said = self.said("rows")
        halves = [[0.0, 2.0], [4.0, 6.0]], [[0.0, 1.0], [2.0, 3.0]], [[0, 2], [4]], [[0, 1], [2]]
        for facts, (sums, means, sums_of_integers, means_of_integers) in zip(said, zip(*halves)):
            self.assertEqual(facts["scattered"], [sums, means, sums, sums_of_integers, means, means_of_integers])
            self.assertEqual(facts["gathered"], [[[0, 1, 1], [[0.5], [0.5]]]] * 2)

    def test_classes_of_the_stub_exist(self):
        stub = ast.parse(pathlib.Path(hvd.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        for node in stub.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):  # a private class is only the type of a result
                self.assertTrue(hasattr(hvd, node.name), node.name)

    def test_refusals_say_what_to_do(self):
        with self.assertRaisesRegex(AttributeError, "Syncopate has no start_timeline; look at trace.json.gz"):
            hvd.start_timeline  # noqa: B018 (it raises)
        hvd.init()
        self.addCleanup(hvd.shutdown)
        for collective in (hvd.allgather, hvd.allgather_async, hvd.alltoall, hvd.reducescatter, hvd.reducescatter_async):
            name = collective.__name__.replace("_async", "")
            with self.subTest(name), self.assertRaisesRegex(hvd.ConfigError, name + r" takes rows, .*: reshape\(1\) it"):
                collective(torch.tensor(1.0))
        for collective, root in [*((each, ()) for each in (
                hvd.allreduce, hvd.allreduce_, hvd.allreduce_async, hvd.allgather, hvd.alltoall, hvd.reducescatter)),
                *((each, (0,)) for each in (hvd.broadcast, hvd.broadcast_, hvd.broadcast_async))]:
            with self.subTest(collective.__name__), self.assertRaisesRegex(
                    hvd.ConfigError, "a collective takes tensors, found 1.5: make one of it by torch.tensor"):
                collective(1.5, *root)
        with self.assertRaisesRegex(hvd.ConfigError, "LBFGS evaluates the loss again within a step"):
            hvd.DistributedOptimizer(torch.optim.LBFGS(torch.nn.Linear(1, 1).parameters()))

    def test_workers_of_one_host(self):
        for facts in self.said("places"):
            self.assertEqual((facts["local"], facts["cross"]), ([facts["rank"], 2], [0, 1]))
            self.assertEqual((facts["homogeneous"], facts["enabled"]), (True, [False] * 3))

    def test_misuse_says_what_to_do(self):
        for facts in self.said("misuse"):
            refused = facts["refused"]
            self.assertRegex(refused["before init"], r"call hvd\.init\(\) first")
            self.assertRegex(refused["some workers"], r"expected hvd.init\(\) of all workers, found comm=\[0\]: leave it out")
            self.assertRegex(refused["a set twice"], r"a process set of ranks \[0\] is there already: use that one")
            self.assertRegex(refused["all"], r"a process set of ranks \[0, 1\] is there already")
            self.assertRegex(refused["no rank"], r"a process set has ranks from 0 to 1, each once, found \[0, 5\]")
            if facts["rank"] == 1:
                self.assertRegex(refused["not of it"], r"worker 1 is not in the process set of ranks \[0\]")
            else:
                self.assertRegex(refused["other root"], r"root_rank 1 is not in the process set of ranks \[0\]")
            self.assertRegex(refused["closed"], r"the process set of ranks \[0\] is not open: call hvd.add_process_set")
            self.assertRegex(refused["two words"], "not both")
            self.assertRegex(refused["names"], "lacks 4 parameters")
            self.assertRegex(refused["complex"], "found a complex one: train torch.view_as_real of it")
            self.assertRegex(refused["twice"], "distributed already: leave out the second call of hvd.DistributedOptimizer")
            self.assertRegex(refused["greatest"], "has a gradient by hvd.Average and hvd.Sum, found op 'max': detach")


class OfThreeWorkers(HorovodTest):
    workers = 3
    calls = [("differentiated",), ("joins_early", "1"), ("joins_early", "2"), ("collectives",), ("sets",), ("joins_by_turns",)]

    def test_gradients_through_collectives_are_those_of_one_process(self):
        self.check_differentiated()

    def test_others_reduce_while_a_worker_has_joined(self):
        for optimizers in (1, 2):
            said = self.said("joins_early", str(optimizers))
            self.assertEqual([facts["last"] for facts in said], [said[0]["last"]] * 3)
            self.assertIn(said[0]["last"], (0, 2))
            all_three = [[2, -1], [18, -9], [-5, -9], [9, 7], [6, -1]]
            self.assertEqual([each[:5] for each in (facts["said"][0] for facts in said)], [all_three] * 3)
            for facts in (said[0], said[2]):
                for step, (mean, *others, product, rows) in enumerate(facts["said"][1:], start=1):
                    self.assertEqual([round(each * 3, 5) for each in mean], [4, -2])  # worker 1 contributes zeros
                    self.assertEqual(others, [[12, -6], [-5, -9], [9, 7]])
                    own_rows = [2] * (2 - facts["rank"] // 2)
                    self.assertEqual((product, rows), ([(1 + step) * (3 + step), (step - 1)**2], own_rows))
                self.assertAlmostEqual(facts["weight"], -(1 + 2 * 2 / 3 + 3 * 2 / 3), 5)
                self.assertEqual(facts["after"], [0, 1, 2])
            self.assertRegex(said[0]["refused"], r"has called hvd.join\(\), so hvd.allgather would wait for it in vain")

    def test_sets_of_some_workers(self):
        for rank, facts in enumerate(self.said("sets")):
            self.assertEqual((facts["size"], facts["own"], facts["included"]), ([2, 1], [[0, None], [None, 0], [1, None]][rank],
                                                                                [rank != 1, rank == 1]))
            self.assertEqual(facts["removed"], [True, False])
            expected = {"mean": [2], "sum": [4], "rows": [[0], [2], [2], [2]], "root": [2], "object": "of 2", "part": [2],
                        "exchanged": [rank // 2, 20 + rank // 2], "gradient": [1], "sparse": [0, 2, 2]}
            if rank == 1:
                expected = {"mean": [2], "sum": [2], "rows": [[1], [1]], "root": [1], "object": "of 1", "part": [2, 2],
                            "exchanged": [10, 11], "gradient": [1], "sparse": [0, 2, 0]}
            self.assertEqual(facts["values"], expected)
            self.assertEqual(facts["weight"], [-1.5, -10, -1.5][rank])

    def test_the_last_to_join_is_named(self):
        for facts in self.said("joins_by_turns"):
            self.assertEqual(facts["last"], [0, 1, 2])

    def test_collectives(self):
        for facts in self.said("collectives"):
            self.assertEqual((facts["size"], facts["mean"], facts["sum"]), (3, [1, 1], [3, 3]))
            self.assertEqual((facts["integers"], facts["half"], facts["greatest"]), ([4], [1.5], [2]))
            self.assertEqual(facts["rows"], [[0, 0], [1, 1], [1, 1], [2, 2], [2, 2], [2, 2]])
            self.assertEqual((facts["heard"], facts["object"], facts["objects"]), ([1], {"from": 1}, ["", "x", "xx"]))
            self.assertEqual((facts["rate"], facts["done"]), (1.5, True))
            rank = facts["rank"]
            self.assertEqual((facts["grouped"], facts["in_place"]), ([[6.0], [[3]]], [[1.0], [1.0, 2.0]]))
            self.assertEqual(facts["exchanged"], [rank, 10 + rank, 20 + rank])
            self.assertEqual(facts["unequal"], [[[0], [1], [1], [2], [2], [2]], [1, 2, 3]] if rank == 2 else [[], [0, 0, 0]])
            self.assertEqual((facts["part"], facts["later"]), ([[3.0, 6.0], [9.0], [12.0]][rank], [0, 1, 2]))
            self.assertEqual(facts["built"], [False] * 7)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
