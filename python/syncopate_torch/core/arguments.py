"""Checks arguments of a script before the library gets them, and turns objects into bytes for other workers.

ctypes truncates integers that are out of range, and the library takes addresses and lengths: it would read or write
beyond the end of a tensor that is too small.
"""
import ctypes
import math
import operator
import pickle

import torch

from syncopate_torch.core.errors import ConfigError


MOST_32, MOST_64 = 2**32 - 1, 2**64 - 1


def whole(name, value, most, least=0):
    """Converts a value that `number_of` accepts to an int from `least` to `most`. Errors: ConfigError with the
    argument's name."""
    number = number_of(value)
    if number is None or not least <= number <= most or number != int(number):
        raise ConfigError(f"{name} is a whole number from {least} to {most}, found {shown(value)}")
    return int(number)


def seconds(name, value):
    """Converts a value to a number of seconds; None becomes 0. Errors: ConfigError with the argument's name."""
    number = 0.0 if value is None else number_of(value)
    if number is None or not 0 <= number < math.inf:
        raise ConfigError(f"{name} is a number of seconds, or None for half an hour, found {shown(value)}")
    return float(number)


def number_of(value):
    """Returns an int for an integer, also of NumPy or in a tensor of one value; else a float; None if it is no
    number."""
    try:
        return operator.index(value)
    except TypeError:
        pass
    try:
        return None if isinstance(value, (str, bytes, bytearray)) else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # torch raises several types, for several values
        return None


def shown(value):
    """Formats a value for a message of one line."""
    if value is None or isinstance(value, str):
        return repr(value)
    return f"a value of type {type(value).__name__}" if number_of(value) is None else str(value)


def whole_weight(samples):
    """Converts a number, or a tensor of one value, to a weight for the library. Errors: ConfigError."""
    number = number_of(samples)
    if number is None:
        raise ConfigError(f"a step weighs a whole number of samples or tokens, found {shown(samples)}")
    if not 0 <= number <= MOST_32:
        raise ConfigError(f"a step has from 0 to {MOST_32} samples, found {samples}")
    if number != int(number):
        raise ConfigError(f"a step weighs a whole number of samples or tokens, found {number:g}: multiply the weights of "
                          "all workers by the same number")
    return int(number)


def expect_tensor(value):
    if not isinstance(value, torch.Tensor):
        raise ConfigError(f"a collective takes tensors, found {shown(value)}: make one of it by torch.tensor")


def expect_rows(call, tensor):
    expect_tensor(tensor)
    if tensor.dim() == 0:
        raise ConfigError(f"{call} takes rows, and a tensor of no dimension has none: reshape(1) it")


def expect_count(call, what, found, size):
    """Checks that there is one tensor for each of `size` ranks."""
    if found != size:
        raise ConfigError(f"{call} takes one {what} for each of the {size} ranks of the group, found {found}")


def expect_like(call, what, tensors, like, blocks=1):
    """Checks that tensors have the type of `like`, and each `blocks` times its number of values."""
    for number, tensor in enumerate(tensors):
        expected = blocks * like.numel()
        if tensor.numel() != expected or tensor.dtype != like.dtype:
            name = what if len(tensors) == 1 else f"{what} {number}"
            raise ConfigError(f"{call} expects {expected} values of {like.dtype} in its {name}, found {tensor.numel()} of "
                              f"{tensor.dtype}: each rank has {_counted(like)}, so make the {what} fit")


def expect_one_for_each(call, what, tensors, like, size):
    """Checks that there is one tensor for each of `size` ranks, each with the type and the number of values of
    `like`."""
    expect_count(call, what, len(tensors), size)
    expect_like(call, what, tensors, like)


def expect_pairs(call, outputs, inputs):
    """Checks that there are as many outputs as inputs."""
    if len(outputs) != len(inputs):
        raise ConfigError(f"{call} takes one output for each input, found {len(outputs)} outputs and {len(inputs)} inputs")


def expect_type(call, tensors):
    """Checks that the tensors have one type."""
    found = sorted({str(tensor.dtype) for tensor in tensors})
    if len(found) > 1:
        raise ConfigError(f"{call} takes tensors of one type, found {' and '.join(found)}: convert them by tensor.to")


def rows_of(call, tensor, splits, size):
    """Returns the number of a tensor's rows for each of `size` ranks; without splits all ranks get the same number."""
    if tensor.dim() == 0:
        raise ConfigError(f"{call} divides the first dimension of a tensor, found one without dimensions")
    rows = list(splits or [tensor.shape[0] // size] * size)
    if len(rows) != size or min(rows) < 0 or sum(rows) != tensor.shape[0]:
        raise ConfigError(f"the {tensor.shape[0]} rows of {call} do not divide among {size} ranks as {rows}")
    return rows


def _counted(tensor):
    return f"{tensor.numel()} {'value' if tensor.numel() == 1 else 'values'} of {tensor.dtype}"


class Uncopyable:
    """An object with library handles, which cannot be copied."""

    def __reduce__(self):
        raise ConfigError(f"a {type(self).__name__} cannot be pickled or copied: it is a part of this worker in its job; save "
                          "the state_dict() of the job, and hand its rank and size to other processes")


class _Unpicklable:
    """Sent instead of an object that cannot be pickled."""

    def __init__(self, reason):
        self.reason = reason


def pickled(obj, rank):
    """Returns the bytes of an object of worker `rank`, and None. If it cannot be pickled, returns the bytes of the
    reason, and the `ConfigError` that `unpickled` raises for them, so that no worker waits forever."""
    try:
        return _tensor_of(_dumped(obj)), None
    except Exception as error:  # also from the object's own methods
        reason = (f"worker {rank} cannot pickle its object of type {type(obj).__name__}: {error}; send plain data, or "
                  "install cloudpickle for functions and local classes")
        return _tensor_of(pickle.dumps(_Unpicklable(reason))), ConfigError(reason)


def unpickled(content):
    """Returns the object of these bytes. Errors: ConfigError with the reason if its worker could not pickle it."""
    obj = pickle.loads(ctypes.string_at(content.data_ptr(), len(content)))
    if isinstance(obj, _Unpicklable):
        raise ConfigError(obj.reason)
    return obj


def shared_object(group, obj, root=0):
    """Sends the object of member `root` to all members and returns it. Errors: ConfigError on all if it cannot be
    pickled."""
    content, error = pickled(obj, group.rank) if group.rank == root else (None, None)
    length = int(group.broadcast(torch.tensor([0 if content is None else len(content)]), root))
    content = group.broadcast(torch.empty(length, dtype=torch.uint8) if content is None else content, root)
    if error is not None:
        raise error
    return obj if group.rank == root else unpickled(content)


def _dumped(obj):
    """Pickles an object; if pickle fails, uses cloudpickle if installed, which also supports lambdas."""
    try:
        return pickle.dumps(obj)
    except Exception:
        try:
            import cloudpickle  # noqa: PLC0415 (optional for scripts)
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        return cloudpickle.dumps(obj)


def _tensor_of(content):
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
