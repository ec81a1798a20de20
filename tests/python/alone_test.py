#!/usr/bin/python3
"""Goal:   the five calls work in a job of one process: the optimizer behaves as one of torch.optim, states and summaries
        are right, and the error of a wrong call says what to do.
Method: jobs that consist of this process only.
"""
import copy
import gc
import os
import pickle
import resource
import subprocess
import sys
import unittest
import warnings
import weakref
from unittest import mock

import torch
from torch.nn import functional

import scripts
import syncopate_torch as syncopate
from script_cases import AloneTest
from syncopate_torch.core import launch


class Alone(AloneTest):
    def test_init_again(self):
        self.assertIs(syncopate.init(), self.job)
        self.assertIs(syncopate.init(timeout=0), self.job)
        with self.refused("is in its job already, which it joined with timeout=0, found timeout=60; pass it to the first"):
            syncopate.init(timeout=60)

    def test_gradients_that_a_script_takes_away(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        before = scripts.parameters_of(self.network)
        for parameter in self.network.parameters():
            parameter.grad = None
        optimizer.step()
        self.assertEqual(scripts.parameters_of(self.network), before)
        self.sgd.zero_grad(set_to_none=True)
        self.backward()
        optimizer.step()
        self.assertNotEqual(scripts.parameters_of(self.network), before)

    def test_a_scheduler(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        scheduler = torch.optim.lr_scheduler.StepLR(self.sgd, step_size=2, gamma=0.1)
        rates = []
        for _ in range(4):
            optimizer.zero_grad()
            self.backward()
            optimizer.step()
            rates.append(round(optimizer.param_groups[0]["lr"], 6))
            scheduler.step()
        self.assertEqual(rates, [0.2, 0.2, 0.02, 0.02])

    def test_it_is_an_optimizer_of_torch(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        self.assertIsInstance(optimizer, torch.optim.Optimizer)
        self.assertIs(optimizer.defaults, self.sgd.defaults)
        self.assertIs(optimizer.param_groups, self.sgd.param_groups)
        self.assertIn("lr: 0.2", repr(optimizer))
        with self.refused("a parameter of 2 values that the job does not train"):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))]})
        for copied in (copy.deepcopy, pickle.dumps):
            with self.refused("cannot be pickled or copied: .* save its state_dict"):
                copied(optimizer)

    def test_schedulers_of_it(self):
        rates = torch.optim.lr_scheduler
        for make, last in ((lambda each: rates.StepLR(each, 2, 0.1), 0.002),
                           (lambda each: rates.OneCycleLR(each, 0.4, total_steps=8), None),
                           (lambda each: rates.SequentialLR(each, [rates.ConstantLR(each, 1.0), rates.StepLR(each, 1)], [3]), 0.02),
                           (lambda each: rates.CosineAnnealingLR(each, 4), 0)):
            own, optimizer = self.rates_of(make)
            with self.subTest(own=own):
                self.assertEqual(own, optimizer)
                if last is not None:
                    self.assertAlmostEqual(own[-1], last)

    def rates_of(self, make):
        """Returns the learning rates under a scheduler, for an optimizer of torch and for a distributed one."""
        found = []
        for distributes in (False, True):
            _, _, network = scripts.problem()
            optimizer = scripts.sgd(network)
            if distributes:
                optimizer = syncopate.Job().DistributedOptimizer(optimizer, network, batch_size=64)
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=".*optimizer.step", category=UserWarning)
                scheduler = make(optimizer)
                for _ in range(4):
                    optimizer.zero_grad()
                    functional.cross_entropy(network(self.points), self.labels).backward()
                    optimizer.step()
                    scheduler.step()
            found.append([round(rate, 9) for rate in scheduler.get_last_lr()])
        return found

    def test_a_scheduler_by_samples_does_not_keep_its_optimizer(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        plain = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
        scheduler = self.job.scheduler(plain, optimizer, every=64)
        self.backward()
        optimizer.step()
        self.assertAlmostEqual(scheduler.get_last_lr()[0], 0.02)
        alive = weakref.ref(optimizer)
        del optimizer
        gc.collect()
        self.assertIsNone(alive())

    def test_a_scale_of_torch_takes_it(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        scaler = torch.cuda.amp.GradScaler(enabled=False)
        before = scripts.parameters_of(self.network)
        scaler.scale(functional.cross_entropy(self.network(self.points), self.labels)).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertNotEqual(scripts.parameters_of(self.network), before)

    def test_a_closure(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)

        def closure():
            optimizer.zero_grad()
            loss = functional.cross_entropy(self.network(self.points), self.labels)
            loss.backward()
            return loss

        first = optimizer.step(closure)
        self.assertLess(optimizer.step(closure).item(), first.item())

    def test_weights_that_are_channels_last_stay_so(self):
        for make, layout in ((torch.nn.Conv2d, torch.channels_last), (torch.nn.Conv3d, torch.channels_last_3d)):
            network = make(4, 6, 3).to(memory_format=layout)
            before = network.weight.detach().clone()
            optimizer = syncopate.Job().DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.1), network, batch_size=1)
            network(torch.zeros(1, 4, *[3] * (network.weight.dim() - 2))).sum().backward()  # makes a gradient of zero
            optimizer.step()
            self.assertTrue(network.weight.is_contiguous(memory_format=layout))
            self.assertTrue(network.weight.grad.is_contiguous(memory_format=layout))
            self.assertTrue(torch.equal(network.weight, before))

    def test_the_state_is_that_of_the_optimizer(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        self.backward()
        optimizer.step()
        state = optimizer.state_dict()
        self.assertIn("momentum_buffer", state["state"][0])
        optimizer.load_state_dict(state)

    def test_a_state_that_cannot_be_taken(self):
        with self.refused(r"expected a dict that the job's state_dict has made, found \['weight'\]"):
            self.job.load_state_dict({"weight": 1})
        state = self.job.state_dict()
        with self.refused("reads states of format 1, found 2"):
            self.job.load_state_dict({**state, "format": 2})
        sampler = self.job.sampler(range(50), batch_size=8)
        state = self.job.state_dict()
        again = syncopate.Job()
        again.load_state_dict(state)
        with self.refused("of a dataset of 50 samples and batches of 8; found 50 and 10"):
            again.sampler(range(50), batch_size=10)
        with self.refused("comes right after init"):
            self.job.load_state_dict(state)
        self.assertEqual(sampler.epoch, 0)
        with self.refused("this job has none: make one before"):
            self.job.summary()

    def test_a_state_of_another_number_of_workers(self):
        sampler, single = self.job.sampler(range(50), batch_size=8), self.job.sampler(range(50))
        list(sampler), list(single), next(iter(sampler))
        state = self.job.state_dict()
        state["size"] = 2
        state["parts"]["sampler.1"]["batch_size"] = 2  # one sample for each of two workers
        again = syncopate.Job()
        again.load_state_dict(state)
        resumed, single = again.sampler(range(50), batch_size=16), again.sampler(range(50))
        self.assertEqual((resumed.epoch, single.epoch), (1, 1))
        self.assertEqual(sorted(sum(resumed, [])), list(range(50)))
        other = syncopate.Job()
        other.load_state_dict(state)
        with self.refused("of a dataset of 50 samples and batches of 8; found 51 and 16"):
            other.sampler(range(51), batch_size=16)

    def test_a_scheduler_that_follows_a_loss(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        with self.assertRaisesRegex(syncopate.ConfigError, "follows a loss, not samples"):
            self.job.scheduler(torch.optim.lr_scheduler.ReduceLROnPlateau(self.sgd), optimizer, every=64)

    def test_a_finish_in_inference_mode(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        self.backward()
        with torch.inference_mode():
            optimizer.finish()
        self.backward()  # the script trains on without the job
        self.assertFalse(any(parameter.is_inference() for parameter in self.network.parameters()))

    def test_a_scheduler_of_rate_and_momentum_goes_on(self):
        rates = torch.optim.lr_scheduler
        kinds = [lambda each: rates.OneCycleLR(each, 0.4, total_steps=8),
                 lambda each: rates.SequentialLR(each, [rates.LinearLR(each, 0.5, 1, 3),
                                                        rates.OneCycleLR(each, 0.4, total_steps=8)], [2])]
        if torch.__version__ > "2":  # in torch 1 the state of CyclicLR cannot be copied
            kinds.append(lambda each: rates.CyclicLR(each, 0.1, 0.4, step_size_up=6))
        for make in kinds:
            whole, _ = self.momenta_of(make, 6)
            first, state = self.momenta_of(make, 3)
            second, _ = self.momenta_of(make, 3, state)
            self.assertEqual(first + second, whole)
            self.assertEqual(len(set(whole)), 6)

    def momenta_of(self, make, steps, state=None):
        """Returns the learning rate and the momentum of each step, and the job's state at the end."""
        job = syncopate.Job()
        if state is not None:
            job.load_state_dict(state)
        network = scripts.problem()[2]
        optimizer = job.DistributedOptimizer(scripts.sgd(network), network, batch_size=64)
        scheduler = job.scheduler(make(optimizer.optimizer), optimizer, every=64)
        found = []
        for _ in range(steps):
            found.append(tuple(optimizer.param_groups[0][name] for name in ("lr", "momentum")))
            optimizer.zero_grad()
            functional.cross_entropy(network(self.points), self.labels).backward()
            optimizer.step()
        self.assertEqual(scheduler.get_last_lr(), [optimizer.param_groups[0]["lr"]])
        return found, copy.deepcopy(job.state_dict())

    def test_a_summary_of_one_worker(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        self.backward()
        optimizer.step()
        summary = self.job.summary(everyone=True)
        [row] = summary["workers"]
        self.assertEqual((row["steps"], row["samples"], row["wait_ratio"], summary["samples"]), (1, 64, None, 64))

    def test_wrong_calls(self):
        other = torch.nn.Linear(2, 2)
        with self.refused("none of the module's trained parameters"):
            self.job.DistributedOptimizer(torch.optim.SGD(other.parameters(), lr=0.1), self.network)
        with self.refused("LBFGS evaluates the loss again"):
            self.job.DistributedOptimizer(torch.optim.LBFGS(self.network.parameters()), self.network)
        with self.refused("does not know how many samples a step has"):
            self.job.DistributedOptimizer(self.sgd, self.network)
        with self.refused(r"float64: a job trains parameters of float32, bfloat16 and float16; call module.float\(\)"):
            double = torch.nn.Linear(2, 2).double()
            self.job.DistributedOptimizer(torch.optim.SGD(double.parameters(), lr=0.1), double, batch_size=1)
        with self.refused("no parameter to train"):
            self.job.DistributedOptimizer(self.sgd, torch.nn.ReLU(), batch_size=1)
        with self.refused("convert it by tensor.to"):
            self.job.allreduce(torch.ones(2, dtype=torch.int16))
        with self.refused("takes dense tensors, found a sparse one: call to_dense"):
            self.job.allgather(torch.ones(2).to_sparse())
        for collective in (self.job.allreduce, self.job.broadcast):
            with self.refused("takes dense tensors, found an expanded one"):
                collective(torch.ones(1, 3).expand(2, 3))
        with self.refused("batch_size is a whole number from 0 to 4294967295, found 8589934593"):
            self.job.DistributedOptimizer(self.sgd, self.network, batch_size=2**33 + 1)
        with self.refused("at most 4294967295 samples in a step"):
            self.job.sampler(range(10), batch_size=2**33 + 1)
        with self.refused("batch of 0 samples"):
            self.job.sampler(range(10), batch_size=0)
        with self.refused("no-such"):
            syncopate.init("no-such-scheme")
        with self.refused("did you mean"):
            syncopate.init(options={"sede": 1})

    def test_a_second_optimizer(self):
        other = scripts.problem()[2]
        optimizers = [self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64),
                      syncopate.Job().DistributedOptimizer(scripts.sgd(other), other, batch_size=64)]
        for _ in range(3):
            for optimizer, network in zip(optimizers, (self.network, other)):
                optimizer.zero_grad()
                functional.cross_entropy(network(self.points), self.labels).backward()
                optimizer.step()
            with self.refused("parameters that another optimizer of the job trains"):
                self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        self.assertEqual(scripts.parameters_of(self.network), scripts.parameters_of(other))

    def test_a_gradient_that_is_not_finite(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        (functional.cross_entropy(self.network(self.points), self.labels) * float("nan")).backward()
        with self.assertRaisesRegex(syncopate.NotFinite, "worker 0, step 1: .* is not finite"):
            optimizer.step()

    def test_the_device(self):
        self.assertEqual(self.job.device, torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu"))

    def test_calls_after_the_end(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=64)
        optimizer.finish()
        with self.refused("takes no further step"):
            optimizer.step()
        with optimizer:
            pass
        optimizer.finish()
        with self.refused("the block of this optimizer has ended: it takes no further step"):
            optimizer.step()
        optimizer = syncopate.Job().DistributedOptimizer(self.sgd, self.network, batch_size=64)
        with self.refused("from 0 to 4294967295 samples"):
            optimizer.step(weight=-1)


    def test_arguments_of_init_that_the_library_cannot_take(self):
        for arguments, says in ((("esync", {"scheme": "ssgd"}), "scheme is esync, but ssgd among the options"),
                                (("esync", "pacing"), "options are a dict"), (("esync\0x",), "without a NUL"),
                                (("\ud800",), "without a NUL and in valid Unicode"), (("ssgd", {"seed\0": 1}), "without a NUL")):
            with self.subTest(arguments), self.refused(says):
                syncopate.init(*arguments)

    def test_an_environment_that_numbers_only_some(self):
        rank = {"RANK": "0", "WORLD_SIZE": "2"}
        whole = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        for environment, says in ((rank, "lacks MASTER_ADDR, MASTER_PORT"), ({"WORLD_SIZE": "2"}, "lacks MASTER_ADDR, MASTER_PORT, RANK"),
                                  ({**rank, **whole, "RANK": "2"}, "found RANK=2 and WORLD_SIZE=2"),
                                  ({**rank, **whole, "RANK": "-1"}, "found RANK=-1"),
                                  ({**rank, **whole, "WORLD_SIZE": "0"}, "found RANK=0 and WORLD_SIZE=0")):
            with self.subTest(environment), mock.patch.dict(os.environ, environment), self.refused(says):
                syncopate.init("ssgd")


    def test_an_environment_of_one_rank_is_a_job_of_one(self):
        for environment in ({"WORLD_SIZE": "1"}, {"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "1"}):
            with self.subTest(environment), mock.patch.dict(os.environ, environment), syncopate.init("ssgd") as job:
                self.assertEqual((job.rank, job.size), (0, 1))


class Launchers(unittest.TestCase):
    def test_the_first_host_is_named_where_it_is_known(self):
        of_mpirun = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
        for more, first in (({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "127.0.0.1"), ({}, "127.0.0.1"),
                            ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, None),
                            ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_ADDR": "here"}, "here"),
                            ({"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "a[03-04]"}, "a03")):
            with self.subTest(more):
                environment = {**of_mpirun, **more}
                launch.set_torch_variables(environment)
                self.assertEqual((environment["RANK"], environment["WORLD_SIZE"]), ("3", "4"))
                self.assertEqual(environment.get("MASTER_ADDR"), first)

    def test_what_a_user_types_into_a_shell_of_slurm_is_no_rank(self):
        of_srun = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PTY_PORT": "41000"}
        for parent, rank in (("bash", None), ("slurmstepd", "0")):
            with self.subTest(parent):
                environment = dict(of_srun)
                launch.set_torch_variables(environment, parent)
                self.assertEqual(environment.get("RANK"), rank)


# Allocates and frees 64 MB repeatedly, as steps may do. By default glibc returns a block of this size to the system. Prints
# the number of pages that the system had to provide again.
ALLOCATES = """
import resource, torch, syncopate_torch
syncopate_torch.init()
begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(16_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun)
"""
PAGES = 64_000_000 // resource.getpagesize()


class FreedMemory(unittest.TestCase):
    def pages_cleared(self, **settings):
        done = subprocess.run([sys.executable, "-B", "-c", ALLOCATES], env={**os.environ, **settings}, check=True,
                              stdout=subprocess.PIPE)
        return int(done.stdout)

    def test_it_is_kept_for_the_next_step(self):
        self.assertLess(self.pages_cleared(), 10 * PAGES)

    def test_settings_of_the_user_hold(self):
        for settings in ({"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=131072"}):
            with self.subTest(settings):
                self.assertGreaterEqual(self.pages_cleared(**settings), 20 * PAGES)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
