"""Membership in a job: collectives, shares of a dataset, the optimizer, and the state with which a worker resumes in a
later job."""
import ctypes
import os
import random
import secrets
import sys
import weakref

import torch
from torch.utils.data import WeightedRandomSampler

from syncopate_torch.core import library
from syncopate_torch.core.arguments import Uncopyable, seconds
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import EveryoneInJob, Group, OpenedGroup, opened_group
from syncopate_torch.core.process import (TERMINATION, after_waits, ending_error, expect_first_reading, is_success,
                                          remember_rank, wait_until_read, watch_exit)
from syncopate_torch.training.flat import expect_same, named_tensors
from syncopate_torch.training.further_optimizer import FurtherOptimizer
from syncopate_torch.training.optimizer import DistributedOptimizer
from syncopate_torch.training.samples import (IndexSampler, ShareLoader, ShareSampler, draws_of, samples_of, weighted,
                                              without_order)
from syncopate_torch.training.torch_optimizers import SampleScheduler
from syncopate_torch.training.summary import gathered, summary_of


class Job(Uncopyable):
    """A worker's membership in a job: see `init`. The worker leaves when the object is freed, with `leave`, or at the
    end of a `with` block, which also finishes the training.

    Threads: one at a time; for a `Group` see there. A forked process (a worker of `DataLoader`) must not use the job of
             its parent.
    """

    def __init__(self, scheme=None, options=None, entry=None, timeout=0.0):
        array, count = library.options(options)
        joining = library.JoinOptions(size=ctypes.sizeof(library.JoinOptions), scheme=library.text(scheme), options=array,
                                      option_count=count, wait_seconds=timeout)
        if entry is not None:
            joining.entry = ctypes.pointer(entry)
        watch_exit()
        expect_first_reading()
        self.timeout = timeout
        self.scales_loss = False  # True if a `GradScaler` of the job decides about non-finite gradients
        self.batch = None  # (number, samples) of the last batch that a loop over a loader of the job took
        library.see_signals()
        self._handle = library.made("join", ctypes.byref(joining))
        self._state = JobState()
        self._first_ends = []  # ends of trainings that may still be running
        #: Leaves the job, once; objects made from it must not be used afterwards. A running training ends first, as at
        #: the end of the script.
        self.leave = weakref.finalize(self, _leave, self._handle, self._first_ends, os.getpid())
        if not library.call("is_alone", self._handle):
            remember_rank(self.rank)
        self.hosts = [library.call("host_of", self._handle, rank) for rank in range(self.size)]  # equal on one host

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
        """The handle of the C interface. Errors: ConfigError once this worker has left."""
        if not self.leave.alive:
            raise ConfigError("this worker has left the job; call syncopate_torch.init again")
        return self._handle

    @property
    def everyone(self):
        """The `Group` of all workers."""
        return Group(self, EveryoneInJob(self))

    @property
    def interrupted(self):
        """True once `syncopate run`, Slurm or another launcher has asked this process to end with SIGTERM. After the
        first access the signal no longer ends the process by itself. If the script has its own handler, that stays in
        place, and this stays False.

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
        """The rank of this worker among the workers of its host."""
        return library.call("local_rank", self.handle)

    @property
    def device(self):
        """The device on which this worker trains, a `torch.device`: the CUDA device of its local rank, or the CPU
        without CUDA. Several workers share a device if there are fewer devices than workers."""
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device("cuda", self.local_rank % torch.cuda.device_count())

    # Collectives of all workers.

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
        """Returns once every worker has called it."""
        self.everyone.barrier()

    def open_group(self, ranks, timeout=None):
        """Opens a `Group` of some workers, given by their ranks in the job; this worker must be one of them. Member i
        has rank i in the group.

        All members call it with the same ranks. If two groups have two members in common, these open the groups in the
        same order. A member waits for the others at most `timeout` seconds [half an hour].
        """
        return Group(self, OpenedGroup(opened_group(self, ranks, seconds("timeout", timeout))))

    def broadcast_parameters(self, module):
        """Copies the parameters and buffers of worker 0, of any type, to a module or a dict such as its `state_dict()`.

        While this module is being trained, all workers first wait for each other, as in `DistributedOptimizer.align`.
        Training then continues, under every scheme, from the values that worker 0 had at its call. A script that sets
        parameters itself calls this afterwards. Optimizers keep their states, but a momentum over rounds restarts.
        Errors: ConfigError if the modules differ; during training also those of `align`.
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
        """Replaces DistributedSampler: returns the order of this worker's share, the `sampler` of the script's own
        `DataLoader`. The loader's batch size is that of this worker and is also the option `batch_size` of
        `DistributedOptimizer`.

        dataset:    a dataset, or a `WeightedRandomSampler` from which all workers draw together; each draw is trained
                    on once per epoch.
        weights:    weight of each sample; as many samples are drawn as the dataset has.
        batch_size: samples of all workers in a step; if given, a `batch_sampler` is returned.
        Errors:     ConfigError for a dataset without a length, and for an order other than the job's: see
                    `ShareSampler`.
        """
        without_order({"shuffle": shuffle, "seed": seed, "drop_last": drop_last}, "job.sampler")
        if weights is not None:
            dataset = weighted(dataset, weights)
        if batch_size is not None:
            return self.batch_sampler(dataset, batch_size)
        return IndexSampler(self, samples_of(dataset), draws_of(self, dataset))

    def batch_sampler(self, dataset, batch_size=None, global_batch=None):
        """Returns the order of this worker's share in steps, the `batch_sampler` of the script's own `DataLoader`.
        `dataset`: as in `sampler`; `batch_size`, `global_batch`: as in `partition_dataset`."""
        if (batch_size is None) == (global_batch is None):
            raise ConfigError("a step has batch_size samples, as many on each worker, or global_batch samples, divided by the "
                              f"speeds of the devices: give one of them, found {'none' if batch_size is None else 'both'}")
        by_speed = batch_size is None
        return ShareSampler(self, samples_of(dataset), global_batch if by_speed else batch_size, draws_of(self, dataset),
                            by_speed)

    def expect_step_size(self, batch_size):
        """Errors: ConfigError if neither the optimizer nor a sampler defines the number of samples in a step."""
        first = self._state.first("sampler")  # later ones may be those of tests
        if batch_size is None and first is not None and first.is_single:
            raise ConfigError("job.sampler(dataset) yields single samples, so the job does not know how many a step has: "
                              "give the optimizer's option batch_size, that of the DataLoader")

    @property
    def divides_by_speed(self):
        """True if the steps of the training are parts of a `global_batch`, whose sizes change."""
        return any(sampler.by_speed for sampler in self._state.living("sampler"))

    def partition_dataset(self, dataset, batch_size=None, global_batch=None, **options):
        """Returns a `DataLoader` over this worker's share of a dataset; all workers pass the same dataset.

        All workers together take `batch_size` samples in a step, each as many, and every sample once per epoch
        (`ShareSampler`). One loop over the loader is one epoch. `options` are those of `DataLoader`; a `sampler` may be
        a `WeightedRandomSampler`, from which all workers draw together.

        global_batch: in place of `batch_size`. The workers divide these samples by the measured speeds of their devices,
                      so that under `ssgd` no worker waits for a slower one; all take equally many steps. Under `esync`
                      they are the samples of a round. Batches change their sizes, also while training goes on: `step()`
                      counts those of the last batch. Other schemes divide them once, by the speeds in a cluster file,
                      or equally. A loader with `num_workers` prepares batches ahead, of the sizes that were right then.
                      Other loaders of the job, such as that of a test, have a `batch_size`.
        Errors: ConfigError for a dataset without a length, and for options that request another order.
        """
        drawn = options.pop("sampler") if isinstance(options.get("sampler"), WeightedRandomSampler) else dataset
        options = without_order(options, "partition_dataset")
        return ShareLoader(dataset, batch_sampler=self.batch_sampler(drawn, batch_size, global_batch), **options)

    def scheduler(self, scheduler, optimizer, every):
        """Steps a scheduler of torch.optim once for every `every` samples on which all workers together have trained,
        as reported by `optimizer`, this job's DistributedOptimizer. The pace is the same on fast and on slow
        devices."""
        return SampleScheduler(self, scheduler, optimizer, every)

    def DistributedOptimizer(self, optimizer, module, **options):  # noqa: N802 (the usual name in the field)
        """Makes the `syncopate_torch.DistributedOptimizer` of this worker. While one is training, returns a
        `FurtherOptimizer` for another module; its only option is `batch_size`."""
        last = self._state.last("optimizer")
        if last is None or not last.is_under_way:
            return DistributedOptimizer(self, optimizer, module, **options)
        unknown = sorted(name for name, value in options.items() if name != "batch_size" and value is not None)
        if unknown:
            raise ConfigError(f"{', '.join(unknown)}: the job trains already, and a further optimizer has the scheme and the options of "
                              "the first one; it takes batch_size alone")
        return FurtherOptimizer(last.leading, self, optimizer, module, options.get("batch_size"))

    def summary(self, everyone=False):
        """Returns statistics of this worker's training and its use of time so far: a dict that `print` shows as a
        table.

        everyone: also those of the other workers; all workers call this together after `finish`.
        Errors:   ConfigError without a DistributedOptimizer.
        """
        optimizer = self._state.last("optimizer")
        if optimizer is None:
            raise ConfigError("a summary is that of a DistributedOptimizer, and this job has none: make one before")
        row = optimizer.summary_row()
        return summary_of(gathered(self.everyone, row) if everyone else [row])

    def state_dict(self):
        """Returns the state that this worker needs to resume in a later job: the module and its optimizer, the position
        in each dataset, schedulers, loss scales, and the random generators of torch, Python and NumPy. It is a dict of
        plain tensors, numbers and lists; `torch.save` writes it and `torch.load` reads it, from torch 2 on with
        `weights_only=True`.

        It does not communicate. Each worker saves its own state, all after the same step or at the end of the same
        epoch: if the states are of different moments, `DistributedOptimizer` raises a ConfigError.
        docs/guides/resuming.md describes what resumes exactly, and what each scheme loses.
        """
        return self._state.saved(self.rank, self.size)

    def load_state_dict(self, state):
        """Gives the objects that the script makes from now on the state that the same worker had. Call it right after
        `init`.

        The script then makes the same objects in the same order: samplers and loaders, the optimizer, schedulers, loss
        scales. The random generators are restored together with the optimizer. A state of a job with another number of
        workers restores the model, optimizer, schedulers and epoch; that epoch restarts.
        Errors: ConfigError for a dict that `state_dict` did not make, and once a sampler or the optimizer exists.
        """
        self._state.load(state, self.rank, self.size)

    def ends_first(self, end):
        """Calls `end()` before this worker leaves."""
        self._first_ends.append(end)

    def steps_taken(self):
        """Returns the steps of this worker's training so far; None before it begins."""
        optimizer = self._state.last("optimizer")
        return None if optimizer is None else optimizer.steps_taken

    def expect_same_moment(self):
        """Returns a name of this job, the same on all workers, which all call this before they train.
        Errors: ConfigError if they have loaded states of different moments."""
        return new_name() if self.size == 1 else expect_same_moment(self.everyone, self._state.loaded_moment())

    def keep_state(self, kind, owner):
        """Adds the state of a sampler, an optimizer, a scheduler or a loss scale to the job's state."""
        self._state.keep(kind, owner)


