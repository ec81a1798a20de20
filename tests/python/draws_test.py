#!/usr/bin/python3
"""Goal:   workers draw different random numbers for their samples, even if all scripts set the same seed; draws by weights
        are common to all workers, and exactly one worker trains on each draw.
Method: draws_scripts.py under `syncopate run`; the test counts equal numbers and compares frequencies with the weights.
"""
import collections
import pathlib
import unittest

import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

import draws_scripts as scripts
from script_cases import SYNCOPATE, AloneTest, ScriptTest
from syncopate_torch.integrations.loaders import training_loader

SCRIPTS = str(pathlib.Path(__file__).with_name("draws_scripts.py"))


class OfTwoWorkers(ScriptTest):
    script = SCRIPTS
    augmented = [("augmentations", persistent, *given) for persistent in ("0", "1") for given in ((), ("given",))]
    weighted = [("weighted", way, order) for order in ("fixed", "leased") for way in ("loader", "sampler", "weights", "batches")]
    calls = [*augmented, *weighted]

    def test_processes_of_loaders_draw_numbers_of_their_own(self):
        for call in self.augmented:
            with self.subTest(call):
                first, second = self.said(*call)
                numbers = [pair[place] for facts in (first, second) for epoch in facts["epochs"] for pair in epoch
                           for place in (0, 1)]
                self.assertGreater(len(set(numbers)), len(numbers) - 3)  # of a million: a few may be equal
                self.assertEqual(first["later"], second["later"])  # other draws of the script stay equal

    def test_draws_by_weights_are_those_of_all_workers_together(self):
        for call in self.weighted:
            with self.subTest(call):
                first, second = self.said(*call)
                epochs = [one + other for one, other in zip(first["epochs"], second["epochs"])]
                if call[-1] == "fixed":
                    self.assertEqual([len(epoch) for epoch in epochs], [scripts.SAMPLES] * 3)
                drawn = [index for epoch in epochs for index in epoch]
                self.assertEqual(len(drawn), 3 * scripts.SAMPLES)
                self.assertGreaterEqual(min(drawn), 8)  # the first eight samples have weight 0
                self.assertGreater(sum(index >= 16 for index in drawn), 110)  # mean 133 of 144, standard deviation 3.2
                self.assertNotEqual(*(collections.Counter(epoch) for epoch in epochs[:2]))

    def test_ways_to_say_weights_draw_the_same(self):
        drawn = [sorted(facts["epochs"][0] for facts in self.said("weighted", way, "fixed")) for way in ("loader", "batches")]
        self.assertEqual(*drawn)

    def test_workers_with_other_weights_are_refused(self):
        done = self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", "run", "--", *self.python, SCRIPTS, "of_other_weights"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the WeightedRandomSampler of worker 1 has other weights", done.stderr)

    def test_a_later_job_goes_on_with_the_same_draws(self):
        whole, rest = (self.facts(self.start([SYNCOPATE, "run", "-n", 2, "--run-dir", f"run{len(file)}", "--", *self.python,
                                              SCRIPTS, "stops", *file])) for file in ((), ("draws.{}",)))
        for before, after in zip(whole, rest):
            self.assertEqual(before["drawn"][8:], after["drawn"])


class OfOneWorker(AloneTest):
    def test_a_loader_of_weights_has_the_draws_of_an_epoch(self):
        dataset = TensorDataset(torch.arange(4))
        sampler = WeightedRandomSampler([0.0, 1.0, 1.0, 0.0], 100)
        for data in (self.job.partition_dataset(dataset, 10, sampler=sampler),
                     training_loader(self.job, DataLoader(dataset, batch_size=10, sampler=sampler))):
            drawn = torch.cat([batch for [batch] in data])
            self.assertEqual(len(drawn), 100)
            self.assertEqual(set(drawn.tolist()), {1, 2})

    def test_draws_without_replacement_are_all_different(self):
        sampler = self.job.sampler(WeightedRandomSampler([1.0] * 10, 10, replacement=False))
        self.assertEqual(sorted(sampler), list(range(10)))

    def test_what_is_no_dataset(self):
        with self.refused("expected a dataset or a WeightedRandomSampler, found RandomSampler"):
            self.job.sampler(RandomSampler(range(3)))
        with self.refused("weights has one for each sample: expected 3, found 2"):
            self.job.sampler(range(3), weights=[1.0, 2.0])


if __name__ == "__main__":
    unittest.main()
