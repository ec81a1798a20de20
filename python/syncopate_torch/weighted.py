"""Samples that all workers together draw by weights."""
import zlib

import torch
from torch.utils.data import WeightedRandomSampler

from syncopate_torch.errors import ConfigError


class WeightedDraws:
    """What a `WeightedRandomSampler` draws in each epoch: the same on all workers, each of which then trains on its share.

    The draws follow from the seed of the sampler's generator, or that of torch, on worker 0.
    """

    def __init__(self, job, sampler):
        """Errors: ConfigError, where this worker's weights are not those of worker 0."""
        self._weights = torch.as_tensor(sampler.weights, dtype=torch.float64)
        self._count, self._replacement = sampler.num_samples, sampler.replacement
        own = sampler.generator.initial_seed() if sampler.generator is not None else torch.initial_seed()
        self.seed = self._common(job, own % 2**63)
        self._drawn = None, []  # of an epoch

    def at(self, epoch, positions):
        """The samples at some positions of an epoch, from 0 to the number of draws."""
        if self._drawn[0] != epoch:
            self._drawn = epoch, self._draw(epoch)
        return [self._drawn[1][position] for position in positions]

    def _draw(self, epoch):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {epoch}".encode()))
        return torch.multinomial(self._weights, self._count, self._replacement, generator=generator).tolist()

    def _common(self, job, seed):
        if job.size == 1:
            return seed
        facts = repr((self._weights.tolist(), self._count, self._replacement)).encode()
        own = torch.tensor([seed, zlib.crc32(facts)])
        first = job.broadcast(own.clone())
        if own[1] != first[1]:
            raise ConfigError(f"the WeightedRandomSampler of worker {job.rank} has other weights, or another number of samples, "
                              "than that of worker 0: all workers draw together, so give all of them the same")
        return int(first[0])


def draws_of(job, dataset):
    """Those of a `WeightedRandomSampler`; None for a dataset."""
    return WeightedDraws(job, dataset) if isinstance(dataset, WeightedRandomSampler) else None


def weighted(dataset, weights):
    """A `WeightedRandomSampler` of as many samples as a dataset has. Errors: ConfigError, for another number of weights."""
    if len(weights) != len(dataset):
        raise ConfigError(f"weights has one for each sample: expected {len(dataset)}, found {len(weights)}")
    return WeightedRandomSampler(weights, len(dataset))
