"""Whether the tensors of a collective fit together. The library takes addresses and lengths, so this is known before it is
called: a tensor that is too small would be read or written behind its end."""
import torch

from syncopate_torch.errors import ConfigError
from syncopate_torch.given_numbers import shown


def expect_tensor(value):
    if not isinstance(value, torch.Tensor):
        raise ConfigError(f"a collective takes tensors, found {shown(value)}: make one of it by torch.tensor")


def expect_rows(call, tensor):
    expect_tensor(tensor)
    if tensor.dim() == 0:
        raise ConfigError(f"{call} takes rows, and a tensor of no dimension has none: reshape(1) it")


def expect_count(call, what, found, size):
    """One tensor for each of `size` ranks."""
    if found != size:
        raise ConfigError(f"{call} takes one {what} for each of the {size} ranks of the group, found {found}")


def expect_like(call, what, tensors, like, blocks=1):
    """Tensors of the type of another one, each with `blocks` times as many values."""
    for number, tensor in enumerate(tensors):
        expected = blocks * like.numel()
        if tensor.numel() != expected or tensor.dtype != like.dtype:
            name = what if len(tensors) == 1 else f"{what} {number}"
            raise ConfigError(f"{call} expects {expected} values of {like.dtype} in its {name}, found {tensor.numel()} of "
                              f"{tensor.dtype}: each rank has {_counted(like)}, so make the {what} fit")


def expect_one_for_each(call, what, tensors, like, size):
    """One tensor for each of `size` ranks, each with as many values as another one, of its type."""
    expect_count(call, what, len(tensors), size)
    expect_like(call, what, tensors, like)


def expect_pairs(call, outputs, inputs):
    """As many outputs as inputs."""
    if len(outputs) != len(inputs):
        raise ConfigError(f"{call} takes one output for each input, found {len(outputs)} outputs and {len(inputs)} inputs")


def expect_type(call, tensors):
    """Tensors of one type."""
    found = sorted({str(tensor.dtype) for tensor in tensors})
    if len(found) > 1:
        raise ConfigError(f"{call} takes tensors of one type, found {' and '.join(found)}: convert them by tensor.to")


def rows_of(call, tensor, splits, size):
    """How many rows of a tensor belong to each of `size` ranks. No splits: equally many."""
    if tensor.dim() == 0:
        raise ConfigError(f"{call} divides the first dimension of a tensor, found one without dimensions")
    rows = list(splits or [tensor.shape[0] // size] * size)
    if len(rows) != size or min(rows) < 0 or sum(rows) != tensor.shape[0]:
        raise ConfigError(f"the {tensor.shape[0]} rows of {call} do not divide among {size} ranks as {rows}")
    return rows


def _counted(tensor):
    return f"{tensor.numel()} {'value' if tensor.numel() == 1 else 'values'} of {tensor.dtype}"
