"""A worker's share of a dataset, and of weighted draws."""
import array
import collections
import contextlib
import ctypes
import sys
import weakref
import zlib

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler, WeightedRandomSampler

from syncopate_torch.core import library
from syncopate_torch.core.arguments import MOST_64, Uncopyable, whole
from syncopate_torch.core.errors import ConfigError


class NoLength(ConfigError, TypeError):
    """Raised for an order without a length: also a TypeError, as `len` raises it, so that `list` and progress bars
    work."""


class ShareSampler(Uncopyable, Sampler):
    """The order in which this worker trains on the samples of a dataset, as a batch sampler of `DataLoader`.

    In each epoch all workers together take every sample once. With option `data-order` `fixed`, each worker's part
    follows from the job's seed. With `leased`, the default of schemes whose workers take different numbers of steps,
    faster workers take more samples. An iteration is an epoch and yields lists of indices, one list per step of this
    worker.
    """

    def __init__(self, job, samples, batch_size, draws=None, by_speed=False):
        """draws: `WeightedDraws`, which return the sample at each of `samples` positions; without them the position is
        the sample.
        by_speed: the workers divide the batch by the measured speeds of their devices, not equally."""
        batch_size = whole("global_batch" if by_speed else "batch_size", batch_size, MOST_64)
        self._job = job  # keeps the job from leaving first
        self._sizes = {"samples": samples, "batch_size": batch_size}
        self._draws = draws
        self._share = library.made("share_open_by_speed" if by_speed else "share_open", job.handle, samples, batch_size)
        self._close = weakref.finalize(self, library.call, "share_close", self._share)
        self.by_speed = by_speed
        self.is_single = False  # True if an `IndexSampler` uses the steps
        self._loader = None  # position of a loop over a ShareLoader, which may request batches ahead
        self._ahead = None  # of a starting loop over a ShareLoader: collects the samples of each of those batches
        self._ended = False  # True at the end of the epoch
        self._placed = False  # True if the share is already where the next iteration begins
        self._named = 0  # an epoch that `set_epoch` has set during another one
        self._of_earlier_job = False  # the position comes from an earlier job, until a loop over a ShareLoader begins
        self._length = None  # of an epoch: its number, steps and samples
        # The current iteration: the worker's steps before it, its position in the epoch, and the steps that it has
        # taken; None once an optimizer step follows.
        self._steps_before, self._first, self._taken = 0, 0, None
        self._again = collections.deque()  # taken steps that the next iteration takes first
        self._drained = False  # the share has no more samples in its epoch
        job.keep_state("sampler", self)

    @property
    def step_size(self):
        """Samples in the next step of this worker; without `global_batch`, in every step."""
        return library.call("share_step_size", self._share)

    @property
    def epoch(self):
        """Completed epochs so far, which is the number of the current epoch, from 0 on."""
        return self._place()[0]

    def set_epoch(self, epoch):
        """Sets the next epoch, as in a loop with DistributedSampler, or a later one; all workers set the same. Epochs
        count by themselves, so no call is needed. A past epoch has no effect, because a script may count from 0 again.
        A running iteration keeps its epoch; the next one uses the later epoch. An epoch that was interrupted does not
        restart, unless this worker has taken no step in it: reading a batch does not start an epoch.
        """
        epoch = whole("epoch", epoch, MOST_64)
        present, step = self._place()
        if epoch > present and step > 0:
            self._named = epoch
        elif epoch > present:
            self.resume(epoch, 0)

    def __len__(self):
        """Steps of this worker in an epoch. Errors: ConfigError, which is also a TypeError, if samples are leased."""
        return self._length_of_epoch()[1]

    @property
    def samples(self):
        """Samples of this worker in an epoch. Errors: those of `len`; ConfigError with a `global_batch`."""
        samples = self._length_of_epoch()[2]
        if self.by_speed and samples == 0:
            raise NoLength("the samples of this worker in an epoch depend on the speeds of the devices: count them as they come")
        return samples

    def _length_of_epoch(self):
        epoch = self.epoch
        if self._length is None or self._length[0] != epoch:
            steps, samples = ctypes.c_uint64(), ctypes.c_uint64()
            try:
                library.call("share_length", self._share, ctypes.byref(steps), ctypes.byref(samples))
            except ConfigError as error:
                raise NoLength(str(error)) from None
            self._length = (epoch, steps.value, samples.value)
        return self._length

    def __iter__(self):
        """Iterates over one epoch: a list of indices for each step of this worker."""
        caller = sys._getframe(1).f_locals.get("self")
        if isinstance(caller, BatchSampler) and getattr(caller, "sampler", None) is self:
            raise ConfigError("found a batch sampler of the job as sampler of a DataLoader, which would make batches of its "
                              "batches; pass it as batch_sampler, or sampler=job.sampler(dataset) without a batch size")
        return self._steps()

    def _steps(self):
        self._begin()  # at the first step: some loaders make two iterators, and use only one
        self._placed = False
        ahead, self._ahead = self._ahead, None
        if ahead is None:  # a loader of another class, such as one that skips batches
            self._loader, self._job.batch = None, None
        while step := self._next_to_train():
            if ahead is not None:
                ahead.append(len(step))
            yield step
        self._ended = True

    def _begin(self):
        """Moves to the position of the next iteration, once: in the next epoch, or the one that was set or resumed."""
        if self._named > library.call("share_epoch", self._share):
            self._go_to("share_resume", self._named, 0)
        elif not self._placed and not self._goes_on_with_a_look():
            self._go_to("share_next_epoch")
        self._placed, self._ended = True, False
        self._steps_before, self._taken = self._job.steps_taken() or 0, []
        self._first = library.call("share_step", self._share) - len(self._again)

    def _go_to(self, function, *place):
        """Moves the share to another position."""
        self._again.clear()  # steps of an interrupted epoch
        self._drained = False
        library.call(function, self._share, *place)

    def _goes_on_with_a_look(self):
        """If the last iteration was only a look, makes the next one begin with the steps that it took."""
        if not self._is_a_look():
            return False
        self._again.extendleft(reversed(self._taken))
        return True

    def _is_a_look(self):
        """True if the last iteration was interrupted before a step of this worker, such as one that prints the first
        batch: it does not start an epoch. A script without an optimizer may also train: for it an iteration of one
        batch is a look."""
        if not self._taken or (self._loader is not None and self._loader[1] == 0):
            return False
        steps = self._job.steps_taken()
        if steps is not None:  # another loader may have requested the whole epoch ahead of its loop
            return steps == self._steps_before
        if self._loader is None:
            return len(self._taken) == 1 and not self._ended
        return self._loader[1] - self._first == 1

    def _next_to_train(self):
        step = list(self._again.popleft()) if self._again else [] if self._drained else self._next()
        self._drained |= not step
        if self._taken is not None and (self._job.steps_taken() or 0) != self._steps_before:
            self._taken = None
        if self._taken is not None and step:
            self._taken.append(array.array("Q", step))
        return step

    def _next(self):
        indices, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_size_t()
        library.call("share_next", self._share, ctypes.byref(indices), ctypes.byref(count))
        positions = indices[:count.value]
        return positions if self._draws is None else self._draws.at(library.call("share_epoch", self._share), positions)

    def _place(self):
        """Returns the epoch, and the number of its steps that the loop has taken."""
        if self._loader is not None:
            return self._loader
        epoch = library.call("share_epoch", self._share)
        if self._ended:
            return self._following(epoch), 0
        return epoch, library.call("share_step", self._share) - len(self._again)

    def _following(self, epoch):
        return max(epoch + 1, self._named)

    def batches(self, begin, is_persistent):
        """Yields the batches of one epoch of a loader over this sampler, whose iterator `begin` makes, and counts those
        that the loop takes.

        is_persistent: the loader draws the seed of its processes only once, not in each epoch.
        """
        self._begin()
        self._loader = None
        sizes = self._ahead = collections.deque()
        epoch, step = self._place()
        random = torch.get_rng_state()
        ahead = begin()
        if step > 0 or (is_persistent and self._of_earlier_job and epoch > 0):  # the earlier job has drawn the seed
            torch.set_rng_state(random)
        self._of_earlier_job = False
        self._loader = (epoch, step)
        try:
            for batch in ahead:
                step += 1
                self._loader = (epoch, step)
                number = self._job.batch[0] + 1 if self._job.batch else 0
                self._job.batch = (number, sizes.popleft())
                yield batch
        except GeneratorExit:  # for example from `zip`, which may not request one more batch
            if self._loader != (epoch, step) or not self._has_trained_all(step):
                raise
        self._loader = (self._following(epoch), 0)

    def own_generator(self, given):
        """Returns a generator of this worker, seeded by the next number of the common one: `given`, or torch's for
        None. A job of one worker uses the common one."""
        if self._job.size == 1:
            return given
        drawn = torch.empty((), dtype=torch.int64).random_(generator=given).item()
        return torch.Generator().manual_seed(zlib.crc32(f"{drawn} {self._job.rank}".encode()))

    def _has_trained_all(self, steps):
        """True if the current iteration, which was no look, has taken this worker's whole epoch."""
        with contextlib.suppress(NoLength):
            return steps == len(self) and self._job.steps_taken() not in (None, self._steps_before)
        return False

    def job_state(self):
        trains_otherwise = self._job.steps_taken() is None  # and may have trained on the batch
        looks = not trains_otherwise and self._is_a_look()
        epoch, step = (library.call("share_epoch", self._share), self._first) if looks else self._place()
        seed = {} if self._draws is None else {"seed": self._draws.seed}
        by_speed = {"by_speed": True} if self.by_speed else {}
        return {**self._sizes, "epoch": epoch, "step": step, **seed, **by_speed}

    def take_job_state(self, state, same_size):
        """Loads the state of an earlier job; with another number of workers the epoch restarts, in batches of any
        size."""
        samples, batch_size = (state[name] for name in self._sizes)
        if samples != self._sizes["samples"] or (same_size and batch_size != self._sizes["batch_size"]):
            raise ConfigError(f"the state is of a dataset of {samples} samples and batches of {batch_size}; found "
                              f"{self._sizes['samples']} and {self._sizes['batch_size']}")
        if state.get("by_speed", False) != self.by_speed and same_size:
            names = ("batch_size", "global_batch")
            raise ConfigError(f"the state is of a loader with {names[not self.by_speed]}, and this one has {names[self.by_speed]}: "
                              "pass the same, because its steps have other samples")
        if self._draws is not None:
            self._draws.seed = state.get("seed", self._draws.seed)
        self.resume(state["epoch"], state["step"] if same_size else 0)
        self._of_earlier_job = True

    def resume(self, epoch, step):
        """Moves behind the first steps of an epoch; the next iteration takes the rest. If an earlier job has taken more
        steps than the epoch has here, as with leased samples, the next epoch begins."""
        epoch, step = whole("epoch", epoch, MOST_64), whole("step", step, MOST_64)
        self._go_to("share_resume", epoch, 0)
        self._placed, self._ended, self._loader = True, False, None
        self._taken = None
        if step > 0:
            self._go_behind(epoch, step)

    def _go_behind(self, epoch, step):
        try:
            steps = len(self)
        except NoLength:  # the epoch restarts
            return
        library.call("share_resume", self._share, *((epoch, step) if step <= steps else (epoch + 1, 0)))