@after_waits
def _leave(handle, first_ends, process):
    if os.getpid() != process:
        return  # forked: the job belongs to the parent
    try:
        for end in first_ends:
            end()
        if ending_error() is not None:
            wait_until_read()
    finally:  # also after Ctrl-C
        library.call("leave", handle)


_PLACE = {"epoch": "epoch {}", "step": "step {}"}
# Values that states of one moment have in common: errors name the first one that differs. States of earlier versions,
# and of schemes whose workers take their own steps, have fewer of them.
_COMMON = {"epoch": "epoch {}", "size": "{} workers", "job": "job {}", "alignments": "{} calls of align",
           "round": "round {}"}


def new_name():
    """Returns a name of a job that no other job has. It does not use the script's random generators."""
    return secrets.token_hex(6)


def moment_of(state):
    """Returns the moment of a state that `Job.state_dict` has returned: the position in its first dataset (later ones
    may be those of tests), and values of its optimizer. A dict of numbers and texts."""
    parts = state["parts"]
    place = _first(parts, "sampler")
    counted = {name: place[name] for name in _PLACE if name in place}
    return {"size": state["size"], **counted, **_first(parts, "optimizer").get("moment", {})}


def expect_same_moment(group, moment):
    """Returns a name of this job, the same on all workers. All workers call this before they train, with the moment of
    the state that each has loaded, or None. Errors: ConfigError on all workers that names the first two whose moments
    differ."""
    rows = gathered(group, {"name": new_name(), "moment": moment})
    first, *others = [row["moment"] for row in rows]
    for rank, other in enumerate(others, 1):
        if (first is None) != (other is None):
            raise ConfigError(_without_state(rank, first, other))
        if first is not None:
            _expect_same(rank, first, other)
    return rows[0]["name"]


