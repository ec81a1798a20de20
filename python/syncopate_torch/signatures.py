"""Calls of a process group as those of torch take them: lists of tensors with options, or one tensor with plain values."""
import functools
import inspect

import torch

from syncopate_torch.works import Work

# The fields of options that plain values set, by their names in such a call.
_FIELDS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def also_plain(options, *names):
    """A collective of lists of tensors and `options` also takes a tensor in place of a list of one, and then, in place of
    options, the values of `names` ("op", "root") and a timeout, which limits a wait that has no limit of its own."""

    def decorate(collective):
        lists = len(inspect.signature(collective).parameters) - 2  # without the group and the options

        @functools.wraps(collective)
        def called(group, *arguments, **named):
            tensors, rest = arguments[:lists], arguments[lists:]
            if any(isinstance(each, torch.Tensor) for each in tensors):
                tensors = [[each] for each in tensors]
            opts = _options_of(options, names, rest, named)
            work = collective(group, *tensors, opts=opts, **named)
            if isinstance(work, Work):  # else that of another backend, which has got the options
                work.limit_to(opts.timeout)
            return work

        return called

    return decorate


def _options_of(options, names, rest, named):
    """The options of a call; takes their values out of `named`."""
    if rest and hasattr(rest[0], "timeout"):
        return rest[0]
    opts = named.pop("opts", None) or options()
    plain = dict(zip([*names, "timeout"], rest))
    plain.update({name: named.pop(name) for name in (*names, "timeout") if name in named})
    for name, value in plain.items():
        if value is not None:
            setattr(opts, _FIELDS[name], value)
    return opts
