"""All code that depends on the version of torch, from 1.13 on."""
import inspect
import sys
import types

import torch
from torch import distributed

VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])

# The default of `zero_grad(set_to_none)` of torch's optimizers.
ZERO_GRAD_SETS_TO_NONE = VERSION >= (2, 0)
# torch 2.14 warns if a sparse tensor is made without stating whether its indices are checked.
SPARSE_UNCHECKED = {"check_invariants": False} if VERSION >= (2, 0) else {}
# From this version on, C++ keeps the Python works for which it waits.
CPP_KEEPS_WORKS = VERSION >= (2, 7)
# torch.amp has one for every device since 2.3; before, only torch.cuda.amp has one.
GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
Work = getattr(distributed, "Work", None) or getattr(distributed, "_Work", None)
# Since 2.1. Before, all ranks must call it for a new group, including ranks outside of the group.
MAKES_GROUPS_OF_SOME = distributed.is_available() and (
    "use_local_synchronization" in inspect.signature(distributed.new_group).parameters)


def backend_config(group):
    """Returns the names of a group's backends, such as "cpu:syncopate,cuda:nccl"; None with torch 1.13."""
    config = getattr(distributed, "get_backend_config", None)
    return config and config(group)


_waiting = []  # classes, until Dynamo is imported


def hidden_from_dynamo(*names):
    """Excludes the public methods of a class, and the methods `names`, from Dynamo."""

    def noted(kind):
        _waiting.append((kind, names))
        return kind

    return noted


def keep_dynamo_out():
    """Applies the exclusions once the script has imported Dynamo. This module does not import it, because that takes
    seconds: a process group calls this before each collective. DistributedDataParallel also imports Dynamo before its
    first collective."""
    if "torch._dynamo" not in sys.modules or not hasattr(torch, "compiler"):
        return
    while _waiting:
        kind, names = _waiting.pop()
        for name, method in list(vars(kind).items()):
            if isinstance(method, types.FunctionType) and (name in names or not name.startswith("_")):
                setattr(kind, name, torch.compiler.disable(method))


_around = getattr(torch.optim.Optimizer, "profile_hook_step", None)


def has_step_hooks(optimizer):
    """True if the script has registered a step hook for this optimizer."""
    return bool(getattr(optimizer, "_optimizer_step_pre_hooks", None) or
                getattr(optimizer, "_optimizer_step_post_hooks", None))


def with_step_hooks(step):
    """Returns a function that calls the hooks before and after `step`, as torch does."""
    return step if _around is None else _around(step)
