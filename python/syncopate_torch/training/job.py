"""Membership in a job: collectives, shares of a dataset, the optimizer."""
import ctypes
import os
import weakref

import torch
from torch.utils.data import WeightedRandomSampler

from syncopate_torch.core import library
from syncopate_torch.core.arguments import Uncopyable, seconds
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import EveryoneInJob, Group, OpenedGroup, opened_group
from syncopate_torch.core.process import (TERMINATION, after_waits, ending_error, expect_first_reading, is_success,
                                          remember_rank, wait_until_read, watch_exit)
from syncopate_torch.training.further_optimizer import FurtherOptimizer
from syncopate_torch.training.job_state import JobState, expect_same_moment, new_name
from syncopate_torch.training.module_tensors import expect_same, named_tensors
from syncopate_torch.training.optimizer import DistributedOptimizer
from syncopate_torch.training.samples import (IndexSampler, ShareLoader, ShareSampler, draws_of, samples_of, weighted,
                                              without_order)
from syncopate_torch.training.schedules import SampleScheduler
from syncopate_torch.training.summary import gathered, summary_of


class Job(Uncopyable):
    """A worker's membership in a job: see `init`. Leaves at its end, or with `leave`, or at the end of a `with` block, which
    also finishes its training.

    Threads: one at a time; a `Group` as it says. A forked process (a worker of `DataLoader`) may not use the job of its
             parent.
    """

    def __init__(self, scheme=None, options=None, entry=None, hosts=None, timeout=0.0):
        array, count = library.options(options)
        joining = library.JoinOptions(size=ctypes.sizeof(library.JoinOptions), scheme=library.text(scheme), options=array,
                                      option_count=count, wait_seconds=timeout)
        if entry is not None:
            joining.entry = ctypes.pointer(entry)
        watch_exit()
        expect_first_reading()
        self.timeout = timeout
        self.before_samples = None  # a weak method of the training under way
        self.scales_loss = False  # a `GradScaler` of the job decides about gradients that are not finite
        self.batch = None  # the number, and the samples, of the last batch that a loop over a loader of the job took
        library.see_signals()
        self._handle = library.made("join", ctypes.byref(joining))
        self._state = JobState()
        self._first_ends = []  # of trainings that may still be under way
        #: Leaves the job, once; what was made from it is not to be used after that. A training under way ends before, as
        #: at the end of the script.
        self.leave = weakref.finalize(self, _leave, self._handle, self._first_ends, os.getpid())
        if not library.call("is_alone", self._handle):
            remember_rank(self.rank)
        self.hosts = hosts or [""] * self.size  # of each worker: a name, the same for those of one host

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        optimizer = self._state.last("optimizer")
        try:
            if optimizer is not None and (error is None or is_success(error)):
                optimizer.finish()
            elif optimizer is not None:
                optimizer.abandon(error)
        finally:
            self.leave()

    @property
    def handle(self):
        """Of the C interface. Errors: ConfigError, once this worker has left."""
        if not self.leave.alive:
            raise ConfigError("this worker has left the job; call syncopate_torch.init again")
        return self._handle

    @property
    def everyone(self):
        """The `Group` of all workers."""
        return Group(self, EveryoneInJob(self))

    @property
    def interrupted(self):
        """True once SIGTERM has asked this process to end, by `syncopate run`, Slurm or another launcher. From the first
        reading on, the signal no longer ends the process by itself; a handler of the script keeps it, and this stays False.

        Workers may see it at different steps: `finish` waits for the last of them.
        """
        return TERMINATION.has_come()

    @property
    def rank(self):
        """The rank of this worker, from 0 on."""
        return library.call("rank", self.handle)

    @property
    def size(self):
        """The number of workers."""
        return library.call("worker_count", self.handle)

    @property
    def local_rank(self):
        """The rank of this worker among those of its host."""
        return library.call("local_rank", self.handle)

    @property
    def device(self):
        """Where this worker trains: the CUDA device of its local rank, several workers on one where there are fewer; without
        CUDA the CPU. A `torch.device`."""
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", self.local_rank % torch.cuda.device_count())

    def resume(self):
        """Before this worker asks for samples: a step under way of its optimizer's `align` uses the job, too."""
        resume = self.before_samples and self.before_samples()
        if resume is not None:
            resume()

    # The collectives of all workers.

    def allreduce(self, tensor, op="sum"):
        """As `Group.allreduce`."""
        return self.everyone.allreduce(tensor, op)

    def allreduce_async(self, tensor, op="sum"):
        """As `Group.allreduce_async`."""
        return self.everyone.allreduce_async(tensor, op)

    def broadcast(self, tensor, root=0):
        """As `Group.broadcast`."""
        return self.everyone.broadcast(tensor, root)

    def broadcast_async(self, tensor, root=0):
        """As `Group.broadcast_async`."""
        return self.everyone.broadcast_async(tensor, root)

    def allgather(self, tensor):
        """As `Group.allgather`."""
        return self.everyone.allgather(tensor)

    def allgather_async(self, tensor):
        """As `Group.allgather_async`."""
        return self.everyone.allgather_async(tensor)

    def barrier(self):
        """Returns when every worker has called it."""
        self.everyone.barrier()

    def open_group(self, ranks, timeout=None):
        """A `Group` of some workers, by their ranks in the job, this one's among them; member i has rank i in the group.

        All of its members call it, with the same ranks; where two groups have two members in common, these open them in
        the same order. A member waits for others at most `timeout` seconds [half an hour].
        """
        return Group(self, OpenedGroup(opened_group(self, ranks, seconds("timeout", timeout))))

    def broadcast_parameters(self, module):
        """Gives a module, or a dict such as its `state_dict()`, the parameters and buffers of worker 0, of any type.

        In the middle of a training of this module all workers wait for each other first, as in
        `DistributedOptimizer.align`, and training goes on from what worker 0 had when it called, under every scheme: so a
        script that sets parameters itself calls it afterwards. Optimizers keep their states, but a momentum over rounds
        begins again.
        Errors: ConfigError, for modules that differ; in a training also those of `align`.
        """
        named = named_tensors(module)
        tensors = [(name, tensor.data) for pairs in named.values() for name, tensor in pairs]
        optimizer = self._state.last("optimizer")
        if optimizer is None or not optimizer.trains([tensor for _, tensor in tensors]):
            self._broadcast_same(named, tensors)
            return
        with optimizer.replica_set([tensor for _, tensor in tensors]):
            self._broadcast_same(named, tensors)

    def _broadcast_same(self, named, tensors):
        if self.size > 1:
            expect_same(self.everyone, named)
        for name, tensor in tensors:
            try:
                self.broadcast(tensor)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error}") from None

    def sampler(self, dataset, batch_size=None, shuffle=True, seed=None, drop_last=False, weights=None):
        """In the place of DistributedSampler: the order of this worker's share, as `sampler` of a `DataLoader` of one's
        own, whose batch size is that of this worker and also the option `batch_size` of `DistributedOptimizer`.

        dataset:    or a `WeightedRandomSampler`, by which all workers draw together: each draw is trained on once an epoch.
        weights:    of each sample, to draw as many as the dataset has.
        batch_size: of all workers: then it is a `batch_sampler`.
        Errors:     ConfigError, for a dataset without a length, and another order than the job's: see `ShareSampler`.
        """
        without_order({"shuffle": shuffle, "seed": seed, "drop_last": drop_last}, "job.sampler")
        if weights is not None:
            dataset = weighted(dataset, weights)
        if batch_size is not None:
            return self.batch_sampler(dataset, batch_size)
        return IndexSampler(self, samples_of(dataset), draws_of(self, dataset))

    def batch_sampler(self, dataset, batch_size):
        """The order of this worker's share in steps of which all workers together take `batch_size` samples, as
        `batch_sampler` of a `DataLoader` of one's own. `dataset`: as of `sampler`."""
        return ShareSampler(self, samples_of(dataset), batch_size, draws_of(self, dataset))

    def expect_step_size(self, batch_size):
        """Errors: ConfigError, where neither the optimizer nor a sampler says how many samples a step has."""
        first = self._state.first("sampler")  # later ones may be those of tests
        if batch_size is None and first is not None and first.is_single:
            raise ConfigError("job.sampler(dataset) yields single samples, so the job does not know how many a step has: "
                              "give the optimizer's option batch_size, that of the DataLoader")

    def partition_dataset(self, dataset, batch_size, **options):
        """A `DataLoader` over this worker's share of a dataset, which all workers pass alike.

        All workers together take `batch_size` samples in a step, and every sample once in an epoch (`ShareSampler`).
        One loop over the loader is one epoch. `options` are those of `DataLoader`; a `sampler` may be a
        `WeightedRandomSampler`, by which all workers draw together.
        Errors: ConfigError, for a dataset without a length, and options that ask for another order.
        """
        drawn = options.pop("sampler") if isinstance(options.get("sampler"), WeightedRandomSampler) else dataset
        options = without_order(options, "partition_dataset")
        return ShareLoader(dataset, batch_sampler=self.batch_sampler(drawn, batch_size), **options)

    def scheduler(self, scheduler, optimizer, every):
        """Steps a scheduler of torch.optim once for every `every` samples that all workers together have trained on, as
        `optimizer`, this job's DistributedOptimizer, learns of them: the same pace on fast and on slow devices."""
        return SampleScheduler(self, scheduler, optimizer, every)

    def DistributedOptimizer(self, optimizer, module, **options):  # noqa: N802 (the field's own name)
        """Makes the `syncopate_torch.DistributedOptimizer` of this worker. While one is under way, another one with a module of
        its own: a `FurtherOptimizer`, whose only option is `batch_size`."""
        last = self._state.last("optimizer")
        if last is None or not last.is_under_way:
            return DistributedOptimizer(self, optimizer, module, **options)
        unknown = sorted(name for name, value in options.items() if name != "batch_size" and value is not None)
        if unknown:
            raise ConfigError(f"{', '.join(unknown)}: the job trains already, and a further optimizer has the scheme and the options of "
                              "the first one; it takes batch_size alone")
        return FurtherOptimizer(last.leading, self, optimizer, module, options.get("batch_size"))

    def summary(self, everyone=False):
        """What this worker has trained so far, and how it spent its time: a dict, which `print` shows as a table.

        everyone: also of the other workers, who all call this together, once they have called `finish`.
        Errors:   ConfigError, without a DistributedOptimizer.
        """
        optimizer = self._state.last("optimizer")
        if optimizer is None:
            raise ConfigError("a summary is that of a DistributedOptimizer, and this job has none: make one before")
        row = optimizer.summary_row()
        return summary_of(gathered(self.everyone, row) if everyone else [row])

    def state_dict(self):
        """What this worker needs to go on in a later job: the module and its optimizer, the place in each dataset,
        schedulers, loss scales, and the random generators of torch, Python and NumPy. A dict of plain tensors, numbers
        and lists, which `torch.save` writes and `torch.load` reads, with `weights_only=True` from torch 2 on.

        It asks no other worker. Each saves its own, all of them after the same step or at the end of the same epoch: with
        states of several moments `DistributedOptimizer` raises a ConfigError.
        What continues exactly, and what a scheme loses: docs/guides/resuming.md.
        """
        return self._state.saved(self.rank, self.size)

    def load_state_dict(self, state):
        """Gives what the script makes from now on the state that the same worker had: call it right after `init`.

        The script then makes the same things in the same order: samplers and loaders, the optimizer, schedulers, loss
        scales. Random generators get their state with the optimizer. A state of another number of workers gives its
        model, optimizer, schedulers and epoch, which then begins again.
        Errors: ConfigError, for another dict than `state_dict` makes, and once a sampler or the optimizer is made.
        """
        self._state.load(state, self.rank, self.size)

    def ends_first(self, end):
        """`end()` comes before this worker leaves."""
        self._first_ends.append(end)

    def steps_taken(self):
        """Those of this worker's training; None before it begins."""
        optimizer = self._state.last("optimizer")
        return None if optimizer is None else optimizer.steps_taken

    def expect_same_moment(self):
        """All workers call this before they begin to train. Returns a name of this job, the same on all. Errors: ConfigError,
        where they have loaded states of several moments."""
        return new_name() if self.size == 1 else expect_same_moment(self.everyone, self._state.loaded_moment())

    def keep_state(self, kind, owner):
        """Puts the state of a sampler, an optimizer, a scheduler or a loss scale into that of the job."""
        self._state.keep(kind, owner)


@after_waits
def _leave(handle, first_ends, process):
    if os.getpid() != process:
        return  # forked: the job is the parent's
    try:
        for end in first_ends:
            end()
        if ending_error() is not None:
            wait_until_read()
    finally:  # also after Ctrl-C
        library.call("leave", handle)