class IndexSampler(Sampler):
    """The samples of a `ShareSampler` one by one, as `sampler` of a `DataLoader` whose batch size is this worker's."""

    def __init__(self, job, samples, draws=None):
        self._order = ShareSampler(job, samples, job.size, draws)
        self._order.is_single = True

    @property
    def epoch(self):
        """As `ShareSampler.epoch`."""
        return self._order.epoch

    def set_epoch(self, epoch):
        """As `ShareSampler.set_epoch`."""
        self._order.set_epoch(epoch)

    def resume(self, epoch, samples):
        """As `ShareSampler.resume`, behind the first samples of this worker."""
        self._order.resume(epoch, samples)

    def __iter__(self):
        """Iterates over one epoch: the indices of this worker's samples."""
        for step in self._order:
            yield from step

    def __len__(self):
        """Samples of this worker in an epoch. Errors: those of `ShareSampler`."""
        return self._order.samples


def samples_of(dataset):
    """Returns the number of samples in a dataset, or of draws of a `WeightedRandomSampler`. Errors: ConfigError for a
    dataset without a length, and for another sampler."""
    if isinstance(dataset, Sampler) and not isinstance(dataset, WeightedRandomSampler):
        raise ConfigError(f"the job orders the samples itself: expected a dataset or a WeightedRandomSampler, found "
                          f"{type(dataset).__name__}; pass the dataset")
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise ConfigError(f"the job divides a dataset by its length, and {type(dataset).__name__} has none; let it iterate "
                          "over a part of its own on each worker, by job.rank and job.size, in a DataLoader of yours, and "
                          "give the optimizer's option batch_size")
    return len(dataset)


