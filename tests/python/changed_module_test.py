#!/usr/bin/python3
"""Goal:   if a script replaces a tensor of the module or the optimizer after both were wrapped, the next step is refused with
        the tensor's name; tensors that change in place, are frozen for a while or join the optimizer later keep training.
Method: jobs that consist of this process only; one change each.
"""
import copy
import pickle
import unittest

import torch

import syncopate_torch as syncopate
from syncopate_torch.training.flat import FlatTensors


class ChangedModule(unittest.TestCase):
    def setUp(self):
        self.job = syncopate.Job()
        self.module = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3))
        self.module.register_buffer("cache", torch.ones(2), persistent=False)
        self.sgd = torch.optim.SGD(self.module.parameters(), lr=0.1)
        self.optimizer = self.job.DistributedOptimizer(self.sgd, self.module, batch_size=4)

    def step(self):
        self.optimizer.zero_grad()
        self.module(torch.rand(4, 6)).square().sum().backward()
        self.optimizer.step()

    def assert_refused(self, message):
        with self.assertRaisesRegex(syncopate.ConfigError, "^" + message):
            self.step()

    def test_a_layer_that_is_replaced(self):
        self.step()
        self.module[0] = torch.nn.Linear(6, 3)
        self.assert_refused("0.weight is no longer the tensor that the optimizer was made with: ")

    def test_tensors_that_come_later(self):
        end = " was registered after the optimizer was made, and would stay out of the training"
        self.module.register_buffer("mean", torch.zeros(3))
        self.assert_refused("mean" + end)
        del self.module.mean
        self.module[0].register_parameter("scale", torch.nn.Parameter(torch.ones(3)))
        self.assert_refused("0.scale" + end)

    def test_a_layer_that_is_taken_away(self):
        self.module[1] = torch.nn.Identity()
        self.assert_refused("1.weight, which the optimizer was made with, is no longer in the module")

    def test_a_parameter_that_is_frozen_for_a_while(self):
        scale = self.module[1].weight  # the others have no gradient but that of rounding
        scale.requires_grad_(False)
        before = scale.tolist()
        self.step()
        self.assertEqual(scale.tolist(), before)
        scale.requires_grad_(True)
        self.step()
        self.assertNotEqual(scale.tolist(), before)

    def test_a_parameter_that_was_frozen_at_first_stays_so(self):
        half_frozen = torch.nn.Linear(6, 3)
        half_frozen.weight.requires_grad_(False)
        optimizer = syncopate.Job().DistributedOptimizer(torch.optim.SGD([half_frozen.bias], lr=0.1), half_frozen,
                                                         batch_size=4)
        optimizer.step()
        with self.assertRaisesRegex(syncopate.ConfigError, "a parameter of 18 values that the job does not train"):
            optimizer.add_param_group({"params": half_frozen.weight})
        half_frozen.weight.requires_grad_(True)
        with self.assertRaisesRegex(syncopate.ConfigError, "^weight was unfrozen after .* freeze afterwards what is to stay"):
            optimizer.step()

    def test_a_group_that_comes_later(self):
        optimizer = syncopate.Job().DistributedOptimizer(torch.optim.SGD(self.module[1].parameters(), lr=0.1), self.module,
                                                         batch_size=4)
        before = self.module[0].weight.tolist()
        for added in (False, True):
            if added:
                optimizer.add_param_group({"params": self.module[0].parameters(), "lr": 0.2})
            optimizer.zero_grad()
            self.module(torch.rand(4, 6)).square().sum().backward()
            optimizer.step()
            self.assertEqual(self.module[0].weight.tolist() != before, added)
        self.assertEqual([group["lr"] for group in optimizer.param_groups], [0.1, 0.2])
        with self.assertRaisesRegex(syncopate.ConfigError, "are in a set, whose order differs .* pass a list"):
            optimizer.add_param_group({"params": set(self.module[0].parameters())})

    def test_an_optimizer_that_gets_or_loses_parameters(self):
        self.sgd.add_param_group({"params": [torch.ones(7, requires_grad=True)]})
        self.assert_refused("the optimizer has got a parameter of 7 values that the job does not train: let it be a parameter")
        self.sgd.param_groups.pop()
        self.step()
        self.sgd.param_groups[0]["params"].pop()
        self.assert_refused("the optimizer has lost a parameter of 3 values")

    def test_a_tensor_that_moves(self):
        self.module[0].weight.data = self.module[0].weight.data.clone()
        self.assert_refused("0.weight is no longer the tensor that the optimizer was made with: move a module")

    def test_what_may_change(self):
        with torch.no_grad():
            self.module[0].weight.copy_(torch.ones(3, 6))
        self.module.cache = torch.zeros(5)
        self.module[1].num_batches_tracked = torch.tensor(7)
        self.sgd.load_state_dict(self.sgd.state_dict())
        self.step()
        self.assertEqual(self.module[1].num_batches_tracked, 8)


