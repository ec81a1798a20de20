"""Turns the DataLoaders of one process into those of a worker."""
import copy

from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler, WeightedRandomSampler

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.training.samples import IndexSampler, NoLength, ShareSampler


class TrainingOrder:
    """The steps of a `ShareSampler`, as the `batch_sampler` of a loader written for one worker.

    Errors: ConfigError for an epoch without a step for this worker.
    """

    def __init__(self, job, dataset, batch_size, drop_last):
        """dataset: as in `Job.sampler`. batch_size: samples in a step of one worker. drop_last: drops a smaller last
        step."""
        self._order = job.batch_sampler(dataset, batch_size * job.size)
        self._samples, self._drop_last = len(dataset), drop_last
        self._passed = 0  # steps of an epoch that the next iteration skips

    def set_epoch(self, epoch):
        """As `ShareSampler.set_epoch`."""
        self._order.set_epoch(epoch)

    def resume(self, epoch, step):
        """As `ShareSampler.resume`; with `drop_last` a step may take samples from several steps of the job."""
        self._passed = step if self._drop_last else 0
        self._order.resume(epoch, step - self._passed)

    def __len__(self):
        """Steps of this worker in an epoch. Errors: ConfigError, which is also a TypeError, if samples are leased."""
        steps = self._order.samples // self._order.step_size if self._drop_last else len(self._order)
        self._expect_steps(steps)
        return steps

    def __iter__(self):
        steps, passed, self._passed = 0, self._passed, 0
        for step in self._whole_steps() if self._drop_last else self._order:
            steps += 1
            if steps > passed:
                yield step
        self._expect_steps(steps)

    def _expect_steps(self, steps):
        if steps == 0:
            raise ConfigError(f"an epoch of {self._samples} samples holds no step for this worker; use smaller "
                              "batches, fewer workers, or drop_last=False")

    def _whole_steps(self):
        """Regroups the samples in their order into full steps, because the job may have divided the last steps."""
        size, rest = self._order.step_size, []
        for step in self._order:
            rest += step
            if len(rest) >= size:
                yield rest[:size]
                rest = rest[size:]


class Part:
    """Every n-th sample of a dataset, in order; each sample belongs to one of n workers. The parts differ by at most
    one sample."""

    def __init__(self, job, samples):
        self._indices = range(job.rank, samples, job.size)

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)


def order_of_the_job(loader):
    """Returns the sampler that orders the samples of a loader, if it belongs to the job; else None."""
    samplers = (getattr(loader, "batch_sampler", None), getattr(loader, "sampler", None))
    return next((each for each in samplers if isinstance(each, (ShareSampler, TrainingOrder, IndexSampler))), None)


def has_length(order):
    """False for an order of leased samples."""
    try:
        return len(order) >= 0
    except NoLength:
        return False


def resume_order(loader, epoch, batches):
    """Makes the next iteration of a loader in the job's order start after the first `batches` batches of an epoch, if
    the order is fixed; if samples are leased, the epoch restarts."""
    order = order_of_the_job(loader)
    if not has_length(order):
        batches = 0
    order.resume(epoch, batches * (loader.batch_size or 1) if isinstance(order, IndexSampler) else batches)


def overfit_loader(job, loader):
    """Returns a loader over this worker's `Part` of a dataset, with the same batches in each epoch.

    Errors: ConfigError for a loader in the job's order, which differs between epochs.
    """
    if order_of_the_job(loader) is not None:
        raise ConfigError("overfit_batches takes the same samples in each epoch, and the job orders those of this loader; "
                          "pass a plain DataLoader(dataset, batch_size=..., shuffle=False)")
    return part_loader(job, loader)


def training_loader(job, loader):
    """Returns a loader over this worker's share of a dataset, with the batch size, worker processes and other options
    of a loader over all of it. A loader of an IterableDataset, or one that the job orders already, is returned
    unchanged.

    Errors: ConfigError for a sampler that the job would have to replace.
    """
    if (not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset)
            or order_of_the_job(loader) is not None):
        return loader
    sampler = loader.sampler
    weighted = type(sampler) is WeightedRandomSampler
    usual = weighted or type(sampler) is SequentialSampler or (type(sampler) is RandomSampler and not sampler.replacement)
    if loader.batch_size is None or type(loader.batch_sampler) is not BatchSampler or not usual:
        raise ConfigError(f"the job orders the training samples, but found a loader with {_named(loader)}; give it "
                          "batch_size and shuffle alone, or take job.sampler(dataset) as its sampler")
    order = TrainingOrder(job, sampler if weighted else loader.dataset, loader.batch_size, loader.drop_last)
    return _with(loader, sampler=SequentialSampler(loader.dataset), batch_sampler=order, batch_size=None, drop_last=False)


def part_loader(job, loader):
    """Returns a loader over this worker's `Part` of the given loader's dataset, for example for a test. Other kinds of
    loaders are returned unchanged.

    Errors: ConfigError if some workers would have a batch and others none.
    """
    if (job.size == 1 or not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset)
            or loader.batch_size is None or type(loader.sampler) not in (SequentialSampler, RandomSampler)):
        return loader
    samples = len(loader.dataset)
    least = loader.batch_size if loader.drop_last else 1
    if samples // job.size < least <= -(-samples // job.size):
        raise ConfigError(f"a loader divides {samples} samples among {job.size} workers, each of which needs at least "
                          f"{least} of them; give it {least * job.size} samples or more, or start fewer workers")
    part = Part(job, samples)
    return _with(loader, sampler=part, batch_sampler=BatchSampler(part, loader.batch_size, loader.drop_last))


def _named(loader):
    """Names the sampler that determines the order of a loader."""
    if loader.batch_size is None:
        return f"batch_sampler {type(loader.batch_sampler).__name__}"
    return f"sampler {type(loader.sampler).__name__}"


def _with(loader, **order):
    """Returns a copy of a loader with its class and all of its options, but another order. It sets the attributes that
    `DataLoader.__init__` would set, because a `DataLoader` forbids setting them later."""
    replaced = copy.copy(loader)
    vars(replaced).update(order, _iterator=None)
    return replaced
