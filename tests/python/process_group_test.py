#!/usr/bin/python3
"""Goal:   with option aggregate torch each scheme trains over a process group of torch between hosts as over the job's own
        streams; without such a group the reason is one line.
Method: Gloo's group of scripts on two hosts (hosts_test.py), one or two ranks on each; digests of the models.
"""
import json
import pathlib
import unittest

from hosts_test import HostsTest
from script_cases import TORCH


def facts_in(output):
    """What a rank has said."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


class GroupOfTorch(HostsTest):
    """Option aggregate torch, over Gloo's group of the script."""

    def trained(self, *calls, each=1):
        """Returns what each rank says of a call, by call, once all ranks of it have the same bits."""
        key = self.key("job.key")
        outputs, statuses = self.start("0", "hosts_scripts.py", "by_group_of_torch", *calls, keys=[key, key], each=each)
        self.assertEqual(statuses, [0] * 2 * each, outputs)
        said = [facts_in(output) for output in outputs]
        found = {}
        for facts in zip(*said, strict=True):
            self.assertEqual(len({fact["bits"] for fact in facts}), 1, facts)
            self.assertGreater(facts[0]["rounds"], 1)
            found[facts[0]["trained"]] = facts[0]["bits"]
        return found

    def aggregate(self, call):
        folder = pathlib.Path(self.folder) / call.replace("/", "-")
        return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["aggregate"]

    def test_sums_have_the_bits_of_our_own_streams(self):
        calls = ["ssgd/{}", "ssgd/{}/overlap=on", "local-sgd/{}/local-steps=3", "diloco/{}/local-steps=3"]
        found = self.trained(*(call.format(aggregate) for call in calls for aggregate in ("torch", "ring")))
        for call in calls:
            with self.subTest(call):
                self.assertEqual(found[call.format("torch")], found[call.format("ring")])
                self.assertIn("torch: 2 ranks", self.aggregate(call.format("torch")))

    def test_schemes_whose_workers_differ_end_with_one_model(self):
        calls = ["esync/torch", "nbssgd/torch/mini-batches=2"]
        self.trained(*calls)
        for call in calls:
            self.assertIn("torch: 2 ranks", self.aggregate(call))

    def test_workers_of_a_host_reduce_first(self):
        found = self.trained("ssgd/torch", "ssgd/two-level", "esync/torch", each=2)
        self.assertIn("torch between hosts: 4 ranks", self.aggregate("ssgd/torch"))
        self.assertEqual(found["ssgd/torch"], found["ssgd/two-level"])

    if TORCH >= (2, 0):  # torch 1 has no process groups in Python

        def test_a_backend_that_takes_tensors_of_a_device_alone(self):
            calls = ["ssgd/torch", "ssgd/ring", "esync/torch"]
            key = self.key("job.key")
            outputs, statuses = self.start("0", "hosts_scripts.py", "by_group_of_a_device", *calls, keys=[key, key])
            self.assertEqual(statuses, [0, 0], outputs)
            *trained, refused = zip(*[facts_in(output) for output in outputs], strict=True)
            for call, facts in zip(calls, trained, strict=True):
                self.assertEqual({fact["trained"] for fact in facts}, {call})
                self.assertEqual(len({fact["bits"] for fact in facts}), 1, facts)
                self.assertGreater(facts[0]["rounds"], 1)
                if "torch" in call:
                    self.assertGreater(facts[0]["sums"], facts[0]["rounds"])
                else:
                    self.assertEqual(facts[0]["sums"], 0)
            self.assertEqual(trained[0][0]["bits"], trained[1][0]["bits"], "as over our own streams")
            for facts in refused:
                self.assertRegex(facts["refused"], "the backend standin .* where the module of worker 1 is: make the group of cpu:gloo")

    def test_without_a_group(self):
        outputs, statuses = self.start("1", "hosts_scripts.py", "without_a_group")
        self.assertEqual(statuses, [0, 0], outputs)
        for output in outputs:
            none, own = json.loads(output.splitlines()[-1])["reasons"]
            self.assertIn("call torch.distributed.init_process_group before", none)
            self.assertIn("another backend than syncopate", own)


if __name__ == "__main__":
    unittest.main()
