#!/usr/bin/python3
"""Goal:   samplers and loaders yield the right samples in a job of one process: in each epoch, when the script resumes an
        earlier job, leaves an epoch early, or looks at a batch before it trains.
Method: jobs that consist of this process only.
"""
import types
import unittest

import torch

import scripts
import syncopate_torch as syncopate
from script_cases import AloneTest
from syncopate_torch.integrations import loaders


class Samples(AloneTest):
    def test_epochs_of_a_loader(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(50))
        for loader in (self.job.partition_dataset(dataset, batch_size=8),
                       self.job.partition_dataset(dataset, batch_size=8, num_workers=2)):
            epochs = [[int(index) for [batch] in loader for index in batch] for _ in range(3)]
            for epoch in epochs:
                self.assertEqual(sorted(epoch), list(range(50)))
            self.assertEqual(len({tuple(epoch) for epoch in epochs}), 3)

    def test_a_sampler_in_the_place_of_torchs(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(50))
        sampler = self.job.sampler(dataset)
        self.assertIsInstance(sampler, torch.utils.data.Sampler)
        loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
        self.assertEqual((len(sampler), len(loader)), (50, 7))
        epochs = []
        for epoch in range(2):
            sampler.set_epoch(epoch)
            epochs.append([batch.tolist() for [batch] in loader])
            self.assertEqual([len(batch) for batch in epochs[-1]], [8] * 6 + [2])
            self.assertEqual(sorted(sum(epochs[-1], [])), list(range(50)))
        self.assertNotEqual(*epochs)
        with self.refused("yields single samples, .* give the optimizer's option batch_size"):
            self.job.DistributedOptimizer(self.sgd, self.network)
        self.assertEqual(self.job.DistributedOptimizer(self.sgd, self.network, batch_size=8).batch_size, 8)

    def test_epochs_of_a_sampler(self):
        sampler = self.job.sampler(range(50), 8)
        self.assertIsInstance(sampler, torch.utils.data.Sampler)
        self.assertEqual((len(sampler), sampler.samples), (7, 50))
        steps = iter(sampler)
        begun = next(steps)
        sampler.set_epoch(0)
        self.assertEqual((sampler.epoch, len(sampler)), (0, 7))
        self.assertEqual(sorted(sum(steps, begun)), list(range(50)))  # `len` has not moved the sampler
        self.assertEqual(sampler.epoch, 1)
        sampler.set_epoch(3)
        self.assertEqual((sampler.epoch, len(sampler)), (3, 7))
        third = list(sampler)
        self.assertEqual(sampler.epoch, 4)
        sampler.set_epoch(0)
        self.assertEqual(sampler.epoch, 4)
        counted = self.job.sampler(range(50), 8)
        self.assertEqual([list(counted) for _ in range(5)][3:], [third, list(sampler)])

    def test_a_sampler_goes_on_at_the_place_of_an_earlier_job(self):
        sampler = self.job.sampler(range(50), 8)
        counted = [list(sampler) for _ in range(3)]
        for step, found in ((3, counted[1][3:]), (7, []), (30, counted[2])):  # an epoch with leased samples may have 30 steps
            sampler.resume(1, step)
            self.assertEqual(list(sampler), found)
        with self.refused("an epoch from 0 to 4294967295, found epoch 4294967296"):
            sampler.set_epoch(2**32)
        self.assertEqual(sampler.epoch, 3)

    def test_a_later_epoch_that_is_named_during_an_iteration(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(50))
        counted = self.job.sampler(dataset)
        counted = [list(counted) for _ in range(6)]
        sampler = self.job.sampler(dataset)
        loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=2)
        for named, epoch, following in ((2, 0, 2), (3, 2, 3), (5, 3, 5)):
            begun = iter(loader)  # the loader's processes prepare the first batches
            sampler.set_epoch(named)
            self.assertEqual([int(index) for [batch] in begun for index in batch], counted[epoch])
            self.assertEqual(sampler.epoch, following)
        next(iter(sampler))  # the loop leaves epoch 5
        sampler.set_epoch(7)
        list(sampler)
        self.assertEqual(sampler.epoch, 8)

    def test_a_later_epoch_that_is_named_during_a_loop_of_a_loader_of_the_job(self):
        loader = self.job.partition_dataset(torch.utils.data.TensorDataset(torch.arange(50)), 8, num_workers=2)
        sampler, epochs = loader.batch_sampler, []
        for _ in range(3):
            epochs.append([])
            for [batch] in loader:
                if not epochs[-1]:
                    sampler.set_epoch(2)
                epochs[-1] += batch.tolist()
        self.assertEqual(sampler.epoch, 4)
        counted = self.job.sampler(range(50), 8)
        counted = [sum(counted, []) for _ in range(4)]
        self.assertEqual(epochs, [counted[0], counted[2], counted[3]])

    def test_an_epoch_whose_loop_asks_for_no_batch_more(self):
        loader = self.job.partition_dataset(torch.utils.data.TensorDataset(*scripts.problem()[:2]), 32)
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network)
        for steps, place in ((2, (1, 0)), (1, (1, 1)), (2, (3, 0))):
            for _, (points, labels) in zip(range(steps), loader):
                torch.nn.functional.cross_entropy(self.network(points), labels).backward()
                optimizer.step()
            state = loader.batch_sampler.job_state()
            self.assertEqual((state["epoch"], state["step"]), place)

    def test_a_look_where_processes_have_asked_for_the_whole_epoch(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(32))
        points, labels, _ = scripts.problem()
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=8)
        sampler = self.job.batch_sampler(dataset, 8)
        for loader in (self.job.partition_dataset(dataset, 8, num_workers=2),
                       torch.utils.data.DataLoader(dataset, batch_sampler=sampler, num_workers=2)):
            order = loader.batch_sampler
            for epoch in range(2):
                looks = [next(iter(loader))[0].tolist() for _ in range(2)]
                state = order.job_state()
                self.assertEqual((state["epoch"], state["step"]), (epoch, 0))
                found = []
                for [batch] in loader:
                    torch.nn.functional.cross_entropy(self.network(points), labels).backward()
                    optimizer.step()
                    found.append(batch.tolist())
                self.assertEqual(looks, [found[0]] * 2)
                self.assertEqual(sorted(sum(found, [])), list(range(32)))
                self.assertEqual(order.epoch, epoch + 1)

    def test_a_look_at_the_only_batch_of_an_epoch_is_no_epoch(self):
        loader = self.job.partition_dataset(torch.utils.data.TensorDataset(torch.arange(8)), 8)
        self.job.DistributedOptimizer(self.sgd, self.network)
        [seen] = next(iter(loader))
        self.assertEqual(loader.batch_sampler.epoch, 0)
        self.assertEqual([batch.tolist() for [batch] in loader], [seen.tolist()])
        self.assertEqual(loader.batch_sampler.epoch, 1)

    def test_random_numbers_go_on_where_the_processes_of_a_loader_stay(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(8))

        def numbers(job, epochs):
            """Returns a random number that the script draws in each epoch, and the job's state at the end."""
            loader = job.partition_dataset(dataset, 8, num_workers=1, persistent_workers=True)
            network = scripts.problem()[2]
            job.DistributedOptimizer(scripts.sgd(network), network)
            drawn = [torch.rand(1).item() for _ in range(epochs) for _ in loader]
            return drawn, job.state_dict()

        whole, _ = numbers(syncopate.Job(), 3)
        first, state = numbers(syncopate.Job(), 1)
        later = syncopate.Job()
        later.load_state_dict(state)
        second, _ = numbers(later, 2)
        self.assertEqual(first + second, whole)

    def test_a_loader_in_another_order_stays_what_it_is(self):
        class Doubled(torch.utils.data.DataLoader):
            def __iter__(self):
                for [batch] in super().__iter__():
                    yield 2 * batch

        dataset = torch.utils.data.TensorDataset(torch.arange(50))
        given = Doubled(dataset, batch_size=8, num_workers=2, persistent_workers=True, pin_memory_device="cuda:0")
        self.assertEqual(sum((batch.tolist() for batch in given), []), list(range(0, 100, 2)))
        trained = loaders.training_loader(self.job, given)
        tested = loaders.part_loader(types.SimpleNamespace(rank=1, size=2), given)
        for loader, right in ((trained, list(range(0, 100, 2))), (tested, list(range(2, 100, 4)))):
            self.assertIsInstance(loader, Doubled)
            self.assertEqual((loader.pin_memory_device, loader.prefetch_factor), ("cuda:0", 2))
            for _ in range(2):
                self.assertEqual(sorted(sum((batch.tolist() for batch in loader), [])), right)
        plain = torch.utils.data.DataLoader(dataset, batch_sampler=trained.batch_sampler)
        for name in ("batch_size", "drop_last"):
            self.assertEqual(getattr(trained, name), getattr(plain, name))
        self.assertIs(type(trained.sampler), type(plain.sampler))
        self.assertEqual((len(tested), tested.batch_size, tested.drop_last), (4, 8, False))
        self.assertEqual(sum((batch.tolist() for batch in given), []), list(range(0, 100, 2)))

    def test_parts_of_which_some_have_no_batch(self):
        def parts(samples, workers, **options):
            given = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(samples)), **options)
            return [len(loaders.part_loader(types.SimpleNamespace(rank=rank, size=workers), given)) for rank in range(workers)]

        self.assertEqual(parts(3, 3, batch_size=8), [1, 1, 1])
        self.assertEqual(parts(0, 3, batch_size=8), [0, 0, 0])
        self.assertEqual(parts(24, 3, batch_size=8, drop_last=True), [1, 1, 1])
        self.assertEqual(parts(21, 3, batch_size=8, drop_last=True), [0, 0, 0])
        with self.refused("divides 2 samples among 3 workers, .* at least 1 of them; give it 3 samples or more, or start fewer"):
            parts(2, 3, batch_size=8)
        with self.refused("divides 23 samples among 3 workers, .* at least 8 of them; give it 24 samples or more"):
            parts(23, 3, batch_size=8, drop_last=True)

    def test_other_orders(self):
        dataset = torch.utils.data.TensorDataset(torch.arange(50))
        self.job.partition_dataset(dataset, 8, shuffle=True, drop_last=False, sampler=None)

        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(range(10))

        for options, reason in (({"shuffle": False}, "shuffle=False: each epoch is shuffled; .* DistributedSampler"),
                                ({"drop_last": True}, "drop_last=True: every sample is trained on once .* BatchNorm.*Subset"),
                                ({"sampler": [1]}, r"sampler=\[1\]: the job orders the samples; take a WeightedRandomSampler")):
            with self.subTest(options), self.refused(f"partition_dataset takes no {reason}"):
                self.job.partition_dataset(dataset, 8, **options)
        with self.refused("job.sampler takes no seed=3: the order follows from the seed of the job"):
            self.job.sampler(dataset, seed=3)
        with self.refused("by its length, and Stream has none; .* by job.rank and job.size"):
            self.job.partition_dataset(Stream(), 4)
        loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=self.job.sampler(dataset, 16))
        with self.refused("would make batches of its batches; pass it as batch_sampler, or sampler=job.sampler"):
            next(iter(loader))

    def test_an_epoch_that_a_script_breaks_off(self):
        sampler = self.job.sampler(range(50), batch_size=8)
        steps = iter(sampler)
        self.assertEqual([len(next(steps)), len(next(steps))], [sampler.step_size] * 2)
        self.assertEqual(sorted(index for step in sampler for index in step), list(range(50)))
        self.assertEqual(sampler.epoch, 2)

    def test_a_look_at_several_steps_before_an_epoch_that_is_broken_off(self):
        optimizer = self.job.DistributedOptimizer(self.sgd, self.network, batch_size=8)
        sampler = self.job.sampler(range(50), batch_size=8)
        look = iter(sampler)
        seen = [next(look) for _ in range(3)]
        for step in sampler:
            self.assertEqual(step, seen[0])
            optimizer.step()
            break
        self.assertEqual(sorted(index for step in sampler for index in step), list(range(50)))
        self.assertEqual(sampler.epoch, 2)
        look = iter(sampler)
        seen = [next(look) for _ in range(3)]
        self.assertEqual(next(iter(sampler)), seen[0])
        sampler.set_epoch(5)
        self.assertEqual(sorted(index for step in sampler for index in step), list(range(50)))

    def test_a_look_at_a_step_is_no_epoch(self):
        sampler = self.job.sampler(range(50), batch_size=8)
        looks = [next(iter(sampler)) for _ in range(2)]
        self.assertEqual(sampler.epoch, 0)
        epoch = list(sampler)
        self.assertEqual(looks, [epoch[0]] * 2)
        self.assertEqual(sorted(index for step in epoch for index in step), list(range(50)))
        self.assertEqual(sampler.epoch, 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
