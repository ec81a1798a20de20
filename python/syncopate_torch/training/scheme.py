"""The scheme of a training, as the library describes it."""
import ctypes
import dataclasses
import json

from syncopate_torch.core import library


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How the workers of a scheme step. The flags are those of syncopate_scheme_traits, which explains them."""

    name: str
    options: dict  # texts by their names: those of `init`, of the command line and of the optimizer
    in_rounds: bool
    in_lockstep: bool
    local_steps: bool
    takes_means: bool
    waits_for_steps: bool
    pulls_each_step: bool
    pulls_some_steps: bool

    @property
    def synchronizes(self):
        """Workers exchange anything at all."""
        return self.in_rounds or not self.in_lockstep

    @property
    def shares_steps(self):
        """The optimizers of all workers take the same steps."""
        return self.in_rounds and not self.local_steps

    @property
    def steps_together(self):
        """All workers take each step together."""
        return self.shares_steps and self.in_lockstep


def scheme_of(job, scheme=None, options=None):
    """The `Scheme` of a training with these arguments of `DistributedOptimizer`. Errors: ConfigError."""
    traits = library.SchemeTraits(size=ctypes.sizeof(library.SchemeTraits))
    array, count = library.options(options)
    library.call("describe_scheme", job.handle, library.text(scheme), array, count, ctypes.byref(traits))
    flags = {field.name: bool(getattr(traits, field.name)) for field in dataclasses.fields(Scheme)[2:]}
    return Scheme(traits.scheme.decode(), json.loads(traits.options), **flags)
