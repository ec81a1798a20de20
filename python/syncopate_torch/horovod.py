"""Horovod's PyTorch interface over Syncopate: a script written for Horovod changes only its import.

    import syncopate_torch.horovod as hvd      # was: import horovod.torch as hvd

Gradients are averaged at every step, as in Horovod. For the schemes for machines of unequal speed use
`syncopate_torch.init`. Adasum and elastic state are not supported.

Order:  all workers call the same collectives in the same order; this includes named ones.
Errors: ConfigError if workers use names in different orders, and, once a worker has called `join`, for collectives
        other than `allreduce` and `reducescatter`.
"""
# Length: Horovod has all of these names in one module.
import contextlib
import ctypes
import math
import time

import torch

from syncopate_torch.core import library
from syncopate_torch.core.arguments import MOST_64, expect_rows, expect_tensor, pickled, unpickled, whole
from syncopate_torch.core.errors import ConfigError, Error
from syncopate_torch.core.group import Work, host_values, say, say_type
from syncopate_torch.core.launch import expect_effect
from syncopate_torch.integrations.horovod_parts import (Everyone, NamesUnderWay, OpenSets, ProcessSet, SameName,
                                                        announce_allreduce, contribute_nothing, expect_names,
                                                        has_ended_one, make_distributed, number_of)
from syncopate_torch.distributed import rendezvous
from syncopate_torch.training.batch_norm import forward_of, with_gradient
from syncopate_torch.training.torch_optimizers import expect_whole_steps

#: Values of `op`.
Average, Sum, Min, Max, Product = "mean", "sum", "min", "max", "product"

#: The error that Horovod scripts catch.
HorovodInternalError = Error

_job = None
_sets = None  # set and cleared together with _job
_names = NamesUnderWay()

# Features of Horovod that are not supported, and their replacements.
_REFUSED = {
    "Adasum": "reduce by hvd.Average",
    "start_timeline": "look at trace.json.gz in the run folder; `syncopate run --trace steps` writes more into it",
    "stop_timeline": "look at trace.json.gz in the run folder; `syncopate run --trace steps` writes more into it",
    "elastic": "save state_dict(), and start the script again",
}


