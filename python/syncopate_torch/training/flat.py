"""The tensors of a module as views of flat vectors, and the checks that the tensors are equal on all workers and stay those
with which the optimizer was made."""
import collections.abc
import ctypes
import itertools
import weakref
import zlib

import torch

from syncopate_torch.core import library
from syncopate_torch.core.errors import ConfigError
from syncopate_torch.training.summary import gathered


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


#: Types of parameters and buffers that a job exchanges, always as float32.
LOWER_PRECISION = (torch.bfloat16, torch.float16)
EXCHANGED = (torch.float32, *LOWER_PRECISION)


def untrained_tensors(module):
    """Returns the state that changes without being trained, such as running statistics. State of other types than
    `EXCHANGED` belongs to each worker, and so do buffers outside of the module's state (`persistent=False`), such as masks and
    caches; `Job.broadcast_parameters` makes them equal."""
    passing = {id(layer._buffers[name]) for layer in module.modules() for name in layer._non_persistent_buffers_set}
    return [(name, tensor) for name, tensor in module.named_buffers()
            if tensor.dtype in EXCHANGED and id(tensor) not in passing]


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

    #: True if the tensors have the values of the vector without `store`, unless the vector is on another device.
    are_views = True

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
        self._join()

    def _join(self):
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

    def address(self):
        """Returns the host memory of the vector, with the current values of the tensors."""
        return self.vector.address()

    def store(self):
        """Gives the tensors the values of the host memory."""
        self.vector.store()

    def move(self, address, memory):
        """Moves the vector, as `FlatVector.move`."""
        self.vector.move(address, memory)
        for tensor, view in zip(self.tensors, self.views(self.vector)):
            tensor.data = view

    def expect_in_place(self):
        """Errors: ConfigError for a tensor that is no longer in the vector."""
        begin = self.vector.values.data_ptr()
        for name, tensor, (first, count) in zip(self.names, self.tensors, self.places):
            expect_count(name, tensor, count)
            if count and tensor.data_ptr() != begin + 4 * first:
                _refuse_replaced(name)

    def release(self):
        """Gives the tensors separate memory, with which a script may continue to train, even if this runs in
        `torch.inference_mode`; the vector is empty afterwards."""
        with torch.inference_mode(False), torch.no_grad():
            for tensor in self.tensors:
                tensor.data = tensor.data.clone()
            self.vector.values = self.vector.values.new_empty(0)


def _let_go(_memory):
    """Drops the last reference to some memory."""


def expect_exchanged(named):
    """Errors: ConfigError for a tensor of a type that a job does not exchange."""
    for name, tensor in named:
        if tensor.dtype not in EXCHANGED:
            raise ConfigError(f"{name} is of {tensor.dtype}: a job trains parameters of float32, bfloat16 and float16; call "
                              "module.float(), or freeze it by requires_grad_(False)")


def _expect(name, tensor, device):
    if tensor.device != device:
        raise ConfigError(f"a worker trains on one device, found {device} and, of {name}, {tensor.device}")


def _stride(tensor):
    """Returns the tensor's own stride, such as that of channels-last weights, if it leaves no gaps."""
    for dimensions, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == dimensions and tensor.is_contiguous(memory_format=layout):
            return tensor.stride()
    return torch.empty(tensor.shape, device="meta").stride()


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
    _expect_of_all(group, [each for kind, pairs in named.items() for each in _described(kind, pairs)])


def expect_same_to_train(group, module):
    """As `expect_same`, for the tensors that a training exchanges: other buffers may differ."""
    expect_made(module.named_parameters())
    trained, frozen = ([pair for pair in module.named_parameters() if pair[1].requires_grad is trains] for trains in (True, False))
    _expect_of_all(group, _described("trained parameter", trained) + _described("frozen parameter", frozen)
            + _described("buffer", untrained_tensors(module)))


def _described(kind, named):
    return [f"{name}, a {kind} of {tensor.dtype} with the shape {list(tensor.shape)}" for name, tensor in named]


def _expect_of_all(group, own):
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


def expect_count(name, tensor, count):
    if tensor.numel() != count:
        raise ConfigError(f"{name} had {count} values when the optimizer was made, and has {tensor.numel()} now: let the module "
                          f"take its final shape, as in a first forward pass, {_BEFORE}")


def _same(now, then):
    return len(now) == len(then) and all(one is other for one, other in zip(now, then))


def _refuse_replaced(name):
    raise ConfigError(f"{name} is no longer the tensor that the optimizer was made with: move a module, and replace its "
                      f"parameters, buffers and layers, {_BEFORE}; give a tensor other values by copy_")
