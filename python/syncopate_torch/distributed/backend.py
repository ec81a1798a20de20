"""The backend "syncopate" of torch.distributed: with `init_process_group("syncopate")` an unchanged script runs on it.

Collectives take any dense tensor; `all_reduce` also takes a sparse one. A tensor that is not on the CPU, or not
contiguous, is copied there and back, unless the script has chosen another backend for its device.
"""
import ctypes
import os
import threading
import warnings
import weakref

import torch
from torch import distributed
from torch._C._distributed_c10d import AllgatherOptions

from syncopate_torch.core import arguments, library
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import (bytes_of, divide, host_values, opened_group, operation, receiver_among,
                                        root_among, say, sender_among, type_name, values)
from syncopate_torch.core.torch_versions import keep_dynamo_out, hidden_from_dynamo
from syncopate_torch.distributed.devices import backends_of, by_device, group_for, is_known, recorded
from syncopate_torch.distributed.works import CallbackThread, KeptWorks, Receive, SparseSum, Work, also_plain
from syncopate_torch.distributed.rendezvous import job_of_group

_SUM = distributed.ReduceScatterOptions()

_ReduceOp = distributed.ReduceOp
_OPERATIONS = [(_ReduceOp.SUM, "sum"), (_ReduceOp.AVG, "mean"), (_ReduceOp.PRODUCT, "product"), (_ReduceOp.MIN, "min"),
               (_ReduceOp.MAX, "max"), (_ReduceOp.BAND, "and"), (_ReduceOp.BOR, "or"), (_ReduceOp.BXOR, "xor")]
_NOT_RECONFIGURED = "the members of a process group of syncopate do not change: leave out enable_reconfigure, or choose another backend"
# Reductions of booleans, each a byte of 0 or 1.
_OF_TRUTH = {"sum": "max", "product": "min"}