def __getattr__(name):
    if name in _REFUSED:
        raise AttributeError(f"Syncopate has no {name}; {_REFUSED[name]}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _AsTheyAre:
    @staticmethod
    def compress(tensor):
        """Returns the tensor to send, and the context that `decompress` needs."""
        return tensor, None

    @staticmethod
    def decompress(tensor, _context):
        """Returns the received tensor."""
        return tensor


class _AsFloat16:
    @staticmethod
    def compress(tensor):
        """Converts a floating-point tensor to float16; the context is its own dtype."""
        return tensor.to(torch.float16) if tensor.is_floating_point() else tensor, tensor.dtype

    @staticmethod
    def decompress(tensor, dtype):
        """Converts the tensor back to its own dtype."""
        return tensor.to(dtype)


class Compression:
    """Encodings of sent values: unchanged, or float16. A custom class also has the methods `compress` and
    `decompress`."""

    #: Sends values unchanged.
    none = _AsTheyAre
    #: Sends float16, half of the bytes.
    fp16 = _AsFloat16


def init(comm=None, process_sets=None):
    """Joins the job for which a launcher started this process. Further calls have no effect.

    process_sets: sets to open, each a `ProcessSet` or a list of ranks; or "dynamic", which has no effect.
    Errors: ConfigError for `comm`, and for options of `syncopate run` that have no effect here, such as a scheme other
            than ssgd.
    """
    global _job, _sets
    if comm is not None:
        raise ConfigError(f"expected hvd.init() of all workers, found comm={comm!r}: leave it out, and open sets of some workers "
                          "by hvd.add_process_set(ranks)")
    if _job is None and rendezvous.current_job() is None:
        expect_effect("syncopate_torch.horovod")
    if _job is None:
        _job = rendezvous.current_job() or rendezvous.init()
        _sets = OpenSets(_job)
        for each in [] if process_sets in (None, "dynamic") else process_sets:
            _sets.open(each)


def shutdown():
    """Leaves the job."""
    global _job, _sets
    if _job is not None:
        _sets.close_all()
        _job.leave()
    _job = _sets = None


def is_initialized():
    """True between `init` and `shutdown`."""
    return _job is not None


def _own_job():
    if _job is None:
        raise ConfigError("call hvd.init() first")
    return _job


#: All workers.
global_process_set = Everyone(_own_job)


def add_process_set(process_set):
    """Opens a set of some workers (a `ProcessSet` or a list of ranks) and returns it. All workers call it, in the same
    order. Errors: ConfigError if a set of these ranks exists already."""
    _own_job()
    return _sets.open(process_set)


def remove_process_set(process_set):
    """Closes a set on all workers and returns True if it was open. The set of all workers stays open."""
    _own_job()
    return _sets.close(process_set)


def rank():
    """The rank of this worker, from 0 on."""
    return _own_job().rank


def size():
    """The number of workers."""
    return _own_job().size


def local_rank():
    """The rank of this worker among the workers of its host."""
    return _own_job().local_rank


def local_size():
    """The number of workers on this host."""
    hosts = _own_job().hosts
    return hosts.count(hosts[rank()])


def _cross_ranks():
    """Returns the workers with the same local rank as this one, one per host."""
    hosts = _own_job().hosts
    return [other for other, host in enumerate(hosts) if hosts[:other].count(host) == local_rank()]


def cross_rank():
    """The rank of this worker among the workers of all hosts that have its local rank."""
    return _cross_ranks().index(rank())


def cross_size():
    """The number of hosts with a worker of this local rank."""
    return len(_cross_ranks())


def is_homogeneous():
    """True if every host has the same number of workers."""
    hosts = _own_job().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def mpi_threads_supported():
    """False: threads must not call MPI."""
    return False


def mpi_built(verbose=False):  # noqa: ARG001
    """False: values are not sent by MPI."""
    return False


def mpi_enabled():
    """As `mpi_built`."""
    return False


def gloo_built(verbose=False):  # noqa: ARG001
    """False: values are not sent by Gloo."""
    return False


def gloo_enabled():
    """As `gloo_built`."""
    return False


def nccl_built(verbose=False):  # noqa: ARG001
    """0, which stands for no version: values are not sent by NCCL."""
    return 0


def ddl_built(verbose=False):  # noqa: ARG001
    """False: values are not sent by DDL."""
    return False


def ccl_built(verbose=False):  # noqa: ARG001
    """False: values are not sent by oneCCL."""
    return False


def cuda_built(verbose=False):  # noqa: ARG001
    """False: values of a GPU are sent through host memory."""
    return False


def rocm_built(verbose=False):  # noqa: ARG001
    """As `cuda_built`."""
    return False


class Handle:
    """A running collective, for `synchronize` and `poll`."""

    def __init__(self, work, finish, same_name=None):
        self._work, self._finish, self._same_name, self._result = work, finish, same_name, None

    def is_done(self):
        """True once the collective has ended."""
        return self._work.is_done()

    def wait(self):
        """Waits for the collective and returns its result; every call returns the same object. Errors: ConfigError if
        another worker called a different collective instead."""
        if self._finish is not None:
            with torch.no_grad():
                self._result = self._finish(self._waited())
            self._finish = None
        return self._result

    def _waited(self):
        with _explained():
            names = None if self._same_name is None else self._same_name.wait()
        if names is not None:
            self._same_name.expect(names)
        with _explained():
            return self._work.wait()

    def _then(self, finish):
        """Returns a handle whose result is `finish` applied to the result of this one."""
        return Handle(self._work, lambda result: finish(self._finish(result)), self._same_name)


@contextlib.contextmanager
def _explained():
    """Mentions `join` in errors about collectives in different orders, which `join` may cause."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{error}; after a worker has called hvd.join(), the next call of the others is a step or a join, "
                          "and only then hvd.allreduce") from None


def _same_name(name, process_set):
    is_alone = process_set.size() == 1 or (process_set is global_process_set and has_ended_one(_own_job()))
    return None if name is None or is_alone else SameName(process_set.members(), name)


def _all_of(process_set, collective):
    """Returns the members of a set, for a collective that all must call. Errors: ConfigError if a worker has joined."""
    if has_ended_one(_own_job()):
        raise ConfigError(f"a worker has called hvd.join(), so hvd.{collective} would wait for it in vain: until all have "
                          "joined, step optimizers, and call hvd.allreduce and hvd.reducescatter alone")
    return process_set.members()


def synchronize(handle):
    """Waits for the collective and returns its result."""
    return handle.wait()


def poll(handle):
    """True once a collective has ended."""
    return handle.is_done()


def _op_of(average, op):
    """Resolves `average`, a boolean from before Horovod had operations, and `op` to one operation."""
    if average is not None and op is not None:
        raise ConfigError("allreduce takes average or op, not both; drop average")
    if op is None:
        op = Average if average is None or average else Sum
    if op not in (Average, Sum, Min, Max, Product):
        raise ConfigError(f"expected op to be Average, Sum, Min, Max or Product, found {op!r}")
    return op


def _scale(tensor, factor, divisor=1):
    """Multiplies a tensor in place by a factor and divides it by an integer. Integer tensors are rounded towards zero;
    an integer factor and the divisor are applied exactly."""
    if tensor.is_floating_point() or tensor.is_complex():
        is_short = tensor.dtype in (torch.float16, torch.bfloat16)  # torch may round the factor to this dtype
        scaled = tensor.float() if is_short else tensor
        return tensor if factor == divisor else tensor.copy_(scaled * (factor / divisor))
    if factor != 1 and float(factor).is_integer():
        tensor.mul_(int(factor))
    elif factor != 1:
        tensor.copy_((tensor.double() * factor).trunc())
    return tensor if divisor == 1 else tensor.div_(divisor, rounding_mode="trunc")


def _use_of(op, prescale_factor, postscale_factor):
    """Describes the use of an allreduce if its operation does not identify it; else returns None."""
    if (prescale_factor, postscale_factor) != (1, 1):
        return f"op {op} with factors {prescale_factor:.9g}, {postscale_factor:.9g}"
    return f"op {op}" if op == Average else None


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                     process_set=global_process_set):
    """As `allreduce_`, but returns a `Handle` at once."""
    expect_tensor(tensor)
    op = _op_of(average, op)
    _names.expect_free("allreduce", name, process_set)
    reduction, divisor = ("sum", process_set.size()) if op == Average else (op, 1)
    members = process_set.members()
    with torch.no_grad():
        _scale(tensor, prescale_factor)
    use = _use_of(op, prescale_factor, postscale_factor)
    is_announced = process_set is global_process_set and has_ended_one(_own_job())
    if is_announced:
        announce_allreduce(_own_job(), tensor, reduction, number_of(f"{name} {use}"))
    same_name = _same_name(name, process_set)
    if use is not None and process_set.size() > 1 and not is_announced:
        say(members.handle, use)  # describes the next collective, after that of the name
    work = _names.begin("allreduce", name, process_set, members.allreduce_async(tensor, reduction))
    return Handle(work, lambda result: _scale(result, postscale_factor, divisor), same_name)


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Replaces a tensor by its mean, or another reduction, over all workers or those of a set. A worker that has joined
    contributes zeros to a mean or a sum, and nothing to other reductions."""
    return allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set).wait()


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                    process_set=global_process_set):
    """As `allreduce`, but returns a `Handle` at once."""
    expect_tensor(tensor)
    return allreduce_async_(tensor.detach().clone(), average, name, op, prescale_factor, postscale_factor, process_set)


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """Returns the mean, or another reduction, of a tensor over all workers, as `allreduce_` does. Autograd
    differentiates a mean and a sum. Integers are never compressed."""
    op = _op_of(average, op)

    def reduced(each):
        own = each.detach()
        sent, context = compression.compress(own)
        sent = own.clone() if sent is own else sent
        arrived = allreduce_async_(sent, None, name, op, prescale_factor, postscale_factor, process_set).wait()
        return compression.decompress(arrived, context)

    def gradient(of_result):
        if op not in (Average, Sum):
            raise ConfigError(f"hvd.allreduce has a gradient by hvd.Average and hvd.Sum, found op {op!r}: detach the tensor")
        return allreduce(of_result, None, name, compression, op, prescale_factor, postscale_factor, process_set)

    return with_gradient(tensor, reduced, gradient)


