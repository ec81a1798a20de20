"""What hvd.DistributedOptimizer makes of an optimizer."""
import contextlib
import functools
import warnings

import torch

from syncopate_torch.errors import ConfigError
from syncopate_torch.flat_reduction import FlatReduction


def make_distributed(optimizer, workers, mean, dtype):
    """Gives an optimizer a class that derives from its own, whose `step` reduces gradients before.

    workers: a job, or a group of some of its workers; None: this worker is in no such group, and steps by itself.
    """
    reduction = FlatReduction(workers, _trained(optimizer), mean=mean, dtype=dtype) if workers is not None else None
    methods = {name: method for name, method in vars(_Distributed).items() if not name.startswith("__")}
    counter = vars(optimizer).pop("step", None)
    optimizer.__class__ = type(f"Distributed{type(optimizer).__name__}", (type(optimizer),), methods)
    optimizer._reduction, optimizer._skip, optimizer._has_reduced = reduction, False, False
    if counter is not None:
        _count_steps(optimizer, counter)


def _count_steps(optimizer, counter):
    """Schedulers replace `step` of an optimizer by a function that counts calls of its class's step, here of the class that
    it had before. They warn where that function has gone."""
    @functools.wraps(counter)  # with the attributes by which they know it
    def step(*arguments, **options):
        optimizer._step_count = getattr(optimizer, "_step_count", 0) + 1  # torch 1
        optimizer._opt_called = True  # torch 2
        return type(optimizer).step(optimizer, *arguments, **options)

    optimizer.step = step


def expect_names(optimizer, named_parameters):
    """Errors: ConfigError, where the optimizer has other parameters, too."""
    named = {id(parameter) for _, parameter in named_parameters}
    unnamed = sum(id(each) not in named for group in optimizer.param_groups for each in group["params"])
    if unnamed:
        raise ConfigError(f"named_parameters lacks {unnamed} parameters of the optimizer; pass model.named_parameters()")


def _trained(optimizer):
    return [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]


class _Distributed:
    """What `DistributedOptimizer` adds to the class of an optimizer."""

    def synchronize(self):
        """Replaces gradients by their mean now: to clip or to look at them. Then step within `skip_synchronize`."""
        if self._reduction is not None:
            self._reduction.include(_trained(self))  # what the script has added or unfrozen
            self._reduction.reduce()
        self._has_reduced = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Steps within it take gradients as they are."""
        self._skip = True
        try:
            yield
        finally:
            self._skip = False

    def step(self, closure=None):
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._skip:
            if self._has_reduced:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() reduces the gradients again that "
                              "optimizer.synchronize() has reduced", stacklevel=2)
            self.synchronize()
        self._has_reduced = False
        own = type(self).__mro__[1].step(self)
        return own if closure is None else loss

    step.hooked = True  # the step of the own class runs the hooks: torch is not to wrap this one for them, too
