"""The parts of Horovod's interface: process sets, names of collectives, and the optimizer, which reduces gradients of many
tensors as one vector."""
import collections
import contextlib
import functools
import hashlib
import warnings
import weakref

import torch

from syncopate_torch.core.arguments import MOST_32, whole
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import OPERATIONS, TYPES, operation, say, values


class ProcessSet:
    """Some workers, given by their ranks in the job. Once `add_process_set` has opened it, collectives with this
    `process_set` run among these workers. Errors: ConfigError if the argument is no list of ranks."""

    #: Its number while it is open, else None.
    process_set_id = None

    def __init__(self, ranks):
        try:
            ranks = list(ranks)
        except TypeError:
            raise ConfigError(f"a process set takes a list of ranks, found a value of type {type(ranks).__name__}") from None
        #: The ranks of its workers, in ascending order.
        self.ranks = sorted(whole("a rank of a process set", rank, MOST_32) for rank in ranks)
        self._own_rank, self._group = None, None

    def size(self):
        """The number of its workers; None if it is not open."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self):
        """The rank of this worker in the set; None if this worker is not in it, or if it is not open."""
        return self.ranks.index(self._own_rank) if self.process_set_id is not None and self._own_rank in self.ranks else None

    def included(self):
        """True if this worker is in the set."""
        return self._own_rank in self.ranks

    def members(self):
        """Returns the group of its workers. Errors: ConfigError if this worker is not in it, and if it is not open."""
        if self.process_set_id is None:
            raise ConfigError(f"the process set of ranks {self.ranks} is not open: call hvd.add_process_set on all workers before")
        if self._group is None:
            raise ConfigError(f"worker {self._own_rank} is not in the process set of ranks {self.ranks}")
        return self._group

    def root(self, rank):
        """Returns the rank in the set of a worker, given by its rank in the job. Errors: ConfigError if it is not in
        the set."""
        if rank not in self.ranks:
            raise ConfigError(f"root_rank {rank} is not in the process set of ranks {self.ranks}")
        return self.ranks.index(rank)

    def __str__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class Everyone(ProcessSet):
    """All workers, while this one is in a job."""

    process_set_id = 0

    def __init__(self, own_job):
        """own_job: function that returns the job. Its errors are those of all methods."""
        self._job = own_job

    @property
    def ranks(self):
        """The ranks of all workers."""
        return list(range(self._job().size))

    def size(self):
        """The number of workers."""
        return self._job().size

    def rank(self):
        """The rank of this worker in the job."""
        return self._job().rank

    def included(self):
        """True: every worker is a member."""
        return True

    def members(self):
        """The group of all workers."""
        return self._job().everyone

    def root(self, rank):
        """Returns the rank itself, which the library checks."""
        return rank


class OpenSets:
    """The process sets of a job, except that of all workers. All workers open and close the same sets in the same
    order."""

    def __init__(self, job):
        self._job, self._sets, self._last = job, [], 0

    def open(self, given):
        """Opens and returns the set of `given`, a `ProcessSet` or a list of ranks. Errors: ConfigError if a set of
        these ranks exists, and for a rank that is no worker of the job."""
        added = given if isinstance(given, ProcessSet) else ProcessSet(given)
        if any(added.ranks == other.ranks for other in [*self._sets, ProcessSet(range(self._job.size))]):
            raise ConfigError(f"a process set of ranks {added.ranks} is there already: use that one")
        if not added.ranks or added.ranks[-1] >= self._job.size or len(set(added.ranks)) < len(added.ranks):
            raise ConfigError(f"a process set has ranks from 0 to {self._job.size - 1}, each once, found {added.ranks}")
        self._last += 1
        added.process_set_id, added._own_rank = self._last, self._job.rank
        added._group = self._job.open_group(added.ranks) if added.included() else None
        self._sets.append(added)
        return added

    def close(self, removed):
        """Closes a set and returns True if it was open."""
        if removed not in self._sets:
            return False
        self._sets.remove(removed)
        removed.process_set_id = removed._group = None
        return True

    def close_all(self):
        for each in list(self._sets):
            self.close(each)


_DIGEST, _SHOWN = 8, 56  # bytes sent: the digest of a name, and its end


class SameName:
    """Compares the name of the next collective with those of the other workers.

    If workers called collectives of the same shape in different orders, values of different names would be reduced. The
    check costs an allgather of 64 bytes, started before the collective, which runs meanwhile.
    """

    def __init__(self, job, name):
        self._rank = job.rank
        self._work = job.allgather_async(torch.frombuffer(bytearray(_bytes_of(name)), dtype=torch.uint8))

    def wait(self):
        """Returns the names of all workers, as they are sent. Errors: those of the allgather."""
        return [bytes(each.tolist()) for each in self._work.wait()]

    def expect(self, names):
        """Errors: ConfigError if another worker has called a collective with another name."""
        for rank, name in enumerate(names):
            if name != names[self._rank]:
                raise ConfigError(f"worker {self._rank} calls a collective named {_shown(names[self._rank])!r} where worker "
                                  f"{rank} calls the one named {_shown(name)!r}: call named collectives in the same order on "
                                  "all workers")


class NamesUnderWay:
    """The running named collectives of this worker. Horovod identifies collectives by their names, so two with the same
    name at once are an error."""

    def __init__(self):
        self._works = {}  # by kind, name and process set

    def expect_free(self, kind, name, process_set):
        """Errors: ConfigError while another collective of this kind and name runs."""
        self._works = {key: work for key, work in self._works.items() if not work.is_done()}
        if (kind, name, process_set.process_set_id) in self._works:
            raise ConfigError(f"hvd.{kind} has been called with the name {name!r} again, before the first one has ended: give "
                              "each collective under way a name of its own, or wait for its handle")

    def begin(self, kind, name, process_set, work):
        """Stores the name until the work has ended; returns the work."""
        if name is not None:
            self._works[kind, name, process_set.process_set_id] = work
        return work


def number_of(name):
    """Returns a number that identifies a name."""
    return int.from_bytes(_digest(name), "little") >> 1


def _digest(name):
    return hashlib.blake2b(str(name).encode(), digest_size=_DIGEST).digest()


def _bytes_of(name):
    return _digest(name) + str(name).encode()[-_SHOWN:].ljust(_SHOWN, b"\0")


def _shown(content):
    return content[_DIGEST:].rstrip(b"\0").decode(errors="replace")


# A collective in which a worker without further steps takes part: the number of its reduction, 0 for another allreduce;
# the number of values, their type, the operation; a number that identifies its name. All zero: a worker has no further
# steps.
_Round = collections.namedtuple("_Round", "reduction count type operation name", defaults=(0,) * 5)
_NOTHING = _Round()

# The use of a reduction's sum if it is not used as a sum: workers compare it.
_MEAN = "op mean of an optimizer"

_states = weakref.WeakKeyDictionary()  # by job


class _State:
    """State of a job, the same on all of its workers."""

    def __init__(self):
        self.reductions = []  # length and type of each vector, and `_MEAN` or None; in one order on all workers
        self.has_ended_one = False  # a worker takes no further steps, and all know it: each collective is announced


class FlatReduction:
    """Replaces the gradients of parameters by their sum or mean over all workers.

    A worker without further steps contributes zeros: the last value of the vector counts the other workers. If a job
    has several reductions, the participants announce before each round which reduction it belongs to.
    """

    def __init__(self, job, parameters, mean=True, dtype=None):
        """dtype: type of the sent values [float64 if a parameter has it, else float32]."""
        if not parameters:
            raise ConfigError("the optimizer has no parameter to train")
        self._job, self._parameters = job, []
        self._mean, self._dtype = mean, dtype
        _expect_real(parameters)
        self._state = _state_of(job)
        self._state.reductions.append(None)
        self._number = len(self._state.reductions)
        self.include(parameters)

    def include(self, parameters):
        """Adds parameters that it does not have yet; all workers do so before the same round. Errors: ConfigError for a
        complex parameter."""
        known = {id(each) for each in self._parameters}
        new = [each for each in parameters if id(each) not in known]
        if not new:
            return
        _expect_real(new)
        self._parameters.extend(new)
        double = any(each.dtype == torch.float64 for each in self._parameters)
        count = sum(each.numel() for each in self._parameters)
        self._vector = torch.zeros(count + 1, dtype=self._dtype or (torch.float64 if double else torch.float32))
        self._state.reductions[self._number - 1] = (count + 1, self._vector.dtype, _MEAN if self._mean else None)

    def reduce(self):
        """Reduces the gradients, as a collective of all workers that have not ended. Errors: ConfigError if another
        worker reduces the gradients of another optimizer."""
        if self._state.has_ended_one or len(self._state.reductions) > 1:
            _announce(self._job, _round_of(self._vector, "sum", reduction=self._number))
        with torch.no_grad():
            for parameter, part in self._parts():
                if parameter.grad is None:
                    part.zero_()
                else:
                    part.copy_(parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad)
            self._vector[-1] = 1
            _say_use(self._job, self._number)
            self._job.allreduce(self._vector)
            self._state.has_ended_one = float(self._vector[-1]) < self._job.size
            divisor = self._job.size if self._mean else 1
            for parameter, part in self._parts():
                if parameter.grad is None and self._job.size == 1:
                    continue  # in a job of several workers, another one may have a gradient
                mean = part.to(device=parameter.device, dtype=parameter.dtype) / divisor
                if parameter.grad is None:
                    parameter.grad = mean.clone()
                elif parameter.grad.is_sparse:
                    parameter.grad = mean.to_sparse(parameter.grad.sparse_dim())
                else:
                    parameter.grad.copy_(mean)

    def _parts(self):
        """Yields each parameter and its part of the vector in its shape."""
        offset = 0
        for parameter in self._parameters:
            yield parameter, self._vector[offset:offset + parameter.numel()].view(parameter.shape)
            offset += parameter.numel()


def has_ended_one(job):
    """True from the first step in which a worker without further steps takes no part, until all workers have ended."""
    return _state_of(job).has_ended_one


def announce_allreduce(job, tensor, op, name_number):
    """Announces an allreduce to workers without further steps. Errors: ConfigError if another worker calls something
    else."""
    _announce(job, _round_of(tensor, op, name=name_number))


def contribute_nothing(job):
    """Takes part in the rounds of the other workers until all have ended. Returns the number of these rounds.

    A first round that is not announced is a step: until then the other workers do not know that this one takes no
    further steps.
    """
    state, rounds = _state_of(job), 0
    while state.reductions:
        if state.has_ended_one or len(state.reductions) > 1:
            found = _agreed(job, _NOTHING)
        else:
            length, dtype, _ = state.reductions[0]
            found = _round_of(torch.empty(length, dtype=dtype), "sum", reduction=1)
        if found == _NOTHING or _without_own(job, found) == 0:
            break
        state.has_ended_one = True
        rounds += 1
    state.has_ended_one = False
    return rounds


def _state_of(job):
    return _states.setdefault(job, _State())


def _round_of(tensor, op, reduction=0, name=0):
    count, type_of_values = values(tensor)
    return _Round(reduction, count, type_of_values, operation(op), name)


def _announce(job, own):
    found = _agreed(job, own)
    if found != own:
        other = _text(found) if _text(found) != _text(own) else "does so by another operation, factor or name"
        raise ConfigError(f"this worker {_text(own)} while another one {other}: step optimizers and call hvd.allreduce "
                          "in the same order and with the same values and names on all workers")


def _agreed(job, own):
    """Returns the maximum of each number over all workers: the numbers of every worker with further steps, if these
    call the same collective."""
    return _Round(*job.allreduce(torch.tensor(own), "max").tolist())


def _text(found):
    if found.reduction:
        return f"steps optimizer {found.reduction} of its job"
    return f"calls hvd.allreduce of {found.count} values"


def _without_own(job, found):
    """Takes part in a round with values that do not change its result. Returns the last value of the result: for a
    reduction the number of contributing workers, for another allreduce 1."""
    op, dtype = list(OPERATIONS)[found.operation], list(TYPES)[found.type]
    if found.reduction:
        _say_use(job, found.reduction)
    result = job.allreduce(torch.full((found.count,), _neutral(op, dtype), dtype=dtype), op)
    return result[-1] if found.reduction else 1


def _say_use(job, reduction):
    use = _state_of(job).reductions[reduction - 1][2]
    if use is not None and job.size > 1:
        say(getattr(job, "everyone", job).handle, use)  # works for a job and a group


def _neutral(op, dtype):
    """Returns the neutral element of an operation."""
    if op in ("sum", "product"):
        return 0 if op == "sum" else 1
    if dtype.is_floating_point:
        return float("inf") if op == "min" else float("-inf")
    return torch.iinfo(dtype).max if op == "min" else torch.iinfo(dtype).min


def _expect_real(parameters):
    if any(parameter.is_complex() for parameter in parameters):
        raise ConfigError("expected real parameters, found a complex one: train torch.view_as_real of it, and make the "
                          "complex values of that by torch.view_as_complex in the forward pass")


def make_distributed(optimizer, workers, mean, dtype):
    """Gives an optimizer a class that derives from its own and whose `step` first reduces gradients.

    workers: a job, or a group of some of its workers; None: this worker is in no such group, and steps on its own.
    """
    reduction = FlatReduction(workers, _trained(optimizer), mean=mean, dtype=dtype) if workers is not None else None
    methods = {name: method for name, method in vars(_Distributed).items() if not name.startswith("__")}
    counter = vars(optimizer).pop("step", None)
    optimizer.__class__ = type(f"Distributed{type(optimizer).__name__}", (type(optimizer),), methods)
    optimizer._reduction, optimizer._skip, optimizer._has_reduced = reduction, False, False
    if counter is not None:
        _count_steps(optimizer, counter)


def _count_steps(optimizer, counter):
    """Keeps the step count that schedulers need. They replace `step` of an optimizer by a function that counts calls of
    its former class's step, and warn if that function is missing."""
    @functools.wraps(counter)  # copies the attributes by which schedulers recognize it
    def step(*arguments, **options):
        optimizer._step_count = getattr(optimizer, "_step_count", 0) + 1  # torch 1
        optimizer._opt_called = True  # torch 2
        return type(optimizer).step(optimizer, *arguments, **options)

    optimizer.step = step