class _Handles(Handle):
    """Several running collectives as one `Handle`."""

    def __init__(self, handles):  # noqa: PLW0231 (each of them has a work)
        self._handles = handles

    def is_done(self):
        return all(each.is_done() for each in self._handles)

    def wait(self):
        return [each.wait() for each in self._handles]


def _names_of_group(name, tensors):
    return [None if name is None else f"{name}.{index}" for index in range(len(tensors))]


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                             process_set=global_process_set):
    """As `allreduce_async_`, for several tensors."""
    return _Handles([allreduce_async_(each, average, own, op, prescale_factor, postscale_factor, process_set)
                     for each, own in zip(tensors, _names_of_group(name, tensors))])


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    """As `allreduce_`, for several tensors."""
    return grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set).wait()


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0, postscale_factor=1.0,
                            process_set=global_process_set):
    """As `allreduce_async`, for several tensors."""
    return _Handles([allreduce_async(each, average, own, op, prescale_factor, postscale_factor, process_set)
                     for each, own in zip(tensors, _names_of_group(name, tensors))])


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    """As `allreduce`, for several tensors."""
    return [allreduce(each, average, name, compression, op, prescale_factor, postscale_factor, process_set)
            for each in tensors]


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Starts the mean or the sum of a sparse tensor over all workers. Returns a function that waits for the result."""
    if op not in (Average, Sum):
        raise ConfigError(f"expected op of sparse_allreduce_async to be Average or Sum, found {op!r}")
    own = tensor.coalesce()
    parts = [allgather_async(part, None if name is None else f"{name}.{what} for op {op}", process_set)
             for what, part in (("indices", own.indices().t().contiguous()), ("values", own.values()))]

    def wait():
        indices, values = (part.wait() for part in parts)
        values = values / process_set.size() if op == Average else values
        return torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()

    return wait


def allgather_async(tensor, name=None, process_set=global_process_set):
    """As `allgather`, but returns a `Handle` once the numbers of rows are known."""
    _names.expect_free("allgather", name, process_set)
    handle = _allgather_of_rows(tensor, _rows_of_all(tensor, name, process_set), process_set)
    return _names.begin("allgather", name, process_set, handle)


def _of_all(collective, own, name=None, process_set=global_process_set):
    """Gathers numbers from all workers that describe the next collective; returns one entry per worker."""
    members = _all_of(process_set, collective)
    same_name = _same_name(name, process_set)
    return Handle(members.allgather_async(torch.tensor(own)), lambda result: result.tolist(), same_name).wait()


def _rows_of_all(tensor, name=None, process_set=global_process_set):
    """Returns the number of rows of each worker. Errors: ConfigError for a tensor without rows."""
    expect_rows("allgather", tensor)
    return _of_all("allgather", tensor.shape[0], name, process_set)


def _allgather_of_rows(tensor, rows, process_set=global_process_set):
    padded = torch.zeros((max(rows), *tensor.shape[1:]), dtype=tensor.dtype)
    padded[:tensor.shape[0]] = host_values(tensor)
    return Handle(process_set.members().allgather_async(padded),
                  lambda parts: torch.cat([part[:count] for part, count in zip(parts, rows)]).to(tensor.device))


def allgather(tensor, name=None, process_set=global_process_set):
    """Concatenates the tensors of all workers, or those of a set, along the first dimension, whose size may differ
    between workers. Autograd differentiates it."""
    rows = _rows_of_all(tensor, name, process_set)

    def own_rows(of_result):
        mean = allreduce(of_result, name=name, process_set=process_set)  # as in Horovod
        return mean.split(rows)[process_set.rank()]

    return with_gradient(tensor, lambda each: _allgather_of_rows(each, rows, process_set).wait(), own_rows)


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """As `allgather_async`, for several tensors."""
    return _Handles([allgather_async(each, own, process_set) for each, own in zip(tensors, _names_of_group(name, tensors))])


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """As `allgather`, for several tensors."""
    return [allgather(each, name, process_set) for each in tensors]


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """As `alltoall`, but returns a `Handle` once the numbers of rows are known."""
    _names.expect_free("alltoall", name, process_set)
    handle = _names.begin("alltoall", name, process_set, _alltoall_async(tensor, splits, name, process_set))
    return handle if splits is not None else handle._then(lambda result: result[0])


def _alltoall_async(tensor, splits, name, process_set):
    """The result also has the number of rows received from each worker."""
    expect_rows("alltoall", tensor)
    own, members = host_values(tensor), process_set.members()
    count = members.size
    if splits is None and own.shape[0] % count:
        raise ConfigError(f"alltoall of {own.shape[0]} rows: expected a number that {count} workers can divide, or splits")
    sent = [own.shape[0] // count] * count if splits is None else [
        whole("a split of alltoall", rows, MOST_64) for rows in splits]
    if len(sent) != count or sum(sent) != own.shape[0]:
        raise ConfigError(f"alltoall: expected {count} splits whose sum is {own.shape[0]} rows, found {sent}")
    received = [rows[process_set.rank()] for rows in _of_all("alltoall", sent, name, process_set)]
    arrived = torch.empty((sum(received), *own.shape[1:]), dtype=own.dtype)
    row = own.element_size() * math.prod(own.shape[1:])
    to, source = ((ctypes.c_size_t * count)(*(rows * row for rows in each)) for each in (sent, received))
    say_type(members.handle, own)
    work = library.made("alltoall", members.handle, own.data_ptr(), to, arrived.data_ptr(), source)

    def finish(result):
        return result.to(tensor.device), torch.tensor(received, dtype=torch.int32)

    return Handle(Work(work, arrived, keeps=own), finish)


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends `splits[r]` rows of a tensor to each worker r, or an equal number to each. Returns the received rows,
    ordered by sender, and with `splits` also their counts. Autograd differentiates it."""
    received = []

    def exchanged(each):
        result, counts = _alltoall_async(each, splits, name, process_set).wait()
        received.append(counts)
        return result

    def sent_back(of_result):
        return alltoall(of_result, received[0], process_set=process_set)[0]

    rows = with_gradient(tensor, exchanged, sent_back)
    return rows if splits is None else (rows, received[0])


