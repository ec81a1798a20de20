"""Whether all workers have the same module."""
import collections.abc
import itertools
import zlib

import torch

from syncopate_torch.errors import ConfigError
from syncopate_torch.flat import expect_made, untrained_tensors
from syncopate_torch.summary import gathered


def named_tensors(module):
    """Those of a module, or of a dict such as its `state_dict()`: their names and themselves, by their kinds. Errors:
    ConfigError, for something else."""
    if isinstance(module, torch.nn.Module):
        named = {"parameter": list(module.named_parameters()), "buffer": list(module.named_buffers())}
        expect_made(named["parameter"] + named["buffer"])
        return named
    if isinstance(module, collections.abc.Mapping):
        return {"tensor": [(name, value) for name, value in module.items() if torch.is_tensor(value)]}
    raise ConfigError(f"broadcast_parameters takes a module, or its state_dict(), found an object of type {type(module).__name__}: "
                      "job.broadcast_parameters(model)")


def expect_same(group, named):
    """All members of a group call this before they exchange the `named_tensors` of their modules one by one. Errors:
    ConfigError, which names the first one that two members do not share."""
    _expect(group, [each for kind, pairs in named.items() for each in _described(kind, pairs)])


def expect_same_to_train(group, module):
    """The same for what a training exchanges: other buffers may differ."""
    expect_made(module.named_parameters())
    trained, frozen = ([pair for pair in module.named_parameters() if pair[1].requires_grad is trains] for trains in (True, False))
    _expect(group, _described("trained parameter", trained) + _described("frozen parameter", frozen)
            + _described("buffer", untrained_tensors(module)))


def _described(kind, named):
    return [f"{name}, a {kind} of {tensor.dtype} with the shape {list(tensor.shape)}" for name, tensor in named]


def _expect(group, own):
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
