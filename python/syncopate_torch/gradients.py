"""The gradients of a module's trained parameters, as a replica has them: of the two classes, a job of several workers
takes `FlatGradients`, and a worker by itself `OwnGradients`."""
import contextlib
import itertools
import math

import torch

from syncopate_torch.flat import FlatVector

# Whether a model is lost: up to this number of parameters, a worker by itself looks at all gradients before each step. In
# a larger model it looks at one part of the parameters in each step.
_LOOKS_AT_ALL = 10_000
_PARTS = 8


class FlatGradients:
    """Gradients of which a flat vector has the values when a step begins: that is what workers exchange.

    As everywhere in torch, a parameter that no backward pass has used has none (`grad` is None), and the optimizer leaves
    it as it is. Its part of the vector is zero then.
    """

    def __init__(self, params, device):
        """params: `FlatTensors`."""
        self._params = params
        self.vector = FlatVector(len(params.vector.values), device)
        self._is_skipped = False
        self._take_views()

    def move(self, address, memory):
        in_place = [self.is_in_place(index) for index in range(len(self._views))]
        self.vector.move(address, memory)
        self._take_views()
        self._show(in_place, absent=lambda parameter: parameter.grad)

    def zero(self, set_to_none):
        self._is_skipped = False
        _zero(self._params, set_to_none)

    @contextlib.contextmanager
    def kept(self):
        """In the block no parameter has one."""
        values, flags = self.vector.values.clone(), self.flags()
        self.zero(set_to_none=True)
        try:
            yield
        finally:
            self.vector.values.copy_(values)
            self.use(flags)

    def collect(self):
        """Makes the vector that of the last backward passes, and the gradients views of it."""
        with torch.no_grad():
            for parameter, view in zip(self._params.tensors, self._views):
                if parameter.grad is not view:
                    _copy_gradient(parameter, view)
        if self._is_skipped:
            self._is_skipped = False
            self.vector.values.fill_(math.nan)

    def flags(self):
        """A byte for each parameter: 1 where it has a gradient, else 0."""
        return bytes(parameter.grad is not None for parameter in self._params.tensors)

    def use(self, flags):
        """The parameters with a flag get the gradient that the vector has of them, the others none."""
        self._show(flags, absent=lambda _parameter: None)

    def are_all_finite(self):
        return is_finite(self.vector.values)

    def skip(self):
        """The vector is zero now, and the library finds values that are not finite in the next step."""
        self.vector.values.zero_()
        self._is_skipped = True

    def collect_one(self, index):
        """The same with the gradient of one parameter."""
        if self._params.tensors[index].grad is not self._views[index]:
            with torch.no_grad():
                _copy_gradient(self._params.tensors[index], self._views[index])

    def is_in_place(self, index):
        """True while the gradient of a parameter is the part of the vector that `collect_one` has made it."""
        gradient = self._params.tensors[index].grad
        return gradient is not None and not gradient.is_sparse and gradient.data_ptr() == self._places[index]

    def _take_views(self):
        """Once for each place of the vector: every step needs them."""
        self._views = self._params.views(self.vector)
        self._places = [view.data_ptr() for view in self._views]

    def _show(self, flags, absent):
        for parameter, view, flag in zip(self._params.tensors, self._views, flags):
            gradient = view if flag else absent(parameter)
            if parameter.grad is not gradient:
                parameter.grad = gradient


class OwnGradients:
    """Each in memory of its own, where autograd leaves it."""

    def __init__(self, params, looks_at_all):
        """looks_at_all: at every value in every step."""
        self._params = params
        values = params.vector.values
        self._parts = None if looks_at_all or len(values) <= _LOOKS_AT_ALL else itertools.cycle(values.chunk(_PARTS))

    def zero(self, set_to_none):
        _zero(self._params, set_to_none)

    def collect(self):
        """They are where the optimizer takes them from."""

    def is_finite(self):
        """False where a value is not finite. In a large model the parameters tell it, part by part: a gradient that is not
        finite makes them so for good."""
        if self._params.vector.values.device.type != "cpu":
            return True  # to look would make the script wait for the device
        if self._parts is not None:
            return is_finite(next(self._parts))
        given = (parameter.grad for parameter in self._params.tensors)
        return all(is_finite(gradient) for gradient in given if gradient is not None)


def _copy_gradient(parameter, view):
    """Makes the gradient of a parameter a part of a flat vector, `view`, which is zero where there is none."""
    gradient = parameter.grad
    if gradient is None:
        view.zero_()
        return
    view.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
    parameter.grad = view


def _zero(params, set_to_none):
    for parameter in params.tensors:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            if parameter.grad.requires_grad:  # of a second derivative
                parameter.grad = parameter.grad.detach()
            parameter.grad.zero_()


def is_finite(values):
    """Whether all values of a tensor are. Sums of finite values may be infinite."""
    values = values.detach()
    values = values._values() if values.is_sparse else values
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())