def without_order(options, what):
    """Removes options of a loader or a sampler that have their usual values. Errors: ConfigError for options that
    request another order."""
    usual = {"shuffle": True, "drop_last": False, "seed": None, "sampler": None, "batch_sampler": None}
    instead = {
        "shuffle": "each epoch is shuffled; for a test in order take torch's DistributedSampler(dataset, job.size, "
                   "job.rank, shuffle=False)",
        "drop_last": "every sample is trained on once an epoch; step(weight=len(x)) weighs a last batch by its samples. For "
                     "BatchNorm, which needs two of them, choose a batch_size whose last batch has two for each worker, or "
                     "leave samples out by torch.utils.data.Subset",
        "seed": "the order follows from the seed of the job; give it to `syncopate run --seed` or "
                "init(options={\"seed\": ...})"}
    for name in usual.keys() & options.keys():
        if options[name] not in (usual[name], None):
            reason = instead.get(name, "the job orders the samples; take a WeightedRandomSampler, by which all workers draw "
                                       "together, or a DataLoader of your own, whose sampler takes a part of them by job.rank "
                                       "and job.size, and give the optimizer's option batch_size")
            raise ConfigError(f"{what} takes no {name}={options[name]!r}: {reason}")
    return {name: value for name, value in options.items() if name not in usual}


