"""Whether all workers have the same module."""
import itertools
import zlib

import torch

from syncopate_torch.errors import ConfigError
from syncopate_torch.summary import gathered


def described(kind, named):
    """Tensors by name, kind, type and shape."""
    return [f"{name}, {kind} of {tensor.dtype} with the shape {list(tensor.shape)}" for name, tensor in named]


def expect_same(group, own):
    """All members of the group call this before they exchange tensors one by one. Errors: ConfigError, which names the first
    of these descriptions that two members do not share."""
    code = zlib.crc32("\n".join(own).encode())
    codes = group.allgather(torch.tensor([code], dtype=torch.int64, device="cpu"))
    if len({int(each) for each in codes}) == 1:
        return
    first, *others = gathered(group, own)
    rank, other = next((rank, each) for rank, each in enumerate(others, 1) if each != first)
    pairs = itertools.zip_longest(first, other, fillvalue="nothing more")
    here, there = next((one, another) for one, another in pairs if one != another)
    raise ConfigError(f"the module of worker {rank} has {there}, where that of worker 0 has {here}; every worker makes the "
                      "same module")
