"""Gradients of many tensors, reduced over all workers as one vector."""
import weakref

import torch

from syncopate_torch.errors import ConfigError


class FlatReduction:
    """Replaces the gradients of parameters by their sum or mean over the workers that take part.

    A worker that takes no more steps contributes nothing: the last value of the vector counts those that do.
    """

    of_optimizers = weakref.WeakSet()

    def __init__(self, job, parameters, mean=True, dtype=None):
        """dtype: in which values travel [float32]."""
        if not parameters:
            raise ConfigError("the optimizer has no parameter to train")
        self._job, self._parameters = job, parameters
        self._mean = mean
        count = sum(parameter.numel() for parameter in parameters)
        self._vector = torch.zeros(count + 1, dtype=dtype or torch.float32)
        self.of_optimizers.add(self)

    def reduce(self):
        """A collective of all workers that have not ended."""
        with torch.no_grad():
            for parameter, part in self._parts():
                if parameter.grad is None:
                    part.zero_()
                else:
                    part.copy_(parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad)
            self._vector[-1] = 1
            self._job.allreduce(self._vector)
            divisor = float(self._vector[-1]) if self._mean else 1
            for parameter, part in self._parts():
                mean = part.to(device=parameter.device, dtype=parameter.dtype) / divisor
                if parameter.grad is None or parameter.grad.is_sparse:
                    parameter.grad = mean.clone()
                else:
                    parameter.grad.copy_(mean)

    def contribute_nothing(self):
        """Takes part in a `reduce` of the others. False: there is none, because all have ended."""
        self._vector.zero_()
        self._job.allreduce(self._vector)
        return float(self._vector[-1]) > 0

    def _parts(self):
        """Each parameter, and its part of the vector in its shape."""
        offset = 0
        for parameter in self._parameters:
            yield parameter, self._vector[offset:offset + parameter.numel()].view(parameter.shape)
            offset += parameter.numel()
