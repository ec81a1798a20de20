"""Keeps torch.compile out of classes that C++ calls: its compiler, Dynamo, would trace into them, and fail."""
import sys
import types

import torch

_waiting = []  # classes, until Dynamo is there


def untraced(*names):
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
