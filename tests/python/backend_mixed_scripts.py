"""Scripts with a backend for each kind of device, for backend_mixed_test.py: backend_mixed_scripts.py NAME [ARGUMENT...]."""
import datetime
import warnings

import torch
from backend_scripts import leave, say, small_network, trained
from calls import run_calls
from syncopate_torch.distributed.backend import ProcessGroup
from torch import distributed as dist
from torch.distributed.distributed_c10d import _get_default_group
from torch.nn.parallel import DistributedDataParallel


CALLS = {"allreduce", "broadcast", "allgather", "gather", "reduce_scatter", "set_timeout"}


class Recording(dist.ProcessGroup):
    """Stands for the backend of an accelerator and records its calls."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.calls = []

    def __getattribute__(self, name):
        if name in CALLS:
            return lambda *_arguments, **_named: self.calls.append(name)
        return super().__getattribute__(name)


def devices_while_made():
    """Records the device types of each group while it is made, since torch 2.15 asks for them then."""
    found, make = [], ProcessGroup.__init__

    def made(group, *arguments):
        make(group, *arguments)
        found.append(group._device_types)

    ProcessGroup.__init__ = made
    return found


def two_devices():
    """Uses tensors on device "meta", which have no values, as tensors of an accelerator."""
    at_first = devices_while_made()
    dist.Backend.register_backend("recording", Recording, devices=["meta"])
    dist.init_process_group("cpu:syncopate,meta:recording")
    rank, size = dist.get_rank(), dist.get_world_size()
    far, near = torch.ones(4, device="meta"), torch.ones(4)
    for group in (dist.group.WORLD, dist.new_group(list(range(size)))):
        dist.all_reduce(far, group=group, async_op=True)
        dist.broadcast(far, 0, group=group, async_op=True)
        dist.all_gather([far] * size, far, group=group, async_op=True)
        dist.gather(far, [far] * size if rank == 0 else None, 0, group=group, async_op=True)
        dist.reduce_scatter(far, [far] * size, group=group, async_op=True)
        dist.all_reduce(near, group=group)
        dist.barrier(group=group)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            group.set_timeout(datetime.timedelta(seconds=9))  # `torch.distributed.set_timeout` of torch 2.14
        say(rank=rank, near=near[0].item(), far=group.of_device("meta").calls, at_first=at_first,
            devices=[each.type for each in group._device_types], warned=[str(each.message) for each in caught])


def gloo_for_cpu(backend):
    """Gives tensors on the CPU to Gloo; `backend` has the pairs of device and backend in either order."""
    dist.init_process_group(backend)
    values = trained(DistributedDataParallel(small_network()))
    group, cpu = _get_default_group(), torch.device("cpu")
    say(rank=dist.get_rank(), values=values, of_cpu=dist.get_backend(group.of_device("cpu")),
        backend=type(group._get_backend(cpu)).__name__, devices=[each.type for each in group._device_types])
    leave()


if __name__ == "__main__":
    run_calls(globals())