@hidden_from_dynamo("_allgather_base", "_reduce_scatter_base")
class ProcessGroup(distributed.ProcessGroup):
    """Some workers of a job, as a process group of torch.distributed."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        keep_dynamo_out()
        self._own_rank, self._own_size = rank, size
        self._timeout = timeout
        self._of_device = {}
        self._job, ranks = job_of_group(store, rank, size)
        # Callbacks of futures run in parallel to the script: their collectives have their own order, and therefore a
        # second group.
        self._handle, self._handle_of_callbacks = (
            opened_group(self._job, ranks, timeout.total_seconds()) for _ in range(2))
        self._running = set()
        self._callbacks = CallbackThread(self._running)
        self._turn = threading.RLock()
        self._works = KeptWorks()
        self._group_name = self._group_desc = ""
        handles = [self._handle_of_callbacks, self._handle]
        self._close = weakref.finalize(self, _close, handles, self._turn, self._job, self._works, self._running, os.getpid())

    @staticmethod
    def of(store, rank, size, timeout):
        """Makes a process group; torch.distributed calls it for each member of a new group."""
        return ProcessGroup(store, rank, size, timeout)

    @staticmethod
    def with_options(options, _backend_options):
        """As `of`, called by torch 2.14. Errors: ConfigError for a group whose members may change."""
        if options.enable_reconfigure:
            raise ConfigError(_NOT_RECONFIGURED)
        return ProcessGroup(options.store, options.group_rank, options.group_size, options.timeout)

    def getBackendName(self):  # noqa: N802 (torch's name)
        return "syncopate"

    _get_backend_name = name = getBackendName

    # torch.distributed and its C++ code call these; the base class keeps the values in a backend that this group does
    # not have.
    def getGroupName(self):  # noqa: N802 (torch's name)
        return self._group_name

    def setGroupName(self, name):  # noqa: N802 (torch's name)
        self._group_name = name

    def getGroupDesc(self):  # noqa: N802 (torch's name)
        return self._group_desc

    def setGroupDesc(self, text):  # noqa: N802 (torch's name)
        self._group_desc = text

    group_name, _set_group_name = property(getGroupName), setGroupName
    group_desc, _set_group_desc = property(getGroupDesc), setGroupDesc

    @property
    def _device_types(self):
        """Devices whose tensors the group takes, with the CPU first: torch puts objects without a device there. Empty
        while torch makes the group: torch 2.15 reads it then, and attaches a recorder to groups with a C++ backend."""
        if not is_known(self):
            return []
        return [torch.device(kind) for kind in dict.fromkeys(["cpu", *backends_of(self)])]

    def _get_backend(self, device):
        other = self._of_device.get(torch.device(device).type)
        return self if other is None else other._get_backend(device)

    def rank(self):
        return self._own_rank

    def size(self):
        return self._own_size

    def set_timeout(self, timeout):
        """Called by `torch.distributed.set_timeout` of torch 2.14. Sets the timeout of groups of other backends."""
        self._timeout = timeout
        for group in self._of_device.values():
            if group is not None:
                group.set_timeout(timeout)
        warnings.warn("a process group of syncopate keeps the timeout that it began with: pass it to init_process_group or "
                      f"new_group; set_timeout({timeout}) does not change it", stacklevel=3)

    def shutdown(self):
        self._close()

    #: torch 2.14 reads this: whether the members of a group may change.
    supports_reconfigure = False

    def get_reconfigure_handle(self):
        raise ConfigError(_NOT_RECONFIGURED)

    def reconfigure(self, opts):  # noqa: ARG002 (torch's)
        raise ConfigError(_NOT_RECONFIGURED)

    def abort(self):
        """Ends running operations by leaving the job; waits for them raise an error. Called by
        `torch.distributed.distributed_c10d._abort_process_group`."""
        self._close()

    def of_device(self, device):
        """Returns the process group for a kind of device if the script has chosen another backend for it; else None."""
        if device not in self._of_device:
            self._expect_open()
            self._of_device[device] = group_for(device, self, self._timeout)
        return self._of_device[device]

    @also_plain(distributed.AllreduceOptions, "op")
    @by_device
    def allreduce(self, tensors, opts):
        op = _name_of(opts.reduceOp)
        return self._each(tensors, lambda tensor: self._allreduction(tensor, op))

    @by_device
    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    @also_plain(distributed.ReduceOptions, "root", "op")
    @by_device
    def reduce(self, tensors, opts):
        return self._reduction("reduce", tensors[0], _name_of(opts.reduceOp), self._root_of(opts))

    @also_plain(distributed.BroadcastOptions, "root")
    @by_device
    def broadcast(self, tensors, opts):
        root = self._root_of(opts)
        return self._each(tensors, lambda tensor: self._broadcast(tensor, root))

    @also_plain(distributed.BarrierOptions)
    @recorded
    def barrier(self, opts):
        return self._work(self._begin("barrier"), [torch.tensor(0, device="cpu")])

    @also_plain(AllgatherOptions)
    @by_device
    def allgather(self, outputs, inputs, opts):
        arguments.expect_pairs("all_gather", outputs, inputs)
        return self._all([self._allgather(places, own) for places, own in zip(outputs, inputs)])

    @by_device
    def allgather_coalesced(self, outputs, inputs, opts=None):
        # One list for each rank, with an output for each input.
        arguments.expect_count("all_gather_coalesced", "list of outputs", len(outputs), self._own_size)
        for places in outputs:
            arguments.expect_pairs("all_gather_coalesced", places, inputs)
        return self._all([self._allgather([places[i] for places in outputs], own) for i, own in enumerate(inputs)])

    @by_device
    def _allgather_base(self, output, own, opts=None):
        arguments.expect_like("all_gather_into_tensor", "output", [output], own, self._own_size)
        own = host_values(own)
        arrived = host_values(output)
        handle = self._begin("allgather", own.data_ptr(), bytes_of(own), arrived.data_ptr(), of=own)
        return self._work(handle, [output], lambda: _copy_back(arrived, output), own)

    @by_device
    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        arguments.expect_pairs("all_gather_into_tensor_coalesced", outputs, inputs)
        return self._all([self._allgather_base(output, own) for output, own in zip(outputs, inputs)])

    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced

    @also_plain(distributed.GatherOptions, "root")
    @by_device
    def gather(self, outputs, inputs, opts):
        own, root = host_values(inputs[0]), self._root_of(opts)
        is_root = root == self._own_rank
        if is_root:
            arguments.expect_one_for_each("gather", "output", outputs[0], own, self._own_size)
        arrived = torch.empty((self._own_size, *own.shape), dtype=own.dtype, device="cpu") if is_root else None
        handle = self._begin("gather", own.data_ptr(), bytes_of(own), arrived.data_ptr() if is_root else None, root, of=own)
        if not is_root:
            return self._work(handle, [], keeps=own)
        return self._work(handle, outputs[0], lambda: _copy_all(outputs[0], arrived), own)

    @by_device
    def gather_single(self, output, own, opts):
        """Called by torch 2.15. Only the root has an output; other ranks pass an empty one."""
        own, root = host_values(own), self._root_of(opts)
        if root != self._own_rank:
            return self._work(self._begin("gather", own.data_ptr(), bytes_of(own), None, root, of=own), [], keeps=own)
        arguments.expect_like("gather_single", "output", [output], own, self._own_size)
        arrived = host_values(output)
        handle = self._begin("gather", own.data_ptr(), bytes_of(own), arrived.data_ptr(), root, of=own)
        return self._work(handle, [output], lambda: _copy_back(arrived, output), own)

    @also_plain(distributed.ScatterOptions, "root")
    @by_device
    def scatter(self, outputs, inputs, opts):
        place = outputs[0]
        own = torch.empty(place.shape, dtype=place.dtype, device="cpu")
        parts, root = None, self._root_of(opts)
        if root == self._own_rank:
            arguments.expect_one_for_each("scatter", "input", inputs[0], place, self._own_size)
            parts = _as_one(inputs[0])
        handle = self._begin("scatter", None if parts is None else parts.data_ptr(), bytes_of(own), own.data_ptr(), root, of=own)
        return self._work(handle, [place], lambda: place.copy_(own), parts)

    @also_plain(distributed.ReduceScatterOptions, "op")
    @by_device
    def reduce_scatter(self, outputs, inputs, opts):
        op = _name_of(opts.reduceOp)
        arguments.expect_pairs("reduce_scatter", outputs, inputs)
        for place, parts in zip(outputs, inputs):
            arguments.expect_one_for_each("reduce_scatter", "input", parts, place, self._own_size)
        return self._all([self._reduce_scatter(place, _as_one(parts), op) for place, parts in zip(outputs, inputs)])

    @by_device
    def _reduce_scatter_base(self, output, whole, opts=_SUM):
        arguments.expect_like("reduce_scatter_tensor", "input", [whole], output, self._own_size)
        return self._reduce_scatter(output, host_values(whole), _name_of(opts.reduceOp))

    @by_device
    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=_SUM):
        arguments.expect_pairs("reduce_scatter_tensor_coalesced", outputs, inputs)
        return self._all([self._reduce_scatter_base(output, whole, opts) for output, whole in zip(outputs, inputs)])

    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced

    @also_plain(distributed.AllToAllOptions)
    @by_device
    def alltoall(self, outputs, inputs, opts):
        for what, tensors in (("input", inputs), ("output", outputs)):
            arguments.expect_count("all_to_all", what, len(tensors), self._own_size)
        arguments.expect_type("all_to_all", [*inputs, *outputs])
        own = torch.cat([_as_bytes(host_values(part)) for part in inputs])
        arrived = torch.empty(sum(map(bytes_of, outputs)), dtype=torch.uint8, device="cpu")
        handle = self._alltoall(own, map(bytes_of, inputs), arrived, map(bytes_of, outputs), of=inputs[0])

        def spread():
            for place, block in zip(outputs, arrived.split([bytes_of(place) for place in outputs])):
                if place.numel():
                    place.copy_(block.view(place.dtype).view(place.shape))

        return self._work(handle, outputs, spread, own)

    @by_device
    def alltoall_base(self, output, whole, output_splits, input_splits, opts=None):
        arguments.expect_type("all_to_all_single", [whole, output])
        own, arrived = host_values(whole), torch.empty(output.shape, dtype=output.dtype, device="cpu")
        handle = self._alltoall(own, self._row_bytes(whole, input_splits), arrived, self._row_bytes(output, output_splits),
                                of=whole)
        return self._work(handle, [output], lambda: output.copy_(arrived), own)

    all_to_all_single = alltoall_base

    @by_device
    def send(self, tensors, to, tag=0):
        return self._message(Work, "send", tensors[0], receiver_among("dst", to, tag, self._own_size))

    @by_device
    def recv(self, tensors, sender, tag=0):
        return self._message(Receive, "receive", tensors[0], sender_among("src", sender, tag, self._own_size))

    @by_device
    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, None, tag)

    def _begin(self, name, *arguments, of=None):
        """of: the tensor if a collective takes it as bytes; or a text that describes its use."""
        handle = self._handle_of_callbacks if self._callbacks.is_here() else self._handle
        return self._made(name, handle, *arguments, of=of)

    def _made(self, name, handle, *arguments, of=None):
        keep_dynamo_out()
        with self._turn:
            self._expect_open()
            if of is not None:
                say(handle, of if isinstance(of, str) else type_name(of.dtype))
            return library.made(name, handle, *arguments)

    def _expect_open(self):
        if not self._handle:
            raise ConfigError("this process group has been destroyed; call destroy_process_group after its last collective: "
                              "where DistributedDataParallel has buffers, its forward pass is one, so evaluate its module")

    def _work(self, handle, result, finish=None, keeps=()):
        return self._kept(Work([handle], result, self._callbacks, finish, keeps), handle)

    def _message(self, kind, name, tensor, arguments):
        """Starts a send or a receive in the script's group, because a callback of one rank may send to the script of
        another. It may end long after collectives that begin later, so its callbacks have their own thread."""
        host = host_values(tensor)
        handle = self._made(name, self._handle, host.data_ptr(), bytes_of(host), *arguments)
        finish = (lambda: _copy_back(host, tensor)) if kind is Receive else None
        return self._kept(kind([handle], [tensor], CallbackThread(self._running), finish, host), handle)

    def _kept(self, work, handle=None):
        """Keeps a work until it has ended."""
        if handle is not None:
            work.frees(handle)
        with self._turn:
            work.kept_in(self._works)
        return work

    def _each(self, tensors, start):
        return self._all([start(tensor) for tensor in tensors])

    def _all(self, works):
        """Returns one work that ends with the last of several."""

        def finish():
            for work in works:
                work.wait()

        if len(works) == 1:
            return works[0]
        handles = [handle for work in works for handle in work._handles]
        return self._kept(Work(handles, [part for work in works for part in work._result], self._callbacks, finish,
                               parts=works))

    def _broadcast(self, tensor, root):
        host = host_values(tensor)
        handle = self._begin("broadcast", host.data_ptr(), bytes_of(host), root, of=host)
        return self._work(handle, [tensor], lambda: _copy_back(host, tensor))

    def _allreduction(self, tensor, op):
        if tensor.layout == torch.sparse_coo:
            return self._kept(SparseSum(self, tensor, op, self._callbacks))
        if tensor.layout != torch.strided:
            raise ConfigError(f"all_reduce takes dense tensors and those of torch.sparse_coo, found {tensor.layout}: call "
                              "to_sparse_coo() or to_dense() before")
        return self._reduction("allreduce", tensor, op)

    def _reduction(self, name, tensor, op, *root):
        host = host_values(tensor)
        numbers, code, mean = _numbers_of(host, op)
        handle = self._begin(name, numbers.data_ptr(), *values(numbers), code, *root, of=_use_of(host, op))

        def finish():
            if mean and (not root or root[0] == self._own_rank):
                divide(numbers, self._own_size)
            _copy_back(host, tensor)

        return self._work(handle, [tensor], finish)

    def gathered(self, own, what):
        """Returns a work whose result is the tensors of all ranks. what: describes them in errors of ranks that call
        something else."""
        return self._allgather([torch.empty_like(own) for _ in range(self._own_size)], own, what)

    def _allgather(self, places, own, what=None):
        arguments.expect_one_for_each("all_gather", "output", places, own, self._own_size)
        own = host_values(own)
        arrived = torch.empty((self._own_size, *own.shape), dtype=own.dtype, device="cpu")
        handle = self._begin("allgather", own.data_ptr(), bytes_of(own), arrived.data_ptr(), of=what or own)
        return self._work(handle, places, lambda: _copy_all(places, arrived), own)

    def _reduce_scatter(self, place, whole, op):
        own = torch.empty(place.shape, dtype=place.dtype, device="cpu")
        (parts, code, mean), (numbers, _, _) = _numbers_of(whole, op), _numbers_of(own, op)
        handle = self._begin("reduce_scatter", parts.data_ptr(), numbers.data_ptr(), *values(numbers), code,
                             of=_use_of(own, op))

        def finish():
            if mean:
                divide(numbers, self._own_size)
            place.copy_(own)

        return self._work(handle, [place], finish, whole)

    def _alltoall(self, own, own_bytes, arrived, arrived_bytes, of):
        lengths = [(ctypes.c_size_t * self._own_size)(*each) for each in (own_bytes, arrived_bytes)]
        return self._begin("alltoall", own.data_ptr(), lengths[0], arrived.data_ptr(), lengths[1], of=of)

    def _root_of(self, opts):
        return root_among(opts.rootRank, self._own_size)

    def _row_bytes(self, tensor, splits):
        """Returns the number of bytes in each rank's rows."""
        rows = arguments.rows_of("all_to_all_single", tensor, splits, self._own_size)
        row = bytes_of(tensor) // max(1, tensor.shape[0])
        return [count * row for count in rows]


