"""The scheme of a training, described by the library."""
import ctypes
import dataclasses
import json

from syncopate_torch.core import library


@dataclasses.dataclass(frozen=True)
class Scheme:
    """Describes how the workers of a scheme step. The flags are those of syncopate_scheme_traits, where they are
    explained."""

    name: str
    options: dict  # strings by name: options of `init`, the command line and the optimizer
    in_rounds: bool
    in_lockstep: bool
    local_steps: bool
    takes_means: bool
    waits_for_steps: bool
    pulls_each_step: bool
    pulls_some_steps: bool

    @property
    def synchronizes(self):
        """True if workers exchange anything."""
        return self.in_rounds or not self.in_lockstep

    @property
    def shares_steps(self):
        """True if the optimizers of all workers take the same steps."""
        return self.in_rounds and not self.local_steps

    @property
    def steps_together(self):
        """True if all workers take each step together."""
        return self.shares_steps and self.in_lockstep


def scheme_of(job, scheme=None, options=None):
    """Returns the `Scheme` of a training with these arguments of `DistributedOptimizer`. Errors: ConfigError."""
    traits = library.SchemeTraits(size=ctypes.sizeof(library.SchemeTraits))
    array, count = library.options(options)
    library.call("describe_scheme", job.handle, library.text(scheme), array, count, ctypes.byref(traits))
    flags = {field.name: bool(getattr(traits, field.name)) for field in dataclasses.fields(Scheme)[2:]}
    return Scheme(traits.scheme.decode(), json.loads(traits.options), **flags)