def reducescatter(tensor, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                  prescale_factor=1.0, postscale_factor=1.0):
    """Returns this worker's rows of the mean, or the sum, of a tensor over all workers or those of a set. If the rows
    do not divide equally, the first workers get one row more. Autograd differentiates it."""
    expect_rows("reducescatter", tensor)
    _expect_op_of_rows(op)

    def scattered(each):
        reduced = allreduce(each.detach(), None, name, compression, op, prescale_factor, postscale_factor, process_set)
        return _own_rows(reduced, process_set)

    def gradient(of_result):
        factor = prescale_factor * postscale_factor * (process_set.size() if op == Sum else 1)  # as in Horovod
        return allgather(of_result * factor, name, process_set)

    return with_gradient(tensor, scattered, gradient)


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                        postscale_factor=1.0):
    """As `reducescatter`, but returns a `Handle` at once."""
    expect_rows("reducescatter", tensor)
    _expect_op_of_rows(op)
    handle = allreduce_async(tensor, None, name, op, prescale_factor, postscale_factor, process_set)
    return handle._then(lambda reduced: _own_rows(reduced, process_set))


def _expect_op_of_rows(op):
    if op not in (Average, Sum):
        raise ConfigError(f"expected op of reducescatter to be Average or Sum, found {op!r}")


