#!/usr/bin/python3
"""Goal:   `init_process_group("cpu:syncopate,cuda:nccl")` gives the tensors of each device type to its backend.
Method: backend_mixed_scripts.py under `syncopate run`, with a backend that records its calls in place of the accelerator's,
        and with Gloo as a backend that is not written in Python. torch 1.13 and 2.0 support only one backend.
"""
import pathlib
import unittest

from backend_test import BackendTest
from script_cases import TORCH


class Mixed(BackendTest):
    script = str(pathlib.Path(__file__).with_name("backend_mixed_scripts.py"))

    if TORCH < (2, 0):
        def test_torch_1_refuses_several_backends(self):
            done = self.launch(1, "gloo_for_cpu", "cpu:gloo,cuda:syncopate")
            self.assertEqual(done.returncode, 1)
            self.assertIn("Invalid backend: 'cpu:gloo,cuda:syncopate'", done.stderr)

    elif TORCH < (2, 1):
        def test_torch_2_0_refuses_several_backends(self):
            done = self.launch(2, "gloo_for_cpu", "cpu:gloo,cuda:syncopate")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "ConfigError: a backend for each kind of device needs torch 2.1 or later, found 2.0")

    else:
        def test_tensors_of_another_device_go_to_its_backend(self):
            done = self.launch(2, "two_devices")
            said = self.facts(done)
            self.assertEqual(sorted(facts["near"] for facts in said), [2, 2, 4, 4])
            for facts in said:
                self.assertEqual(facts["devices"], ["cpu", "meta"])
                self.assertEqual(facts["far"], ["allreduce", "broadcast", "allgather", "gather", "reduce_scatter", "set_timeout"])
                self.assertEqual(facts["at_first"], [[], []])
                [warned] = facts["warned"]
                self.assertIn("keeps the timeout that it began with: pass it to init_process_group or new_group; "
                              "set_timeout(0:00:09) does not change it", warned)

        def test_distributed_data_parallel_on_a_device_of_gloo(self):
            said = [facts for backend in ("cpu:gloo,cuda:syncopate", "cuda:syncopate,cpu:gloo")
                    for facts in self.facts(self.launch(2, "gloo_for_cpu", backend))]
            for facts in said:
                self.assertEqual((facts["of_cpu"], facts["values"]), ("gloo", said[0]["values"]))
                self.assertEqual((facts["backend"], facts["devices"]), ("ProcessGroupGloo", ["cpu", "cuda"]))


if __name__ == "__main__":
    unittest.main()
