"""The backend "syncopate" of torch.distributed: `init_process_group("syncopate")`, and a stock script runs on.

Collectives take any dense tensor: what is not on the CPU, or has gaps, is copied there and back.
"""
import collections
import ctypes
import os
import queue
import threading
import weakref

import torch
from torch import distributed

from syncopate_torch import _c
from syncopate_torch.errors import ConfigError, TimedOut
from syncopate_torch.group import bytes_of, host_values, opened_group, operation, values
from syncopate_torch.rendezvous import job_of_group

_KEPT = 16  # works that have ended

_ReduceOp = distributed.ReduceOp
_OPERATIONS = [(_ReduceOp.SUM, "sum"), (_ReduceOp.AVG, "mean"), (_ReduceOp.PRODUCT, "product"), (_ReduceOp.MIN, "min"),
               (_ReduceOp.MAX, "max"), (_ReduceOp.BAND, "and"), (_ReduceOp.BOR, "or"), (_ReduceOp.BXOR, "xor")]
# Of truth values, each a byte of 0 or 1.
_OF_TRUTH = {"sum": "max", "product": "min", "mean": None}


def register():
    """Makes "syncopate" a backend of torch.distributed, once."""
    if hasattr(distributed.Backend, "SYNCOPATE"):
        return
    try:
        distributed.Backend.register_backend("syncopate", ProcessGroup.of, devices=["cpu", "cuda"])
    except TypeError:  # torch 1.13 knows no devices
        distributed.Backend.register_backend("syncopate", ProcessGroup.of)


class Work(distributed.Work if hasattr(distributed, "Work") else distributed._Work):
    """An operation of a process group, as torch.distributed waits for it."""

    def __init__(self, handles, result, finish=None, keeps=()):
        """handles: of the C interface. finish: makes the result of what has arrived. keeps: what is read until then."""
        super().__init__()
        self._handles, self._finish, self._keeps = handles, finish, keeps
        self._result = result
        self._error = None
        self._ended = False
        self._turn = threading.RLock()
        self._future = None
        for handle in handles:
            weakref.finalize(self, _c.call, "work_free", handle)

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else None
        self._end(seconds)
        if self._error is not None:
            raise self._error.with_traceback(None)
        if not self._ended:
            raise TimedOut(f"an operation of torch.distributed has not ended within {seconds} s")
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        if not self._ended and all(_c.call("work_is_done", handle) for handle in self._handles):
            self._end(None)
        return self._ended

    def is_success(self):
        return self.is_completed() and self._error is None

    def exception(self):
        return self._error

    def result(self):
        self.wait()
        return self._result

    def source_rank(self):
        return _c.call("work_source", self._handles[0])

    _source_rank = source_rank

    def get_future(self):
        """A future of the result, as DistributedDataParallel waits for it."""
        with self._turn:
            if self._future is None:
                begun = torch.futures.Future()
                self._future = begun.then(lambda _: self.wait() and self._result)
                _waiters.resolve(self, begun)
            return self._future

    def _end(self, seconds):
        with self._turn:
            if self._ended:
                return
            try:
                if not all([_c.wait(handle, seconds) for handle in self._handles]):
                    return
                if self._finish is not None:
                    with torch.no_grad():
                        self._finish()
            except Exception as error:
                self._error = error
            self._ended = True
            self._finish, self._keeps = None, ()


class _Waiters:
    """A thread that waits for the operations whose future somebody has asked for, in that order."""

    def __init__(self):
        self._waiting = queue.SimpleQueue()
        self._thread = None

    def resolve(self, work, future):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="syncopate futures", daemon=True)
            self._thread.start()
        self._waiting.put((work, future))

    def _run(self):
        while True:
            work, future = self._waiting.get()
            work._end(None)
            future.set_result(None)
            del work, future


_waiters = _Waiters()