def _own_rows(reduced, process_set):
    return reduced.tensor_split(process_set.size())[process_set.rank()].clone()


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set, prescale_factor=1.0,
                                postscale_factor=1.0):
    """As `reducescatter_async`, for several tensors."""
    return _Handles([reducescatter_async(each, own, op, process_set, prescale_factor, postscale_factor)
                     for each, own in zip(tensors, _names_of_group(name, tensors))])


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average, process_set=global_process_set,
                          prescale_factor=1.0, postscale_factor=1.0):
    """As `reducescatter`, for several tensors."""
    return [reducescatter(each, name, compression, op, process_set, prescale_factor, postscale_factor) for each in tensors]


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """As `broadcast_`, but returns a `Handle` at once."""
    expect_tensor(tensor)
    members, root = _all_of(process_set, "broadcast"), process_set.root(root_rank)
    _names.expect_free("broadcast", name, process_set)
    # Always named: the root does not wait, so it would not notice that another worker broadcasts something else.
    same_name = _same_name(f"{name or ''} broadcast of {list(tensor.shape)} {tensor.dtype} from {root_rank}", process_set)
    work = _names.begin("broadcast", name, process_set, members.broadcast_async(tensor, root))
    return Handle(work, lambda result: result, same_name)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Replaces a tensor by that of worker `root_rank`, a rank in the job."""
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """As `broadcast`, but returns a `Handle` at once."""
    expect_tensor(tensor)
    return broadcast_async_(tensor.detach().clone(), root_rank, name, process_set)


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Returns the tensor of worker `root_rank`, a rank in the job. Autograd differentiates it."""
    def at_root(of_result):
        mean = allreduce(of_result, name=name, process_set=process_set)  # as in Horovod
        return mean if rank() == root_rank else torch.zeros_like(mean)

    return with_gradient(tensor, lambda each: broadcast_async(each, root_rank, name, process_set).wait(), at_root)