class ShareLoader(DataLoader):
    """A `DataLoader` that counts the batches that its loop has taken, even if its processes prepare others ahead. Its
    processes draw other random numbers than those of other workers, even if all scripts set the same seed."""

    #: The order of this worker's share, with the current epoch.
    batch_sampler: ShareSampler

    def __iter__(self):
        return self.batch_sampler.batches(super().__iter__, self.persistent_workers)

    def _get_iterator(self):
        """Draws the seed of the processes, once for each set of processes."""
        given = self.generator
        self.generator = self.batch_sampler.own_generator(given)
        try:
            return super()._get_iterator()
        finally:
            self.generator = given


class WeightedDraws:
    """The draws of a `WeightedRandomSampler` in each epoch: the same on all workers, each of which then trains on its
    share.

    The draws follow from the seed of the sampler's generator, or of torch, on worker 0.
    """

    def __init__(self, job, sampler):
        """Errors: ConfigError if this worker's weights are not those of worker 0."""
        self._weights = torch.as_tensor(sampler.weights, dtype=torch.float64)
        self._count, self._replacement = sampler.num_samples, sampler.replacement
        own = sampler.generator.initial_seed() if sampler.generator is not None else torch.initial_seed()
        self.seed = self._common(job, own % 2**63)
        self._drawn = None, []  # (epoch, its draws)

    def at(self, epoch, positions):
        """Returns the samples at some positions of an epoch, from 0 to the number of draws."""
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
    """Returns the draws of a `WeightedRandomSampler`; None for a dataset."""
    return WeightedDraws(job, dataset) if isinstance(dataset, WeightedRandomSampler) else None


def weighted(dataset, weights):
    """Returns a `WeightedRandomSampler` that draws as many samples as a dataset has. Errors: ConfigError for another
    number of weights."""
    if len(weights) != len(dataset):
        raise ConfigError(f"weights has one for each sample: expected {len(dataset)}, found {len(weights)}")
    return WeightedRandomSampler(weights, len(dataset))