class ProcessGroup(distributed.ProcessGroup):
    """Some workers of a job, as a process group of torch.distributed."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._own_rank, self._own_size = rank, size
        self._job, ranks = job_of_group(store, rank, size)
        self._handle = opened_group(self._job, ranks, timeout.total_seconds())
        self._turn = threading.Lock()
        self._latest = collections.deque()
        self._close = weakref.finalize(self, _close, self._handle, self._job, self._latest, os.getpid())

    @staticmethod
    def of(store, rank, size, timeout):
        """What torch.distributed calls for each member of a new group."""
        return ProcessGroup(store, rank, size, timeout)

    def getBackendName(self):  # noqa: N802 (torch's name)
        return "syncopate"

    _get_backend_name = name = getBackendName

    def rank(self):
        return self._own_rank

    def size(self):
        return self._own_size

    def shutdown(self):
        self._close()

    def allreduce(self, tensors, opts=None):
        op = _name_of(opts.reduceOp) if opts is not None else "sum"
        return self._each(tensors, lambda tensor: self._reduction("allreduce", tensor, op))

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def reduce(self, tensors, opts):
        return self._reduction("reduce", tensors[0], _name_of(opts.reduceOp), opts.rootRank)

    def broadcast(self, tensors, opts=None):
        root = opts.rootRank if opts is not None else 0
        return self._each(tensors, lambda tensor: self._on_host(
            tensor, lambda host: self._begin("broadcast", host.data_ptr(), bytes_of(host), root)))

    def barrier(self, opts=None):
        return self._work([self._begin("barrier")], [torch.tensor(0)])

    def allgather(self, outputs, inputs, opts=None):
        return self._all([self._allgather(places, own) for places, own in zip(outputs, inputs)])

    def allgather_coalesced(self, outputs, inputs, opts=None):
        # One list for each rank, of the places for each input.
        return self._all([self._allgather([places[i] for places in outputs], own) for i, own in enumerate(inputs)])

    def _allgather_base(self, output, own, opts=None):
        own = host_values(own)
        arrived = host_values(output)
        handle = self._begin("allgather", own.data_ptr(), bytes_of(own), arrived.data_ptr())
        return self._work([handle], [output], lambda: _copy_back(arrived, output), own)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._all([self._allgather_base(output, own) for output, own in zip(outputs, inputs)])

    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced

    def gather(self, outputs, inputs, opts):
        own = host_values(inputs[0])
        is_root = opts.rootRank == self._own_rank
        arrived = torch.empty((self._own_size, *own.shape), dtype=own.dtype) if is_root else None
        handle = self._begin("gather", own.data_ptr(), bytes_of(own), arrived.data_ptr() if is_root else None, opts.rootRank)
        if not is_root:
            return self._work([handle], [], keeps=own)
        return self._work([handle], outputs[0], lambda: _copy_all(outputs[0], arrived), own)

    def scatter(self, outputs, inputs, opts):
        place = outputs[0]
        own = torch.empty(place.shape, dtype=place.dtype)
        parts = torch.stack([host_values(part) for part in inputs[0]]) if opts.rootRank == self._own_rank else None
        handle = self._begin("scatter", None if parts is None else parts.data_ptr(), bytes_of(own), own.data_ptr(),
                             opts.rootRank)
        return self._work([handle], [place], lambda: place.copy_(own), parts)

    def reduce_scatter(self, outputs, inputs, opts):
        op = _name_of(opts.reduceOp)
        return self._all([self._reduce_scatter(place, torch.stack([host_values(part) for part in parts]), op)
                          for place, parts in zip(outputs, inputs)])

    def _reduce_scatter_base(self, output, whole, opts):
        return self._reduce_scatter(output, host_values(whole), _name_of(opts.reduceOp))

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts):
        return self._all([self._reduce_scatter_base(output, whole, opts) for output, whole in zip(outputs, inputs)])

    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced

    def alltoall(self, outputs, inputs, opts=None):
        own = torch.cat([_as_bytes(host_values(part)) for part in inputs])
        arrived = torch.empty(sum(map(bytes_of, outputs)), dtype=torch.uint8)
        handle = self._alltoall(own, map(bytes_of, inputs), arrived, map(bytes_of, outputs))

        def spread():
            for place, block in zip(outputs, arrived.split([bytes_of(place) for place in outputs])):
                if place.numel():
                    place.copy_(block.view(place.dtype).view(place.shape))

        return self._work([handle], outputs, spread, own)

    def alltoall_base(self, output, whole, output_splits, input_splits, opts=None):
        own, arrived = host_values(whole), torch.empty(output.shape, dtype=output.dtype)
        handle = self._alltoall(own, self._split_bytes(whole, input_splits), arrived, self._split_bytes(output, output_splits))
        return self._work([handle], [output], lambda: output.copy_(arrived), own)

    all_to_all_single = alltoall_base

    def send(self, tensors, to, tag=0):
        host = host_values(tensors[0])
        return self._work([self._begin("send", host.data_ptr(), bytes_of(host), to, tag)], tensors, keeps=host)

    def recv(self, tensors, sender, tag=0):
        return self._on_host(tensors[0],
                             lambda host: self._begin("receive", host.data_ptr(), bytes_of(host), sender, tag))

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, _c.ANY, tag)

    def _begin(self, name, *arguments):
        with self._turn:
            return _c.made(name, self._handle, *arguments)

    def _work(self, handles, result, finish=None, keeps=()):
        work = Work(handles, result, finish, keeps)
        self._keep(work)
        return work

    def _keep(self, work):
        """C++ may wait for a work whose last reference in Python has gone, soon after it was made."""
        with self._turn:
            self._latest.append(work)
            while len(self._latest) > _KEPT and self._latest[0].is_completed():
                self._latest.popleft()

    def _on_host(self, tensor, begin, finish=None):
        """An operation that replaces the values of a tensor, in its own memory where that is possible."""
        host = host_values(tensor)

        def end():
            if finish is not None:
                finish(host)
            _copy_back(host, tensor)

        return self._work([begin(host)], [tensor], end)

    def _each(self, tensors, start):
        works = [start(tensor) for tensor in tensors]
        return works[0] if len(works) == 1 else self._all(works)

    def _all(self, works):
        """One work that ends with the last of several."""

        def finish():
            for work in works:
                work.wait()

        return works[0] if len(works) == 1 else self._work([], [part for work in works for part in work._result], finish)

    def _reduction(self, name, tensor, op, *root):
        if tensor.is_sparse:
            raise ConfigError("backend syncopate reduces dense tensors; make the gradient dense: sparse=False of the "
                              "Embedding")
        if tensor.dtype == torch.bool:
            return self._truth_reduction(name, tensor, op, *root)
        mean = op == "mean" and self._expect_mean(tensor)
        code = operation("sum" if mean else op)

        def finish(host):
            if mean and (not root or root[0] == self._own_rank):
                host.div_(self._own_size)

        return self._on_host(tensor, lambda host: self._begin(name, host.data_ptr(), *values(host), code, *root), finish)

    def _truth_reduction(self, name, tensor, op, *root):
        bits = host_values(tensor).view(torch.uint8)
        code = operation(_OF_TRUTH.get(op, op))
        handle = self._begin(name, bits.data_ptr(), *values(bits), code, *root)
        return self._work([handle], [tensor], lambda: tensor.copy_(bits.view(torch.bool)), bits)

    def _expect_mean(self, tensor):
        if not tensor.is_floating_point():
            raise ConfigError(f"ReduceOp.AVG is for floating values, found {tensor.dtype}; use SUM")
        return True

    def _allgather(self, places, own):
        own = host_values(own)
        arrived = torch.empty((self._own_size, *own.shape), dtype=own.dtype)
        handle = self._begin("allgather", own.data_ptr(), bytes_of(own), arrived.data_ptr())
        return self._work([handle], places, lambda: _copy_all(places, arrived), own)

    def _reduce_scatter(self, place, whole, op):
        mean = op == "mean" and self._expect_mean(place)
        own = torch.empty(place.shape, dtype=place.dtype)
        handle = self._begin("reduce_scatter", whole.data_ptr(), own.data_ptr(), *values(own),
                             operation("sum" if mean else op))
        return self._work([handle], [place], lambda: place.copy_(own.div_(self._own_size) if mean else own), whole)

    def _alltoall(self, own, own_bytes, arrived, arrived_bytes):
        lengths = [(ctypes.c_size_t * self._own_size)(*each) for each in (own_bytes, arrived_bytes)]
        return self._begin("alltoall", own.data_ptr(), lengths[0], arrived.data_ptr(), lengths[1])

    def _split_bytes(self, tensor, splits):
        """The bytes of each rank's rows; no splits: equal ones."""
        rows = splits or [tensor.shape[0] // self._own_size] * self._own_size
        if len(rows) != self._own_size or sum(rows) != tensor.shape[0]:
            raise ConfigError(f"the {tensor.shape[0]} rows of an all_to_all do not divide among {self._own_size} ranks as "
                              f"{list(rows)}")
        row = bytes_of(tensor) // max(1, tensor.shape[0])
        return [count * row for count in rows]


def _close(handle, job, works, process):
    """The end of a group. What is under way in it can only end with the job."""
    if os.getpid() != process:
        return  # forked: the threads that end it are missing here
    if not all(work.is_completed() for work in works):
        job.leave()
    _c.call("group_close", handle)


def _name_of(op):
    for known, name in _OPERATIONS:
        if op == known:
            return name
    raise ConfigError(f"backend syncopate has no operation {op}; it has SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR")


def _copy_all(places, arrived):
    for place, block in zip(places, arrived):
        place.copy_(block.view(place.shape))


def _copy_back(host, tensor):
    """From the host's copy of a tensor, unless that is the tensor itself."""
    if host.data_ptr() != tensor.data_ptr():
        tensor.copy_(host)


def _as_bytes(tensor):
    return tensor.reshape(-1).view(torch.uint8)
