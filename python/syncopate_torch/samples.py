"""A worker's share of a dataset."""
import collections
import ctypes
import weakref

import torch
from torch.utils.data import DataLoader

from syncopate_torch import _c
from syncopate_torch.errors import ConfigError


class ShareSampler:
    """The order in which this worker trains on the samples of a dataset, as a batch sampler of `DataLoader`.

    In each epoch all workers together take every sample once. With option `data-order` `fixed` the part of each worker
    follows from the job's seed; with `leased`, which schemes whose workers take different numbers of steps have by
    default, faster workers take more. An iteration is an epoch and yields lists of indices, one list a step of this
    worker.
    """

    def __init__(self, job, samples, batch_size):
        self._job = job  # leaves after this
        self._sizes = {"samples": samples, "batch_size": batch_size}
        self._share = _c.made("share_open", job.handle, samples, batch_size)
        self._close = weakref.finalize(self, _c.call, "share_close", self._share)
        self._loader = None  # the place of a loop over a ShareLoader, which may ask for batches ahead
        self._ahead = None  # with it: samples of each of those batches
        self._ended = False  # the epoch
        self._resumed = False  # and no iteration has begun since
        job.keep_state("sampler", self)

    @property
    def step_size(self):
        """Samples of a step of this worker."""
        return _c.call("share_step_size", self._share)

    @property
    def epoch(self):
        """Whole epochs so far, which is the number of the epoch under way, from 0 on."""
        return self._place()[0]

    def __iter__(self):
        """One epoch: a list of indices for each step of this worker."""
        self._begin()  # at the first step: some loaders make two iterators, and use one
        while step := self._next():
            if self._ahead is not None:
                self._ahead.append(len(step))
            yield step
        self._ended = True

    def _begin(self):
        """The next epoch, unless it has begun, or an earlier job has."""
        self._job.resume()
        if not self._resumed:
            _c.call("share_next_epoch", self._share)
        self._resumed = self._ended = False

    def _next(self):
        indices, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_size_t()
        _c.call("share_next", self._share, ctypes.byref(indices), ctypes.byref(count))
        return indices[:count.value]

    def _place(self):
        """The epoch, and the steps of it that the loop has taken."""
        if self._loader is not None:
            return self._loader
        epoch = _c.call("share_epoch", self._share)
        return (epoch + 1, 0) if self._ended else (epoch, _c.call("share_step", self._share))

    def batches(self, begin):
        """The batches of one epoch of a loader over this sampler, whose iterator `begin` makes. Counts those that the
        loop takes."""
        if not self._resumed:
            self._begin()
        self._loader = None
        self._ahead = collections.deque()
        epoch, step = self._place()
        random = torch.get_rng_state()
        ahead = begin()
        if step > 0:  # an earlier job has drawn the seed of this epoch's processes
            torch.set_rng_state(random)
        self._loader = (epoch, step)
        for batch in ahead:
            step += 1
            self._loader = (epoch, step)
            number = self._job.batch[0] + 1 if self._job.batch else 0
            self._job.batch = (number, self._ahead.popleft())
            yield batch
        self._loader = (epoch + 1, 0)

    def job_state(self):
        epoch, step = self._place()
        return {**self._sizes, "epoch": epoch, "step": step}

    def take_job_state(self, state, same_size):
        """Of an earlier job; with another number of workers the epoch begins again."""
        sizes = {name: state[name] for name in self._sizes}
        if sizes != self._sizes:
            raise ConfigError(f"the state is of a dataset of {sizes['samples']} samples and batches of "
                              f"{sizes['batch_size']}; found {self._sizes['samples']} and {self._sizes['batch_size']}")
        _c.call("share_resume", self._share, state["epoch"], state["step"] if same_size else 0)
        self._resumed, self._ended, self._loader = True, False, None


class ShareLoader(DataLoader):
    """A `DataLoader` that knows how many batches its loop has taken, though its processes prepare others ahead."""

    def __iter__(self):
        return self.batch_sampler.batches(super().__iter__)
