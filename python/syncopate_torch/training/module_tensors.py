"""Checks the tensors of a module: equal on all workers, and the same as when the optimizer was made."""
import collections.abc
import itertools
import weakref
import zlib

import torch

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.training.flat import expect_made, untrained_tensors
from syncopate_torch.training.summary import gathered


def named_tensors(module):
    """Returns the names and tensors, by kind, of a module or a dict such as its `state_dict()`. Errors: ConfigError for
    another type."""
    if isinstance(module, torch.nn.Module):
        named = {"parameter": list(module.named_parameters()), "buffer": list(module.named_buffers())}
        expect_made(named["parameter"] + named["buffer"])
        return named
    if isinstance(module, collections.abc.Mapping):
        return {"tensor": [(name, value) for name, value in module.items() if torch.is_tensor(value)]}
    raise ConfigError(f"broadcast_parameters takes a module, or its state_dict(), found an object of type {type(module).__name__}: "
                      "job.broadcast_parameters(model)")


def expect_same(group, named):
    """Checks that all members of a group have the same `named_tensors`; all call this before they exchange them one by
    one. Errors: ConfigError that names the first tensor that differs between two members."""
    _expect(group, [each for kind, pairs in named.items() for each in _described(kind, pairs)])


def expect_same_to_train(group, module):
    """As `expect_same`, for the tensors that a training exchanges: other buffers may differ."""
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


_BEFORE = "before DistributedOptimizer"


class WrappedTensors:
    """Checks that a module's tensors do not change: a tensor added later would be in no flat vector, so no worker would
    get its gradient. Trained parameters may be frozen and unfrozen, and added to the optimizer.

    Buffers outside of the module's state (`persistent=False`), such as caches, may change, and so may integer buffers.
    """

    def __init__(self, module, optimizer):
        # Weak, because the training keeps this object until its end, and a module may refer to the training.
        self._module = weakref.ref(module)
        self._optimizer = optimizer
        self._tensors = self._tensors_now()
        self._trained = self._trained_now()
        self._groups = self._groups_now()

    def expect_unchanged(self):
        """Errors: ConfigError that names a tensor that was replaced, added, removed, or unfrozen for the first time."""
        now = self._tensors_now()
        if not _same(now.values(), self._tensors.values()):
            self._expect_same(now)
        if self._trained_now() != self._trained:
            for (name, tensor), trained in zip(self._tensors.items(), self._trained):
                if tensor.requires_grad and not trained:
                    raise ConfigError(f"{name} was unfrozen after the optimizer was made, and would stay out of the training: "
                                      f"let all that is ever to be trained have requires_grad {_BEFORE}, and freeze "
                                      "afterwards what is to stay for a while")
        if not _same(self._groups_now(), self._groups):
            self._take_groups()

    def expect_trained(self, parameters):
        """Checks parameters before they are added to a group of the optimizer. Errors: ConfigError for a parameter that
        the job does not train."""
        known = {id(tensor) for tensor, trained in zip(self._tensors.values(), self._trained) if trained}
        for parameter in parameters:
            if id(parameter) not in known:
                raise ConfigError(f"the optimizer has got a parameter of {parameter.numel()} values that the job does not train: "
                                  f"let it be a parameter of the module, and have requires_grad, {_BEFORE}")

    def expect_in_place(self, tensors):
        """Errors: ConfigError for a tensor of some `FlatTensors` that is no longer in their vector."""
        begin = tensors.vector.values.data_ptr()
        for name, tensor, (first, count) in zip(tensors.names, tensors.tensors, tensors.places):
            if tensor.numel() != count:
                raise ConfigError(f"{name} had {count} values when the optimizer was made, and has {tensor.numel()} now: let "
                                  f"the module take its final shape, as in a first forward pass, {_BEFORE}")
            if count and tensor.data_ptr() != begin + 4 * first:
                _refuse_replaced(name)

    def _tensors_now(self):
        """Returns the tensors by name. It runs in every step, so it makes only one pass over the layers."""
        tensors = {}
        for prefix, layer in self._module().named_modules():
            prefix = prefix and prefix + "."
            for name, parameter in layer._parameters.items():
                if parameter is not None:
                    tensors[prefix + name] = parameter
            for name, buffer in layer._buffers.items():
                if buffer is not None and buffer.is_floating_point() and name not in layer._non_persistent_buffers_set:
                    tensors[prefix + name] = buffer
        return tensors

    def _trained_now(self):
        return [tensor.requires_grad for tensor in self._tensors.values()]

    def _groups_now(self):
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]

    def _expect_same(self, now):
        for name, tensor in now.items():
            if name not in self._tensors:
                raise ConfigError(f"{name} was registered after the optimizer was made, and would stay out of the training: "
                                  f"register parameters and buffers {_BEFORE}")
            if tensor is not self._tensors[name]:
                _refuse_replaced(name)
        for name in self._tensors:
            if name not in now:
                raise ConfigError(f"{name}, which the optimizer was made with, is no longer in the module: change the "
                                  f"module {_BEFORE}")

    def _take_groups(self):
        """Accepts added groups. Errors: ConfigError for a parameter that the job does not train, or that was
        removed."""
        groups = self._groups_now()
        earlier, now = ({id(parameter) for parameter in each} for each in (self._groups, groups))
        self.expect_trained(parameter for parameter in groups if id(parameter) not in earlier)
        for parameter in self._groups:
            if id(parameter) not in now:
                raise ConfigError(f"the optimizer has lost a parameter of {parameter.numel()} values that it was wrapped "
                                  f"with: change its groups {_BEFORE}")
        self._groups = groups


def _same(now, then):
    return len(now) == len(then) and all(one is other for one, other in zip(now, then))


def _refuse_replaced(name):
    raise ConfigError(f"{name} is no longer the tensor that the optimizer was made with: move a module, and replace its "
                      f"parameters, buffers and layers, {_BEFORE}; give a tensor other values by copy_")
