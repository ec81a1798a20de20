"""Objects as bytes, which one worker sends to others."""
import ctypes
import pickle

import torch

from syncopate_torch.core.errors import ConfigError


class _Unpicklable:
    """Travels in the place of an object."""

    def __init__(self, reason):
        self.reason = reason


def pickled(obj, rank):
    """The bytes of an object of worker `rank`, and None; of one that cannot be pickled those of the reason, and the
    `ConfigError` that `unpickled` raises of them, so that no worker waits in vain."""
    try:
        return _tensor_of(_dumped(obj)), None
    except Exception as error:  # of the object's own methods, too
        reason = (f"worker {rank} cannot pickle its object of type {type(obj).__name__}: {error}; send plain data, or "
                  "install cloudpickle for functions and local classes")
        return _tensor_of(pickle.dumps(_Unpicklable(reason))), ConfigError(reason)


def unpickled(content):
    """The object of such bytes. Errors: ConfigError, with the reason why its worker could not pickle it."""
    obj = pickle.loads(ctypes.string_at(content.data_ptr(), len(content)))
    if isinstance(obj, _Unpicklable):
        raise ConfigError(obj.reason)
    return obj


def shared_object(group, obj, root=0):
    """The object of one member of a group, on all. Errors: ConfigError on all, where it cannot be pickled."""
    content, error = pickled(obj, group.rank) if group.rank == root else (None, None)
    length = int(group.broadcast(torch.tensor([0 if content is None else len(content)]), root))
    content = group.broadcast(torch.empty(length, dtype=torch.uint8) if content is None else content, root)
    if error is not None:
        raise error
    return obj if group.rank == root else unpickled(content)


def _dumped(obj):
    """By cloudpickle, which takes functions without a name, where pickle does not and it is installed."""
    try:
        return pickle.dumps(obj)
    except Exception:
        try:
            import cloudpickle  # noqa: PLC0415 (a script need not have it)
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
        return cloudpickle.dumps(obj)


def _tensor_of(content):
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)
