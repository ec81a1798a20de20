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
    device: of this worker's module, on which values are summed if the backend takes no tensors of the CPU.
    Errors: ConfigError without a default group of all workers, or if its backend sums no tensors of a worker's device.
    """

    def __init__(self, job, device):
        _expect_group(job)
        facts = job.allgather(torch.tensor([distributed.get_rank(), device.type == "cpu"]))
        ranks, on_cpu = zip(*(of_worker.tolist() for of_worker in facts), strict=True)
        firsts = [worker for worker, host in enumerate(job.hosts) if job.hosts.index(host) == worker]
        members = firsts if len(firsts) > 1 else list(range(job.size))
        #: The number of workers that take part in a sum.
        self.members = len(members)
        self._group = distributed.new_group(sorted(ranks[worker] for worker in members))
        self._device = torch.device("cpu")
        if job.rank in members:
            self._connect(device, [worker for worker in members if on_cpu[worker]])
        self._sums = queue.SimpleQueue()
        #: The function for the library, which calls it in any thread.
        self.begin = library.BeginSum(lambda _user, values, count, handle: self._sums.put((values, count, handle)))
        self._thread = threading.Thread(target=_compute, args=(self._sums, self._group, self._device), name="syncopate sums", daemon=True)
        self._thread.start()

    def _connect(self, device, on_cpu):
        """Connects the members. A backend takes tensors of the CPU on all of them or on none."""
        try:
            distributed.all_reduce(torch.zeros(1), group=self._group)
        except (RuntimeError, ValueError) as error:
            if on_cpu:
                backend = distributed.get_backend(self._group)
                raise ConfigError(f"the backend {backend} of the process group sums no tensors of the CPU, where the module of "
                                  f"worker {on_cpu[0]} is: make the group of cpu:gloo,cuda:nccl, or choose aggregate auto "
                                  f"({error})") from None
            self._device = device
            distributed.all_reduce(torch.zeros(1, device=device), group=self._group)

    def close(self):
        """Ends the thread once the library makes no more sums."""
        self._sums.put(None)


def _compute(sums, group, device):
    while (asked := sums.get()) is not None:
        values, count, handle = asked
        reason = None
        try:
            tensor = torch.frombuffer((ctypes.c_float * count).from_address(values), dtype=torch.float32)
            summed = tensor.to(device)
            distributed.all_reduce(summed, group=group)
            if summed is not tensor:
                tensor.copy_(summed)
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