def _close(handles, turn, job, works, running, process):
    """Ends a group. A receive is cancelled; other running operations can only end with the job."""
    if os.getpid() != process:
        return  # forked: the threads that end it do not exist here
    for work in list(works):
        work.withdraw()
    if not all(work.is_completed() for work in list(works)):
        job.leave()
    for callbacks in list(running):
        callbacks.end()
    for handle in handles:
        with turn:  # another thread, such as that of a running callback, may begin a collective
            own, handle.value = ctypes.c_void_p(handle.value), None
        library.call("group_close", own)


def _name_of(op):
    for known, name in _OPERATIONS:
        if op == known:
            return name
    name = getattr(getattr(op, "op", op), "name", op)
    raise ConfigError(f"backend syncopate has no operation {name}; it has SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR")


def _numbers_of(host, op):
    """Returns the arguments of a reduction: the numbers in the memory of a tensor, the operation on them, and whether
    it is a mean. Booleans are bytes of 0 and 1, complex numbers are pairs."""
    numbers = host
    if host.dtype == torch.bool:
        numbers, op = host.view(torch.uint8), _OF_TRUTH.get(op, op)
    elif host.is_complex():
        if op not in ("sum", "mean"):
            raise ConfigError(f"complex values have SUM and AVG, found {op}: reduce torch.view_as_real of the tensor")
        numbers = torch.view_as_real(host)
    if op == "mean" and host.dtype == torch.bool:
        raise ConfigError(f"ReduceOp.AVG is for numbers, found {host.dtype}; use MAX (any) or MIN (all)")
    return numbers, operation("sum" if op == "mean" else op), op == "mean"


def _use_of(host, op):
    """Describes the use of a reduction if its numbers and operation do not identify it; else returns None."""
    if op == "mean" or host.dtype == torch.bool or host.is_complex():
        return f"the {op} of {type_name(host.dtype)}"
    return None


def _copy_all(places, arrived):
    for place, block in zip(places, arrived):
        place.copy_(block.view(place.shape))


def _as_one(parts):
    """Concatenates tensors of the same length and type."""
    return torch.cat([host_values(part).reshape(-1) for part in parts])


def _copy_back(host, tensor):
    """Copies the host's copy of a tensor to the tensor, unless both share memory."""
    if host.data_ptr() != tensor.data_ptr():
        tensor.copy_(host)


def _as_bytes(tensor):
    flat = tensor.reshape(-1)
    # A single value is contiguous with any stride, but torch views it as bytes only with stride 1.
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)
