"""The tensors of a module as views of flat vectors, and its gradients.

A job of several workers uses `FlatGradients`, a job of one worker `OwnGradients`.
"""
import ctypes
import itertools
import math
import weakref

import torch

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError


def trained_tensors(module):
    """Returns the trained parameters by name, each once."""
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not named:
        raise ConfigError("the module has no parameter to train")
    expect_made(named)
    return named


def expect_made(named):
    """Errors: ConfigError for a tensor without a shape, such as the weight of a LazyLinear."""
    for name, tensor in named:
        if torch.nn.parameter.is_lazy(tensor):
            raise ConfigError(f"{name} has no shape yet: let the module compute one batch before broadcast_parameters and "
                              "DistributedOptimizer")


def untrained_tensors(module):
    """Returns the float32 state that changes without being trained, such as running statistics. State of other types
    belongs to each worker, and so do buffers outside of the module's state (`persistent=False`), such as masks and
    caches; `Job.broadcast_parameters` makes them equal."""
    passing = {id(layer._buffers[name]) for layer in module.modules() for name in layer._non_persistent_buffers_set}
    return [(name, tensor) for name, tensor in module.named_buffers()
            if tensor.dtype == torch.float32 and id(tensor) not in passing]


def expect_apart(named):
    """Errors: ConfigError for two tensors that share memory, which would be separated."""
    begins = sorted((tensor.data_ptr(), index) for index, (_, tensor) in enumerate(named) if tensor.numel() > 0)
    end, before = 0, None
    for begin, index in begins:
        name, tensor = named[index]
        if begin < end:
            raise ConfigError(f"{before} and {name} share memory, which each would have of its own: give both names the same "
                              "Parameter, or register the buffer with persistent=False")
        reach = 1 + sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride()))
        end, before = begin + tensor.element_size() * reach, name


def frozen_tensors(module):
    """Returns the parameters that are not trained. They do not change, so they are not exchanged in rounds."""
    return [parameter.data for parameter in module.parameters() if not parameter.requires_grad]


class FlatVector:
    """A float32 vector on a device, with a view in host memory."""

    def __init__(self, count, device):
        self.values = torch.zeros(count, dtype=torch.float32, device=device)
        self._host = None  # on a device other than a CPU, after the first view

    def address(self):
        """Returns the host memory of the vector, with its current values."""
        if self.values.device.type == "cpu":
            return self.values.data_ptr()
        if self._host is None:
            pinned = self.values.device.type == "cuda"  # copies are faster then; other devices may have no such memory
            self._host = torch.empty(self.values.shape, dtype=torch.float32, device="cpu", pin_memory=pinned)
        self._host.copy_(self.values)
        return self._host.data_ptr()

    def store(self):
        """Copies the host memory back to the device."""
        if self._host is not None:
            self.values.copy_(self._host)

    def part(self, first, count):
        """Returns some of its values; on a CPU as a separate storage, which cannot grow."""
        if self.values.device.type != "cpu":
            return self.values[first:first + count]
        place = (ctypes.c_float * count).from_address(self.values.data_ptr() + self.values.element_size() * first)
        weakref.finalize(place, _let_go, self.values).atexit = False  # the vector owns the memory
        return torch.frombuffer(place, dtype=torch.float32)

    def move(self, address, memory):
        """Moves the vector to memory that has its values already; the memory is released with the last view of it."""
        place = (ctypes.c_float * len(self.values)).from_address(address)
        # Not at exit: views may live until then.
        weakref.finalize(place, library.call, "memory_release", memory).atexit = False
        self.values = torch.frombuffer(place, dtype=torch.float32)


