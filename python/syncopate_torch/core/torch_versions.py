"""Everything that depends on the version of torch, from 1.13 on."""
import inspect
import sys
import types

import torch
from torch import distributed

VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])

# The default of `zero_grad(set_to_none)` of torch's optimizers.
ZERO_GRAD_SETS_TO_NONE = VERSION >= (2, 0)
# torch 2.14 warns where the maker of a sparse tensor does not say whether indices are checked.
SPARSE_UNCHECKED = {"check_invariants": False} if VERSION >= (2, 0) else {}
# From this version on C++ keeps the works of Python that it waits for.
CPP_KEEPS_WORKS = VERSION >= (2, 7)
# Since 2.3 torch.amp has one for every device; before, there was one for CUDA.
GradScaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
Work = getattr(distributed, "Work", None) or getattr(distributed, "_Work", None)
# Since 2.1. Before, a new group needs a call of all ranks, also of those that are not in it.
MAKES_GROUPS_OF_SOME = distributed.is_available() and (
    "use_local_synchronization" in inspect.signature(distributed.new_group).parameters)


def backend_config(group):
    """The names of a group's backends as text, such as "cpu:syncopate,cuda:nccl"; torch 1.13 knows none: None."""
    config = getattr(distributed, "get_backend_config", None)
    return config and config(group)


_waiting = []  # classes, until Dynamo is there


def hidden_from_dynamo(*names):
    """A class whose public methods Dynamo leaves alone, and those of `names`."""

    def noted(kind):
        _waiting.append((kind, names))
        return kind

    return noted


def keep_dynamo_out():
    """Once the script has imported Dynamo. That takes seconds, so this module does not: a process group calls this before
    each collective. DistributedDataParallel imports Dynamo, too, before its first collective."""
    if "torch._dynamo" not in sys.modules or not hasattr(torch, "compiler"):
        return
    while _waiting:
        kind, names = _waiting.pop()
        for name, method in list(vars(kind).items()):
            if isinstance(method, types.FunctionType) and (name in names or not name.startswith("_")):
                setattr(kind, name, torch.compiler.disable(method))


_around = getattr(torch.optim.Optimizer, "profile_hook_step", None)


def has_step_hooks(optimizer):
    """True where the script has registered one for this optimizer."""
    return bool(getattr(optimizer, "_optimizer_step_pre_hooks", None) or
                getattr(optimizer, "_optimizer_step_post_hooks", None))


def with_step_hooks(step):
    """A function that calls hooks, as torch does, before and after `step`."""
    return step if _around is None else _around(step)
