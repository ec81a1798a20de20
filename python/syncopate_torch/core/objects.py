"""Objects as bytes that one worker sends to others."""
import ctypes
import pickle

import torch

from syncopate_torch.core.errors import ConfigError


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
