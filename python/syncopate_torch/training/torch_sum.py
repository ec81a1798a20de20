"""Sums of a training by a process group of torch.distributed, in place of the job's own streams: option `aggregate` `torch`."""
import ctypes
import queue
import threading

import torch
from torch import distributed

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError


class TorchSum:
    """A group of the first worker of each host, or of all workers where they are all on one host, with the backend of the
    script's default group.

    Every worker makes one. Threads: one of its own sums, because a backend may order collectives by their submission, and
    wait for the result in the call.
    Errors: ConfigError without a default group of all workers that sums tensors of the CPU.
    """

    def __init__(self, job):
        _expect_group(job)
        ranks = [int(rank) for rank in job.allgather(torch.tensor([distributed.get_rank()]))]
        firsts = [worker for worker, host in enumerate(job.hosts) if job.hosts.index(host) == worker]
        members = firsts if len(firsts) > 1 else list(range(job.size))
        #: The number of workers that take part in a sum.
        self.members = len(members)
        self._group = distributed.new_group(sorted(ranks[worker] for worker in members))
        if job.rank in members:
            self._try()
        self._sums = queue.SimpleQueue()
        #: The function for the library, which calls it in any thread.
        self.begin = library.BeginSum(lambda _user, values, count, handle: self._sums.put((values, count, handle)))
        self._thread = threading.Thread(target=_compute, args=(self._sums, self._group), name="syncopate sums", daemon=True)
        self._thread.start()

    def _try(self):
        """Connects the members, and finds out whether the backend takes tensors of the CPU."""
        try:
            distributed.all_reduce(torch.zeros(1), group=self._group)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"aggregate torch sums tensors of the CPU, which the group's backend {distributed.get_backend(self._group)} "
                              f"does not: make it of cpu:gloo,cuda:nccl, or choose aggregate auto ({error})") from None

    def close(self):
        """Ends the thread once the library makes no more sums."""
        self._sums.put(None)


def _compute(sums, group):
    while (asked := sums.get()) is not None:
        values, count, handle = asked
        reason = None
        try:
            tensor = torch.frombuffer((ctypes.c_float * count).from_address(values), dtype=torch.float32)
            distributed.all_reduce(tensor, group=group)
        except Exception as error:  # the thread has nobody to raise it to
            reason = library.text(f"{type(error).__name__}: {error}".replace("\0", ""))
        library.call("sum_end", handle, reason)


def _expect_group(job):
    if not distributed.is_available() or not distributed.is_initialized():
        raise ConfigError("aggregate torch needs a process group: call torch.distributed.init_process_group before, or leave the "
                          "option out")
    if distributed.get_world_size() != job.size:
        raise ConfigError(f"aggregate torch needs a default process group of the {job.size} workers of the job, found one of "
                          f"{distributed.get_world_size()} ranks")
    if distributed.get_backend() == "syncopate":
        raise ConfigError("aggregate torch needs a process group of another backend than syncopate, which is the job itself: leave "
                          "the option out")