def barrier(process_set=global_process_set):
    """Returns once every worker, or every member of the set, has called it."""
    _all_of(process_set, "barrier").barrier()


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Returns the object of worker `root_rank`, sent pickled. Errors: ConfigError on all workers if it cannot be
    pickled."""
    content, error = pickled(obj, rank()) if rank() == root_rank else (None, None)
    length = int(broadcast(torch.tensor([0 if content is None else len(content)]), root_rank, name, process_set))
    content = broadcast_(torch.zeros(length, dtype=torch.uint8) if content is None else content, root_rank,
                         process_set=process_set)
    if error is not None:
        raise error
    return obj if rank() == root_rank else unpickled(content)


def allgather_object(obj, name=None):
    """Returns the objects of all workers, by rank. Errors: those of `broadcast_object`."""
    content, _ = pickled(obj, rank())
    rows = _rows_of_all(content, name)
    return [unpickled(part) for part in _allgather_of_rows(content, rows).wait().split(rows)]


def broadcast_parameters(params, root_rank=0):
    """Copies the tensors of worker `root_rank` to all workers. `params` is a dict such as `model.state_dict()`, or a
    list with or without names such as `model.named_parameters()` and `model.parameters()`."""
    values = [params[name] for name in sorted(params)] if isinstance(params, dict) else list(params)
    for each in values:
        value = each[1] if isinstance(each, tuple) else each
        if torch.is_tensor(value):
            broadcast_(value.data, root_rank)


def broadcast_optimizer_state(optimizer, root_rank=0, model=None):  # noqa: ARG001 (Horovod builds a state with it)
    """Copies the state of an optimizer from worker `root_rank` to all workers."""
    state = broadcast_object(optimizer.state_dict(), root_rank)
    if rank() != root_rank:
        optimizer.load_state_dict(state)


def join(device=-1):  # noqa: ARG001
    """Reports that this worker takes no further steps. Until all workers have joined, it contributes nothing to the
    steps of the others and zeros to their `allreduce`. Returns the rank of the last worker to join.

    The next call of the other workers must be a step of a distributed optimizer or `join`: they learn from it that this
    worker has joined. Errors: ConfigError if it is another collective.
    """
    since = time.monotonic()
    with _explained():
        contribute_nothing(_own_job())
    barrier()
    waits = _of_all("join", int(1e9 * (time.monotonic() - since)))  # of each worker, until the last one joined
    return min(range(size()), key=waits.__getitem__)


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    """BatchNorm that in training uses the mean and variance of the batches of all workers, which call it equally
    often."""

    def forward(self, batch):
        """batch: [samples, channels, ...]."""
        return forward_of(self, batch, _own_job().everyone if size() > 1 else None)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,  # noqa: N802
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         num_groups=0, groups=None, sparse_as_dense=False,  # noqa: ARG001
                         process_set=global_process_set):
    """Makes the optimizer replace gradients by their mean over all workers at the start of each `step`.

    Returns the same object, with a class derived from its own. A parameter without a gradient counts as having a zero
    gradient. Parameters that all workers unfreeze or add later are also reduced from the next step on; the script
    broadcasts the values of added ones.

    backward_passes_per_step: number of backward passes before a step. The gradient of the step is their sum, as in
                              Horovod, so the script divides its losses by this number.
    num_groups, groups, sparse_as_dense: have no effect: all gradients are one dense vector.
    process_set: the workers that take the mean; other workers step on their own.
    """
    expect_whole_steps(optimizer)
    if op not in (Average, Sum):
        raise ConfigError(f"expected op of an optimizer to be Average or Sum, found {op!r}")
    if gradient_predivide_factor <= 0 or backward_passes_per_step < 1:
        raise ConfigError("gradient_predivide_factor and backward_passes_per_step must be positive, found "
                          f"{gradient_predivide_factor} and {backward_passes_per_step}")
    if "_reduction" in vars(optimizer):
        raise ConfigError("this optimizer is distributed already: leave out the second call of hvd.DistributedOptimizer")
    if named_parameters is not None:
        expect_names(optimizer, named_parameters)
    if compression not in (Compression.none, Compression.fp16):
        raise ConfigError("an optimizer takes hvd.Compression.none and hvd.Compression.fp16, found "
                          f"{getattr(compression, '__name__', compression)}: its gradients travel as one vector")
    _own_job()
    workers = _job if process_set is global_process_set else process_set.members() if process_set.included() else None
    make_distributed(optimizer, workers, mean=op == Average,
                     dtype=torch.float16 if compression is Compression.fp16 else None)
    return optimizer
