"""The gradients of a module's trained parameters, as a replica has them: of the two classes, a job of several workers
takes `FlatGradients`, and a worker by itself `OwnGradients`."""
import contextlib
import itertools
import math

import torch

from syncopate_torch.errors import ConfigError
from syncopate_torch.flat import FlatVector

# Whether a model is lost: up to this number of parameters, a worker by itself looks at all gradients before each step. In
# a larger model it looks at one part of the parameters in each step.
_LOOKS_AT_ALL = 10_000
_PARTS = 8


class FlatGradients:
    """Views of a flat vector, which is what workers exchange."""

    def __init__(self, params, device):
        """params: `FlatTensors`."""
        self._params = params
        self.vector = FlatVector(len(params.vector.values), device)
        self._is_skipped = False
        self._take_views()

    def move(self, address, memory):
        self.vector.move(address, memory)
        self._take_views()

    def zero(self, set_to_none):  # noqa: ARG002 (they stay views, whatever is asked for)
        self._is_skipped = False
        self.vector.values.zero_()
        self._attach()

    @contextlib.contextmanager
    def kept(self):
        """In the block they are zero."""
        kept = self.vector.values.clone()
        self.zero(set_to_none=False)
        try:
            yield
        finally:
            self.vector.values.copy_(kept)

    def collect(self):
        """Makes the vector that of the last backward passes. Errors: ConfigError, for a sparse gradient."""
        for index in range(len(self._views)):
            if not self.is_in_place(index):
                self.collect_one(index)
        if self._is_skipped:
            self._is_skipped = False
            self.vector.values.fill_(math.nan)

    def are_all_finite(self):
        return _is_finite(self.vector.values)

    def skip(self):
        """The vector is zero now, and the library finds values that are not finite in the next step."""
        self.vector.values.zero_()
        self._is_skipped = True

    def collect_one(self, index):
        """The same with the gradient of one parameter."""
        view, gradient = self._views[index], _dense_gradient(self._params, index)
        with torch.no_grad():
            if gradient is None:
                view.zero_()
            elif gradient.data_ptr() != view.data_ptr():
                view.copy_(gradient)
        if gradient is not view:
            self._params.tensors[index].grad = view

    def is_in_place(self, index):
        """True while the gradient of a parameter is the part of the vector that `collect_one` has made it."""
        gradient = self._params.tensors[index].grad
        return gradient is not None and not gradient.is_sparse and gradient.data_ptr() == self._places[index]

    def _take_views(self):
        """Once for each place of the vector: every step needs them."""
        self._views = self._params.views(self.vector)
        self._places = [view.data_ptr() for view in self._views]
        self._attach()

    def _attach(self):
        for parameter, view in zip(self._params.tensors, self._views):
            if parameter.grad is not view:
                parameter.grad = view


class OwnGradients:
    """Each in memory of its own, where autograd leaves it. In a flat vector autograd would add it to zeros, which costs
    some percent of a step, for nobody."""

    def __init__(self, params, looks_at_all):
        """looks_at_all: at every value in every step."""
        self._params = params
        values = params.vector.values
        self._parts = None if looks_at_all or len(values) <= _LOOKS_AT_ALL else itertools.cycle(values.chunk(_PARTS))

    def zero(self, set_to_none):
        for parameter in self._params.tensors:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad.detach_().zero_()

    def collect(self):
        """Errors: ConfigError, for a sparse gradient."""
        for index, parameter in enumerate(self._params.tensors):
            if _dense_gradient(self._params, index) is None:
                parameter.grad = torch.zeros_like(parameter)

    def is_finite(self):
        """False where a value is not finite. In a large model the parameters tell it, part by part: a gradient that is not
        finite makes them so for good."""
        if self._params.vector.values.device.type != "cpu":
            return True  # to look would make the script wait for the device
        if self._parts is not None:
            return _is_finite(next(self._parts))
        given = (parameter.grad for parameter in self._params.tensors)
        return all(_is_finite(gradient) for gradient in given if gradient is not None)


def _is_finite(values):
    """Sums of finite values may be infinite."""
    values = values.detach()
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())


def _dense_gradient(params, index):
    """Of one parameter, or None."""
    gradient = params.tensors[index].grad
    if gradient is not None and gradient.is_sparse:
        raise ConfigError(f"the gradient of {params.names[index]} is sparse; a replica holds dense ones")
    return gradient
