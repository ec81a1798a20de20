"""Process groups with a backend for each kind of device: `init_process_group("cpu:syncopate,cuda:nccl")`.

torch.distributed uses a process group written in Python for all devices. This module therefore passes tensors of other
devices to their backends.
"""
import functools

import torch
from torch import distributed

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.torch_versions import MAKES_GROUPS_OF_SOME, backend_config

# Names in torch.distributed.
_NAMES = {"allreduce": "all_reduce", "allgather": "all_gather", "_allgather_base": "all_gather_into_tensor", "alltoall": "all_to_all",
          "alltoall_base": "all_to_all_single", "_reduce_scatter_base": "reduce_scatter_tensor"}


def recorded(collective):
    """Records each call in torch's profiler, as "syncopate:all_reduce"."""
    name = f"syncopate:{_NAMES.get(collective.__name__, collective.__name__)}"

    @functools.wraps(collective)
    def shown(*arguments, **named):
        if not torch.autograd._profiler_enabled():
            return collective(*arguments, **named)
        with torch.autograd.profiler.record_function(name):
            return collective(*arguments, **named)

    return shown


def by_device(collective):
    """Passes a collective of a process group to the backend for the device of its tensors."""
    collective = recorded(collective)

    @functools.wraps(collective)
    def handed(group, *arguments, **named):
        device = _device_of(arguments)
        other = None if device is None else group.of_device(device)
        if other is None:
            return collective(group, *arguments, **named)
        return getattr(other, collective.__name__)(*arguments, **named)

    return handed


def group_for(device, group, timeout):
    """Makes the process group of the same ranks with the backend that the script's backend string names for a kind of
    device; returns None for `group` itself. All ranks call this in the same collective, so they make the new group
    together.

    Errors: ConfigError with torch 2.0.
    """
    backend = backends_of(group).get(device, "syncopate")
    if backend == "syncopate":
        return None
    if not MAKES_GROUPS_OF_SOME:
        raise ConfigError(f"a backend for each kind of device needs torch 2.1 or later, found {torch.__version__}; pass "
                          "init_process_group one backend for all")
    ranks = distributed.get_process_group_ranks(group)
    return distributed.new_group(ranks, timeout, backend, use_local_synchronization=True)


def is_known(group):
    """False while torch 2 is still making the group."""
    return group in distributed.distributed_c10d._world.pg_map


def backends_of(group):
    """Returns the names of a group's backends, by kind of device; empty if torch has one backend for all."""
    config = backend_config(group)
    return dict(pair.split(":") for pair in config.split(",")) if config else {}


def _device_of(arguments):
    """Returns the kind of device of the first tensor in nested lists."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            return argument.device.type
        if isinstance(argument, (list, tuple)):
            device = _device_of(argument)
            if device is not None:
                return device
    return None