def _first(parts, kind):
    names = [name for name in parts if name.startswith(f"{kind}.")]
    return parts[min(names, key=lambda name: int(name.split(".")[1]))] if names else {}


def _without_state(rank, first, other):
    has, lacks, moment = (0, rank, first) if other is None else (rank, 0, other)
    words = _words(moment, _PLACE)
    return (f"worker {has} has loaded a state{' of ' + words if words else ''}, and worker {lacks} none: before the "
            "DistributedOptimizer every worker loads the state that it saved at the same moment, or none does")


def _expect_same(rank, first, other):
    differs = [name for name in _COMMON if name in first and name in other and first[name] != other[name]]
    if differs:
        shown = {**_PLACE, differs[0]: _COMMON[differs[0]]}
        raise ConfigError(f"the state of worker 0 is of {_words(first, shown)}, that of worker {rank} of "
                          f"{_words(other, shown)}: load states that all workers saved at the same moment")


def _words(moment, shown):
    return ", ".join(form.format(moment[name]) for name, form in shown.items() if name in moment)


_FORMAT = 1


class JobState:
    """The state of all objects that a script has made from a job: each by its kind and its number among those of the
    kind.

    An object has `job_state()` and `take_job_state(state, same_size)`; `same_size` is True if the earlier job had the
    same number of workers.
    """

    def __init__(self):
        self._owners = {}
        self._loaded = None

    def keep(self, kind, owner):
        """Registers an object, and gives it the state that was loaded for it."""
        name = f"{kind}.{sum(other.startswith(kind) for other in self._owners)}"
        self._owners[name] = weakref.ref(owner)
        if self._loaded is not None:
            state, same_size, same_rank = self._loaded
            if name in state["parts"]:
                owner.take_job_state(state["parts"][name], same_size)
            if kind == "optimizer" and same_rank:  # the model exists by now; creating it used random numbers
                _set_random(state["random"])

    def first(self, kind):
        """Returns the oldest living object of a kind, or None."""
        return next(iter(self.living(kind)), None)

    def last(self, kind):
        """Returns the newest living object of a kind, or None."""
        return next(reversed(self.living(kind)), None)

    def living(self, kind):
        """Returns the living objects of a kind, the oldest first."""
        found = [owner() for name, owner in self._owners.items() if name.startswith(kind)]
        return [owner for owner in found if owner is not None]

    def loaded_moment(self):
        """Returns the moment of the loaded state; None if no state was loaded."""
        return None if self._loaded is None else moment_of(self._loaded[0])

    def saved(self, rank, size):
        living = {name: owner() for name, owner in self._owners.items()}
        parts = {name: owner.job_state() for name, owner in living.items() if owner is not None}
        return {"format": _FORMAT, "rank": rank, "size": size, "parts": parts, "random": _random()}

    def load(self, state, rank, size):
        if not isinstance(state, dict) or {"format", "rank", "size", "parts", "random"} - set(state):
            raise ConfigError("expected a dict that the job's state_dict has made, found "
                              f"{list(state) if isinstance(state, dict) else type(state).__name__}")
        if state["format"] != _FORMAT:
            raise ConfigError(f"this version reads states of format {_FORMAT}, found {state['format']}")
        if self._owners:
            raise ConfigError("load_state_dict comes right after init: before partition_dataset, sampler and "
                              "DistributedOptimizer")
        same_size = state["size"] == size
        self._loaded = (state, same_size, same_size and state["rank"] == rank)


def _random():
    """Returns the states of the random generators as plain tensors, numbers and tuples."""
    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        states["numpy"] = (name, keys.tolist(), *rest)
    return states


def _set_random(states):
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(states["numpy"])
