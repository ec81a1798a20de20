"""Gradients of many tensors, reduced over all workers as one vector."""
import weakref

import torch

from syncopate_torch.errors import ConfigError

# Of each job: the length and the type of the vector of each reduction, by number. All workers make them in the same order.
_made = weakref.WeakKeyDictionary()


class FlatReduction:
    """Replaces the gradients of parameters by their sum or mean over the workers that take part.

    A worker that takes no more steps contributes nothing: the last value of the vector counts those that do. Where a job
    has several reductions, those that take part say before each round which one it is of.
    """

    def __init__(self, job, parameters, mean=True, dtype=None):
        """dtype: in which values travel [float64 where a parameter is of it, else float32]."""
        _expect_real(parameters)
        self._job, self._parameters = job, parameters
        self._mean = mean
        double = any(parameter.dtype == torch.float64 for parameter in parameters)
        count = sum(parameter.numel() for parameter in parameters)
        self._vector = torch.zeros(count + 1, dtype=dtype or (torch.float64 if double else torch.float32))
        reductions = _made.setdefault(job, [])
        reductions.append((count + 1, self._vector.dtype))
        self._number = len(reductions)

    def reduce(self):
        """A collective of all workers that have not ended. Errors: ConfigError, where another worker reduces the gradients
        of another optimizer."""
        if len(_made[self._job]) > 1:
            self._expect_own_round()
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

    def _expect_own_round(self):
        found = _round_of(self._job, self._number)
        if found != self._number:
            raise ConfigError(f"this worker steps optimizer {self._number} of its job while another one steps optimizer "
                              f"{found}: step them in the same order on all workers")

    def _parts(self):
        """Each parameter, and its part of the vector in its shape."""
        offset = 0
        for parameter in self._parameters:
            yield parameter, self._vector[offset:offset + parameter.numel()].view(parameter.shape)
            offset += parameter.numel()


def contribute_nothing(job):
    """Takes part in the rounds of the others until all have ended. Returns the number of these rounds."""
    reductions, rounds = _made.get(job, []), 0
    while reductions:
        number = 1 if len(reductions) == 1 else _round_of(job, 0)
        if number == 0 or _sum_without_own(job, *reductions[number - 1])[-1] == 0:
            break
        rounds += 1
    return rounds


def _sum_without_own(job, length, dtype):
    return job.allreduce(torch.zeros(length, dtype=dtype))


def _round_of(job, own):
    """The greatest number of a reduction that a worker takes part in; 0: all have ended."""
    return int(job.allreduce(torch.tensor([own]), "max"))


def _expect_real(parameters):
    if not parameters:
        raise ConfigError("the optimizer has no parameter to train")
    if any(parameter.is_complex() for parameter in parameters):
        raise ConfigError("expected real parameters, found a complex one: train torch.view_as_real of it, and make the "
                          "complex values of that by torch.view_as_complex in the forward pass")