class FlatTensors:
    """Tensors of a module as views of one flat vector, in their order, without gaps; strides do not change.

    may_resize: the module may call `resize_` on the tensors. A view would grow into the next tensor. On a CPU each
                tensor is therefore a separate storage, for which `resize_` fails; an empty tensor is not replaced.
    """

    def __init__(self, named, device, may_resize=False):
        self._may_resize = may_resize
        self.names = [name for name, _ in named]
        self.tensors = [tensor for _, tensor in named]
        counts = [tensor.numel() for tensor in self.tensors]
        #: Offset of each tensor's first value in the vector, and the number of its values.
        self.places = list(zip(itertools.accumulate([0, *counts]), counts))
        for name, tensor in named:
            _expect(name, tensor, device)
        self._strides = [_stride(tensor) for tensor in self.tensors]
        self.vector = FlatVector(sum(counts), device)
        with torch.no_grad():
            for tensor, view in zip(self.tensors, self.views(self.vector)):
                view.copy_(tensor)
                tensor.data = view

    def view(self, vector, index):
        """Returns the part of a vector of the same length that corresponds to a tensor."""
        first, count = self.places[index]
        shape, stride = self.tensors[index].shape, self._strides[index]
        if not self._may_resize:
            return vector.values.as_strided(shape, stride, first)
        if count == 0:
            return self.tensors[index]
        part = vector.part(first, count)
        return part.as_strided(shape, stride, part.storage_offset())

    def views(self, vector):
        """Returns the parts of a vector of the same length that correspond to the tensors."""
        return [self.view(vector, index) for index in range(len(self.tensors))]

    def holds(self, tensor):
        """True if the memory of a tensor belongs to the vector."""
        values = self.vector.values
        if tensor.device != values.device or tensor.layout != torch.strided:
            return False
        return 0 <= tensor.data_ptr() - values.data_ptr() < values.numel() * values.element_size()

    def attach(self):
        """Makes the tensors views of the vector after it has moved."""
        for tensor, view in zip(self.tensors, self.views(self.vector)):
            tensor.data = view

    def release(self):
        """Gives the tensors separate memory, with which a script may continue to train, even if this runs in
        `torch.inference_mode`; the vector is empty afterwards."""
        with torch.inference_mode(False), torch.no_grad():
            for tensor in self.tensors:
                tensor.data = tensor.data.clone()
            self.vector.values = self.vector.values.new_empty(0)


def _let_go(_memory):
    """Drops the last reference to some memory."""


def _expect(name, tensor, device):
    if tensor.dtype != torch.float32:
        raise ConfigError(f"{name} is of {tensor.dtype}: a replica holds float32 parameters; train module.float(), under "
                          "torch.autocast where lower precision should compute, or freeze it by requires_grad_(False)")
    if tensor.device != device:
        raise ConfigError(f"a worker trains on one device, found {device} and, of {name}, {tensor.device}")


def _stride(tensor):
    """Returns the tensor's own stride, such as that of channels-last weights, if it leaves no gaps."""
    for dimensions, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == dimensions and tensor.is_contiguous(memory_format=layout):
            return tensor.stride()
    return torch.empty(tensor.shape, device="meta").stride()


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
                if parameter.grad is not view:
                    _copy_gradient(parameter, view)
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
        if self._params.tensors[index].grad is not self._views[index]:
            with torch.no_grad():
                _copy_gradient(self._params.tensors[index], self._views[index])

    def is_in_place(self, index):
        """True while the gradient of a parameter is the view of the vector that `collect_one` has set."""
        gradient = self._params.tensors[index].grad
        return gradient is not None and not gradient.is_sparse and gradient.data_ptr() == self._places[index]

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


def _copy_gradient(parameter, view):
    """Makes the gradient of a parameter a part of a flat vector, `view`, which is zero if there is none."""
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
            if parameter.grad.requires_grad:  # from a second derivative
                parameter.grad = parameter.grad.detach()
            parameter.grad.zero_()


def is_finite(values):
    """True if all values of a tensor are finite. The sum of finite values may be infinite, so it is only a first
    check."""
    values = values.detach()
    values = values._values() if values.is_sparse else values
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())
