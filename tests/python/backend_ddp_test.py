#!/usr/bin/python3
"""Goal:   the features of DistributedDataParallel, including sparse gradients, work on backend "syncopate" as on Gloo; its
        errors have distinct classes, and its collectives have names in a profiler.
Method: backend_ddp_scripts.py under `syncopate run` trains on both backends in the same processes; parameters agree to 1e-6.
"""
import json
import pathlib
import unittest

from backend_test import BackendTest


class DdpTest(BackendTest):
    script = str(pathlib.Path(__file__).with_name("backend_ddp_scripts.py"))

    def beside_gloo(self, *features):
        said = self.facts(self.launch(2, "beside_gloo", *features))
        for feature in features:
            with self.subTest(feature):
                for facts in said:
                    ours, gloo = facts[feature]
                    self.assertEqual(len(ours), len(gloo))
                    self.assertLess(max(abs(found - expected) for found, expected in zip(ours, gloo)), 1e-6)
                    self.assertEqual(ours, said[0][feature][0])


class Features(DdpTest):
    def test_of_the_module_and_its_optimizer(self):
        self.beside_gloo("unused_parameters", "static_graph", "bucket_view", "join", "no_sync", "zero_redundancy")

    def test_join(self):
        self.beside_gloo("join_with_unused_parameters", "join_that_divides_by_those_that_remain")

    def test_hooks(self):
        self.beside_gloo("allreduce_hook", "fp16_compress_hook", "power_sgd_hook", "own_hook")

    def test_sparse_gradients(self):
        self.beside_gloo("sparse_embedding", "sparse_embedding_beside_dense_layers")

    def test_sums_of_sparse_tensors(self):
        for ranks in (2, 3):
            said = self.facts(self.launch(ranks, "sparse_sums"))
            self.assertEqual([facts["equal"] for facts in said], [[True] * 6] * ranks)
            self.assertEqual([facts["mean"] for facts in said], [[3.0, 0.0]] * ranks)

    def test_power_sgd_hook_with_many_buckets_gives_all_ranks_the_same(self):
        said = self.facts(self.launch(3, "many_buckets_of_power_sgd"))
        for facts in said:
            for run in facts["runs"]:
                self.assertEqual(run, said[0]["runs"][0])


class BesideResults(DdpTest):
    def test_the_error_behind_that_of_a_backward_pass_has_its_class(self):
        done = self.launch(2, "loses_a_rank_in_a_backward_pass")
        said = [json.loads(line.split("] ", 1)[1]) for line in done.stderr.splitlines() if line.startswith("[worker 0] {")]
        self.assertEqual([facts["behind"] for facts in said], ["PeerLost"], done.stderr)
        self.assertIn("worker 1", said[0]["text"])
        self.assertTrue(said[0]["other"])

    def test_a_profiler_shows_collectives_by_their_names(self):
        for facts in self.facts(self.launch(2, "profiled")):
            self.assertEqual(facts["found"], ["syncopate:all_reduce", "syncopate:broadcast", "syncopate:all_gather", "syncopate:barrier"])


if __name__ == "__main__":
    unittest.main()
