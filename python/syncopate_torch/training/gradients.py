"""The gradients of a module: `FlatGradients` in a job of several workers, `OwnGradients` in a job of one."""
import itertools
import math

import torch

from syncopate_torch.training.flat import FlatVector

# Detection of a lost model: up to this number of parameters, a job of one worker checks all gradients before each step.
# In a larger model it checks one part of the parameters in each step.
_LOOKS_AT_ALL = 10_000
_PARTS = 8


class FlatGradients:
    """Gradients whose values are in a flat vector when a step begins; workers exchange this vector.

    As everywhere in torch, a parameter that no backward pass has used has no gradient (`grad` is None), and the
    optimizer does not change it. Its part of the vector is then zero.
    """

    def __init__(self, params, device):
        """params: `FlatTensors`."""
        self._params = params
        self.vector = FlatVector(len(params.vector.values), device)
        self._is_skipped = False
        self._take_views()

    def address(self):
        return self.vector.address()

    def store(self):
        self.vector.store()

    def move(self, address, memory):
        in_place = [self.is_in_place(index) for index in range(len(self._views))]
        self.vector.move(address, memory)
        self._take_views()
        self._show(in_place, absent=lambda parameter: parameter.grad)

    def zero(self, set_to_none):
        self._is_skipped = False
        _zero(self._params, set_to_none)

    def collect(self):
        """Copies the gradients of the last backward passes to the vector, and makes the gradients views of it."""
        with torch.no_grad():
            for parameter, view in zip(self._params.tensors, self._views):
                self._take(parameter, view)
        if self._is_skipped:
            self._is_skipped = False
            self.vector.values.fill_(math.nan)

    def flags(self):
        """Returns a byte for each parameter: 1 if it has a gradient, else 0."""
        return bytes(parameter.grad is not None for parameter in self._params.tensors)

    def use(self, flags):
        """Gives parameters with a flag their gradient from the vector, and removes that of the others."""
        self._show(flags, absent=lambda _parameter: None)

    def are_all_finite(self):
        return is_finite(self.vector.values)

    def skip(self):
        """Sets the vector to zero, and makes the library find non-finite values in the next step."""
        self.vector.values.zero_()
        self._is_skipped = True

    def collect_one(self, index):
        """As `collect`, for the gradient of one parameter."""
        with torch.no_grad():
            self._take(self._params.tensors[index], self._views[index])

    def is_in_place(self, index):
        """True while the gradient of a parameter is the view of the vector that `collect_one` has set."""
        gradient = self._params.tensors[index].grad
        return gradient is not None and not gradient.is_sparse and gradient.data_ptr() == self._places[index]

    def _take(self, parameter, view):
        """Makes the gradient of a parameter its part of the vector."""
        if parameter.grad is not view:
            copy_gradient(parameter, view)
            parameter.grad = None if parameter.grad is None else view

    def _take_views(self):
        """Stores the views, once for each location of the vector, because every step needs them."""
        self._views = self._params.views(self.vector)
        self._places = [view.data_ptr() for view in self._views]

    def _show(self, flags, absent):
        for parameter, view, flag in zip(self._params.tensors, self._views, flags):
            gradient = view if flag else absent(parameter)
            if parameter.grad is not gradient:
                parameter.grad = gradient


class OwnGradients:
    """Gradients in separate memory, where autograd leaves them."""

    def __init__(self, params, looks_at_all):
        """looks_at_all: checks every value in every step."""
        self._params = params
        values = params.vector.values
        self._parts = None if looks_at_all or len(values) <= _LOOKS_AT_ALL else itertools.cycle(values.chunk(_PARTS))

    def zero(self, set_to_none):
        _zero(self._params, set_to_none)

    def collect(self):
        """Has no effect: the gradients are where the optimizer reads them."""

    def is_finite(self):
        """Returns False if a value is not finite. In a large model it checks the parameters part by part: a non-finite
        gradient makes them non-finite permanently."""
        if self._params.vector.values.device.type != "cpu":
            return True  # the check would make the script wait for the device
        if self._parts is not None:
            return is_finite(next(self._parts))
        given = (parameter.grad for parameter in self._params.tensors)
        return all(is_finite(gradient) for gradient in given if gradient is not None)


def copy_gradient(parameter, view):
    """Copies the gradient of a parameter to its part of a flat vector, `view`, which is zero if there is none."""
    gradient = parameter.grad
    if gradient is None:
        view.zero_()
    else:
        view.copy_(gradient.to_dense() if gradient.is_sparse else gradient)


def as_gradient(parameter, part):
    """Stores some values in the memory of the current gradient, if that is dense; else in a new tensor."""
    gradient = parameter.grad
    if gradient is not None and not gradient.is_sparse:
        return gradient.detach().copy_(part)
    return part.to(parameter.device, parameter.dtype, copy=True)


def _zero(params, set_to_none):
    for parameter in params.tensors:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            if parameter.grad.requires_grad:  # from a second derivative
                parameter.grad = parameter.grad.detach()
            parameter.grad.zero_()


def is_finite(values):
    """True if all values of a tensor are finite. The sum of finite values may be infinite, so it is only a first
    check."""
    values = values.detach()
    values = values._values() if values.is_sparse else values
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())
