"""The tensors of a module as views of flat vectors, and its gradients.

A job of several workers takes `FlatGradients`, a worker by itself `OwnGradients`.
"""
import contextlib
import ctypes
import itertools
import math
import weakref

import torch

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError


def trained_tensors(module):
    """The parameters that are trained, by name, each once."""
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not named:
        raise ConfigError("the module has no parameter to train")
    expect_made(named)
    return named


def expect_made(named):
    """Errors: ConfigError, for a tensor without a shape, such as the weight of a LazyLinear."""
    for name, tensor in named:
        if torch.nn.parameter.is_lazy(tensor):
            raise ConfigError(f"{name} has no shape yet: let the module compute one batch before broadcast_parameters and "
                              "DistributedOptimizer")


def untrained_tensors(module):
    """The state of float32 that changes without being trained, such as running statistics. That of other types is each
    worker's own, and so is what is no part of the module's state (`persistent=False`), such as masks and caches;
    `Job.broadcast_parameters` makes it equal."""
    passing = {id(layer._buffers[name]) for layer in module.modules() for name in layer._non_persistent_buffers_set}
    return [(name, tensor) for name, tensor in module.named_buffers()
            if tensor.dtype == torch.float32 and id(tensor) not in passing]


def expect_apart(named):
    """Errors: ConfigError, for two tensors that share memory, which would be parted."""
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
    """The parameters that are not trained: they stay as they are, so they need not travel in every round."""
    return [parameter.data for parameter in module.parameters() if not parameter.requires_grad]


class FlatVector:
    """A float32 vector on a device, whose memory the host can see."""

    def __init__(self, count, device):
        self.values = torch.zeros(count, dtype=torch.float32, device=device)
        self._host = None  # of another device than a CPU, once it was seen

    def address(self):
        """The host memory of the vector, with its present values."""
        if self.values.device.type == "cpu":
            return self.values.data_ptr()
        if self._host is None:
            pinned = self.values.device.type == "cuda"  # its copies are faster then; other devices may have no such memory
            self._host = torch.empty(self.values.shape, dtype=torch.float32, device="cpu", pin_memory=pinned)
        self._host.copy_(self.values)
        return self._host.data_ptr()

    def store(self):
        """Copies the host memory back to the device."""
        if self._host is not None:
            self.values.copy_(self._host)

    def part(self, first, count):
        """Some of its values; on a CPU as a storage of its own, which cannot grow."""
        if self.values.device.type != "cpu":
            return self.values[first:first + count]
        place = (ctypes.c_float * count).from_address(self.values.data_ptr() + self.values.element_size() * first)
        weakref.finalize(place, _let_go, self.values).atexit = False  # the memory is that of the vector
        return torch.frombuffer(place, dtype=torch.float32)

    def move(self, address, memory):
        """Lives in that memory from now on, which has its values already; it is released with the last view of it."""
        place = (ctypes.c_float * len(self.values)).from_address(address)
        # Not at the end of the script: views may live until then.
        weakref.finalize(place, library.call, "memory_release", memory).atexit = False
        self.values = torch.frombuffer(place, dtype=torch.float32)


class FlatTensors:
    """Tensors of a module as views of one flat vector, in their order, without gaps; their strides stay.

    may_resize: the module may call `resize_` on them. In a view that would grow into the next tensor. So each is a storage
    of its own on a CPU, where this fails; and one that is empty stays what it is.
    """

    def __init__(self, named, device, may_resize=False):
        self._may_resize = may_resize
        self.names = [name for name, _ in named]
        self.tensors = [tensor for _, tensor in named]
        counts = [tensor.numel() for tensor in self.tensors]
        #: The first value of each tensor in the vector, and the number of its values.
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
        """The part of a vector of the same length that a tensor would be a view of."""
        first, count = self.places[index]
        shape, stride = self.tensors[index].shape, self._strides[index]
        if not self._may_resize:
            return vector.values.as_strided(shape, stride, first)
        if count == 0:
            return self.tensors[index]
        part = vector.part(first, count)
        return part.as_strided(shape, stride, part.storage_offset())

    def views(self, vector):
        """The parts of a vector of the same length that the tensors would be views of."""
        return [self.view(vector, index) for index in range(len(self.tensors))]

    def holds(self, tensor):
        """Whether the memory of a tensor is that of the vector."""
        values = self.vector.values
        if tensor.device != values.device or tensor.layout != torch.strided:
            return False
        return 0 <= tensor.data_ptr() - values.data_ptr() < values.numel() * values.element_size()

    def attach(self):
        """Makes the tensors views of the vector, which has moved."""
        for tensor, view in zip(self.tensors, self.views(self.vector)):
            tensor.data = view

    def release(self):
        """Gives the tensors memory of their own, with which a script may train on, also where this happens in
        `torch.inference_mode`; the vector is empty afterwards."""
        with torch.inference_mode(False), torch.no_grad():
            for tensor in self.tensors:
                tensor.data = tensor.data.clone()
            self.vector.values = self.vector.values.new_empty(0)


def _let_go(_memory):
    """Of the last reference to some memory."""


def _expect(name, tensor, device):
    if tensor.dtype != torch.float32:
        raise ConfigError(f"{name} is of {tensor.dtype}: a replica holds float32 parameters; train module.float(), under "
                          "torch.autocast where lower precision should compute, or freeze it by requires_grad_(False)")
    if tensor.device != device:
        raise ConfigError(f"a worker trains on one device, found {device} and, of {name}, {tensor.device}")


def _stride(tensor):
    """The tensor's own, such as that of channels-last weights, where it leaves no gaps."""
    for dimensions, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == dimensions and tensor.is_contiguous(memory_format=layout):
            return tensor.stride()
    return torch.empty(tensor.shape, device="meta").stride()


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