def expect_names(optimizer, named_parameters):
    """Errors: ConfigError if the optimizer also has parameters without names."""
    named = {id(parameter) for _, parameter in named_parameters}
    unnamed = sum(id(each) not in named for group in optimizer.param_groups for each in group["params"])
    if unnamed:
        raise ConfigError(f"named_parameters lacks {unnamed} parameters of the optimizer; pass model.named_parameters()")


def _trained(optimizer):
    return [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]


class _Distributed:
    """Methods that `DistributedOptimizer` adds to the class of an optimizer."""

    def synchronize(self):
        """Replaces gradients by their mean now, to clip or inspect them. Then call `step` within `skip_synchronize`."""
        if self._reduction is not None:
            self._reduction.include(_trained(self))  # parameters that the script has added or unfrozen
            self._reduction.reduce()
        self._has_reduced = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Makes steps within the block use gradients without reducing them."""
        self._skip = True
        try:
            yield
        finally:
            self._skip = False

    def step(self, closure=None):
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._skip:
            if self._has_reduced:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() reduces the gradients again that "
                              "optimizer.synchronize() has reduced", stacklevel=2)
            self.synchronize()
        self._has_reduced = False
        own = type(self).__mro__[1].step(self)
        return own if closure is None else loss

    step.hooked = True  # the step of the base class runs the hooks: torch must not wrap this one for them
