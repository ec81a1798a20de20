"""The tensors of a module of which some are of bfloat16 or float16. They keep their memory, and the flat vectors that workers
exchange hold their values in float32, so that sums do not lose what the lower precision cannot hold."""
import torch

from syncopate_torch.training.flat import LOWER_PRECISION, FlatTensors, expect_count
from syncopate_torch.training.gradients import FlatGradients, as_gradient, copy_gradient


def has_lower_precision(named):
    """True if some tensors are of lower precision than float32."""
    return any(tensor.dtype in LOWER_PRECISION for _, tensor in named)


class ConvertedTensors(FlatTensors):
    """As `FlatTensors`, but the vector holds copies of the values, in float32. A value that the job has stored is rounded to
    the type of its tensor, on all workers in the same way."""

    are_views = False

    def _join(self):
        self._parts = self.views(self.vector)

    def address(self):
        with torch.no_grad():
            for tensor, part in zip(self.tensors, self._parts):
                part.copy_(tensor)
        return super().address()

    def move(self, address, memory):
        self.vector.move(address, memory)
        self._join()

    def store(self):
        super().store()
        with torch.no_grad():
            for tensor, part in zip(self.tensors, self._parts):
                tensor.data.copy_(part)

    def holds(self, tensor):
        """True if the memory of a tensor is that of one of the module's."""
        if tensor.layout != torch.strided or tensor.numel() == 0:
            return False
        return any(tensor.device == each.device and 0 <= tensor.data_ptr() - each.data_ptr() < each.numel() * each.element_size()
                   for each in self.tensors)

    def expect_in_place(self):
        """Errors: ConfigError for a tensor that has another number of values now."""
        for name, tensor, (_, count) in zip(self.names, self.tensors, self.places):
            expect_count(name, tensor, count)

    def release(self):
        """Makes the vector empty."""
        self._parts = []
        self.vector.values = self.vector.values.new_empty(0)


class ConvertedGradients(FlatGradients):
    """As `FlatGradients`, but a gradient keeps its memory and its type, that of its parameter. Within a step the vector has
    the values without rounding."""

    def move(self, address, memory):
        self.vector.move(address, memory)
        self._take_views()

    def use(self, flags):
        with torch.no_grad():
            for parameter, view, flag in zip(self._params.tensors, self._views, flags):
                parameter.grad = as_gradient(parameter, view) if flag else None

    def store(self):
        super().store()
        self.use(self.flags())

    def _take(self, parameter, view):
        copy_gradient(parameter, view)