class SharedMemory(unittest.TestCase):
    """Tensors that share memory: a replica would separate them, or one could grow into the other."""

    def wrapped(self, module, **options):
        return syncopate.Job().DistributedOptimizer(torch.optim.SGD(module.parameters(), lr=0.1), module, batch_size=1, **options)

    def test_parameters_tied_by_their_values(self):
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        module[1].weight.data = module[0].weight.data
        with self.assertRaisesRegex(syncopate.ConfigError, "0.weight and 1.weight share memory, .* the same Parameter"):
            self.wrapped(module)
        module[1].weight = module[0].weight
        self.wrapped(module).finish()

    def test_a_buffer_that_is_a_part_of_another(self):
        module = torch.nn.Linear(3, 3)
        module.register_buffer("whole", torch.zeros(4))
        module.register_buffer("part", module.whole[2:])
        with self.assertRaisesRegex(syncopate.ConfigError, "whole and part share memory, .* persistent=False"):
            self.wrapped(module)
        module.part = module.whole[:0]
        self.wrapped(module).finish()

    def test_a_module_that_has_no_shape_yet(self):
        with self.assertRaisesRegex(syncopate.ConfigError, "^weight has no shape yet: let the module compute one batch"):
            self.wrapped(torch.nn.LazyLinear(3))

    def test_a_buffer_that_cannot_be_sent_is_named(self):
        module = torch.nn.Linear(3, 3)
        module.register_buffer("rows", torch.zeros(3).expand(2, 3))
        with self.assertRaisesRegex(syncopate.ConfigError, "^rows: a collective takes dense tensors, found an expanded one"):
            syncopate.Job().broadcast_parameters(module)

    def test_parts_of_the_job_are_not_copied(self):
        job = syncopate.Job()
        loader = job.partition_dataset(torch.utils.data.TensorDataset(torch.zeros(8)), batch_size=2)
        for part, name in ((job, "Job"), (job.everyone, "Group"), (loader, "ShareSampler")):
            for copied in (pickle.dumps, copy.deepcopy):
                with self.assertRaisesRegex(syncopate.ConfigError, f"^a {name} cannot be pickled or copied: it is a part"):
                    copied(part)

    def test_a_script_alone_may_resize_buffers(self):
        module = torch.nn.Linear(3, 3)
        for name, values in (("grows", torch.zeros(1)), ("begins", torch.zeros(0)), ("stays", torch.full((4,), 7.0))):
            module.register_buffer(name, values)
        optimizer = self.wrapped(module)
        module.grows.resize_(3).fill_(1)
        module.begins.resize_(2).fill_(2)
        module(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        self.assertEqual((module.grows.tolist(), module.begins.tolist(), module.stays.tolist()), ([1] * 3, [2] * 2, [7] * 4))


class BuffersOfSeveralWorkers(unittest.TestCase):
    """Buffers in a job of several workers, whose flat vectors must have the same layout."""

    def setUp(self):
        self.named = [("grows", torch.zeros(1)), ("begins", torch.zeros(0)), ("stays", torch.full((4,), 7.0))]
        self.flat = FlatTensors(self.named, torch.device("cpu"), may_resize=True)

    def test_one_that_grows_does_not_reach_the_next(self):
        grows, _, stays = self.flat.tensors
        with self.assertRaises(RuntimeError):
            grows.resize_(3)
        self.assertEqual(stays.tolist(), [7] * 4)
        self.flat.vector.values[1:] = 5
        self.assertEqual(stays.tolist(), [5] * 4)
        self.flat.release()
        self.assertEqual(stays.tolist(), [5] * 4)

    def test_one_that_moves_or_was_empty_is_refused_by_name(self):
        self.flat.expect_in_place()
        place, self.flat.tensors[2].data = self.flat.tensors[2].data, torch.ones(4)
        with self.assertRaisesRegex(syncopate.ConfigError, "^stays is no longer the tensor"):
            self.flat.expect_in_place()
        self.flat.tensors[2].data = place
        self.flat.tensors[1].resize_(2)
        with self.assertRaisesRegex(syncopate.ConfigError, "begins had 0 values when the optimizer was made, and has 2 now: .* "
                                                           "forward pass, before DistributedOptimizer"):
            self.flat.expect_in_place()


if __name__ == "__main__":
    unittest.main()
