#!/usr/bin/python3
"""Goal:   a module or an optimizer that gets other tensors after it was wrapped is refused at the next step, by the name
        of the tensor; what changes in place trains on.
Method: jobs of this process; each change alone.
"""
import unittest

import torch

import syncopate_torch as syncopate


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

    def test_a_parameter_that_is_frozen_or_unfrozen(self):
        self.module[0].bias.requires_grad_(False)
        self.assert_refused("0.bias was frozen after the optimizer was made: call requires_grad_ before")
        self.module[0].bias.requires_grad_(True)
        self.step()
        half_frozen = torch.nn.Linear(6, 3)
        half_frozen.weight.requires_grad_(False)
        optimizer = syncopate.Job().DistributedOptimizer(torch.optim.SGD([half_frozen.bias], lr=0.1), half_frozen,
                                                         batch_size=4)
        optimizer.step()
        half_frozen.weight.requires_grad_(True)
        with self.assertRaisesRegex(syncopate.ConfigError, "^weight was unfrozen"):
            optimizer.step()

    def test_an_optimizer_that_gets_or_loses_parameters(self):
        self.sgd.add_param_group({"params": [torch.ones(7, requires_grad=True)]})
        self.assert_refused("the optimizer has got a parameter of 7 values that it was not wrapped with: add all groups")
        self.sgd.param_groups.pop()
        self.step()
        self.sgd.param_groups[0]["params"].pop()
        self.assert_refused("the optimizer has lost a parameter of 3 values")

    def test_a_tensor_that_moves(self):
        end = " is no longer the tensor that the optimizer was made with: move a module"
        place = self.module[0].weight.data
        self.module[0].weight.data = place.clone()
        self.assert_refused("0.weight" + end)
        self.module[0].weight.data = place
        self.module[1].running_var.data = torch.ones(3)
        self.assert_refused("1.running_var" + end)

    def test_what_may_change(self):
        with torch.no_grad():
            self.module[0].weight.copy_(torch.ones(3, 6))
        self.module.cache = torch.zeros(5)
        self.module[1].num_batches_tracked = torch.tensor(7)
        self.sgd.load_state_dict(self.sgd.state_dict())
        self.step()
        self.assertEqual(self.module[1].num_batches_tracked, 8)


if __name__ == "__main__":
    unittest.main()
